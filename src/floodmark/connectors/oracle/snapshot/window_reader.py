"""Rows that were read in a window: their files, and what of them is still valid at the window's end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.changes import DELETE, INSERT
from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.oracle.decode.decoder import Decoder
from floodmark.connectors.oracle.decode.segment import SegmentRows
from floodmark.connectors.oracle.decode.segment_decoder import make_decoder
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.decode.transaction_metadata import WIDTH
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.snapshot.reader import OracleChunkReader
from floodmark.connectors.oracle.snapshot.selection import Selection
from floodmark.connectors.oracle.snapshot.tables import ReadTable
from floodmark.errors import SourceStateError
from floodmark.snapshots.incremental.changed_rows import ChangedRows


def packed(rows: pa.Table) -> SegmentData:
    """Return fetched rows as the content of a file: record batches in Arrow's format, without their schema."""
    pieces = [np.frombuffer(batch.serialize(), np.uint8) for batch in rows.combine_chunks().to_batches()]
    ends = np.cumsum([len(piece) for piece in pieces])
    return SegmentData(np.concatenate(pieces), np.concatenate([[0], ends[:-1]]).astype(np.uint32))


def _unpacked(data: SegmentData, schema: pa.Schema) -> Iterator[pa.Table]:
    ends = np.append(data.starts[1:], len(data.payload)).tolist()
    for begin, end in zip(data.starts.tolist(), ends, strict=True):
        batch = pa.ipc.read_record_batch(pa.py_buffer(data.payload[begin:end]), schema)
        yield pa.Table.from_batches([batch], schema)


class WindowChanges:
    """The changes of one table in a window.

    Args:
        structure: the table as it was read.
        decoder: of the log.
        options: the source's options.
        low: position at which the window begins.
        high: position at which it ends.
    """

    def __init__(
        self, structure: TableStructure, decoder: Decoder, options: OracleOptions, low: str, high: str
    ) -> None:
        self._structure = structure
        self._name = f"{structure.schema}.{structure.table}"
        self._decoder = decoder
        self._options = options
        self._low = low
        self._high = high
        self._rows = 0
        self.changed = ChangedRows(structure.key)

    def add(self, data: SegmentData, after: str, upto: str) -> None:
        """Add the changes of a segment that are in the window and in ``(after, upto]``; segments come in order."""
        segment = SegmentRows(data)
        table = segment.tables.get(self._name)
        if table is None:
            return
        structure = TableStructure(table, self._options.settings)
        if structure.key != self._structure.key:
            raise SourceStateError(
                f"The key of the table {self._name} was altered while it was read.",
                "Start the query again: the rows are read once more.",
            )
        names = [column.name for column in structure.columns]
        inside = segment.within(max(after, self._low), min(upto, self._high))
        shown = segment.shown.slice(inside.start, inside.stop - inside.start)
        found = self._decoder.changes(shown, segment.rows.select(inside), {self._name: structure})
        for changes, columns in found:
            # Two numbers for each change: an update of the key removes a row before it makes the other one.
            order = (self._rows * WIDTH + changes.order) * 2
            kind = int(changes.kind[0])
            if columns is None:
                self.changed.emptied = True
            elif kind == INSERT:
                self.changed.add(names, order, columns.new, made=True)
            elif kind == DELETE:
                self.changed.add(names, order, columns.old, gone=True)
            else:
                self.changed.add_updates(names, order, columns.old, columns.new)
        self._rows += len(shown) + 1


class OracleWindowReader:
    """A ``LocalRowReader``.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
    """

    def __init__(self, options: OracleOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._decoder = make_decoder(options, make_version)
        self._chunks = OracleChunkReader(options, make_version)

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are still valid at the end of their window, as read events."""
        table: ReadTable = chunk.table.structure
        structure = table.structure
        version = self._make_version(structure)
        selection = Selection(structure.columns)
        names = [column.name for column in structure.columns]
        changes = WindowChanges(structure, self._decoder, self._options, chunk.low, chunk.position)
        for data, after, upto in log:
            changes.add(data, after, upto)
        for data in rows:
            for fetched in _unpacked(data, selection.schema):
                kept = changes.changed.still_right(names, selection.raw_columns(fetched))
                batch = self._chunks.events(version, kept, chunk)
                if batch is not None:
                    yield batch
