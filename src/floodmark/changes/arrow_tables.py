"""Typed rows of any tables as Arrow data: ``format=arrow``.

A row of the output holds many rows of one table, as an Arrow IPC stream with a schema of its own. So Spark neither
converts them nor has to know their columns, and a table may be new, or altered, while the query runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.capture.gaps import Gap
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import TableVersion
from floodmark.changes.typed_rows import FIXED, RowVersion, rows_schema
from floodmark.config.common import CommonOptions
from floodmark.events.columns import EventGroup, assemble
from floodmark.events.gaps import GAP

ARROW_SCHEMA = pa.schema([("table", pa.string()), ("count", pa.int64()), ("rows", pa.binary())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))
"""Rows pass through Spark's JVM twice: compressed, they cost less on the whole, and less than with LZ4."""
_NAME = "_name"
"""The column of an event group that holds the table's name, ``schema.table``."""


def packed(rows: pa.Table) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(rows: bytes | pa.Buffer) -> pa.Table:
    """Return the rows of an Arrow IPC stream, such as one that the column ``rows`` of ``format=arrow`` holds."""
    return pa.ipc.open_stream(rows).read_all()


def row_count(batch: pa.RecordBatch) -> int:
    """Return how many rows of tables, or else events, a batch of the output holds."""
    return int(pc.sum(batch["count"]).as_py() or 0) if batch.schema == ARROW_SCHEMA else batch.num_rows


def gap_rows(gaps: Sequence[Gap]) -> pa.RecordBatch:
    """Return gaps as rows of the output; they belong to no table."""
    rows = pa.RecordBatch.from_pylist([{"op": GAP, "position": gap.upto} for gap in gaps], schema=pa.schema(FIXED))
    return _blocks([("", rows)])


class ArrowRowVersion(RowVersion):
    """A table version whose rows have its own columns."""

    def __init__(self, structure: Structure, options: CommonOptions) -> None:
        super().__init__(structure, options, None)

    def _sides(self, before: pa.StructArray, after: pa.StructArray) -> dict[str, pa.Array]:
        name = pa.scalar(f"{self.structure.schema}.{self.structure.table}")
        return {**super()._sides(before, after), _NAME: pa.repeat(name, len(after))}


@dataclass(frozen=True)
class ArrowVersions:
    """Makes the table versions of ``format=arrow``."""

    options: CommonOptions

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        return ArrowRowVersion(structure, self.options)

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        """Return the rows of groups, one row of the output for each version of a table; None if there are none."""
        versions: dict[tuple[str, pa.DataType], list[EventGroup]] = {}
        for group in groups:
            if len(group.order):
                name = group.columns[_NAME][0].as_py()
                versions.setdefault((name, group.columns["after"].type), []).append(group)
        rows = [(name, assemble(own, rows_schema(name, kind))) for (name, kind), own in versions.items()]
        found = [(name, batch) for name, batch in rows if batch is not None]
        return _blocks(found) if found else None


def _blocks(rows: Sequence[tuple[str, pa.RecordBatch]]) -> pa.RecordBatch:
    names = [name or None for name, _ in rows]
    counts = [batch.num_rows for _, batch in rows]
    streams = [packed(pa.Table.from_batches([batch])) for _, batch in rows]
    return pa.RecordBatch.from_arrays(
        [pa.array(names, pa.string()), pa.array(counts, pa.int64()), pa.array(streams, pa.binary())],
        schema=ARROW_SCHEMA,
    )
