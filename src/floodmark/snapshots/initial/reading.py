"""Reads tables ahead of the micro-batches that deliver them, into files beside the log's segments.

Some sources show a view of the tables only to the connection that opened it. Then the process that holds the view reads
the raw rows in threads, and tasks do the rest of the work. The files of a table follow each other in the order of its
key, so that only the key of the last delivered row has to be remembered.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.connectors.contract.chunk import Chunk, KeyRangeChunk
from floodmark.connectors.contract.read_points import LocalRows, ReadPoint
from floodmark.errors import ConnectError
from floodmark.logger import get_logger
from floodmark.snapshots.state import RANGE_UNITS

log = get_logger(__name__)

Key = list[str]
Range = tuple[int, int]
"""A table, by its index in the snapshot's state, and the number of its range."""


@dataclass(frozen=True)
class Rest:
    """The part of a table, or of a range of it, that is still to be read.

    Attributes:
        table: index of the table in the snapshot's state.
        unit: the number of its first piece.
        after: the key before its first row; None: it begins with the table.
        upto: the key of its last row; None: it goes to the table's end.
    """

    table: int
    unit: int
    after: Key | None
    upto: Key | None

    @property
    def range(self) -> Range:
        """The range that it belongs to."""
        return self.table, self.unit // RANGE_UNITS


@dataclass(eq=False)
class _Part:
    """Fields that pieces and jobs share.

    Attributes:
        table: index of the table in the snapshot's state.
        unit: the number of the next, or only, piece in its table.
        after: the key before its first row; None: it begins with the table.
        chunk: what the connector reads.
    """

    table: int
    unit: int
    after: Key | None
    chunk: Chunk

    @property
    def rest(self) -> Rest:
        """The part of the table that begins here."""
        upto = self.chunk.upto if isinstance(self.chunk, KeyRangeChunk) else None
        return Rest(self.table, self.unit, self.after, upto)

    @property
    def range(self) -> Range:
        """The range that it belongs to."""
        return self.table, self.unit // RANGE_UNITS


@dataclass(eq=False)
class Piece(_Part):
    """Rows that were read into files.

    Attributes:
        upto: the key of its last row; None if nothing of the job's part follows. The last piece may have no rows.
        size: bytes of its files.
        counts: number of bytes that it counts as.
    """

    upto: Key | None
    files: list[str] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    counts: int = 0
    delivered: bool = False


@dataclass(eq=False)
class Job(_Part):
    """A part of a table that is to be read.

    Attributes:
        whole: whether all rows make one piece.
    """

    whole: bool
    cancelled: bool = False
    error: Exception | None = None


def _local(point: ReadPoint) -> LocalRows:
    """Return what reads tables at a read point in this process."""
    if point.local is None:
        raise TypeError("Tasks read at this read point; it can't be read in this process.")
    return point.local


