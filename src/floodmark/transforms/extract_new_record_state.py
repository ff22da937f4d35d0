"""Replaces envelopes by the rows that they hold, as ``io.debezium.transforms.ExtractNewRecordState`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.transforms import AddedField, ExtractNewRecordStateOptions
from floodmark.errors import SourceStateError
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment
from floodmark.transforms.records import NULL, Header, Records, Struct, Values, plain, with_default

DELETED = "__deleted"
_TEXT: ConnectSchema = {"type": "string", "optional": True}
_KEPT = ("type", "items", "keys", "values", "fields", "name", "version", "doc", "parameters")
"""What the schema of an added field keeps of its own: all but its default."""


class ExtractNewRecordState:
    """The transform.

    Args:
        options: its own.
    """

    def __init__(self, options: ExtractNewRecordStateOptions) -> None:
        self._options = options
        self._mode = options.delete_tombstone_handling_mode
        self._rewrites = self._mode in ("rewrite", "rewrite-with-tombstone")
        self._fields, self._headers = options.fields, options.headers

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return what becomes of records.

        Raises:
            SourceStateError: a row has no such field as the options say, or has one that the options add.
        """
        value = records.value
        if value is None:
            if self._mode != "rewrite-with-tombstone":
                return ()
            # In Debezium, a tombstone has the very headers of its delete.
            return (records if records.deleted is None else self._with_headers(records, records.deleted),)
        if not str(value.schema.get("name", "")).endswith("Envelope"):
            return (records,)
        records = self._with_headers(records, value)
        before, after = value.value("before"), value.value("after")
        assert isinstance(before, Struct)
        assert isinstance(after, Struct)
        if after.values is not None:
            return (self._with_fields(self._routed(self._row(records, after, "false"), after), value),)
        if before.values is None or self._mode == "drop":
            return ()
        if self._mode == "delete-to-tombstone":
            return (self._routed(replace(records, value=None), before),)
        if self._mode == "tombstone":
            return (self._routed(replace(records, value=after), before),)
        return (self._with_fields(self._routed(self._row(records, before, "true"), before), value),)

    def _with_headers(self, records: Records, envelope: Struct) -> Records:
        added = [Header(one.name, found[1]) for one in self._headers if (found := _found(envelope, one)) is not None]
        return replace(records, headers=(*records.headers, *added))

    def _row(self, records: Records, row: Struct, deleted: str) -> Records:
        if not self._rewrites:
            return replace(records, value=row)
        if self._options.replace_null_with_default:
            row = _with_defaults(row)
        return replace(records, value=self._extended(row, [(DELETED, _TEXT, f'"{deleted}"')]))

    def _with_fields(self, records: Records, envelope: Struct) -> Records:
        assert records.value is not None
        added = [(one.name, *found) for one in self._fields if (found := _found(envelope, one)) is not None]
        return replace(records, value=self._extended(records.value, added))

    def _extended(self, row: Struct, added: Sequence[tuple[str, ConnectSchema, Values]]) -> Struct:
        try:
            return row.with_fields(added)
        except ValueError as exc:
            raise SourceStateError(
                f"ExtractNewRecordState adds the field '{exc}' to rows of {_owner(row)}, which have one of that name.",
                "Give it another name: 'add.fields' takes '<field>:<new name>', and 'add.fields.prefix' begins all.",
            ) from None

    def _routed(self, records: Records, row: Struct) -> Records:
        name = self._options.route_by_field
        if not name:
            return records
        field = row.field(name)
        if field is None or field["type"] != "string":
            problem = "isn't there" if field is None else f"is of the type {field['type']}, not string"
            raise SourceStateError(
                f"ExtractNewRecordState can't route rows of {_owner(row)} by the field '{name}', which {problem}.",
                "Correct 'route.by.field', or limit the transform to other topics by a predicate.",
            )
        values = row.value(name)
        assert isinstance(values, Fragment)
        topic = plain(values)
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(topic), ""), True)
        same = records.topic if isinstance(records.topic, pa.Array) else pa.scalar(records.topic)
        return replace(records, topic=pc.if_else(blank, same, topic))


def _found(envelope: Struct, one: AddedField) -> tuple[ConnectSchema, Values] | None:
    """Return the schema and the values of a field of the envelope; None if there is no such field."""
    parent = envelope
    if one.struct:
        struct = envelope.value(one.struct)
        assert isinstance(struct, Struct)
        parent = struct
    field = parent.field(one.field)
    if field is None:
        parent = envelope
        field = parent.field(one.field)
    if field is None:
        return None
    return {**{key: field[key] for key in _KEPT if key in field}, "optional": True}, parent.value(one.field)


def _with_defaults(row: Struct) -> Struct:
    """Return rows with the defaults of columns in the place of nulls."""
    assert row.values is not None
    return Struct(row.schema, [with_default(value, field) for field, value in zip(row.fields, row.values, strict=True)])


def _owner(row: Struct) -> str:
    return str(row.schema.get("name", NULL)).removesuffix(".Value")
