"""Where the oldest transaction began that may be committed behind a number."""

from __future__ import annotations

from collections import deque

from floodmark.connectors.oracle.server.connection import Connection
from floodmark.connectors.oracle.server.database import current_scn, oldest_open_transaction


class OldestOpen:
    """Looks at what is open, and remembers it for as long as it may be asked for.

    Args:
        after: the first number that is asked for.
        begin: behind this number began all that is committed behind it.
    """

    def __init__(self, after: int, begin: int) -> None:
        # What is committed behind the first number of a pair began behind the second one.
        self._seen: deque[tuple[int, int]] = deque([(after, begin)])

    def look(self, conn: Connection) -> None:
        """Look at where the oldest transaction began that is open.

        What isn't open meanwhile was committed before the second look at the newest number, or begins behind the first
        one. In a cluster, each answer of another instance carries its newest number, so that holds there as well.
        """
        before = current_scn(conn)
        oldest = oldest_open_transaction(conn)
        self._seen.append((current_scn(conn), (before if oldest is None else min(oldest, before)) - 1))

    def begin(self, scn: int) -> int:
        """Return a number behind which all began that is committed behind another one."""
        return next((begin for seen, begin in reversed(self._seen) if seen <= scn), self._seen[0][1])

    def forget(self, scn: int) -> None:
        """Forget what is only needed for smaller numbers."""
        while len(self._seen) > 1 and self._seen[1][0] <= scn:
            self._seen.popleft()
