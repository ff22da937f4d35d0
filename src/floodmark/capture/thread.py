"""The capture thread: reads the ordered log over one connection, and appends it to segments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from floodmark.capture.log_stream import Cut, LogStream
from floodmark.capture.retry import RetryPolicy
from floodmark.capture.segment import Segment
from floodmark.capture.store import SegmentStore
from floodmark.errors import CaptureError, ConnectError, FloodmarkError, LoginError, SlotBusyError, UnreadableLogError
from floodmark.logger import get_logger

log = get_logger(__name__)

IDLE_WAIT_S = 0.01
PAUSE_WAIT_S = 0.05


class Capture:
    """Runs the capture thread and lists the segments that it has written.

    Args:
        open_stream: returns a new, unopened log stream.
        store: where segments go.
        state_max_bytes: most bytes of segments that may wait to be processed.
        retry: the reconnect policy.
    """

    def __init__(
        self,
        open_stream: Callable[[], LogStream],
        store: SegmentStore,
        state_max_bytes: int,
        retry: RetryPolicy,
    ) -> None:
        self._open_stream = open_stream
        self._store = store
        self._max_bytes = state_max_bytes
        self._retry = retry
        self._changed = threading.Condition()
        self._segments: list[Segment] = []
        self._bytes = 0
        self._count = 0
        self._upto = ""
        self._idle: str | None = None
        self._confirmed: str | None = None
        self._wanted = False
        self._urgent_after: str | None = None
        self._wanted_upto: str | None = None
        self._stopping = False
        self._error: BaseException | None = None
        self._stream: LogStream | None = None
        self._thread: threading.Thread | None = None
        self._paused = False

    def start(self, position: str) -> None:
        """Start the thread.

        Args:
            position: capture starts after it.
        """
        self._upto = position
        self._thread = threading.Thread(target=self._run, name="floodmark-capture", daemon=True)
        self._thread.start()

    @property
    def started(self) -> bool:
        """Whether the thread has been started."""
        return self._thread is not None

    def wait(self, after: str, timeout: float, urgent: bool = False, upto: str | None = None) -> None:
        """Request a cut of what has been received, and wait until there is something after a position.

        Args:
            after: the position after which log is wanted.
            timeout: seconds to wait at most.
            urgent: whether to cut at once, even if more is arriving; otherwise only when a segment is full
                or nothing more comes.
            upto: also cut at once when this position has been received, and also return when the log is known to hold
                nothing up to it.

        Raises:
            FloodmarkError: capture has ended with an error.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                self._check()
                if self.end(after) > after or (upto is not None and self.idle_position(after) >= upto):
                    return
                self._wanted = True
                self._wanted_upto = upto
                self._urgent_after = after if urgent else None
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return
                self._changed.wait(min(remaining, 0.1))

    def end(self, after: str) -> str:
        """Return the position up to which everything is in segments or known to be empty."""
        with self._changed:
            last = self._segments[-1].upto if self._segments else after
            return max(last, after)

    def idle_position(self, after: str) -> str:
        """Return the position up to which the log is known to hold nothing after the last segment."""
        with self._changed:
            return max(self._idle or after, self.end(after))

    def segments(self, after: str) -> list[Segment]:
        """Return the segments that hold anything after a position, in order."""
        with self._changed:
            return [segment for segment in self._segments if segment.upto > after]

    def ping(self) -> None:
        """Request the source's current position."""
        stream = self._stream
        if stream is not None:
            try:
                stream.ping()
            except FloodmarkError:
                return  # the thread sees the same error and reconnects

    def confirm(self, position: str) -> None:
        """Confirm a position to the source, and remove the segments up to it."""
        with self._changed:
            self._confirmed = max(self._confirmed or position, position)
            done = [segment for segment in self._segments if segment.upto <= position]
            self._segments = [segment for segment in self._segments if segment.upto > position]
            self._bytes -= sum(segment.size for segment in done)
            self._changed.notify_all()
        for segment in done:
            self._store.remove(segment)
        stream = self._stream
        if stream is not None:
            try:
                stream.confirm(position)
            except FloodmarkError:
                return  # sent again after the reconnect

    def stop(self) -> None:
        """End the thread and close its connection."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(10)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        failures = busy = 0
        unreadable_at: str | None = None
        while not self._stopping:
            try:
                self._stream = self._open_stream()
                self._stream.open(self._upto)
                if self._confirmed is not None:
                    self._stream.confirm(self._confirmed)
                self._store.take_over()
                while not self._stopping:
                    if self._step(self._stream):
                        failures = busy = 0
            except SlotBusyError as exc:
                busy += 1
                self._give_up_or_wait(exc, busy, self._retry.busy_retries, self._retry.busy_wait_s)
            except LoginError as exc:
                self._fail(exc)
            except UnreadableLogError as exc:
                # The log may have been replaced while it was read; opening it again detects that.
                if self._upto == unreadable_at:
                    self._fail(exc)
                else:
                    unreadable_at = self._upto
                    log.warning("capture_reconnects", error=str(exc))
            except ConnectError as exc:
                failures += 1
                self._give_up_or_wait(exc, failures, self._retry.max_retries, self._retry.delay_s(failures))
            except BaseException as exc:
                self._fail(exc)
            finally:
                self._close_stream()

    def _step(self, stream: LogStream) -> bool:
        """Read once and cut a segment if it is time to; return whether anything was received."""
        # Undecided transactions free their space only when more log is read, so they alone must not pause capture.
        if self._bytes and self._bytes + stream.spooled_bytes > self._max_bytes:
            self._pause(stream)
            return False
        got = stream.read(IDLE_WAIT_S)
        if stream.full:
            self._append(stream.cut(force=True))
        elif self._wanted and (not got or self._is_urgent(stream)):
            self._append(stream.cut(force=False))
        idle = stream.idle_position
        if idle is not None and idle != self._idle:
            with self._changed:
                self._idle = idle
                self._changed.notify_all()
        return got > 0

    def _is_urgent(self, stream: LogStream) -> bool:
        """Return whether the planner has nothing to deliver, or the position that it waits for has been received."""
        if self._wanted_upto is not None and stream.received >= self._wanted_upto:
            return True
        return self._urgent_after is not None and self._upto <= self._urgent_after

    def _append(self, cut: Cut | None) -> None:
        if cut is None:
            return
        self._count += 1
        name = f"{self._count:08d}.seg"
        size = len(cut.data.payload) + cut.inflated
        segment = Segment(name, cut.after, cut.upto, cut.rows, size, cut.last_commit_s, tuple(cut.signals))
        # The file must be complete before the segment is listed: readers open it by its name.
        self._store.write(name, cut.data)
        with self._changed:
            self._segments.append(segment)
            self._bytes += segment.size
            self._upto = segment.upto
            self._wanted = False
            self._changed.notify_all()

    def _pause(self, stream: LogStream) -> None:
        if not self._paused:
            self._paused = True
            log.warning("capture_paused", waiting_bytes=self._bytes, state_max_bytes=self._max_bytes)
        stream.tend()
        with self._changed:
            self._changed.wait(PAUSE_WAIT_S)
        if not self._bytes or self._bytes + stream.spooled_bytes <= self._max_bytes:
            self._paused = False
            log.info("capture_resumed", waiting_bytes=self._bytes)

    @property
    def paused(self) -> bool:
        """Whether capture waits for segments to be processed (``state.max.bytes``)."""
        return self._paused

    def _give_up_or_wait(self, exc: FloodmarkError, tries: int, limit: int, delay: float) -> None:
        self._close_stream()
        if self._stopping:
            return
        if 0 <= limit < tries:
            self._fail(
                exc
                if isinstance(exc, SlotBusyError)
                else CaptureError(f"Capture gave up after {limit} retries. Last error: {exc}")
            )
            return
        log.warning("capture_reconnects", error=str(exc), retry=tries, delay_s=delay)
        deadline = time.monotonic() + delay
        with self._changed:
            while not self._stopping and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def _fail(self, exc: BaseException) -> None:
        with self._changed:
            self._error = exc
            self._stopping = True
            self._changed.notify_all()

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
