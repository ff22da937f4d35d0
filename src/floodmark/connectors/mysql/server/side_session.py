"""A connection for statements that run in the background."""

from __future__ import annotations

from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.connection import close, connect, connection, run, run_own
from floodmark.errors import FloodmarkError

DOING = "the heartbeat's statement"


class BinlogSideSession:
    """A ``SideSession``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._conn = connect(options)
        self._number = int(run(self._conn, "SELECT CONNECTION_ID()", "the connection's number")[0][0])

    def usable(self) -> bool:
        """Return whether statements can still be run on it."""
        return bool(self._conn.open)

    def run(self, statement: str) -> None:
        """Run a statement."""
        run_own(self._conn, statement, DOING)

    def cancel(self) -> None:
        """End the statement that another thread runs."""
        try:
            with connection(self._options) as other:
                run(other, f"KILL QUERY {self._number}", f"ending {DOING}")
        except FloodmarkError:
            return  # the statement has ended, or the server is unreachable

    def close(self) -> None:
        """Close the connection."""
        close(self._conn)