class Reading:
    """Reads requested parts of tables at one read point.

    Args:
        point: the read point, which the caller releases.
        store: where the rows wait.
        name: the beginning of the files' names.
        threads: number of parts of tables that are read in parallel.
        most_bytes: reading pauses when so many bytes wait.
        least_bytes: number of bytes that a smaller piece counts as, unless it is empty.

    Attributes:
        rows: reads the tables at the read point.
        ready: number of bytes that the pieces count as that have been read and not delivered.
    """

    def __init__(
        self,
        point: ReadPoint,
        store: SegmentStore,
        name: str,
        threads: int,
        most_bytes: int,
        least_bytes: int,
    ) -> None:
        self.point = point
        self.rows = _local(point)
        self._store = store
        self._name = name
        self._most_bytes = most_bytes
        self._least_bytes = least_bytes
        self._changed = threading.Condition()
        self._queue: deque[Job] = deque()
        self._running = 0
        self._jobs: dict[Range, list[Job]] = defaultdict(list)
        self._failed: list[Job] = []
        self._pieces: dict[Range, dict[int, Piece]] = defaultdict(dict)
        self._delivered: list[Piece] = []
        self._sizes: dict[str, int] = {}
        self._waiting = 0
        self.ready = 0
        self._written = 0
        self._unlimited = False
        self._stopped = False
        self.lost = False
        self.stale = False
        self.cuts: dict[int, list[Key]] = {}
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def covers(self, rest: Rest) -> bool:
        """Return whether a part of a table has been read, or will be."""
        with self._changed:
            jobs = self._jobs.get(rest.range, ())
            return self._piece(rest) is not None or any(job.rest == rest and not job.cancelled for job in jobs)

    def add(self, job: Job) -> None:
        """Queue a part of a table; other reads of the rest of the same range are cancelled or discarded."""
        with self._changed:
            if not job.whole:
                for other in self._jobs.get(job.range, ()):
                    other.cancelled |= not other.whole
                for piece in self._pieces.get(job.range, {}).values():
                    if piece.unit >= job.unit:
                        self._drop(piece)
            self._queue.append(job)
            self._jobs[job.range].append(job)
            self._changed.notify_all()

    def piece(self, rest: Rest) -> Piece | None:
        """Return the first piece of a part of a table; None if it hasn't been read yet."""
        with self._changed:
            return self._piece(rest)

    def find(self, table: int, unit: int) -> Piece | None:
        """Return a piece that has been read, delivered or not."""
        with self._changed:
            return self._found(table, unit)

    def _piece(self, rest: Rest) -> Piece | None:
        piece = self._found(rest.table, rest.unit)
        return piece if piece is not None and piece.rest == rest and not piece.delivered else None

    def _found(self, table: int, unit: int) -> Piece | None:
        return self._pieces.get((table, unit // RANGE_UNITS), {}).get(unit)

    def ahead(self) -> tuple[int, int]:
        """Return how many bytes are ready and how many jobs wait for a thread, both at the same moment."""
        with self._changed:
            return self.ready, len(self._queue)

    def wait(self, enough: Callable[[], bool], timeout: float | None) -> None:
        """Wait until there is enough, reading has paused or ended, or the timeout expires."""
        with self._changed:
            self._unlimited = timeout is None
            self._changed.notify_all()
            self._changed.wait_for(lambda: enough() or self._full() or not self._busy(), timeout)

    def failures(self) -> list[Job]:
        """Return the failed jobs, each once."""
        with self._changed:
            failed, self._failed = self._failed, []
            return failed

    @property
    def busy(self) -> bool:
        """Whether more is being read."""
        with self._changed:
            return self._busy()

    def _busy(self) -> bool:
        return not (self.lost or self.stale or self._stopped) and bool(self._queue or self._running)

    def _full(self) -> bool:
        return self._waiting >= self._most_bytes and not self._unlimited

    def delivered(self, pieces: list[Piece]) -> None:
        """Remove the files of the last micro-batch's pieces, and forget the pieces of earlier ones.

        The last pieces are still looked up if the next micro-batch is planned again.
        """
        with self._changed:
            kept = {id(piece) for piece in pieces}
            for piece in self._delivered:
                if id(piece) not in kept and self._found(piece.table, piece.unit) is piece:
                    self._forget(piece)
            self._delivered = pieces
            for piece in pieces:
                self._drop(piece)
            self._changed.notify_all()

    def _drop(self, piece: Piece) -> None:
        if not piece.delivered:
            piece.delivered = True
            self.ready -= piece.counts
            self._remove(piece.files)

    def _forget(self, piece: Piece) -> None:
        del self._pieces[piece.range][piece.unit]
        if not self._pieces[piece.range]:
            del self._pieces[piece.range]

    def _remove(self, files: list[str]) -> None:
        for name in files:
            self._waiting -= self._sizes.pop(name, 0)
            self._store.remove_file(name)

    def stop(self) -> None:
        """End the threads and remove all files; release the read point first, so that no thread waits at the source."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for name in list(self._sizes):
            self._store.remove_file(name)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._queue)
                if self._stopped:
                    return
                job = self._queue.popleft()
                self._running += 1
            try:
                self._read(job)
            except Exception as exc:
                self._take_error(job, exc)
            finally:
                with self._changed:
                    self._running -= 1
                    self._jobs[job.range].remove(job)
                    if not self._jobs[job.range]:
                        del self._jobs[job.range]
                    self._changed.notify_all()

    def _take_error(self, job: Job, error: Exception) -> None:
        with self._changed:
            if isinstance(error, ConnectError) or self._stopped:
                self.lost = True
                log.info("read_point_is_lost", error=str(error))
            elif not job.cancelled:
                job.error = error
                self._failed.append(job)

    def _read(self, job: Job) -> None:
        whole = Piece(job.table, job.unit, job.after, job.chunk, None)
        with closing(self.rows.rows(job.chunk)) as parts:
            while not (self._stopped or job.cancelled):
                try:
                    data = next(parts)
                except StopIteration as end:
                    if end.value == "complete":
                        # Where the pieces are delivered one by one, this empty one only marks the end.
                        self._finish(
                            job, whole if job.whole else Piece(job.table, job.unit, job.after, job.chunk, None)
                        )
                        return
                    self.stale = True
                    break
                part = whole if job.whole else Piece(job.table, job.unit, job.after, job.chunk, data.header["last"])
                self._write(part, data)
                if not job.whole:
                    self._finish(job, part)
        with self._changed:
            self._remove(whole.files)

    def _write(self, piece: Piece, data: SegmentData) -> None:
        with self._changed:
            self._written += 1
            name = f"{self._name}-{self._written:08d}.seg"
            self._sizes[name] = len(data.payload)
            self._waiting += len(data.payload)
        self._store.write(name, data)
        piece.files.append(name)
        piece.size += len(data.payload)
        piece.rows += len(data.starts)

    def _finish(self, job: Job, piece: Piece) -> None:
        """Make a piece available for delivery, and wait while too many bytes are waiting."""
        with self._changed:
            if job.cancelled:
                self._remove(piece.files)
                return
            known = self._found(piece.table, piece.unit)
            if known is not None:
                self._drop(known)
            self._pieces[piece.range][piece.unit] = piece
            piece.counts = max(piece.size, self._least_bytes) if piece.files else 0
            self.ready += piece.counts
            # `covers` finds a running job by the part that it still has to read.
            job.unit, job.after = piece.unit + 1, piece.upto
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._full() or self._stopped or job.cancelled)
