"""Options of Debezium's transforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from floodmark.config.columns import Adjustment
from floodmark.config.java_patterns import Renaming
from floodmark.config.model import Options, Words, option
from floodmark.config.transforms.renaming import checked_renaming

STRUCTS = ("source", "transaction", "before", "after")
"""The structures of an envelope that fields can be taken of."""


_REPLACED = "since Debezium 2.6 'delete.tombstone.handling.mode' says what becomes of deletes and tombstones"


@dataclass(frozen=True)
class AddedField:
    """A field of the envelope that is added to a row, or to its headers.

    Attributes:
        struct: the structure that has it; empty: the envelope itself.
        field: its name there.
        name: the name that it gets.
    """

    struct: str
    field: str
    name: str

    @classmethod
    def parse(cls, text: str, prefix: str) -> AddedField:
        """Return the field that a text such as ``op``, ``source.ts_ms`` or ``lsn:position`` names.

        Raises:
            ValueError: it names none.
        """
        path, *renamed = text.split(":")
        struct, dot, field = path.rpartition(".")
        if len(renamed) > 1 or not field or (dot and struct not in STRUCTS) or "" in renamed:
            raise ValueError(
                f"'{text}' names no field: it must be a field of the event or of its source, or "
                f"{', '.join(f'{name}.<field>' for name in STRUCTS)}, each with ':<new name>' behind it or not"
            )
        name = renamed[0] if renamed else path.replace(".", "_")
        return cls(struct or _struct_of(field), field, prefix + name)


def _struct_of(field: str) -> str:
    if field in ("id", "total_order", "data_collection_order"):
        return "transaction"
    return "" if field in ("op", "ts_ms", "ts_us", "ts_ns") else "source"


class ExtractNewRecordStateOptions(Options):
    """Options of ``io.debezium.transforms.ExtractNewRecordState``."""

    delete_tombstone_handling_mode: Literal[
        "tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"
    ] = option("delete.tombstone.handling.mode", "tombstone", "What becomes of deletes and their tombstones.")
    add_fields: Words = option("add.fields", (), "Fields of the envelope that rows get.")
    add_fields_prefix: str = option("add.fields.prefix", "__", "What their names begin with.")
    add_headers: Words = option("add.headers", (), "Fields of the envelope that become headers.")
    add_headers_prefix: str = option("add.headers.prefix", "__", "What their names begin with.")
    route_by_field: str = option("route.by.field", "", "The column whose value is the topic; a text.")
    replace_null_with_default: bool = option(
        "replace.null.with.default", True, "Whether `rewrite` writes nulls of columns with a default as the default."
    )

    drop_fields_header_name: str = option(
        "drop.fields.header.name", "", "The header that names fields which rows lose; a list, by another transform."
    )
    drop_fields_from_key: bool = option("drop.fields.from.key", False, "Whether keys lose them, too.")
    drop_fields_keep_schema_compatible: bool = option(
        "drop.fields.keep.schema.compatible", True, "Whether only optional fields are left out."
    )

    refused: ClassVar[Mapping[str, str]] = {
        "delete.handling.mode": _REPLACED,
        "drop.tombstones": _REPLACED,
    }

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name, texts in (("add.fields", self.add_fields), ("add.headers", self.add_headers)):
            for text in texts:
                try:
                    AddedField.parse(text, "")
                except ValueError as exc:
                    raise ValueError(f"Option '{name}' is wrong: {exc}.") from None
        return self

    @property
    def fields(self) -> tuple[AddedField, ...]:
        """The fields that rows get."""
        return tuple(AddedField.parse(text, self.add_fields_prefix) for text in self.add_fields)

    @property
    def headers(self) -> tuple[AddedField, ...]:
        """The fields that become headers."""
        return tuple(AddedField.parse(text, self.add_headers_prefix) for text in self.add_headers)


class ExtractChangedRecordStateOptions(Options):
    """Options of ``io.debezium.transforms.ExtractChangedRecordState``."""

    header_changed_name: str = option("header.changed.name", "", "The header that lists the fields that have changed.")
    header_unchanged_name: str = option("header.unchanged.name", "", "The header that lists those that haven't.")


class ByLogicalTableRouterOptions(Options):
    """Options of ``io.debezium.transforms.ByLogicalTableRouter``."""

    topic_regex: str = option("topic.regex", ..., "A regular expression that must match the whole topic.")
    topic_replacement: str = option("topic.replacement", ..., "What its first match in the topic is replaced by.")
    key_enforce_uniqueness: bool = option(
        "key.enforce.uniqueness", True, "Whether keys get a field that tells which topic they come from."
    )
    key_field_name: str = option("key.field.name", "__dbz__physicalTableIdentifier", "That field's name.")
    key_field_regex: str = option(
        "key.field.regex",
        "",
        "A regular expression that must match the whole former topic; without it that is the value.",
    )
    key_field_replacement: str = option(
        "key.field.replacement", "", "What its first match is replaced by, which makes the field's value."
    )
    schema_name_adjustment_mode: Adjustment = option(
        "schema.name.adjustment.mode", "none", "How the schemas' names, which follow from the new topic, are adjusted."
    )
    logical_table_cache_size: int = option("logical.table.cache.size", 16, "Without effect.", ge=0)

    @model_validator(mode="after")
    def _check_expressions(self) -> Self:
        self.renaming, self.key_renaming  # noqa: B018
        if not self.topic_replacement.strip():
            raise ValueError("Option 'topic.replacement' must not be empty.")
        return self

    @property
    def renaming(self) -> Renaming:
        """What becomes of topics."""
        return checked_renaming("topic.regex", self.topic_regex, "topic.replacement", self.topic_replacement)

    @property
    def key_renaming(self) -> Renaming | None:
        """What makes the value of the keys' field of the former topic; None: that is the value."""
        if not self.key_field_regex.strip():
            return None
        if not self.key_field_replacement.strip():
            raise ValueError("Option 'key.field.replacement' is required with 'key.field.regex'.")
        return checked_renaming(
            "key.field.regex", self.key_field_regex, "key.field.replacement", self.key_field_replacement
        )


class ExtractSchemaToNewRecordOptions(Options):
    """Options of ``io.debezium.transforms.ExtractSchemaToNewRecord``."""

    schema_name_adjustment_mode: Adjustment = option(
        "schema.name.adjustment.mode", "none", "How the names of the added schemas are adjusted."
    )


class HeaderToValueOptions(Options):
    """Options of ``io.debezium.transforms.HeaderToValue``."""

    headers: Words = option("headers", ..., "The headers.")
    fields: Words = option(
        "fields", ..., "The fields that they become, in the same order; `<field>.<field>` is one within another."
    )
    operation: Literal["move", "copy"] = option("operation", ..., "Whether they are no headers any more.")

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if len(self.headers) != len(self.fields) or not self.headers:
            raise ValueError("Options 'headers' and 'fields' must name as many headers as fields, and at least one.")
        for word in self.fields:
            if " " in word or "" in word.split("."):
                raise ValueError(f"Option 'fields' is wrong: '{word}' has a blank, or nothing on one side of a dot.")
        return self
