"""The rows of committed transactions, with what their events say of their transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.decode.row_changes import CommittedRows
from floodmark.connectors.oracle.mining.operations import CHANGES
from floodmark.connectors.oracle.mining.row_ids import NO_ROW_ID
from floodmark.connectors.oracle.mining.transactions import Committed

Numbers = NDArray[np.int64]


def unbuffered_rows(rows: pa.Table) -> tuple[pa.Table, CommittedRows]:
    """Return the changes among rows that LogMiner shows of committed transactions only; see ``rows_of``.

    Here a transaction begins where it says so, and LogMiner numbers its rows.

    Args:
        rows: whole statements, in the view's order.
    """
    rows = rows.filter(pc.is_in(rows["OPERATION_CODE"], pa.array(list(map(int, CHANGES)), pa.int64())))
    number = _numbers(rows, "SEQUENCE#")
    return rows, CommittedRows(
        _numbers(rows, "SCN"),
        _numbers(rows, "COMMIT_SCN"),
        _numbers(rows, "START_SCN"),
        seconds_of(rows),
        seconds_of(rows, "COMMIT_TIMESTAMP"),
        seconds_of(rows, "START_TIMESTAMP"),
        number=number,
        ordinal=number,
        has_own_numbers=False,
        **of_the_view(rows),
    )


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
    scn, seconds = _numbers(rows, "SCN"), seconds_of(rows)
    number = np.arange(1, len(rows) + 1) - np.repeat(first, counts)
    return rows, CommittedRows(
        scn,
        np.repeat(_numbers(commits, "SCN"), counts),
        np.repeat(scn[first], counts),
        seconds,
        np.repeat(seconds_of(commits), counts),
        np.repeat(seconds[first], counts),
        number=number,
        ordinal=number,
        has_own_numbers=True,
        **of_the_view(rows),
    )


def of_the_view(rows: pa.Table) -> dict[str, Any]:
    """Return what each row says by itself."""
    return {
        "xid": _texts(rows, "XID"),
        "thread": _numbers(rows, "THREAD#"),
        "redo_thread": _numbers(rows, "THREAD#"),
        "record": pc.utf8_trim_whitespace(_texts(rows, "RS_ID")),
        "part": _numbers(rows, "SSN"),
        "user": _texts(rows, "USERNAME"),
        "row_id": pc.fill_null(_texts(rows, "ROW_ID"), NO_ROW_ID),
        "statement": _texts(rows, "SQL_REDO"),
    }


def _numbers(rows: pa.Table, name: str) -> Numbers:
    found: Numbers = rows[name].to_numpy()
    return found


def seconds_of(rows: pa.Table, name: str = "TIMESTAMP") -> Numbers:
    """Return times of the view as seconds since the epoch, shape (rows,)."""
    found: Numbers = rows[name].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    return found


def _texts(rows: pa.Table, name: str) -> pa.StringArray:
    return rows[name].combine_chunks()
