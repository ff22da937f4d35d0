"""Converts rows that the planner's process has read to events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.mysql.decode.structure import Flavor, TableStructure
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.snapshot.result_rows import row_ends
from floodmark.connectors.mysql.snapshot.text_rows import split_text_rows
from floodmark.connectors.mysql.snapshot.token import ReadPointToken
from floodmark.connectors.mysql.snapshot.window_changes import WindowChanges
from floodmark.connectors.mysql.source_block import snapshot_block, table_pieces
from floodmark.events.columns import EventGroup

SLICE_ROWS = 1 << 16
"""Rows that are decoded together: small slices keep the working set in the processor's caches."""


class BinlogRowReader:
    """A ``LocalRowReader``."""

    def __init__(self, options: BinlogOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._flavor: Flavor = "mariadb" if options.connector == "mariadb" else "mysql"
        self._make_version = make_version

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are still right at the end of their window, as read events."""
        structure = TableStructure(chunk.table.structure, self._flavor)
        version = self._make_version(structure)
        changes = None
        # The positions are the same if the view's place in the log is exact: no change can have come in between.
        if chunk.low < chunk.position:
            changes = WindowChanges(structure, chunk.low, chunk.position)
            for data, after, upto in log:
                changes.add(data, after, upto)
        for data in rows:
            yield from self._events_of(data, version, chunk, changes)

    def _events_of(
        self, data: SegmentData, version: TableVersion, chunk: Chunk, changes: WindowChanges | None
    ) -> Iterator[pa.RecordBatch]:
        assert isinstance(version.structure, TableStructure)
        columns = version.structure.columns
        starts = data.starts.astype(np.int64)
        ends = row_ends(len(data.payload), starts)
        for first in range(0, len(starts), SLICE_ROWS):
            part = slice(first, first + SLICE_ROWS)
            values = split_text_rows(data.payload, starts[part], ends[part], list(columns))
            if changes is not None:
                values = changes.still_right(values)
            batch = self._events(version, len(values[0].values), values, chunk)
            if batch is not None:
                yield batch

    def _events(
        self, version: TableVersion, rows: int, columns: Sequence[RawColumn], chunk: Chunk
    ) -> pa.RecordBatch | None:
        token, structure = ReadPointToken.from_json(chunk.token), version.structure
        version.admit(None)
        source = snapshot_block(
            self._flavor,
            self._options.topic_prefix,
            table_pieces(structure.schema, structure.table),
            token.micros,
            chunk.marker,
            None,
            token.file,
            token.offset,
        )
        names = TableNames.of(structure, self._options)
        columns_of = {
            "topic": names.topic,
            "table": names.table,
            **version.columns("r", rows, None, version.encode(columns), [source], topic=names.topic),
            "txid": pa.nulls(rows, pa.string()),
            "source_ts": pa.repeat(pa.scalar(token.micros, pa.timestamp("us", tz="UTC")), rows),
            "op": "r",
            "database": structure.schema,
            "position": f"{chunk.position}-00",
        }
        return self._make_version.assemble([EventGroup.of(np.zeros(rows, np.int64), columns_of)])
