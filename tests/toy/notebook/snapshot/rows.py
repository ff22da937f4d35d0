"""Converts rows that the planner's process has read to events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.contract.chunk import Chunk
from floodmark.events.columns import EventGroup
from floodmark.json_data import stored_object
from tests.toy.notebook.decode.records import parse_records, row_columns
from tests.toy.notebook.decode.source_block import block
from tests.toy.notebook.decode.structure import TableStructure
from tests.toy.notebook.options import NotebookOptions


class NotebookRowReader:
    """A ``LocalRowReader``."""

    def __init__(self, options: NotebookOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows as read events: their position is exact, so no change lies in their window."""
        del log
        structure = TableStructure(chunk.table.structure)
        version = self._make_version(structure)
        version.admit(None)
        names = TableNames.of(structure, self._options)
        token = stored_object(chunk.token, "The token of a read point")
        micros = token.integer("micros")
        pieces = block(
            self._options.topic_prefix,
            chunk.marker,
            str(micros // 1000),
            str(micros),
            structure.source_pieces[0],
            token.text("visible"),
        )
        for data in rows:
            found = parse_records(data.payload, len(data.starts))
            columns = version.encode(row_columns(found["after"].combine_chunks(), len(structure.columns)))
            times = pa.repeat(pa.scalar(micros, pa.timestamp("us", tz="UTC")), len(found))
            every = {
                **version.columns("r", len(found), None, columns, pieces),
                **names.columns(),
                "op": "r",
                "position": f"{chunk.position}-00",
                "source_ts": times,
            }
            batch = self._make_version.assemble([EventGroup.of(np.zeros(len(found), np.int64), every)])
            if batch is not None:
                yield batch
