"""Builds keys and envelopes of one table version, column-wise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from floodmark.events.connect_schema import ConnectSchema, schema_start, struct
from floodmark.events.connect_schema import envelope as envelope_schema
from floodmark.events.json_text import Fragment, Joiner


class EnvelopeBuilder:
    """Builds the JSON text of keys and values for the rows of one table version.

    Args:
        topic: the table's topic, as it names the schemas.
        fields: the names of the row's fields.
        schemas: the Connect schemas of the row's fields, as fields.
        key: the names of the key's fields; empty for a table without key.
        key_schemas: the Connect schemas of the key's fields, as fields.
        source_schema: the Connect schema of the source block.
        with_schemas: whether keys and values carry their schema.
    """

    def __init__(
        self,
        topic: str,
        fields: Sequence[str],
        schemas: Sequence[ConnectSchema],
        key: Sequence[str],
        key_schemas: Sequence[ConnectSchema],
        source_schema: ConnectSchema,
        with_schemas: bool,
    ) -> None:
        self.topic = topic
        self.fields = list(fields)
        self.key = list(key)
        self._schemas, self._key_schemas, self._source_schema = schemas, key_schemas, source_schema
        self._key_start = self._value_start = self._end = ""
        if with_schemas:
            self._key_start = schema_start(self.key_schema)
            self._value_start = schema_start(self.schema)
            self._end = "}"

    @cached_property
    def schema(self) -> ConnectSchema:
        """The Connect schema of the envelopes."""
        return envelope_schema(self.topic, self._schemas, self._source_schema)

    @cached_property
    def key_schema(self) -> ConnectSchema:
        """The Connect schema of the keys."""
        return struct(self._key_schemas, False, f"{self.topic}.Key")

    def keys(self, fields: Sequence[Fragment], rows: int, bare: bool = False) -> pa.StringArray:
        """Return the keys, shape (rows,); null for a table without key.

        Args:
            fields: the key's fields.
            rows: how many.
            bare: whether to leave the schema out, as headers do.
        """
        if not self.key:
            return pa.nulls(rows, pa.string())
        joiner = Joiner() if bare else Joiner().add(self._key_start)
        joiner.add_struct(self.key, fields)
        return (joiner if bare else joiner.add(self._end)).join(rows)

    def values(
        self,
        operation: str,
        rows: int,
        before: Sequence[Fragment] | None,
        after: Sequence[Fragment] | None,
        source: Sequence[str | pa.StringArray],
        transaction: Sequence[str | pa.StringArray] | None = None,
    ) -> pa.StringArray:
        """Return the envelopes, shape (rows,).

        Args:
            operation: c, u, d, r or t.
            rows: how many.
            before: the old rows' fields, or None for ``null``.
            after: the new rows' fields, or None for ``null``.
            source: pieces of the source block's text.
            transaction: pieces of the transaction block's text; None: there is none.
        """
        joiner = Joiner().add(self._value_start).add('{"before":')
        self._add_row(joiner, before)
        joiner.add(',"after":')
        self._add_row(joiner, after)
        joiner.add(',"source":')
        for piece in [*source, ',"transaction":', *(transaction or ["null"])]:
            joiner.add(piece)
        now = time.time_ns()
        tail = f'"ts_ms":{now // 1_000_000},"ts_us":{now // 1000},"ts_ns":{now}'
        joiner.add(f',"op":"{operation}",{tail}}}').add(self._end)
        return joiner.join(rows)

    def _add_row(self, joiner: Joiner, row: Sequence[Fragment] | None) -> None:
        if row is None:
            joiner.add("null")
        else:
            joiner.add_struct(self.fields, row)
