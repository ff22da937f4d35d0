"""Reads the replication stream: connects, reads, queries the catalog and sends status updates.

What the bytes mean is the ``Receiver``'s matter, which does no I/O.
"""

from __future__ import annotations

import threading
import time

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.capture.log_stream import Cut
from floodmark.connectors.postgres.capture.header_relations import CatalogSteps, Result
from floodmark.connectors.postgres.capture.receiver import Receiver
from floodmark.connectors.postgres.capture.replication import Catalog, Replication
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_position
from floodmark.connectors.postgres.server.catalog import structures
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.wire.channel import CopyChannel
from floodmark.connectors.postgres.wire.status_update import status_update

PAUSE_S = 0.004
BURST_PAUSE_S = 0.03
BURST_BYTES = 64 << 10
"""As many bytes at once tell of a backlog, which is read with longer pauses: a change's delay doesn't matter there."""
FASTEST = 100e6
"""How many bytes a server sends in a second at most, about."""
MAX_STATUS_INTERVAL_S = 10.0


class PostgresStream:
    """A ``LogStream`` over one replication connection."""

    def __init__(
        self,
        options: PostgresOptions,
        catalog: Catalog,
        commits: CommitLog,
        continuity: Continuity,
        gaps: AcceptedGaps,
    ) -> None:
        """Initialize the stream without opening a connection.

        Args:
            options: the source's options.
            catalog: returns an ordinary connection for catalog queries by the capture thread.
            commits: records the transactions that are received.
            continuity: verifies that a connection leads to the log that is read.
            gaps: collects the changes that are left out.
        """
        self._options = options
        self._catalog = catalog
        self._commits = commits
        self._continuity = continuity
        self._gaps = gaps
        self._lock = threading.Lock()
        self._channel: CopyChannel | None = None
        self._receiver: Receiver | None = None
        self._confirmed = 0
        self._last_status = 0.0

    def open(self, position: str) -> None:
        """Connect, verify that this is still the log that the position belongs to, and start replication after it."""
        channel = Replication(self._options, self._catalog, self._continuity, self._gaps).begin(position)
        lsn, _ = parse_position(position)
        self._receiver = Receiver(self._options, lsn, self._continuity.last_end(position))
        self._confirmed = 0
        # Confirmations of micro-batches advance the slot, so they are sent only from here on, after all checks.
        self._channel = channel
        self._send_status(reply=True)

    def read(self, timeout: float) -> int:
        """Read what has arrived and find the messages in it; return the number of bytes."""
        assert self._channel is not None
        assert self._receiver is not None
        self.tend()
        space = self._receiver.space()
        count = self._channel.read_into(space, timeout)
        if count:
            for arrived in self._receiver.take(count):
                if isinstance(arrived, Gap):
                    self._gaps.add(arrived)
                    continue
                if len(arrived.lsn):
                    self._commits.add(arrived.lsn, arrived.xid)
                if arrived.reply:
                    self._send_status()
            if count < len(space):
                time.sleep(_pause_s(count, self._channel.room()))
        return count

    def tend(self) -> None:
        """Send a status update if one is due."""
        interval_s = min(self._options.status_update_interval_ms / 1000, MAX_STATUS_INTERVAL_S)
        if time.monotonic() - self._last_status > interval_s:
            self._send_status()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of messages has been received."""
        return self._receiver is not None and self._receiver.full

    @property
    def spooled_bytes(self) -> int:
        """Always 0: the server sends transactions when they are committed."""
        return 0

    @property
    def received(self) -> str:
        """Position of the last commit that was received."""
        return "" if self._receiver is None else self._receiver.received

    @property
    def idle_position(self) -> str | None:
        """Position up to which the server has nothing for this source beyond what was cut; None if messages wait."""
        return None if self._receiver is None else self._receiver.idle_position

    def confirm(self, position: str) -> None:
        """Let the server discard the log up to a position."""
        confirmed = parse_position(position)[0]
        self._continuity.deliver(confirmed)
        if confirmed > self._confirmed and self._options.flushes:
            self._confirmed = confirmed
            self._send_status(flushed=confirmed)
        # Withdraws the flush position, which must not stay in effect: see `_send_status`.
        self._send_status()

    def ping(self) -> None:
        """Request a keepalive from the server."""
        self._send_status(reply=True)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def cut(self, force: bool) -> Cut | None:
        """Return the messages up to the last commit as a segment; without a commit, with ``force``, all of them."""
        finished = None if self._receiver is None else self._answer(self._receiver.cut(force))
        if finished is None:
            return None
        self._continuity.received(finished.commit, finished.end)
        return finished.cut

    def _answer(self, steps: CatalogSteps[Result]) -> Result:
        """Run steps to their end, and answer their requests from the catalog."""
        try:
            request = next(steps)
            while True:
                request = steps.send(structures(self._catalog(), request))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _send_status(self, reply: bool = False, flushed: int = 0) -> None:
        """Report to the server what was received and, if ``flushed`` isn't 0, what it may discard.

        A server that shuts down waits for a walsender whose last known flush position lies behind; without
        one it waits for the received position only. So a flush position never stays in effect: it would keep the
        server from stopping until a micro-batch confirms the end of the log.
        """
        with self._lock:
            if self._channel is None or self._receiver is None:
                return
            self._channel.send(status_update(self._receiver.lsn, flushed, time.time_ns() // 1000, reply))
            self._last_status = time.monotonic()


def _pause_s(count: int, room: int) -> float:
    """Return how long to wait before the next read, in seconds.

    A server sends each message by itself. To receive each by itself costs both more than to let many arrive.

    Args:
        count: how many bytes were there.
        room: how many can arrive before the server must wait, which it must not.
    """
    if count < min(BURST_BYTES, room // 4):
        return PAUSE_S
    return min(BURST_PAUSE_S, room / FASTEST)
