"""Where the log must be read from again for all that isn't delivered, should the server lose what it knows."""

from __future__ import annotations

import time

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection
from floodmark.connectors.oracle.server.database import current_scn, oldest_open_transaction

_INTERVAL_S = 30.0


class Samples:
    """Looks now and then where the oldest open transaction began.

    What is committed behind a number was open then, or began later. So a server that begins before the oldest
    transaction that was open then shows all of that.

    Args:
        options: the source's options.
        conn: a connection to the database.
        begin: what is known at first.
    """

    def __init__(self, options: OracleOptions, conn: Connection, begin: int) -> None:
        self._conn = conn
        self._skips = options.boundary_mode == "skip"
        self._known: list[tuple[int, int]] = [(0, begin)]
        self._next = time.monotonic() + _INTERVAL_S

    def take(self) -> None:
        """Look, if it is time to."""
        if self._skips or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _INTERVAL_S
        now = current_scn(self._conn)
        oldest = oldest_open_transaction(self._conn)
        self._known.append((now, now - 1 if oldest is None else min(oldest, now) - 1))

    def begin(self, scn: int) -> int:
        """Return the number behind which all began that is committed behind another one."""
        if self._skips:
            return scn
        while len(self._known) > 1 and self._known[1][0] <= scn:
            del self._known[0]
        return self._known[0][1]
