"""Cuts the records that a connection receives into segments.

Ordinary transactions pass unchanged. Prepared XA transactions go to the spool, and come out of it where they are
committed (``prepared.branches``); one that is larger than a segment gets segments of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from floodmark.capture.log_stream import Cut
from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.event_types import GTIDS
from floodmark.connectors.mysql.binlog.records import Records, join_records
from floodmark.connectors.mysql.binlog.segments import OpenTransaction
from floodmark.connectors.mysql.binlog.xa import BranchStep, Step, branch_steps, starts_branch
from floodmark.connectors.mysql.capture.segment_maker import SegmentMaker, commit_s
from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.branches import Branches, Delivery
from floodmark.connectors.mysql.prepared.undecided import UndecidedPlaces
from floodmark.connectors.mysql.reading.executed_gtids import Executed
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.reading.table_versions import opened_at_end
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.errors import DecodeError, SourceStateError

_GTIDS = type_set(*GTIDS)


class Cutter:
    """Cuts the records of one connection.

    Args:
        after: position after which the log is cut.
        epoch: epoch of the new positions.
        resume: position inside of a transaction that was delivered in part, and comes again; None: there is none.
        receiver: the connection's receiver.
        server: the server that the log comes from.
        executed: the GTIDs of all transactions before the position.
        maker: makes the segments.
        branches: takes prepared XA transactions; holds those that are prepared at the position.
        undecided: records which transactions are prepared at each position.
        on_position: called with each position and its place; None: not needed.
        segment_bytes: size at which a segment is full.
    """

    def __init__(
        self,
        after: str,
        epoch: int,
        resume: Position | None,
        receiver: Receiver,
        server: ServerIdentity,
        executed: Executed,
        maker: SegmentMaker,
        branches: Branches,
        undecided: UndecidedPlaces,
        on_position: Callable[[str, ResumePoint], None] | None,
        segment_bytes: int,
    ) -> None:
        self._after = after
        self._epoch = epoch
        self._resume = resume
        self._receiver = receiver
        self._server = server
        self._executed = executed
        self._maker = maker
        self._branches = branches
        self._undecided = undecided
        self._on_position = on_position
        self._segment_bytes = segment_bytes
        self._transaction: OpenTransaction | None = None
        self._delivery: Delivery | None = None
        self._delivered: Position | None = None

    @property
    def delivering(self) -> bool:
        """Whether a committed large XA transaction is being delivered, which needs no more received data."""
        return self._delivery is not None

    @property
    def place(self) -> ResumePoint:
        """The server, GTIDs and mark at the end of the last cut, or of the idle log after it."""
        return ResumePoint(self._server.server, self._executed.text, self._server.host, self._receiver.tail.mark)

    @property
    def full(self) -> bool:
        """Whether a segment must be cut now, inside of a transaction if need be."""
        return self._delivery is not None or self._receiver.full

    @property
    def received(self) -> str:
        """Position of the last transaction end that was received."""
        waiting = self._receiver.waiting
        return str(waiting.cut_place) if waiting.cut_count and self._delivery is None else self._after

    @property
    def idle_position(self) -> str | None:
        """Position up to which everything in the log has been cut; None if events wait."""
        receiver = self._receiver
        if not receiver.idle or self._delivery is not None:
            return None
        return max(self._after, str(Position(self._epoch, receiver.file, receiver.offset)))

    def sift(self) -> None:
        """Drop received records that don't go into segments."""
        receiver = self._receiver
        self._skip_resumed()
        if not receiver.empty:
            return
        # Events outside of transactions, such as the first ones of a file, and skipped ones must not fill the buffer.
        count = receiver.waiting.count
        if count and self._resume is None:
            self._executed.learn(receiver.all_records())
            receiver.remember(count)
            idle = self.idle_position
            if self._on_position is not None and idle is not None and idle > self._after:
                self._on_position(idle, self.place)
        receiver.drop(count)

    def cut(self, force: bool) -> Cut | None:
        """Cut the received records at the last transaction end, or after all of them if ``force`` and there is none."""
        if self._resume is not None:
            return None
        if self._delivery is not None:
            return self._deliver(self._delivery)
        receiver = self._receiver
        waiting = receiver.waiting
        if waiting.cut_count:
            return self._cut_whole(receiver.whole())
        if force and waiting.count and receiver.inside:
            return self._cut_inside(receiver.all_records())
        return None

    def _cut_inside(self, records: Records) -> Cut | None:
        """Cut records of one unfinished transaction; those of an XA transaction go to the spool."""
        receiver = self._receiver
        self._forget_crashed(records)
        opened = opened_at_end(records, self._transaction)
        if opened is None:
            raise DecodeError("The binlog holds events outside of a transaction.")
        if len(records) == 1 and _GTIDS[records.types[0]]:
            # A GTID event alone doesn't show whether an XA transaction follows.
            return None
        begin = Position(self._epoch, receiver.file, opened.start)
        self._branches.spool.position = ""
        if self._branches.receive(records, opened, str(begin), self._executed.text or ""):
            self._transaction = opened
            self._leave(len(records))
            return None
        cut, opened = self._made(records, opened, self._inside(records, opened))
        receiver.partial = True
        self._leave(len(records))
        self._move(cut.upto, opened)
        return cut

    def _cut_whole(self, records: Records) -> Cut | None:
        """Cut complete transactions, of which only the first one may have begun in an earlier cut."""
        branches = self._branches
        steps = self._steps(records)
        upto = self._receiver.waiting.cut_place
        if not steps:
            cut, _ = self._made(records, None, upto)
            self._executed.add(self._transaction, records)
            self._receiver.partial = False
            self._leave(len(records))
            self._move(cut.upto, None)
            return cut
        # Until the spool is saved with the next position it belongs to none: a reopened stream must not reuse it as is.
        branches.spool.position = ""
        if steps[0].first == 0 and (delivery := self._begin_delivery(records, steps[0])) is not None:
            self._delivery, self._transaction = delivery, None
            self._leave(steps[0].last + 1)
            return self._deliver(delivery)
        self._delivered = None
        if branches.receiving:
            # The branch's GTID event was received earlier, and isn't in these records.
            self._executed.add(self._transaction, None)
            self._transaction = None
        parts, after = self._arrange(records, steps)
        done = records.slice(0, after)
        upto = self._place_before(records, after)
        made = self._made(join_records(parts), None, upto)[0] if parts else None
        self._executed.add(self._transaction, done)
        self._leave(after)
        self._move(str(upto), None, stepped=True)
        return made

    def _leave(self, count: int) -> None:
        """Release the first received records, which are in a segment or in the spool now."""
        self._receiver.remember(count)
        self._receiver.hand_over(count)

    def _place_before(self, records: Records, after: int) -> Position:
        """Return the position before a record, or after all of them."""
        if after == len(records):
            return self._receiver.waiting.cut_place
        return Position(self._epoch, records.file(after), int(records.offsets[after]))

    def _inside(self, records: Records, opened: OpenTransaction) -> Position:
        """Return the position after records of an unfinished transaction."""
        events, rows = records.ends()
        return Position(self._epoch, records.file(len(records) - 1), opened.start, int(events[-1]), int(rows[-1]))

    def _steps(self, records: Records) -> list[BranchStep]:
        """Return the steps of XA transactions that change how the records are delivered."""
        self._forget_crashed(records)
        receiving = self._branches.receiving
        with self._receiver.errors_named("at or behind", int(records.offsets[0])):
            steps = branch_steps(records, np.flatnonzero(_GTIDS[records.types]))
        if steps and steps[0].first == 0 and self._transaction is not None and not receiving:
            # An earlier version has delivered the start of this branch.
            del steps[0]
        return [step for step in steps if step.step is not Step.ONE_PHASE or (receiving and not step.first)]

    def _forget_crashed(self, records: Records) -> None:
        """Forget the branch that is being received if another transaction begins: the server crashed inside of it."""
        if self._branches.receiving and _GTIDS[records.types[0]]:
            self._branches.abandon()
            self._transaction = None

    def _arrange(self, records: Records, steps: Sequence[BranchStep]) -> tuple[list[Records], int]:
        """Return the records to deliver for complete transactions, and how many received records they cover."""
        branches = self._branches
        parts: list[Records] = []
        at = size = 0
        for step in steps:
            branch = None
            if step.step is Step.COMMITTED:
                branch = branches.find(step, self._place_before(records, step.first))
                if branch is not None:
                    size += branch.size
                    if step.first and size > self._segment_bytes:
                        break
            if step.first > at:
                parts.append(records.slice(at, step.first))
            at = step.last + 1
            if step.step is Step.COMMITTED:
                parts += branches.inline(records, step, branch)
            elif step.step is Step.PREPARED:
                begin = self._place_before(records, step.first)
                branches.keep(records, step, str(begin), self._executed.text or "")
            if step.step in (Step.COMMITTED, Step.ROLLED_BACK):
                branches.spool.drop(step.key)
        else:
            if at < len(records):
                parts.append(records.slice(at, len(records)))
            return parts, len(records)
        if at < step.first:
            parts.append(records.slice(at, step.first))
        return parts, step.first

    def _begin_delivery(self, records: Records, step: BranchStep) -> Delivery | None:
        """Return the delivery of the branch that the first step commits, if it gets segments of its own."""
        branches = self._branches
        upto = self._place_before(records, step.last + 1)
        if step.step is Step.ONE_PHASE:
            assert self._transaction is not None
            branches.keep(records, step, "", "")
            return branches.deliver_one_phase(records, step, self._transaction, upto)
        if step.step is not Step.COMMITTED:
            return None
        branch = branches.find(step, self._place_before(records, step.first))
        if branch is None or not (branches.is_large(branch) or self._delivered):
            return None
        return branches.deliver(records, step, branch, upto)

    def _deliver(self, delivery: Delivery) -> Cut:
        """Cut the next records of a large branch."""
        while True:
            records = delivery.take()
            delivered = 0 if self._delivered is None else records.done(self._delivered)
            if not delivered:
                break
            # The last segment before a restart may have ended anywhere in these records.
            skipped = records.slice(0, delivered)
            opened = opened_at_end(skipped, self._transaction)
            assert opened is not None
            self._transaction = self._counted(opened, skipped)
            if delivered < len(records):
                records = records.slice(delivered, len(records))
                break
        if delivery.over:
            self._branches.spool.drop(delivery.key)
            self._delivery = self._delivered = None
            cut, _ = self._made(records, None, delivery.upto)
            self._executed.add(self._transaction, records)
            self._move(cut.upto, None, stepped=True)
            return cut
        opened = opened_at_end(records, self._transaction)
        assert opened is not None
        cut, opened = self._made(records, opened, self._inside(records, opened))
        self._move(cut.upto, opened, stepped=True)
        return cut

    def _made(
        self, records: Records, opened: OpenTransaction | None, place: Position
    ) -> tuple[Cut, OpenTransaction | None]:
        """Return the segment of some records, and the open transaction with its events counted.

        Args:
            records: at least one.
            opened: the transaction that is open after them.
            place: position of their end.
        """
        begun, upto = self._transaction, str(place)
        data = self._maker.data(records, begun, self._epoch, self._executed.text, self._receiver)
        last_s = commit_s(records, begun)
        if opened is not None:
            opened = self._maker.counted(opened, data)
        signals = self._maker.signals(data, self._after, upto)
        return Cut(data, self._after, upto, len(records), last_s, signals, int(records.inflated.sum())), opened

    def _move(self, upto: str, opened: OpenTransaction | None, stepped: bool = False) -> None:
        """Advance to a position, save the spool with it, and record the position's place.

        Args:
            upto: the position.
            opened: the transaction that is open there.
            stepped: whether the log since the last position holds XA transactions.
        """
        self._after, self._transaction = upto, opened
        undecided = self._branches.spool.save(upto)
        self._undecided.add(upto, undecided, self._executed.text or "", stepped)
        if self._on_position is not None:
            self._on_position(upto, self.place)

    def _counted(self, opened: OpenTransaction, records: Records) -> OpenTransaction:
        """Return an open transaction with the number of its events up to the end of some records."""
        if not self._maker.counts:
            return opened
        data = self._maker.data(records, self._transaction, self._epoch, self._executed.text, self._receiver)
        return self._maker.counted(opened, data)

    def _resumes_branch(self) -> bool | None:
        """Return whether the transaction that was delivered in part is an XA one; None: not known yet."""
        if self._transaction is not None:
            return False
        if self._receiver.waiting.count < 2:
            return None
        records = self._receiver.all_records()
        following = np.flatnonzero(_GTIDS[records.types[1:]])
        end = int(following[0]) + 1 if len(following) else len(records)
        return starts_branch(records.event(1)) or any(record < end for record, _ in records.decisions)

    def _skip_resumed(self) -> None:
        """Drop events that were in segments before a restart; keep the state of their open transaction."""
        receiver, resume = self._receiver, self._resume
        if resume is None or not receiver.waiting.count:
            return
        of_branch = self._resumes_branch()
        if of_branch is None:
            return
        if of_branch:
            # Its changes come from the spool; ``_deliver`` omits those that were delivered.
            self._delivered, self._resume, receiver.partial = resume, None, False
            return
        # A transaction lies in one file; other files may follow.
        records = receiver.all_records()
        others = [at for at, number, _ in records.moves if number != resume.file]
        if others:
            records = records.slice(0, others[0])
        again = records.done(resume)
        if again:
            events, rows = records.ends()
        arrived = again > 0 and (int(events[again - 1]), int(rows[again - 1])) == (resume.event, resume.row)
        began = self._transaction is not None or (
            int(records.offsets[0]) == resume.transaction and _GTIDS[records.types[0]]
        )
        if not began or not again or (again < len(records) and not arrived):
            raise SourceStateError(
                f"The binlog has no event at offset {resume.event} of the transaction at {resume.transaction}, where "
                "the checkpoint goes on.",
                "It was reset, or this is another server.",
            )
        if not arrived and not self._receiver.full:
            return
        self._transaction = opened_at_end(records.slice(0, again), self._transaction)
        receiver.drop(again)
        if arrived:
            self._resume = None
