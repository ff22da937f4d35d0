"""Where the log must be read from again for all that isn't delivered, should the server lose what it knows."""

from __future__ import annotations

import time

from floodmark.connectors.oracle.capture.oldest_open import OldestOpen
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection

_INTERVAL_S = 30.0


class Samples:
    """Looks now and then where the oldest open transaction began.

    A server that begins before the oldest transaction that may be committed behind a number shows all of that.

    Args:
        options: the source's options.
        conn: a connection to the database.
        begin: what is known at first.
    """

    def __init__(self, options: OracleOptions, conn: Connection, begin: int) -> None:
        self._conn = conn
        self._skips = options.boundary_mode == "skip"
        self._open = OldestOpen(0, begin)
        self._next = time.monotonic() + _INTERVAL_S

    def take(self) -> None:
        """Look, if it is time to."""
        if self._skips or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _INTERVAL_S
        self._open.look(self._conn)

    def begin(self, scn: int) -> int:
        """Return the number behind which all began that is committed behind another one."""
        if self._skips:
            return scn
        self._open.forget(scn)
        return self._open.begin(scn)
