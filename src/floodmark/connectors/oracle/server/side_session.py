"""A connection for statements that run in the background."""

from __future__ import annotations

from contextlib import suppress

from floodmark.connectors.oracle.server.connection import ConnectionOptions, close, connect, run_own
from floodmark.connectors.oracle.server.failures import ERRORS

DOING = "the heartbeat's statement"


class OracleSideSession:
    """A ``SideSession``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._conn = connect(options)
        self._conn.autocommit = True

    def usable(self) -> bool:
        """Return whether statements can still be run on it."""
        return self._conn.is_healthy()

    def run(self, statement: str) -> None:
        """Run a statement."""
        run_own(self._conn, statement, DOING)

    def cancel(self) -> None:
        """End the statement that another thread runs."""
        with suppress(*ERRORS):
            self._conn.cancel()

    def close(self) -> None:
        """Close the connection."""
        close(self._conn)
