"""Turns the bytes that the server sends into segments. No I/O.

Capture moves bytes and examines only what it must: where messages begin, where transactions end, and Relation
messages. It processes whole bursts at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.capture.gaps import Gap
from floodmark.connectors.postgres.capture.cutting import Cutter, FinishedCut
from floodmark.connectors.postgres.capture.header_relations import CatalogSteps
from floodmark.connectors.postgres.capture.pending_records import Arrived, PendingRecords
from floodmark.connectors.postgres.capture.receive_buffer import ENDS, Frames, ReceiveBuffer, ServerMessage
from floodmark.connectors.postgres.continuity.bookmark import LastEnd
from floodmark.connectors.postgres.continuity.published import lacks_publication, publication_was_missing
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.server.slots import TRUSTING
from floodmark.connectors.postgres.wire.channel import parse_error, server_error
from floodmark.connectors.postgres.wire.messages import ERROR_RESPONSE, NOTICE_RESPONSE
from floodmark.errors import ConnectError


class Receiver:
    """Turns the bytes of one connection into segments.

    Write bytes to ``space``, process what ``take`` yields, then ``cut``.

    Args:
        options: the source's options.
        lsn: replication starts at this LSN.
        end: the last end before; None: not known.
    """

    def __init__(self, options: PostgresOptions, lsn: int, end: LastEnd | None = None) -> None:
        self._options = options
        self._buffer = ReceiveBuffer(options.segment_bytes)
        self._pending = PendingRecords(lsn)
        self._cutter = Cutter(options, position(lsn), self._buffer, self._pending, end)

    def space(self) -> memoryview:
        """Return memory that the next bytes are to be written to."""
        return self._buffer.space()

    def take(self, count: int) -> Iterator[Arrived | Gap]:
        """Process ``count`` bytes that were written to ``space``.

        Yields:
            What came with the messages that these bytes complete, in their order; a gap for changes that the server
            left out, with the user's consent. Nothing may be received or cut before the last of them.

        Raises:
            FloodmarkError: the server ended the stream, left changes out, or sent invalid data.
        """
        for happened in self._buffer.take(count):
            if isinstance(happened, Frames):
                yield self._pending.add(self._buffer.data, happened)
            else:
                yield from self._process(happened)
        if not self._pending.count:
            # Keepalives of an idle stream must not fill the buffer.
            self._buffer.drop_framed()

    def _process(self, message: ServerMessage) -> Iterator[Gap]:
        if message.kind in (ERROR_RESPONSE, NOTICE_RESPONSE):
            fields = parse_error(message.body)
            if lacks_publication(fields):
                yield self._missing_publication(message.kind)
            if message.kind == ERROR_RESPONSE:
                raise server_error(fields)
        if message.kind in ENDS:
            raise ConnectError("PostgreSQL ended the replication stream.")

    def _missing_publication(self, kind: bytes) -> Gap:
        """Return the gap, if it is a notice and gaps are accepted: the server goes on without those changes."""
        missing = publication_was_missing(self._options, self.received)
        strategy = self._options.offset_mismatch_strategy
        if kind == ERROR_RESPONSE or strategy not in TRUSTING:
            raise missing
        return Gap(self.received, self.received, missing.what, f"offset.mismatch.strategy={strategy}")

    def cut(self, force: bool) -> CatalogSteps[FinishedCut | None]:
        """Cut a segment at the last commit; without a commit, with ``force``, after all complete records.

        Returns:
            A generator: it yields the tables whose structures it needs from the catalog, is sent these, and returns
            the segment, or None if there is nothing to cut. It must be run to its end.
        """
        return self._cutter.cut(force)

    @property
    def full(self) -> bool:
        """Whether a segment's worth of messages has been received."""
        return self._buffer.framed >= self._options.segment_bytes

    @property
    def lsn(self) -> int:
        """Up to here the server has nothing for this source that wasn't received."""
        return self._pending.received

    @property
    def received(self) -> str:
        """Position of the last commit that was received."""
        return position(self._pending.cut_lsn) if self._pending.cut_count else self._cutter.after

    @property
    def idle_position(self) -> str | None:
        """Position up to which the server has nothing for this source beyond what was cut; None if messages wait."""
        if self._pending.count or self._pending.in_transaction:
            return None
        return position(self._pending.received)
