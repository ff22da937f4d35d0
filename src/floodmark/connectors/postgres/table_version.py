"""What is needed to make events of one version of a table; the log and snapshots share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.relation import Relation
from floodmark.connectors.postgres.source_block import SCHEMA as SOURCE_SCHEMA
from floodmark.connectors.postgres.tuples import TextColumn
from floodmark.connectors.postgres.types.codec import Codec
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.errors import DecodeError, describe
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.events.connect_schema import field_schema
from floodmark.events.envelope import EnvelopeBuilder
from floodmark.events.json_text import Fragment, closed
from floodmark.events.topics import table_topic


class TableVersion:
    """A relation version with its codecs and its envelope builder."""

    def __init__(self, relation: Relation, options: PostgresOptions) -> None:
        self.relation = relation
        columns = relation.columns
        self._tombstones = options.tombstones_on_delete
        self.codecs = [codec_for(c.type_oid, c.modifier, relation.types, options) for c in columns]
        self.names = [column.name for column in columns]
        self.key_indices = [self.names.index(name) for name in relation.key]
        schemas = [
            field_schema(codec.schema, column.optional and column.name not in relation.key, column.name)
            for codec, column in zip(self.codecs, columns, strict=True)
        ]
        topic = table_topic(options.topic_prefix, relation.schema, relation.table, options.topic_delimiter)
        self.builder = EnvelopeBuilder(topic, self.names, schemas, relation.key, SOURCE_SCHEMA, options.schemas_enable)

    @property
    def tombstones(self) -> bool:
        """Whether a delete is followed by a tombstone."""
        return self._tombstones

    def columns(
        self,
        operation: str,
        rows: int,
        before: Sequence[Fragment] | None,
        after: Sequence[Fragment] | None,
        source: Sequence[str | pa.StringArray],
    ) -> dict[str, pa.Array]:
        """Return the output columns that hold the rows.

        Args:
            operation: c, u, d, r or t.
            rows: how many events.
            before: the old rows, as ``encode`` or ``encode_old`` returned them.
            after: the new rows, as ``encode`` returned them.
            source: pieces of the source block's text.
        """
        row = after if after is not None else before
        keys = pa.nulls(rows, pa.string()) if row is None else self.keys(row, rows)
        return {"key": keys, "value": self.builder.values(operation, rows, before, after, source)}

    def encode(self, columns: Sequence[TextColumn]) -> list[Fragment]:
        """Return the JSON of new rows; values that the log lacks become the placeholder."""
        fragments = []
        for name, codec, column in zip(self.names, self.codecs, columns, strict=True):
            fragment = _encoded(name, codec, column.text)
            if column.unchanged is not None:
                text = pc.if_else(pa.array(column.unchanged), codec.unavailable, closed(fragment))
                fragment = Fragment(text)
            fragments.append(fragment)
        return fragments

    def encode_old(self, columns: Sequence[TextColumn], complete: bool) -> list[Fragment]:
        """Return the JSON of old rows.

        Args:
            columns: as the log holds them.
            complete: whether all columns are in the log; otherwise what is missing from NOT NULL
                columns becomes the type's zero, as in Debezium.
        """
        if complete:
            return self.encode(columns)
        result = []
        for codec, info, column in zip(self.codecs, self.relation.columns, columns, strict=True):
            fragment = _encoded(info.name, codec, column.text)
            if fragment.text.null_count and not info.optional:
                fragment = Fragment(pc.if_else(pc.is_null(fragment.text), codec.zero, closed(fragment)))
            result.append(fragment)
        return result

    def keys(self, row: Sequence[Fragment], rows: int, bare: bool = False) -> pa.StringArray:
        """Return the rows' keys, without their schema if ``bare``; null for a table without key."""
        return self.builder.keys({self.names[i]: row[i] for i in self.key_indices}, rows, bare)

    def key_changed(self, old: Sequence[TextColumn], new: Sequence[TextColumn]) -> NDArray[np.bool_]:
        """Tell for each row whether both keys are known and differ, shape (rows,)."""
        rows = len(old[0].text) if old else 0
        changed = np.zeros(rows, bool)
        known = np.ones(rows, bool)
        for i in self.key_indices:
            before, after = old[i].text, new[i].text
            known &= np.asarray(before.is_valid()) & np.asarray(after.is_valid())
            changed |= np.asarray(pc.not_equal(before, after).fill_null(False))
        return changed & known


def _encoded(name: str, codec: Codec, text: pa.StringArray) -> Fragment:
    try:
        return codec.encode(text)
    except Exception as exc:
        # Whatever it is, the text isn't what the server writes for the type.
        raise DecodeError(f"The column '{name}' holds what its type does not have: {describe(exc)}") from exc


class VersionMaker(Protocol):
    """Makes table versions for one kind of output; its ``schema`` is that output's."""

    @property
    def schema(self) -> pa.Schema:
        """The output's schema."""

    def __call__(self, relation: Relation) -> TableVersion:
        """Return the version for a relation."""


@dataclass(frozen=True)
class EventVersions:
    """Makes the table versions of ``format=events``."""

    options: PostgresOptions
    schema: pa.Schema = EVENT_SCHEMA

    def __call__(self, relation: Relation) -> TableVersion:
        """Return the version for a relation."""
        return TableVersion(relation, self.options)


def with_old_values(new: Sequence[TextColumn], old: Sequence[TextColumn]) -> list[TextColumn]:
    """Fill the values that a new row lacks from the complete old row."""
    result = []
    for after, before in zip(new, old, strict=True):
        if after.unchanged is None:
            result.append(after)
            continue
        lacking = after.unchanged & np.asarray(before.text.is_valid())
        text = pc.if_else(pa.array(lacking), before.text, after.text)
        rest = after.unchanged & ~lacking
        result.append(TextColumn(text, rest if rest.any() else None))
    return result


def take_columns(columns: Sequence[TextColumn], index: NDArray[np.int64]) -> list[TextColumn]:
    """Return some of the rows."""
    at = pa.array(index)
    return [
        TextColumn(column.text.take(at), None if column.unchanged is None else column.unchanged[index])
        for column in columns
    ]
