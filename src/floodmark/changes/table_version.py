"""Encodes the rows of one version of a table for events; used for the log and for snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.column_plan import Field, codec_of, plan_columns
from floodmark.changes.structure import Structure
from floodmark.codecs.arrays import as_mask, valid
from floodmark.codecs.codec import Codec, one_json
from floodmark.codecs.raw_column import RawColumn
from floodmark.config.common import CommonOptions
from floodmark.errors import DecodeError, describe
from floodmark.events.columns import EVENT_SCHEMA, EventGroup, assemble, header_lists
from floodmark.events.connect_schema import Raw, field_schema
from floodmark.events.envelope import EnvelopeBuilder
from floodmark.events.json_text import Fragment, Text, closed, dumps, string
from floodmark.events.names import adjusted_schema_name
from floodmark.events.topics import table_topic
from floodmark.json_data import Json
from floodmark.transforms.chain import Chain, header_text
from floodmark.transforms.envelopes import envelopes
from floodmark.transforms.records import Header, Records
from floodmark.transforms.structs import Struct, Written

KeyHeader: TypeAlias = tuple[str, pa.StringArray]
"""The name of a header, and the keys that are its values, as JSON."""


class _Slot(NamedTuple):
    """A column of a structure as it is encoded for a row or for a key.

    Attributes:
        column: the index of the structure's column.
        default: JSON of the column's default.
        null: JSON that replaces null; None: ``null``.
        lacking: JSON that replaces a value of a NOT NULL column that the log lacks.
    """

    column: int
    codec: Codec
    optional: bool
    default: str | None
    null: str | None
    lacking: str

    def filled(self, fragment: Fragment) -> Fragment:
        """Return JSON with the column's default in the place of null, unless options leave that out."""
        return fragment if self.null is None else fragment.filled(self.null)

    def schema(self, field: Field) -> dict[str, Json]:
        """Return the schema of the field that holds the column."""
        members = self.codec.schema if self.default is None else {**self.codec.schema, "default": Raw(self.default)}
        return field_schema(members, field.optional or self.codec.always_optional, field.name)


