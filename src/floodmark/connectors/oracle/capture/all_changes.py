"""Reads all changes, before it is known whether they are committed (``database.connection.adapter=logminer``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from floodmark.connectors.oracle.mining.transactions import NO_TRANSACTION, Committed, OpenTransactions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection


class AllChanges:
    """A ``Reading``: each window follows the last one; what is open at its end is kept."""

    committed_only = False

    def __init__(self) -> None:
        self._begun: list[pa.Table] = []

    def first(self, begin: int, delivered: Position) -> int:
        """Return the number behind which the first window begins: all that was open is read again."""
        del delivered
        return begin

    def watch(self, conn: Connection) -> None:
        """Do nothing: the log says what is open."""

    def begin(self, after: int) -> int:
        """Return the number that the window begins behind."""
        return after

    def ordered(self, rows: pa.Table, after: int) -> Iterator[pa.Table]:
        """Yield rows whose change numbers are complete."""
        del after
        if not len(rows):
            return
        scns = rows["SCN"].to_numpy()
        others = np.flatnonzero(scns != scns[-1])
        last = int(others[-1]) + 1 if len(others) else 0
        if last:
            yield pa.concat_tables([*self._begun, rows.slice(0, last)])
            self._begun = []
        self._begun.append(rows.slice(last))

    def rest(self, transactions: OpenTransactions) -> Iterator[pa.Table]:
        """Yield the rows with the window's last change number."""
        del transactions
        begun, self._begun = self._begun, []
        if begun:
            yield pa.concat_tables(begun)

    def oldest(self, scn: int, transactions: OpenTransactions) -> int | None:
        """Return where the oldest transaction began that is kept."""
        del scn
        return transactions.oldest_scn

    def statement_place(self, row: pa.Table) -> Position:
        """Return the position of a statement: its own, since none of its table's changes can be open then."""
        (found,) = row.select(["SCN", "THREAD#", "XID"]).to_pylist()
        return Position(found["SCN"], found["THREAD#"], str(found["XID"] or NO_TRANSACTION).upper())

    def statement_span(self, row: pa.Table) -> tuple[int, int, int] | None:
        """Return nothing: its transaction isn't committed yet."""
        del row
        return None

    def beginning(self, found: Committed, changes: pa.Table) -> tuple[int, int]:
        """Return number and time of the first change, as Debezium names them here."""
        del found
        return changes["SCN"][0].as_py(), changes["TIMESTAMP"][0].value

    def cut_off(self, rows: pa.Table) -> pa.Table:
        """Return none: reading begins where the oldest transaction began."""
        return rows.slice(0, 0)

    def is_cut_off(self, found: Committed) -> bool:
        """Return False."""
        del found
        return False
