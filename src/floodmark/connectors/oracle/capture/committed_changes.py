"""Reads committed transactions only (``database.connection.adapter=logminer_unbuffered``).

LogMiner puts the changes of each transaction together (``COMMITTED_DATA_ONLY``), which takes the server's memory
instead of this process's disk. It can do so only from where a transaction began, so each window is read from where the
oldest one began that wasn't committed before it: Debezium calls that the low watermark, and reads the log once more for
it. Here ``GV$TRANSACTION`` says what is open.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.capture.oldest_open import OldestOpen
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.transactions import NO_TRANSACTION, Committed, OpenTransactions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection
from floodmark.errors import UnreadableLogError

Numbers = NDArray[np.int64]

_COMMIT_SCN = "COMMIT_SCN"
_SPAN = ("START_SCN", "START_TIMESTAMP", "COMMIT_TIMESTAMP")
_OF_NO_TRANSACTION = 0
"""The redo thread in the positions of statements, so that they come before their transaction's changes."""


class CommittedChanges:
    """A ``Reading``."""

    committed_only = True

    def __init__(self) -> None:
        self._open = OldestOpen(0, 0)
        self._begin = 0
        self._statements: list[pa.Table] = []
        self._ends: list[pa.Table] = []

    def first(self, begin: int, delivered: Position) -> int:
        """Return the number behind which the first window begins: the position's, as only commits count."""
        after = delivered.scn - 1
        self._open = OldestOpen(after, min(begin, after))
        return after

    def watch(self, conn: Connection) -> None:
        """Look at where the oldest transaction began that is open."""
        self._open.look(conn)

    def begin(self, after: int) -> int:
        """Return the number behind which all transactions lie as a whole that are committed in a window."""
        self._begin = self._open.begin(after)
        return self._begin

    def oldest(self, scn: int, transactions: OpenTransactions) -> int | None:
        """Return where the oldest transaction began that is committed behind a number, or will be."""
        del transactions
        self._open.forget(scn)
        return self._open.begin(scn) + 1

    def ordered(self, rows: pa.Table, after: int) -> Iterator[pa.Table]:
        """Yield rows in the order of their commits, and the ends of transactions behind all changes of their number.

        Rollbacks are left out: a transaction with changes and one lacks its commit, which is an error.
        """
        operations = rows["OPERATION_CODE"].to_numpy()
        statements = operations == Operation.DDL
        self._statements += [rows.slice(place, 1) for place in np.flatnonzero(statements).tolist()]
        # Redo that is missing belongs to no transaction; what lies before the window was told of then.
        told = (operations == Operation.MISSING_SCN) & (rows["SCN"].to_numpy() <= after)
        kept = rows.filter(pa.array(~(statements | told | (operations == Operation.ROLLBACK))))
        kept = pa.concat_tables([*self._ends, *self._ended_statements(kept), kept])
        self._ends = []
        if not len(kept):
            return
        scns = pc.coalesce(kept[_COMMIT_SCN], kept["SCN"]).to_numpy()
        ends = _rank_of_ends(kept)
        order = np.lexsort((ends, scns))
        if (np.diff(order) < 0).any():
            kept, scns, ends = kept.take(pa.array(order)), scns[order], ends[order]
        # Another transaction with the last number may still come.
        others = np.flatnonzero((scns != scns[-1]) | (ends == 0))
        whole = int(others[-1]) + 1 if len(others) else 0
        if whole < len(kept):
            self._ends = [kept.slice(whole)]
        if whole:
            yield kept.slice(0, whole)

    def _ended_statements(self, rows: pa.Table) -> list[pa.Table]:
        """Return the statements whose transactions' commits are among rows, each with the number of the commit.

        LogMiner gives statements none, and shows those of earlier windows again.
        """
        if not self._statements:
            return []
        commits = rows.filter(pc.equal(rows["OPERATION_CODE"], int(Operation.COMMIT)))
        places = {xid: place for place, xid in enumerate(commits["XID"].to_pylist())}
        found = [(row, places.get(row["XID"][0].as_py())) for row in self._statements]
        self._statements = [row for row, place in found if place is None]
        return [_with_commit(row, commits.slice(place, 1)) for row, place in found if place is not None]

    def rest(self, transactions: OpenTransactions) -> Iterator[pa.Table]:
        """Yield the ends of transactions with the window's last number."""
        ends, self._ends = self._ends, []
        # Those without a commit are of earlier windows, or will be shown again with it.
        self._statements = []
        yield from ends
        left = transactions.with_changes
        if left:
            raise UnreadableLogError(
                f"LogMiner shows changes of the transaction {left[0].upper()} among the committed ones, but no commit."
            )

    def statement_place(self, row: pa.Table) -> Position:
        """Return the position of a statement: that of its commit, before all that was committed with that number."""
        (found,) = row.select([_COMMIT_SCN, "XID"]).to_pylist()
        return Position(found[_COMMIT_SCN], _OF_NO_TRANSACTION, str(found["XID"] or NO_TRANSACTION).upper())

    def statement_span(self, row: pa.Table) -> tuple[int, int, int] | None:
        """Return where and when a statement's transaction began, and when it was committed."""
        start, began, committed = (row[name][0] for name in _SPAN)
        return (start.as_py(), began.value, committed.value) if start.is_valid else None

    def beginning(self, found: Committed, changes: pa.Table) -> tuple[int, int]:
        """Return number and time at which the transaction began, as LogMiner names them."""
        del changes
        return found.commit["START_SCN"][0].as_py(), found.commit["START_TIMESTAMP"][0].value

    def cut_off(self, rows: pa.Table) -> pa.Table:
        """Return the commits among rows of transactions whose beginning LogMiner hasn't seen, whatever they changed.

        Oracle's documentation of the view: ``START_SCN`` is null if what is read does not have it. That may be so for
        a transaction that was prepared before its instance was restarted: no view shows it as open.
        """
        commits = rows.filter(pc.equal(rows["OPERATION_CODE"], int(Operation.COMMIT)))
        return commits.filter(pc.fill_null(pc.less_equal(commits["START_SCN"], self._begin), True))

    def is_cut_off(self, found: Committed) -> bool:
        """Return whether it is such a transaction."""
        return len(self.cut_off(found.commit)) > 0


def _rank_of_ends(rows: pa.Table) -> Numbers:
    """Return the places of rows among those of one number, shape (rows,): changes, statements, commits."""
    operations = rows["OPERATION_CODE"].to_numpy()
    return np.where(operations == Operation.COMMIT, 2, np.where(operations == Operation.DDL, 1, 0))


def _with_commit(row: pa.Table, commit: pa.Table) -> pa.Table:
    """Return a statement with what only the commit of its transaction says."""
    for name in (_COMMIT_SCN, *_SPAN):
        row = row.set_column(row.schema.get_field_index(name), row.schema.field(name), commit[name])
    return row
