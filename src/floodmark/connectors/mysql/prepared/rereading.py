"""Reads the log before a position again, so that the spool holds the transactions that are prepared there.

That is needed when the spool's files are gone. Nothing is delivered meanwhile: prepared XA transactions go to the
spool, and everything else is skipped. The stream then continues from the position itself. That the position is in the
same log is proven (``continuity``) before the first event is read here, and again afterwards.

On the server that has the position's files the log is read by file, up to the position. On another one it is read by
GTIDs, from those before the oldest prepared transaction, until all transactions that were delivered have been read;
those that weren't delivered are left to the stream, wherever in that server's log they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floodmark.capture.spool import TransactionSpool, Undecided
from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.event_types import GTIDS
from floodmark.connectors.mysql.binlog.inflation import Scratch
from floodmark.connectors.mysql.binlog.records import Records
from floodmark.connectors.mysql.binlog.segments import OpenTransaction
from floodmark.connectors.mysql.binlog.transactions import parse_gtid
from floodmark.connectors.mysql.binlog.xa import Step, branch_steps, holds
from floodmark.connectors.mysql.continuity.check import Accepted, ResumePoint, Start, by_file, by_gtids
from floodmark.connectors.mysql.gtid import Gtids, lacking, parse_gtids
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.branches import Branches
from floodmark.connectors.mysql.reading.channel import DumpChannel
from floodmark.connectors.mysql.reading.executed_gtids import Executed
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.reading.table_versions import opened_at_end
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.errors import LogGoneError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

_GTIDS = type_set(*GTIDS)


@dataclass(frozen=True)
class Past:
    """The part of the log that is read again.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        place: position up to which it is read.
        known: identifies the position's server and log.
        undecided: the resume state of prepared transactions; the log is read from its ``begin``.
        start: how the stream continues from the position, as was proven.
        server: the server that was proven to have the log.
    """

    flavor: str
    place: Position
    known: ResumePoint | None
    undecided: Undecided
    start: Start
    server: ServerIdentity

    @property
    def by_file(self) -> bool:
        """Whether the log can be read by file: its start is in this server's files."""
        return counts_files_of(self.start, self.place, self.undecided.begin)


def counts_files_of(start: Start, place: Position, position: str) -> bool:
    """Return whether a server that was proven to have the log of a place has an earlier position's files."""
    return start.continues and Position.parse(position).epoch == place.epoch


def restored(spool: TransactionSpool, undecided: Undecided, place: Position, start: Start) -> bool:
    """Restore the spool from an index, if the log after it can be read by file; return whether it was restored.

    Args:
        spool: its current contents are forgotten.
        undecided: names the index.
        place: the position from which the query continues.
        start: how the stream continues from there, as was proven.
    """
    at = undecided.at
    near = at == str(place) or (at != "" and counts_files_of(start, place, at))
    return near and spool.restore(undecided.index, at)


def beginning(conn: Connection, past: Past, accepted: Accepted) -> Start:
    """Return where the server must start to send so that all transactions prepared at a position come again.

    Args:
        conn: an ordinary connection to the server that was proven to have the log.
        past: the part of the log to read again.
        accepted: what the options accept when another server is read.

    Raises:
        LogGoneError: the server no longer has the log.
        SourceStateError: it is another server, and GTIDs don't help.
    """
    undecided = past.undecided
    what = f"The XA transaction {undecided.oldest or 'that is prepared'} was prepared at {undecided.begin}"
    try:
        if past.by_file:
            return by_file(conn, Position.parse(undecided.begin))
        if not undecided.token:
            raise SourceStateError(
                f"{what}, on another server, and which transactions lay before it isn't known: without GTIDs, or by an "
                "earlier version. Its changes are not in state.dir.",
                "Connect to the former server until the transaction is decided, or restore the directory 'spool' below "
                "state.dir; or end it (XA RECOVER lists it), and start with a new checkpoint.",
            )
        return by_gtids(conn, past.flavor, past.place, ResumePoint("", undecided.token), accepted)
    except LogGoneError as exc:
        raise LogGoneError(
            f"{what} and isn't decided yet, but its changes are neither in the server's log nor in state.dir any more. "
            f"{exc.what}",
            "Ways out: restore the directory 'spool' below state.dir, or the missing binlog files; or end the "
            "transaction (XA RECOVER lists it), and start with a new checkpoint.",
        ) from None


