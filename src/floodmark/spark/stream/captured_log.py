"""Divides the captured log into micro-batches."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from floodmark.capture.retry import RetryPolicy
from floodmark.capture.store import SegmentStore
from floodmark.capture.thread import Capture
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.contract.source import LogSource, Source
from floodmark.errors import ConnectError, ForkedLogError
from floodmark.logger import get_logger
from floodmark.signals.records import Signal
from floodmark.spark.stream.partitions import LogPartition

log = get_logger(__name__)

IDLE_WAIT_S = 0.1
BACKLOG_WAIT_S = 0.1
"""How long a micro-batch of a backlog waits for more log where nothing is there yet."""
POINT_WAIT_S = 0.4
"""How long log is waited for up to a position that is needed, before a micro-batch ends without it."""
END_CHECK_S = 3.0
SHORT_CHECKS = 4
"""How many times in a row the source's log must end too early: what was just written may not be on its disk yet."""
PING_S = 0.1
IDLE_ADVANCE_S = 10.0


class CapturedLog:
    """Gives the planner access to what capture has received.

    Args:
        options: the source's options.
        source: the source.
        retry: the reconnect policy of capture.
        owner: the name of the source's directory below ``state.dir``.

    Attributes:
        store: the files of this run.
        reached: position of the last segment that a micro-batch was planned with, and when its last
            transaction was committed, in seconds since the epoch.
    """

    def __init__(self, options: CommonOptions, source: Source, retry: RetryPolicy, owner: str) -> None:
        self._options = options
        self._source = source
        self._owner = owner
        self._run = uuid.uuid4().hex
        self.store = SegmentStore(options.state_dir, owner, self._run)
        self._capture = Capture(source.log.open_stream, self.store, options.state_max_bytes, retry)
        self._idle_since = time.monotonic()
        self.reached: tuple[str, float] = ("", 0.0)

    @property
    def started(self) -> bool:
        """Whether capture runs."""
        return self._capture.started

    @property
    def paused(self) -> bool:
        """Whether capture waits for segments to be processed."""
        return self._capture.paused

    @property
    def place(self) -> tuple[str, str, str]:
        """Where the files of this run are, for executors: ``state.dir``, owner and run."""
        return self._options.state_dir, self._owner, self._run

    def create(self) -> None:
        """Create the directory of the segments, and verify that it can be written."""
        self.store.create()

    def confirm(self, position: str) -> None:
        """Release what has been delivered."""
        if not self._capture.started:
            return
        self._capture.confirm(position)
        try:
            self._source.log.delivered(position)
        except ConnectError:
            return  # nothing depends on it; the next micro-batch does it

    def stop(self) -> None:
        """End capture and remove the segments."""
        self._capture.stop()
        self.store.remove_all()

    def start(self, position: str) -> None:
        """Start capture after a position, if it doesn't run yet."""
        if not self._capture.started:
            self._capture.start(position)

    def wait_briefly(self, after: str, rows: int | None, wait_s: float) -> str:
        """Return the end of what has been captured, or ``after`` if nothing arrives within ``wait_s`` seconds."""
        self._capture.wait(after, wait_s, urgent=True)
        end = self.bounded(after, rows)
        now = time.monotonic()
        if end > after:
            self._idle_since = now
        elif now - self._idle_since > IDLE_ADVANCE_S:
            # The log holds only changes of other tables: advance now and then, so that the source can discard it.
            self._idle_since = now
            end = self._capture.idle_position(after)
        return end

    def wait_for(self, after: str, target: str, rows: int | None) -> str:
        """Wait for log up to a position that the source's log has reached; return where a micro-batch ends.

        That is before ``target`` if the micro-batch is full, capture has paused, or waiting takes too long.
        """
        return self._wait_for(after, target, rows, POINT_WAIT_S)

    def drain(self, after: str, target: str, rows: int | None) -> str:
        """Do the same where what there is can be delivered meanwhile.

        Segments that filled while the last micro-batch ran are delivered at once: the tasks would wait for more.
        """
        filled = rows is not None and self._capture.end(after) > after
        return self._wait_for(after, target, rows, 0.0 if filled else BACKLOG_WAIT_S)

    def _wait_for(self, after: str, target: str, rows: int | None, patience_s: float) -> str:
        pinged = 0.0
        patient_until = time.monotonic() + patience_s
        end_check = _EndCheck(self._source.log, target)
        while True:
            # Read `known` before the segments: one that is added in between must not be passed over.
            known = self._capture.idle_position(after)
            end = self.bounded(after, rows)
            if end >= target:
                return target
            if end > after and self._capture.paused:
                return end  # no more comes before this has been delivered
            patient = time.monotonic() < patient_until
            if end > after and rows is not None and (not patient or self._holds(after, rows)):
                return end
            if known >= target:
                return target if end == self._capture.end(after) else end
            if time.monotonic() - pinged > PING_S:
                pinged = time.monotonic()
                self._capture.ping()
            end_check.check_if_due()
            # With a steady trickle a segment takes long to fill, so after a while an unfilled one is cut.
            self._capture.wait(self._capture.end(after), IDLE_WAIT_S, urgent=not patient, upto=target)

    def reach_fresh_point(self, after: str, rows: int | None) -> tuple[str, ReadPoint | None]:
        """Open a read point without waiting for open transactions.

        Args:
            after: where the micro-batch begins.
            rows: maximum number of log records in it; None: no limit.

        Returns:
            The position up to which the log can be delivered, and the read point. With a read point it is exactly the
            point's position, since later changes must be delivered after its rows. The read point is None if the log
            doesn't reach that far, or the point has no position in it.
        """
        point = self._source.snapshots.open_unsettled()
        end = max(after, self.wait_for(after, point.position, rows))
        if end >= point.position and point.settle(after):
            return max(after, point.position), point
        point.release()
        return end, None

    def bounded(self, after: str, rows: int | None) -> str:
        """Return the end of the captured segments, within the limits of a micro-batch."""
        end, count, size = after, 0, 0
        for segment in self._capture.segments(after):
            over = rows is not None and (
                count + segment.rows > rows or size + segment.size > self._options.max_batch_bytes
            )
            if over and end > after:
                break
            end = segment.upto
            count += segment.rows
            size += segment.size
            self.reached = (end, segment.last_commit_s)
        return end

    def waiting_bytes(self, after: str) -> int:
        """Return the size of the captured segments after a position."""
        return sum(segment.size for segment in self._capture.segments(after))

    def signals(self, after: str, upto: str) -> list[Signal]:
        """Return the signals that the log holds in ``(after, upto]``."""
        found = [item for segment in self._capture.segments(after) for item in segment.signals]
        return [Signal.from_json(content) for place, content in found if after < place <= upto]

    def captured(self, after: str) -> str:
        """Return the end of what has been captured, or ``after`` if nothing has."""
        return self._capture.end(after)

    def partitions(
        self,
        after: str,
        upto: str,
        batch: str,
        excluded: tuple[int, ...],
        only: tuple[int, ...] | None = None,
        context: int | None = None,
    ) -> list[LogPartition]:
        """Return the tasks that decode the log in ``(after, upto]``, capturing it again if it is no longer there.

        Args:
            after: begin after this position.
            upto: end with this position.
            batch: the name of the micro-batch in reports.
            excluded: tables to leave out, as the log numbers them.
            only: the tables to decode; None: all.
            context: what the decoder needs besides the log.
        """
        self.start(after)
        if self._capture.idle_position(after) < upto:
            self._replay(after, upto)
        result: list[LogPartition] = []
        cursor = after
        for segment in self._capture.segments(after):
            if cursor >= upto:
                break
            if segment.upto <= cursor:
                continue
            end = min(segment.upto, upto)
            # Executors don't need the signals, which were extracted when the segment was cut.
            bare = replace(segment, signals=())
            place = (self._options.state_dir, self._owner, self._run)
            result.append(LogPartition(*place, bare, cursor, end, batch, excluded, only, context))
            cursor = end
        return result

    def _holds(self, after: str, rows: int) -> bool:
        """Return whether a full micro-batch of records is waiting."""
        return sum(segment.rows for segment in self._capture.segments(after)) >= rows

    def _replay(self, after: str, upto: str) -> None:
        """Wait until the log of a batch that an earlier process planned has been captured again."""
        log.info("log_is_read_again", after=after, upto=upto)
        before = ""
        end_check = _EndCheck(self._source.log, upto)
        while self._capture.idle_position(after) < upto:
            self._capture.ping()
            end_check.check_if_due()
            end = self._capture.end(after)
            self._capture.wait(end, PING_S, urgent=end == before)
            before = end


class _EndCheck:
    """Checks now and then that the source's log still reaches an awaited position.

    Args:
        source: the source.
        upto: the awaited position.
    """

    def __init__(self, log: LogSource, upto: str) -> None:
        self._log = log
        self._upto = upto
        self._next = time.monotonic() + END_CHECK_S
        self._short = 0

    def check_if_due(self) -> None:
        """Check the end of the source's log, if that is due.

        Raises:
            ForkedLogError: the log ends before the position, which would never arrive.
        """
        if time.monotonic() < self._next:
            return
        try:
            end = self._log.end()
        except ConnectError:
            return  # capture waits for the source to come back, or gives up
        self._next = time.monotonic() + END_CHECK_S
        self._short = self._short + 1 if end < self._upto else 0
        if self._short == SHORT_CHECKS:
            raise ForkedLogError(
                f"The source's log ends at {end}, before {self._upto}, which it had reached: the server was restored "
                "from a backup, or replaced by one that lacked the last changes.",
                "Connect to the server that has them, or start with a new checkpoint and write to a new target.",
            )
