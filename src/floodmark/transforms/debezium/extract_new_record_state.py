"""Replaces envelopes by the rows that they hold, as ``io.debezium.transforms.ExtractNewRecordState`` does."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.transforms.debezium import AddedField, ExtractNewRecordStateOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment
from floodmark.transforms.failures import failure, member
from floodmark.transforms.records import Header, Records, by_text, is_envelope, is_null
from floodmark.transforms.structs import Member, Struct, Values, plain

DELETED = "__deleted"
_TEXT: ConnectSchema = {"type": "string", "optional": True}
_KEPT = ("type", "items", "keys", "values", "fields", "name", "version", "doc", "parameters")
"""What the schema of an added field keeps of its own: all but its default."""


class ExtractNewRecordState:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = options = cast(ExtractNewRecordStateOptions, settings.options)
        self._mode = options.delete_tombstone_handling_mode
        self._rewrites = self._mode in ("rewrite", "rewrite-with-tombstone")
        self._fields, self._headers = options.fields, options.headers

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return what becomes of records.

        Raises:
            SourceStateError: a row has no such field as the options say, or has one that the options add.
        """
        value = records.value
        if is_null(value):
            if self._mode != "rewrite-with-tombstone":
                return ()
            # In Debezium, a tombstone has the very headers of its delete.
            return (records if records.deleted is None else self._with_headers(records, records.deleted),)
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        records = self._with_headers(records, value)
        before, after = (member(self._settings, "type", records, value, name) for name in ("before", "after"))
        if after.values is not None:
            return self._dropped(self._with_fields(self._routed(self._row(records, after, "false"), after), value))
        if before.values is None or self._mode == "drop":
            return ()
        if self._mode == "delete-to-tombstone":
            return (self._routed(replace(records, value=None), before),)
        if self._mode == "tombstone":
            return (self._routed(replace(records, value=after), before),)
        return (self._with_fields(self._routed(self._row(records, before, "true"), before), value),)

    def _with_headers(self, records: Records, envelope: Struct) -> Records:
        found = [(one, self._found("add.headers", records, envelope, one)) for one in self._headers]
        added = [Header(one.name, *field) for one, field in found if field is not None]
        return replace(records, headers=(*records.headers, *added))

    def _row(self, records: Records, row: Struct, deleted: str) -> Records:
        if not self._rewrites:
            return replace(records, value=row)
        if self._options.replace_null_with_default:
            row = row.with_defaults()
        return self._extended(records, row, [(DELETED, _TEXT, f'"{deleted}"')])

    def _with_fields(self, records: Records, envelope: Struct) -> Records:
        assert isinstance(records.value, Struct)
        found = [(one, self._found("add.fields", records, envelope, one)) for one in self._fields]
        added = [(one.name, *field) for one, field in found if field is not None]
        return self._extended(records, records.value, added)

    def _found(
        self, option: str, records: Records, envelope: Struct, one: AddedField
    ) -> tuple[ConnectSchema, Values] | None:
        """Return the schema and the values of a field of the envelope; None if there is no such field."""
        parent = member(self._settings, option, records, envelope, one.struct) if one.struct else envelope
        field = parent.field(one.field)
        if field is None:
            parent = envelope
            field = parent.field(one.field)
        if field is None:
            return None
        return {**{key: field[key] for key in _KEPT if key in field}, "optional": True}, parent.value(one.field)

    def _extended(self, records: Records, row: Struct, added: Sequence[Member]) -> Records:
        try:
            return replace(records, value=row.with_fields(added))
        except ValueError as exc:
            raise failure(
                self._settings,
                "add.fields" if str(exc) != DELETED else "delete.tombstone.handling.mode",
                records,
                f"it adds the field '{exc}', and they have one of that name",
                "Give it another name: 'add.fields' takes '<field>:<new name>', and 'add.fields.prefix' begins all.",
            ) from None

    def _routed(self, records: Records, row: Struct) -> Records:
        name = self._options.route_by_field
        if not name:
            return records
        field = row.field(name)
        if field is None or field["type"] != "string":
            problem = "isn't there" if field is None else f"is of the type {field['type']}, not string"
            raise failure(self._settings, "route.by.field", records, f"the field '{name}' {problem}")
        values = row.value(name)
        assert isinstance(values, Fragment)
        topic = plain(values)
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(topic), ""), True)
        same = records.topic if isinstance(records.topic, pa.Array) else pa.scalar(records.topic)
        return replace(records, topic=pc.if_else(blank, same, topic))

    def _dropped(self, records: Records) -> Sequence[Records]:
        """Return rows without the fields that a header of each of them names."""
        name = self._options.drop_fields_header_name
        header = records.header(name) if name.strip() else None
        if header is None:
            return (records,)
        if header.schema["type"] != "array":
            problem = f"the header '{name}' is of the type {header.schema['type']}, not a list of names"
            raise failure(self._settings, "drop.fields.header.name", records, problem)
        return [
            self._without(part, json.loads(names)) if names else part for names, part in by_text(records, header.values)
        ]

    def _without(self, records: Records, names: Collection[str]) -> Records:
        """Return rows of which all lose the same fields."""
        if not names:
            return records
        key, value = records.key, records.value
        if self._options.drop_fields_from_key and isinstance(key, Struct):
            key = self._rest(key, names)
        assert isinstance(value, Struct)
        return replace(records, key=key, value=self._rest(value, names))

    def _rest(self, row: Struct, names: Collection[str]) -> Struct:
        kept_compatible = self._options.drop_fields_keep_schema_compatible
        rest = [
            member
            for member in row.with_defaults().members()
            if member[0] not in names or (kept_compatible and not member[1]["optional"])
        ]
        # As in Debezium, the schema stays as it is if no field can be left out.
        return row if kept_compatible and len(rest) == len(row.fields) else row.with_members(rest)