class Rereading:
    """Reads the log again; ``over`` once all of it has been read.

    Args:
        past: the part of the log to read.
        conn: an ordinary connection to the server that was proven to have the log; it is closed at the end.
        accepted: what the options accept when another server is read.
        branches: receives the prepared transactions; holds those that are undecided at the start.
        segment_bytes: size of the receive buffer.
        server_id: id to register with.
        heartbeat_s: seconds without an event after which the server sends a heartbeat.
        scratch: opens unnamed temporary files, for large compressed transactions.

    Attributes:
        past: the part of the log that is read.
        over: whether the spool holds all transactions that are prepared at the position.

    Raises:
        LogGoneError: the server no longer has the log.
    """

    def __init__(
        self,
        past: Past,
        conn: Connection,
        accepted: Accepted,
        branches: Branches,
        segment_bytes: int,
        server_id: int,
        heartbeat_s: float,
        scratch: Scratch,
    ) -> None:
        self.past = past
        self._branches = branches
        self._transaction: OpenTransaction | None = None
        self.over = False
        undecided, place = past.undecided, past.place
        begin = Position.parse(undecided.begin)
        self._until: Position | None = None
        self._done: Gtids | None = None
        log.info(
            "prepared_transactions_are_read_again", begin=undecided.begin, upto=str(place), oldest=undecided.oldest
        )
        start = beginning(conn, past, accepted)
        if past.by_file:
            self._until = place
        else:
            gtids = past.known.gtids if past.known is not None else None
            self._done = parse_gtids(past.flavor, gtids or "")
            if accepted.taken is not None:
                self._done = self._done.filtered(accepted.taken)
        # Spooled branches get positions of the stream's epoch, since the stream continues in the same files.
        self._epoch = past.start.epoch
        self._executed = Executed(past.flavor, undecided.token or None)
        offset = start.dump.offset
        skips = past.by_file and offset < begin.transaction
        skip_before = begin.transaction if skips else None
        file = begin.file if past.by_file else 0
        self._receiver = Receiver(segment_bytes, self._epoch, file, offset, skip_before, None, scratch)
        self._channel = DumpChannel(conn, past.flavor, server_id, heartbeat_s)
        self._channel.start(start.dump)
        self._see_whether_over()

    def read(self, timeout: float) -> int:
        """Read and process the bytes that have arrived; return how many.

        Raises:
            FloodmarkError: as ``Receiver.receive``.
        """
        count = self._receiver.receive(self._channel.read_into, timeout)
        if count:
            self._take()
            self._see_whether_over()
        return count

    def close(self) -> None:
        """Close the connection."""
        self._receiver.close()
        self._channel.close()

    def _take(self) -> None:
        """Process the received records, and drop them."""
        receiver = self._receiver
        waiting = receiver.waiting
        if waiting.cut_count:
            records = receiver.whole()
            count = self._wanted(records)
            if count:
                self._follow(records.slice(0, count))
            receiver.drop(len(records))
        elif receiver.empty:
            receiver.drop(waiting.count)
        elif receiver.full and waiting.count > 1:
            # A GTID event alone doesn't show whether an XA transaction follows.
            records = receiver.all_records()
            self._forget_crashed(records)
            opened = opened_at_end(records, self._transaction)
            if opened is not None and self._wanted(records) and self._is_done(opened.gtid):
                begin = Position(self._epoch, receiver.file, opened.start)
                self._branches.receive(records, opened, str(begin), self._token)
            self._transaction = opened
            receiver.drop(waiting.count)

    def _follow(self, records: Records) -> None:
        """Apply the XA steps in complete transactions to the spool."""
        branches, token = self._branches, self._token
        self._forget_crashed(records)
        with self._receiver.errors_named("at or behind", int(records.offsets[0])):
            steps = branch_steps(records, np.flatnonzero(_GTIDS[records.types]))
        for step in steps:
            begun = self._transaction if step.first == 0 else None
            if not self._is_done(records.event(step.first) if begun is None else begun.gtid):
                continue
            if step.step is Step.PREPARED:
                start = int(records.offsets[step.first]) if begun is None else begun.start
                begin = Position(self._epoch, records.file(step.first), start)
                branches.keep(records, step, str(begin), token)
            elif step.step is Step.ONE_PHASE:
                branches.abandon()
            else:
                branches.spool.drop(step.key)
        self._executed.add(self._transaction, records)
        self._transaction = None

    def _forget_crashed(self, records: Records) -> None:
        """Forget the open transaction if another one begins: the server crashed inside of it."""
        if _GTIDS[records.types[0]]:
            self._branches.abandon()
            self._transaction = None

    def _wanted(self, records: Records) -> int:
        """Return how many leading records lie before the position."""
        until = self._until
        return len(records) if until is None else records.before(until.file, until.transaction)

    def _is_done(self, gtid: bytes) -> bool:
        """Return whether the transaction of a GTID event comes before the position."""
        return self._done is None or holds(self._done, parse_gtid(gtid).gtid)

    @property
    def _token(self) -> str:
        return self._executed.text or ""

    def _see_whether_over(self) -> None:
        receiver, until = self._receiver, self._until
        if until is not None:
            reached = (receiver.file, receiver.offset) >= (until.file, until.transaction)
            self.over = reached and not receiver.holding
        elif self._done is not None and self._executed.gtids is not None:
            self.over = not lacking(self._done, self._executed.gtids)
