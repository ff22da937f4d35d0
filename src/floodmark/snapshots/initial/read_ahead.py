"""Runs a snapshot whose rows only this process can read: it reads them ahead, and tasks decode them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from floodmark.capture.store import SegmentStore
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.captured_table import UNCOUNTED
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, KeyRangeChunk
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.errors import FloodmarkError, SourceStateError
from floodmark.logger import get_logger
from floodmark.notifications.records import InitialSnapshotNotifications
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.initial.engine import SMALL_TABLES, SnapshotEngine
from floodmark.snapshots.initial.reading import Job, Piece, Reading, Rest
from floodmark.snapshots.reports import Part, TaskReports
from floodmark.snapshots.state import (
    ALL,
    MOST_RANGES,
    Found,
    SnapshotState,
    Span,
    TableState,
    cut_into_ranges,
    is_open,
    merge_spans,
)

log = get_logger(__name__)

THREADS = 2
"""More threads read faster than this process can write, unless the tables are on several disks."""
LEAST_ROWS = 10_000
"""Minimum rows in a range of a table, by the server's estimate: fewer are read before another connection starts."""


class ReadAheadEngine(SnapshotEngine):
    """Plans the chunks of one snapshot that this process reads itself.

    A table with a key is read in its order and delivered piece by piece; a large one in as many ranges of its key as
    there are threads, and not in more: an ALTER could come in between. When the read point is lost, the rest is read
    at another one, after the log up to there has been delivered: rows that were read before stay valid, since their
    changes are in that log. A table without a key is delivered in one micro-batch, or else read again from its
    beginning, since its rows can't be told apart.

    Args:
        store: where rows wait until the micro-batch is delivered.
        threads: number of tables, or ranges of one, that are read in parallel.
        most_bytes: maximum bytes that wait for their micro-batch.
        chunk_bytes: bytes of a full piece.
        isolate: whether a table that fails is excluded; otherwise the error is raised.
    """

    def __init__(
        self,
        context: SnapshotContext,
        notifications: InitialSnapshotNotifications,
        part: Part,
        target_s: float,
        max_chunks: int,
        store: SegmentStore,
        threads: int,
        most_bytes: int,
        chunk_bytes: int,
        isolate: bool,
    ) -> None:
        super().__init__(context, notifications, part, target_s, max_chunks)
        self._store = store
        self._threads = threads
        self._most_bytes = most_bytes
        self._chunk_bytes = chunk_bytes
        self._least_bytes = max(chunk_bytes // SMALL_TABLES, 1)
        self._isolate = isolate
        self._reading: Reading | None = None

    def settle(self, state: SnapshotState, reports: TaskReports) -> None:
        """Count the last batch as delivered, as far as this process had read it and no task failed."""
        read = self._read(state)
        complete: dict[tuple[int, ...], int] = {}
        for number, (first, last, piece) in enumerate(read):
            if piece is not None and reports.of(self._part, number, first).outcome != "failed":
                complete |= {(number, unit): 0 for unit in range(first, last)}
                complete[number, first] = piece.rows
        super().settle(state, reports.with_complete(self._part, complete))
        if self._reading is not None:
            self._reading.delivered([piece for _, _, piece in read if piece is not None])
        for table in state.tables:
            edges = {unit for first, last, _ in table.pending for unit in (first, last)}
            table.keys = {unit: key for unit, key in table.keys.items() if unit in edges}

    def _read(self, state: SnapshotState) -> list[tuple[int, int, Piece | None]]:
        """Return what was read for each chunk of the state's batch, and the chunk's units.

        Rows that this process has read stay right when the read point is lost.
        """
        reading = self._reading
        if reading is not None and reading.point.token != state.token:
            reading = None
        return [
            (first, last, None if reading is None else reading.find(index, first))
            for index, (first, last, _) in state.batch
        ]

    def usable(self, state: SnapshotState) -> bool:
        """Return whether the state can go on at its read point; tables that are gone are removed from it."""
        stale = self._reading is not None and self._reading.stale
        return super().usable(state) and not stale

    def holds(self, state: SnapshotState) -> bool:
        """Return whether the state's read point is held by this process and can be read from."""
        return super().holds(state) and (self._reading is None or not self._reading.lost)

    def move(self, state: SnapshotState, point: ReadPoint) -> SnapshotState:
        """Return the state at another read point."""
        found = self._take_point(state, point)
        tables = [_moved(table, found[table.oid]) if table.oid in found else table for table in state.tables]
        return SnapshotState(point.position, point.token, [point.visible], tables, [], state.blocking)

    def chunks(self, state: SnapshotState) -> Sequence[Chunk]:
        """Return the chunks of the state's batch with their files; none if the process that read them is gone."""
        return [
            replace(
                piece.chunk,
                token=state.token,
                position=state.position,
                low=state.position,
                number=(number, first),
                files=(name,),
                share=piece.size / len(piece.files) / self._chunk_bytes,
            )
            for number, (first, _, piece) in enumerate(self._read(state))
            if piece is not None
            for name in piece.files
        ]

    def give_way(self) -> None:
        """Release the read point, since another session may wait for its tables; the rest is read at another one."""
        if self._point is not None:
            log.info("read_point_is_given_up", reason="another session has locked tables and may wait for it")
            self.release()

    def release(self) -> None:
        """Release the read point, and remove what was read and not delivered."""
        super().release()
        if self._reading is not None:
            self._reading.stop()
            self._reading = None

    def _take(self, state: SnapshotState, everything: bool) -> None:
        assert self._point is not None
        if self._reading is None or self._reading.point is not self._point:
            self._reading = Reading(
                self._point,
                self._store,
                self._part,
                self._threads,
                self._most_bytes,
                self._least_bytes,
            )
        reading = self._reading
        self._cut(state, reading)
        self._order(state, reading, everything)
        most = None if everything else self._chunks * self._chunk_bytes
        # Each micro-batch delivers something, however long reading takes, unless the stream goes on meanwhile.
        reading.wait(
            lambda: most is not None and reading.ready >= most and _counted(_ready(state, reading, most)) >= most,
            None if everything else self._target_s,
        )
        if self._part == "consistent" and not _ready(state, reading, 1):
            reading.wait(lambda: bool(_ready(state, reading, 1)), None)
        for job in reading.failures():
            self._fail(state, job)
        for index, piece in _ready(state, reading, most):
            _hand_out(state, index, piece)

    def _cut(self, state: SnapshotState, reading: Reading) -> None:
        """Split large tables into ranges, if nothing has been read of them."""
        for table in state.tables:
            ranges = min(self._threads, table.rows // LEAST_ROWS, MOST_RANGES)
            if ranges > 1 and table.pending == [(0, UNCOUNTED, ALL)] and not table.keys:
                # A micro-batch that is planned again must cut in the same way, to find what is being read.
                if table.oid not in reading.cuts:
                    reading.cuts[table.oid] = self._cuts(reading, table, ranges)
                cut_into_ranges(table, reading.cuts[table.oid])

    def _cuts(self, reading: Reading, table: TableState, ranges: int) -> list[list[str]]:
        try:
            return reading.rows.split(table.oid, ranges)
        except FloodmarkError as exc:
            # Reading the table meets the same error, and handles it.
            log.info("table_is_not_cut", table=table.name, error=str(exc))
            return []

    def _order(self, state: SnapshotState, reading: Reading, everything: bool) -> None:
        """Queue what is pending: all of it, or as much as two micro-batches can hold."""
        pending = (
            (index, span)
            for index, table in enumerate(state.tables)
            for span in table.pending
            if not reading.covers(_part(index, table, span))
        )
        # Limited, since each job holds its table's structure, and each piece has a file.
        ready, ordered = reading.ahead()
        free = max(2 * self._max_chunks * SMALL_TABLES - ready // self._least_bytes, self._threads) - ordered
        wanted = list(pending if everything else islice(pending, max(free, 0)))
        if not wanted:
            return
        described = self._tables.describe(sorted({state.tables[index].oid for index, _ in wanted}))
        for index, span in wanted:
            table = state.tables[index]
            job = self._job(state, index, table, span, described[table.oid]) if table.oid in described else None
            if job is None:
                reading.stale = True
            else:
                reading.add(job)

    def _job(
        self, state: SnapshotState, index: int, table: TableState, span: Span, described: DescribedTable
    ) -> Job | None:
        """Return the job that reads a part of a table; None if the table is gone or has no key any more."""
        key = self._tables.key_of(table.oid, None) if table.units == UNCOUNTED else None
        if key is None and table.units == UNCOUNTED:
            return None
        if state.blocking:
            # A statement that the options give for the table is for initial snapshots only.
            described = replace(described, statement=self._statement(table))
        first, last, _ = span
        chunk = Chunk(table=described, file=table.file)
        if key is not None:
            chunk = KeyRangeChunk(
                table=described,
                file=table.file,
                key=key,
                after=table.keys.get(first),
                upto=table.keys.get(last),
                to_end=last not in table.keys,
                in_order=is_open(last),
            )
        return Job(index, first, table.keys.get(first), chunk, not is_open(last))

    def _fail(self, state: SnapshotState, job: Job) -> None:
        assert job.error is not None
        if not self._isolate or not isinstance(job.error, SourceStateError):
            raise job.error
        self._count_failure(state, job.table, str(job.error))


def _moved(table: TableState, found: Found) -> TableState:
    """Return a table's state at another read point."""
    units, file, rows = found
    if not table.pending or file == table.file:
        return table
    if table.file:
        log.info("table_is_read_again", table=table.name, reason="it was altered")
    return replace(table, file=file, units=units, rows=rows, pending=[(0, units, ALL)], done=[], keys={}, read=0)


def _ready(state: SnapshotState, reading: Reading, most: int | None) -> list[tuple[int, Piece]]:
    """Return the pieces that can be delivered next, with their tables, until they count as ``most`` bytes."""
    found: list[tuple[int, Piece]] = []
    counted = 0
    for index, table in enumerate(state.tables):
        for span in table.pending:
            for piece in _following(reading, index, table, span):
                found.append((index, piece))
                counted += piece.counts
                if most is not None and counted >= most:
                    return found
    return found


def _counted(pieces: list[tuple[int, Piece]]) -> int:
    return sum(piece.counts for _, piece in pieces)


def _following(reading: Reading, index: int, table: TableState, span: Span) -> Iterator[Piece]:
    part = _part(index, table, span)
    while (piece := reading.piece(part)) is not None:
        yield piece
        if piece.upto is None:
            return
        part = replace(part, unit=piece.unit + 1, after=piece.upto)


def _part(index: int, table: TableState, span: Span) -> Rest:
    first, last, _ = span
    return Rest(index, first, table.keys.get(first), table.keys.get(last))


def _hand_out(state: SnapshotState, index: int, piece: Piece) -> None:
    """Move a piece from what is pending into the batch."""
    table = state.tables[index]
    place = next(place for place, span in enumerate(table.pending) if span[0] == piece.unit)
    first, last, view = table.pending.pop(place)
    # A part of unknown length ends with the first piece that nothing follows.
    end = first + 1 if piece.upto is not None or is_open(last) else last
    if piece.upto is not None:
        table.keys[end] = piece.upto
        table.pending.insert(place, (end, last, view))
    elif last in table.keys:
        table.keys[end] = table.keys[last]
    table.done = merge_spans([*table.done, (first, end, view)])
    state.batch.append((index, (first, end, view)))


def make_snapshot_engine(
    context: SnapshotContext,
    notifications: InitialSnapshotNotifications,
    part: Part,
    target_s: float,
    options: CommonOptions,
    store: SegmentStore,
) -> SnapshotEngine:
    """Return the snapshot engine that the connector needs."""
    chunks = options.max_batch_bytes // options.snapshot_chunk_bytes
    if not context.source.snapshots.local:
        return SnapshotEngine(context, notifications, part, target_s, chunks)
    threads = reading_threads(options)
    isolate = options.errors_tables == "isolate"
    bytes_ahead = options.max_batch_bytes
    # While one half is delivered, the other is read; a larger micro-batch would wait for its rows.
    return ReadAheadEngine(
        context,
        notifications,
        part,
        target_s,
        chunks // 2,
        store,
        threads,
        bytes_ahead,
        options.snapshot_chunk_bytes,
        isolate,
    )


def reading_threads(options: CommonOptions) -> int:
    """Return how many threads read at one read point."""
    return options.snapshot_max_threads or min(THREADS, os.cpu_count() or 1)
