"""Finds signals: rows that were inserted into the signal table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.capture.segment import SegmentData
from floodmark.connectors.oracle.decode.segment import SegmentRows
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining_options import HYBRID
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.oracle.values.messages import rows_of
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.connectors.oracle.values.shown_rows import WITHOUT_STATEMENTS
from floodmark.errors import DecodeError
from floodmark.signals.records import MOST_CHARACTERS
from floodmark.signals.table import FIELDS


def signals_in(data: SegmentData, options: OracleOptions) -> list[tuple[str, dict[str, str]]]:
    """Return the rows that a segment inserts into signal tables, each with its position.

    Columns are taken by their order, as in Debezium.

    Args:
        data: the segment.
        options: the source's options, which name the signal tables.
    """
    wanted = [name for name in data.header["tables"] if name in options.signal_tables]
    if not wanted:
        return []
    segment = SegmentRows(data, options.adapter)
    shown = segment.shown
    names = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".")
    inserts = pc.equal(shown["OPERATION_CODE"], int(Operation.INSERT))
    found: list[tuple[str, dict[str, str]]] = []
    for name in wanted:
        table = segment.tables[name]
        index = np.flatnonzero(pc.and_(pc.equal(names, name), inserts).to_numpy())
        if len(table.columns) < len(FIELDS) or not len(index):
            continue
        rows = segment.rows.select(index)
        columns = _inserted(rows.statement, table, options)[: len(FIELDS)]
        texts = [one.cast(pa.string()).to_pylist() for one in columns]
        for row, values in enumerate(zip(*texts, strict=True)):
            fields = {key: (value or "")[: MOST_CHARACTERS + 1] for key, value in zip(FIELDS, values, strict=True)}
            found.append((rows.place(row), {**fields, "millis": str(int(rows.seconds[row]) * 1000)}))
    return sorted(found)


def _inserted(statements: pa.StringArray, table: Table, options: OracleOptions) -> list[pa.Array]:
    """Return the values of new rows; they are unknown where one can't be read, which the table's decoding says."""
    if options.adapter in WITHOUT_STATEMENTS:
        try:
            return [one.values for one in rows_of(statements, table, options.adapter).columns(Side.NEW)]
        except DecodeError:
            return [pa.nulls(len(statements), pa.string())] * len(table.columns)
    by_number = options.strategy == HYBRID and table.is_numbered
    read = StatementReader(tuple(column.name for column in table.columns), by_number).read(statements)
    return [one.values for one in raw_columns(read, Side.NEW, table.columns)]