class TableVersion:
    """A structure version with its codecs and its envelope builder."""

    holds_unknown = False
    """Whether rows always hold columns of types without a mapping."""

    def __init__(self, structure: Structure, options: CommonOptions) -> None:
        self.structure = structure
        columns = structure.columns
        self._tombstones = options.tombstones_on_delete
        self._header_schemas = options.header_schemas
        self._chain = Chain(options) if options.reshapes_records else None
        plan = plan_columns(structure, options)
        self.names = [column.name for column in columns]
        self.key_indices = [self.names.index(name) for name in structure.key]
        bare = [codec_of(structure, index, options) for index in range(len(columns))]
        self._row = [field for field in plan.row if self.holds_unknown or bare[field.column].known]
        self.codecs = [
            bare[field.column] if field.transform is None else field.transform.shown(bare[field.column])
            for field in self._row
        ]
        self._slots = [
            _slot(structure, field.column, bare[field.column], codec, options)
            for field, codec in zip(self._row, self.codecs, strict=True)
        ]
        # A key's column needs its own slot if the row does not have it, or has it transformed.
        shared = {field.column: place for place, field in enumerate(self._row) if field.transform is None}
        self._key: list[int] = []
        for field in plan.key:
            place = shared.get(field.column)
            if place is None:
                place = len(self._slots)
                self._slots.append(_slot(structure, field.column, bare[field.column], bare[field.column], options))
            self._key.append(place)
        self._key_columns = [field.column for field in plan.key]
        self._constants = [value for _, value in plan.constants]
        topic = table_topic(options, structure.schema, structure.table)
        self.builder = EnvelopeBuilder(
            adjusted_schema_name(topic, options.schema_name_adjustment_mode),
            [field.name for field in self._row],
            [slot.schema(field) for field, slot in zip(self._row, self._slots, strict=False)],
            [*(field.name for field in plan.key), *(name for name, _ in plan.constants)],
            [
                *(self._slots[place].schema(field) for field, place in zip(plan.key, self._key, strict=True)),
                *(field_schema({"type": "string"}, False, name) for name, _ in plan.constants),
            ],
            structure.source_schema,
            options.schemas_enable,
        )

    @property
    def tombstones(self) -> bool:
        """Whether a delete is followed by a tombstone."""
        return self._tombstones

    @property
    def has_transforms(self) -> bool:
        """Whether transforms are applied to events."""
        return self._chain is not None

    def columns(
        self,
        operation: str,
        rows: int,
        before: Sequence[Fragment] | None,
        after: Sequence[Fragment] | None,
        source: Sequence[str | pa.StringArray],
        transaction: Sequence[str | pa.StringArray] | None = None,
        *,
        topic: Text = "",
        header: KeyHeader | None = None,
    ) -> dict[str, pa.Array]:
        """Return the output columns that hold the rows.

        Args:
            operation: c, u, d, r or t.
            rows: how many events.
            before: the old rows, as ``encode`` or ``encode_old`` returned them.
            after: the new rows, as ``encode`` returned them.
            source: pieces of the source block's text.
            transaction: pieces of the transaction block's text; None: there is none.
            topic: where they go.
            header: a header that they have.
        """
        row = after if after is not None else before
        width = len(self._row)
        old, new = (None if fields is None else fields[:width] for fields in (before, after))
        if self._chain is None:
            keys = pa.nulls(rows, pa.string()) if row is None else self.keys(row, rows)
            columns = {"key": keys, "value": self.builder.values(operation, rows, old, new, source, transaction)}
            if header is None:
                return columns
            text = header_text(Fragment(header[1]), self.builder.key_schema, rows, self._header_schemas)
            return {**columns, "headers": header_lists([(header[0], text)], rows)}
        value = envelopes(self.builder.schema, operation, rows, old, new, source, transaction)
        return self._chain.columns(self._records(rows, topic, row, value, header))

    def tombstone_columns(
        self,
        rows: int,
        row: Sequence[Fragment],
        source: Sequence[Text],
        transaction: Sequence[Text] | None,
        *,
        topic: Text = "",
        header: KeyHeader | None = None,
    ) -> dict[str, pa.Array]:
        """Return the output columns of the tombstones that follow the deletes of rows, as transforms make them.

        Args:
            rows: how many.
            row: the deleted rows, as ``encode_old`` returned them.
            source: of the deletes, as for ``columns``.
            transaction: of the deletes.
            topic: where they go.
            header: a header that they have.
        """
        assert self._chain is not None
        deleted = envelopes(self.builder.schema, "d", rows, row[: len(self._row)], None, source, transaction)
        return self._chain.columns(replace(self._records(rows, topic, row, None, header), deleted=deleted))

    def _records(
        self, rows: int, topic: Text, row: Sequence[Fragment] | None, value: Struct | None, header: KeyHeader | None
    ) -> Records:
        """Return records in the form that transforms take.

        Args:
            rows: how many.
            topic: where they go.
            row: the rows that have their keys; None: they have none.
            value: their envelopes; None: they are tombstones.
            header: a header that they have.
        """
        key = None
        if row is not None and self.builder.key:
            fields = [row[place] for place in self._key]
            key = Struct(self.builder.key_schema, [*fields, *(dumps(value) for value in self._constants)])
        headers: tuple[Header, ...] = ()
        if header is not None:
            schema = self.builder.key_schema
            headers = (Header(header[0], schema, Written(schema, [header[1]], rows)),)
        # Tables with the same columns are decoded together.
        table = f"{self.structure.schema}.{self.structure.table}"
        origin = f"rows of {table}" if isinstance(topic, str) else f"rows of tables such as {table}"
        return Records(origin, rows, topic, key, value, headers, np.arange(rows))

    def encode(self, columns: Sequence[RawColumn]) -> list[Fragment]:
        """Return the JSON of new rows, followed by the fields that only their keys need.

        Values that the log lacks become the placeholder.
        """
        fragments = []
        for slot in self._slots:
            column = columns[slot.column]
            fragment = self._encoded(slot, column.values)
            if column.unchanged is not None:
                fragment = _with_literal(fragment, pa.array(column.unchanged), slot.codec.unavailable)
            fragments.append(fragment)
        return fragments

    def encode_old(self, columns: Sequence[RawColumn], complete: bool) -> list[Fragment]:
        """Return the JSON of old rows.

        Args:
            columns: as the log holds them.
            complete: whether all columns are in the log; otherwise what is missing from NOT NULL
                columns becomes their default, else the type's zero, as in Debezium.
        """
        if complete:
            return self.encode(columns)
        result = []
        for slot in self._slots:
            values = columns[slot.column].values
            fragment = self._encoded(slot, values)
            if values.null_count and not slot.optional:
                fragment = _with_literal(fragment, pc.is_null(values), slot.lacking)
            result.append(fragment)
        return result

    def admit(self, place: str | None) -> None:
        """Accept rows at a position in the log, or, for None, from the table; events can show any table version."""

    def left_by_create(self, before: Sequence[Fragment]) -> Sequence[Fragment] | None:
        """Return the old row of the create that follows a changed key: none, as in Debezium.

        Args:
            before: the old row, as ``encode_old`` returned it.
        """
        del before
        return None

    def _encoded(self, slot: _Slot, values: pa.Array) -> Fragment:
        try:
            fragment = slot.codec.encode(values)
        except Exception as exc:
            # Whatever the error is, the values aren't what the server writes for the type.
            name = self.names[slot.column]
            raise DecodeError(f"The column '{name}' holds what its type does not have: {describe(exc)}") from exc
        # Transforms see whether a value is null.
        return fragment if self._chain else slot.filled(fragment)

    def keys(self, row: Sequence[Fragment], rows: int, bare: bool = False) -> pa.StringArray:
        """Return the rows' keys, without their schema if ``bare``; null for a table without key."""
        constants = [string(pa.repeat(pa.scalar(value, pa.string()), rows)) for value in self._constants]
        fields = [self._slots[place].filled(row[place]) if self._chain else row[place] for place in self._key]
        return self.builder.keys([*fields, *constants], rows, bare)

    def key_changed(
        self, old: Sequence[RawColumn], new: Sequence[RawColumn], complete: bool = False
    ) -> NDArray[np.bool_]:
        """Return for each row whether both keys are known and differ, shape (rows,).

        Args:
            old: the old rows.
            new: the new rows.
            complete: whether all columns of the old rows are known; otherwise null means unknown.
        """
        rows = len(old[0].values) if old else 0
        changed = np.zeros(rows, bool)
        known = np.ones(rows, bool)
        for i in self._key_columns:
            before, after = old[i].values, new[i].values
            changed |= _differ(before, after)
            if not complete:
                known &= valid(before) & valid(after)
        return changed & known

    def row_changed(self, old: Sequence[RawColumn], new: Sequence[RawColumn]) -> NDArray[np.bool_]:
        """Return for each row whether the old and the new row differ as events show them, shape (rows,)."""
        rows = len(old[0].values) if old else 0
        changed = np.zeros(rows, bool)
        for field in self._row:
            before, after = old[field.column].values, new[field.column].values
            if field.transform is not None:
                before, after = field.transform.compared(before), field.transform.compared(after)
            if before is not None and after is not None:
                changed |= _differ(before, after)
        return changed


