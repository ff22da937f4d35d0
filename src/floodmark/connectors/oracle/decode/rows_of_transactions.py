"""The rows of committed transactions, with what their events say of their transaction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.decode.row_changes import CommittedRows
from floodmark.connectors.oracle.mining.transactions import Committed

Numbers = NDArray[np.int64]


def rows_of(transactions: Sequence[Committed]) -> tuple[pa.Table, CommittedRows]:
    """Return the changes of transactions in their order, as the view has them, and as events need them.

    Of a transaction, events name the first change that they have, not its beginning, as Debezium's do.

    Args:
        transactions: at least one.
    """
    tables = [pa.concat_tables(one.changes) for one in transactions]
    counts = np.array([len(one) for one in tables])
    rows = pa.concat_tables(tables).combine_chunks()
    ends = np.cumsum(counts)
    first = ends - counts
    commits = pa.concat_tables([one.commit for one in transactions])
    scn, seconds = _numbers(rows, "SCN"), _seconds(rows)
    return rows, CommittedRows(
        scn,
        np.repeat(_numbers(commits, "SCN"), counts),
        np.repeat(scn[first], counts),
        seconds,
        np.repeat(_seconds(commits), counts),
        np.repeat(seconds[first], counts),
        _texts(rows, "XID"),
        _numbers(rows, "THREAD#"),
        np.arange(1, len(rows) + 1) - np.repeat(first, counts),
        pc.utf8_trim_whitespace(_texts(rows, "RS_ID")),
        _numbers(rows, "SSN"),
        _texts(rows, "USERNAME"),
        _texts(rows, "ROW_ID"),
        _texts(rows, "SQL_REDO"),
    )


def _numbers(rows: pa.Table, name: str) -> Numbers:
    found: Numbers = rows[name].to_numpy()
    return found


def _seconds(rows: pa.Table) -> Numbers:
    found: Numbers = rows["TIMESTAMP"].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    return found


def _texts(rows: pa.Table, name: str) -> pa.StringArray:
    return rows[name].combine_chunks()
