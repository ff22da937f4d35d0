"""How the log is read: what LogMiner is asked for, and where the ends of transactions stand among its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from floodmark.connectors.oracle.mining.transactions import Committed, OpenTransactions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection


class Reading(Protocol):
    """One way to read the log, from when a stream is opened until it is closed."""

    @property
    def committed_only(self) -> bool:
        """Whether LogMiner shows committed transactions only."""

    def first(self, begin: int, delivered: Position) -> int:
        """Return the number behind which the first window begins.

        Args:
            begin: behind this number lies all of the transactions that are committed behind the position.
            delivered: the position.
        """

    def watch(self, conn: Connection) -> None:
        """Look at what is open, before a window is chosen."""

    def begin(self, after: int) -> int:
        """Return the number behind which LogMiner must read to show what a window behind another number has."""

    def ordered(self, rows: pa.Table, after: int) -> Iterator[pa.Table]:
        """Yield rows so that all ends of transactions with one number come together; keep some for the next call.

        Args:
            rows: of the view, in its order.
            after: where the window begins.
        """

    def rest(self, transactions: OpenTransactions) -> Iterator[pa.Table]:
        """Yield what was kept, at the end of a window.

        Raises:
            UnreadableLogError: a transaction lacks its end.
        """

    def oldest(self, scn: int, transactions: OpenTransactions) -> int | None:
        """Return where the oldest transaction began that is committed behind a number, or will be; None: there is none.

        Later calls don't ask for smaller numbers.
        """

    def statement_place(self, row: pa.Table) -> Position:
        """Return the position of a statement about tables."""

    def statement_span(self, row: pa.Table) -> tuple[int, int, int] | None:
        """Return what is known of a statement's transaction; see ``LoggedStatement``."""

    def beginning(self, found: Committed, changes: pa.Table) -> tuple[int, int]:
        """Return number and time of a transaction's beginning as events name them, the time in seconds since the epoch.

        Args:
            found: the transaction.
            changes: its first ones.
        """

    def cut_off(self, rows: pa.Table) -> pa.Table:
        """Return the commits among rows of transactions that began before what is read, so that changes are missing."""

    def is_cut_off(self, found: Committed) -> bool:
        """Return whether it is such a transaction."""