def _with_literal(fragment: Fragment, where: pa.BooleanArray, json: str) -> Fragment:
    """Return values with the same JSON in some rows; the others that are null stay so."""
    if json == "null":
        return Fragment(pc.if_else(where, pa.scalar(None, pa.string()), fragment.text), fragment.quoted)
    if fragment.quoted and json.startswith('"'):
        return Fragment(pc.if_else(where, json[1:-1], fragment.text), quoted=True)
    whole = closed(fragment)
    if fragment.text.null_count:
        whole = pc.if_else(pc.is_null(fragment.text), pa.scalar(None, pa.string()), whole)
    return Fragment(pc.if_else(where, json, whole))


def _slot(structure: Structure, index: int, bare: Codec, shown: Codec, options: CommonOptions) -> _Slot:
    """Return a column's slot.

    Args:
        structure: the table.
        index: of the column.
        bare: the codec of its values.
        shown: the codec of its values as rows show them.
        options: the source's options.
    """
    optional = structure.columns[index].optional
    value = structure.default(index, bare)
    if value is None:
        return _Slot(index, shown, optional, None, None, shown.zero)
    default, lacking = (one_json(codec, value) for codec in (bare, shown))
    null = default if options.value_converter_replace_null_with_default else None
    return _Slot(index, shown, optional, default, null, shown.zero if lacking is None else lacking)


def _differ(before: pa.Array, after: pa.Array) -> NDArray[np.bool_]:
    """Return for each row whether two values differ, shape (rows,); two nulls don't."""
    differ = as_mask(pc.not_equal(before, after))
    if before.null_count or after.null_count:
        differ = differ | (valid(before) != valid(after))
    return differ


class VersionMaker(Protocol):
    """Makes table versions for one kind of output, and the batches of that output."""

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        """Return the events of groups as one batch of the output; None if there are none."""


@dataclass(frozen=True)
class EventVersions:
    """Makes the table versions of ``format=events``.

    Attributes:
        options: the source's.
        schema: the columns that events get, of those of ``EVENT_SCHEMA``.
    """

    options: CommonOptions
    schema: pa.Schema = EVENT_SCHEMA

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        return TableVersion(structure, self.options)

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        """Return the events of groups in their order."""
        return assemble(groups, self.schema)
