"""Reads the rows of chunks from a view, undecoded, in the planner's process."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk, KeyRangeChunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.snapshot.key_ranges import (
    forced,
    key_of_row,
    null_condition,
    ordered,
    range_condition,
)
from floodmark.connectors.mysql.snapshot.read_point import MysqlReadPoint
from floodmark.connectors.mysql.snapshot.result_rows import TableChangedError, row_pieces
from floodmark.connectors.mysql.snapshot.tables import fingerprint
from floodmark.connectors.mysql.snapshot.text_rows import select_expression
from floodmark.connectors.mysql.structures.table import Table, table_name
from floodmark.errors import SourceStateError


def chunk_rows(
    point: MysqlReadPoint, chunk: Chunk, size: int, find_table: Callable[[TableId], Table | None]
) -> Generator[SegmentData, None, ChunkOutcome]:
    """Return the rows of a chunk, as ``connectors.contract.read_points.LocalRows.rows`` describes.

    Args:
        point: the view.
        chunk: what to read.
        size: bytes of a piece, approximately.
        find_table: returns a table as it is now.
    """
    table: Table = chunk.table.structure
    statement = chunk.table.statement
    if statement is None:
        seen = point.table((table.database, table.name), find_table)
        if seen is None or fingerprint(seen) != chunk.file:
            return "nothing"
    with point.view() as conn:
        try:
            with closing(row_pieces(conn, _query(table, chunk), f"reading {table_name(table)}", size)) as pieces:
                for buf, starts in pieces:
                    data = SegmentData(buf, starts.astype(np.uint32))
                    if isinstance(chunk, KeyRangeChunk) and chunk.in_order:
                        row = buf[int(starts[-1]) :].tobytes()
                        data.header["last"] = key_of_row(row, table.columns, chunk.key)
                    yield data
        except TableChangedError as exc:
            if statement is not None:
                raise SourceStateError(
                    f"The snapshot's statement for the table {table_name(table)} cannot be used: {exc}",
                    "It must be one SELECT that returns all columns of the table.",
                ) from None
            return "nothing"
    return "complete"


def _query(table: Table, chunk: Chunk) -> str:
    columns = ", ".join(map(select_expression, table.columns))
    statement = chunk.table.statement
    if statement is not None:
        # The statement may end in a comment, so the bracket has a line of its own.
        return f"SELECT {columns} FROM ({statement.strip().rstrip(';')}\n) AS selected"
    if not isinstance(chunk, KeyRangeChunk):
        return f"SELECT {columns} FROM {table_name(table)}"
    key = chunk.key
    if chunk.upto is None and not chunk.to_end:
        where = null_condition(key)
    else:
        where = range_condition(key, chunk.after, chunk.upto)
    condition = f" AND ({chunk.condition})" if chunk.condition else ""
    return f"SELECT {columns} FROM {table_name(table)}{forced(key)} WHERE ({where}){condition} ORDER BY {ordered(key)}"
