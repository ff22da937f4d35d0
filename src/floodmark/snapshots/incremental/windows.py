"""Incremental snapshots by windows: rows are read between two watermarks in the log, as in DDD-3.

Where tasks can't read at a read point that the planner holds, exact read points are windows too: both watermarks have
the same position, so no change lies between them.

A window is read before its micro-batch is planned: the planner sets the first watermark, reads the rows into files
beside the log's segments, and sets the second watermark. The micro-batch that holds the rows also holds all of the
window's log, and the tasks combine them (``reconcile``). The rows are valid at the window's end only, so they must not
be read once more for the same window: a micro-batch whose files are gone delivers none, and its ranges are read in
another window.

While the tasks of a micro-batch run, the next window is read, on the assumption that they all succeed. If something
else is needed then, that window is discarded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from floodmark.capture.store import SegmentStore
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.read_points import ReadPoint, Window, WindowSource
from floodmark.errors import SourceStateError, StatementTimeoutError
from floodmark.logger import get_logger
from floodmark.notifications.records import IncrementalSnapshotNotifications, Notification
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.incremental.batch_sizing import BatchSizing
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.incremental.state import IncrementalState, KeyRange, TableRun
from floodmark.snapshots.reports import Report, TaskReports

log = get_logger(__name__)


class _TooMuchError(Exception):
    """A range has more bytes than a micro-batch may hold."""


class _UnwantedError(Exception):
    """The window is no longer needed."""


@dataclass
class _Read:
    """A range that was read.

    Attributes:
        oid: its table.
        complete: whether its rows were read; false if the table is gone or has another structure.
        parts: its chunks, one for each task, each with the files that hold its rows.
    """

    oid: int
    span: KeyRange
    complete: bool = False
    parts: list[Chunk] = field(default_factory=list)


@dataclass
class _Taken:
    """A window that was read, and what was planned with it.

    Attributes:
        before: the tables' state that the plan is made for.
        planned: the state with the window's batch.
        number: how many rows it was planned to have.
        notifications: the notifications to send once the batch is planned.
        read: the ranges that were read.
        files: names of the files that hold the rows.
        bytes: size of the rows.
        seconds: how long it took to read them.
        ahead: whether it was read while tasks of the last micro-batch ran.
    """

    window: Window
    before: list[TableRun]
    planned: IncrementalState
    number: int
    notifications: list[Notification] = field(default_factory=list)
    read: list[_Read] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    bytes: int = 0
    seconds: float = 0.0
    ahead: bool = False


class WindowEngine(IncrementalEngine):
    """Plans the chunks of incremental snapshots that are read in windows.

    Args:
        windows: opens the windows.
        store: where rows wait until the micro-batch is delivered.
        most_bytes: maximum bytes of rows in a micro-batch, unless the smallest range of a table has more.
    """

    def __init__(
        self,
        context: SnapshotContext,
        windows: WindowSource,
        notifications: IncrementalSnapshotNotifications,
        sizing: BatchSizing,
        isolate: bool,
        store: SegmentStore,
        most_bytes: int,
    ) -> None:
        super().__init__(context, notifications, sizing, isolate)
        # One statement reads all that a window takes of a table; its rows are divided among `_readers` tasks.
        self._readers, self._tasks = sizing.tasks, 1
        self._windows = windows
        self._store = store
        self._most_bytes = most_bytes
        self._taken: _Taken | None = None
        self._reading: _Taken | None = None
        self._reader: threading.Thread | None = None
        self._ahead: _Taken | None = None
        self._unwanted = False
        self._refusal: SourceStateError | None = None
        self._written = 0

    def reach(self, state: IncrementalState, after: str) -> tuple[str, str]:
        """Read a window, if none waits, and return its beginning and its end."""
        if self._taken is None:
            self.release()
            self._rows.begin()
            try:
                self._use(self._read_window(state, after, self._isolate))
            except StatementTimeoutError:
                raise
            except SourceStateError as exc:
                self._refusal = exc
        if self._taken is None:
            return after, after
        return self._taken.window.low, self._taken.window.position

    def plan(self, state: IncrementalState, after: str) -> bool:
        """Put the chunks of the window that was read into the state's batch."""
        if self._refusal is not None:
            return self._refuse(state, self._refusal)
        taken = self._taken
        if taken is None:
            return False
        # A window that was read ahead doesn't fit if a task failed or a signal changed the tables meanwhile.
        if state.runs != taken.before or not taken.window.settle(after):
            log.info("window_taken_again", position=taken.window.position)
            self.release()
            return False
        self._settled = True
        self._rows.planned(taken.number, 0.0 if taken.ahead else taken.seconds)
        state.runs, state.batch = taken.planned.runs, taken.planned.batch
        state.position, state.token = taken.window.position, taken.window.token
        for notification in taken.notifications:
            self._notify(notification)
        return True

    def chunks(self, state: IncrementalState) -> Sequence[Chunk]:
        """Return the chunks of the state's batch with their files; none if the process that read them is gone."""
        if self._taken is None or not self._holds(state):
            return []
        window = self._taken.window
        return [
            replace(part, token=window.token, position=window.position, low=window.low, number=(number,))
            for number, read in enumerate(self._reads(state))
            for part in read.parts
        ]

    def _reads(self, state: IncrementalState) -> list[_Read]:
        """Return what was read for each chunk of the state's batch: a signal may have taken tables out of it."""
        assert self._taken is not None
        return [
            next(read for read in self._taken.read if (read.oid, read.span) == (state.runs[chunk.run].oid, chunk.range))
            for chunk in state.batch
        ]

    def read_ahead(self, state: IncrementalState, after: str) -> None:
        """Read the next window while the tasks of the last one run."""
        if self._reader is not None or self._ahead is not None or not self._holds(state):
            return
        following = state.copy()
        self._settle_batch(following, TaskReports())
        following.runs = [run for run in following.runs if not run.finished]
        if following.active:
            self._reader = threading.Thread(target=self._read_next, args=(following, after), name="window", daemon=True)
            self._reader.start()

    def _read_next(self, state: IncrementalState, after: str) -> None:
        try:
            self._ahead = self._read_window(state, after, isolate=False)
            if self._ahead is not None:
                self._ahead.ahead = True
        except _UnwantedError:
            return
        except Exception as exc:
            # Planning meets the same error again, and handles it.
            log.info("window_is_not_read_ahead", error=str(exc))

    def wait(self) -> None:
        """Wait until the next window has been read."""
        if self._reader is not None:
            self._reader.join()
            self._reader = None

    def release(self) -> None:
        """Release all windows and remove their files."""
        self._unwanted = True
        self.wait()
        self._unwanted = False
        if self._ahead is not None:
            self._drop(self._ahead)
            self._ahead = None
        self._let_go()

    def _let_go(self) -> None:
        super()._let_go()
        if self._taken is not None:
            self._drop(self._taken)
        self._use(self._ahead)
        self._ahead = None
        if self._taken is not None:
            self._rows.begin(self._taken.number, self._taken.seconds)

    def _use(self, taken: _Taken | None) -> None:
        self._taken = taken
        self._point = None if taken is None else taken.window

    def _drop(self, taken: _Taken) -> None:
        taken.window.release()
        for name in taken.files:
            self._store.remove_file(name)

    def _describe(self, run: TableRun) -> None:
        super()._describe(run)
        self._check_key(run)

    def _check_key(self, run: TableRun) -> None:
        if run.surrogate is not None and not run.outcome and self._tables.key_of(run.oid, None) is None:
            run.outcome = "NO_PRIMARY_KEY"

    def _follow(self, run: TableRun, file: str) -> None:
        super()._follow(run, file)
        self._check_key(run)

    def _settle_batch(self, state: IncrementalState, reports: TaskReports) -> dict[int, Report]:
        # The rows were read before the tasks ran. Without the process that read them, none were delivered.
        reads = self._reads(state) if self._holds(state) else []
        delivered: dict[tuple[int, ...], int] = {(number,): 0 for number, read in enumerate(reads) if read.complete}
        return state.settle_batch(reports.with_complete("incremental", delivered))

    def _read_window(self, state: IncrementalState, after: str, isolate: bool) -> _Taken | None:
        """Open, read and close a window, with fewer rows if it has too many bytes."""
        while True:
            began_at = time.monotonic()
            window = self._windows.open(after)
            if window is None:
                return None
            taken = _Taken(window, state.copy().runs, state.copy(), self._rows.number)
            self._reading = taken
            try:
                taken.notifications = self._fill(taken.planned, window, isolate)
                window.close()
            except _TooMuchError:
                self._drop(taken)
                self._rows.halve()
            except BaseException:
                self._drop(taken)
                raise
            else:
                taken.seconds = time.monotonic() - began_at
                return taken
            finally:
                self._reading = None

    def _refuse(self, state: IncrementalState, error: SourceStateError) -> bool:
        """Go on without rows, since no watermark can be written."""
        self._refusal = None
        if not self._isolate:
            raise error
        for run in state.runs:
            if not run.finished:
                self._count_failure(run, str(error))
        return True

    def _take(self, state: IncrementalState, index: int, run: TableRun, rows: int, point: ReadPoint) -> int:
        """Plan up to about ``rows`` rows of a table, and read them."""
        reading = self._reading
        assert reading is not None
        first, read, kept = len(state.batch), len(reading.read), run.copy()
        try:
            taken = super()._take(state, index, run, rows, point)
            for chunk in state.batch[first:]:
                reading.read.append(self._read(reading, run, chunk.range))
        except SourceStateError:
            # The other tables go on, so this one must look as if nothing had been tried.
            vars(run).update(vars(kept))
            del state.batch[first:], reading.read[read:]
            raise
        return taken

    def _read(self, reading: _Taken, run: TableRun, span: KeyRange) -> _Read:
        """Read a range into files, which are divided among the tasks."""
        read = _Read(run.oid, span)
        table = self._tables.describe([run.oid]).get(run.oid)
        if table is None:
            return read
        chunk = self._chunk(run, span, table)
        files: list[str] = []
        with closing(reading.window.rows(chunk)) as pieces:
            while True:
                try:
                    data = next(pieces)
                except StopIteration as end:
                    read.complete = end.value == "complete"
                    break
                if self._unwanted:
                    raise _UnwantedError
                reading.bytes += len(data.payload)
                if reading.bytes > self._most_bytes and self._rows.number > self._least:
                    raise _TooMuchError
                self._written += 1
                files.append(f"rows-{self._written:08d}.seg")
                reading.files.append(files[-1])
                self._store.write(files[-1], data)
        shares = [tuple(files[first :: self._readers]) for first in range(self._readers)]
        read.parts = [replace(chunk, files=share) for share in shares if share]
        return read


def make_engine(
    context: SnapshotContext,
    notifications: IncrementalSnapshotNotifications,
    sizing: BatchSizing,
    options: CommonOptions,
    store: SegmentStore,
) -> IncrementalEngine:
    """Return the engine of incremental snapshots that the options and the connector require."""
    isolate = options.errors_tables == "isolate"
    windows = context.source.windows
    if windows is None:
        return IncrementalEngine(context, notifications, sizing, isolate)
    return WindowEngine(context, windows, notifications, sizing, isolate, store, options.max_batch_bytes)
