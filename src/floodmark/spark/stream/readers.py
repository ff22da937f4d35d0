"""Reads the partitions of a streaming query in executors, with the connector's readers; every worker imports it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from floodmark.capture.retry import RetryPolicy
from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.changes.arrow_tables import ARROW_SCHEMA, ArrowVersions, gap_rows, row_count
from floodmark.changes.event_blocks import BLOCK_SCHEMA, blocks_of, kept_columns
from floodmark.changes.table_version import EventVersions, VersionMaker
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.decoding import DeadLetter, DecodeProblems, DecodeRequest, TableFailure
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.executor_side import ChunkReader, ExecutorSide, LogDecoder, ReadingSide
from floodmark.connectors.registry import connector_module
from floodmark.errors import (
    ConnectError,
    LockTimeoutError,
    LogGoneError,
    SchemaChangeError,
    StateDirError,
    StatementTimeoutError,
    describe,
)
from floodmark.events.columns import event_schema
from floodmark.events.gaps import gap_batch
from floodmark.events.heartbeats import heartbeat_batch
from floodmark.logger import get_logger
from floodmark.notifications.records import notification_batch
from floodmark.snapshots.excluded_tables import no_table_left
from floodmark.snapshots.reports import Outcome, Part, Report, ReportBox
from floodmark.spark.stream.dead_letters import keep_dead_letters
from floodmark.spark.stream.partitions import (
    MOST_IN_SERIES,
    AnnouncementPartition,
    ChunkPartition,
    GapPartition,
    HeartbeatPartition,
    LogPartition,
    NotificationPartition,
    SeriesPartition,
    WarmPartition,
    WindowPartition,
    in_window,
)
from floodmark.spark.worker_memory import keep_modules
from floodmark.transforms.other_records import GAPS, HEARTBEATS, NOTIFICATIONS, converted_batch, transformed_batch

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

log = get_logger(__name__)


def _side(options: CommonOptions) -> ExecutorSide:
    return cast(ExecutorSide, connector_module(options.connector, "executor"))


def output_schema(options: CommonOptions) -> pa.Schema:
    """Return the columns that the options select; for typed rows in columns this queries the source."""
    if options.format == "arrow":
        return ARROW_SCHEMA
    if options.event_blocks:
        return BLOCK_SCHEMA
    return _event_schema(options) if options.format == "events" else _side(options).row_schema(options)


def _event_schema(options: CommonOptions) -> pa.Schema:
    return event_schema(options.binary_columns, options.chooses_partitions)


def _versions(options: CommonOptions, schema: pa.Schema, settled: str = "") -> VersionMaker:
    if options.format == "events":
        columns = _event_schema(options)
        return EventVersions(options, kept_columns(columns) if options.event_blocks else columns)
    if options.format == "arrow":
        return ArrowVersions(options)
    from floodmark.changes.typed_tables import RowVersions

    return RowVersions(options, schema, settled)


def _segment(partition: LogPartition) -> SegmentData:
    return SegmentStore(partition.uri, partition.owner, partition.run).read(partition.segment.name)


def make_decoder(options: CommonOptions, schema: pa.Schema) -> LogDecoder:
    """Return the decoder of log segments."""
    return _side(options).make_decoder(options, _versions(options, schema))


def read_partition(options: CommonOptions, schema: pa.Schema, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Return the events of a task of a streaming query."""
    keep_modules()
    if isinstance(partition, SeriesPartition):
        return _read_in_turn(options, partition)
    if options.event_blocks:
        events = _read_partition(options, _event_schema(options), partition)
        return (blocks_of(batch, options.event_blocks) for batch in events)
    batches = _read_partition(options, schema, partition)
    if options.format != "tables" or isinstance(partition, GapPartition):
        return batches
    from floodmark.changes.typed_tables import without_unknown

    return map(without_unknown, batches)


def _read_in_turn(options: CommonOptions, series: SeriesPartition) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of partitions in their order, while those behind are read in other threads.

    The task has a core for each part of its events, which no other task uses. Converters of users' own packages are
    called by one thread at a time.
    """
    schema = _event_schema(options)

    def read(partition: InputPartition) -> list[pa.RecordBatch]:
        return [blocks_of(batch, None) for batch in _read_partition(options, schema, partition)]

    threads = 1 if options.converters else min(options.event_blocks, MOST_IN_SERIES)
    behind = iter(series.partitions)
    with ThreadPoolExecutor(threads) as pool:
        started: deque[Future[list[pa.RecordBatch]]] = deque()
        started.extend(pool.submit(read, one) for one in islice(behind, threads))
        while started:
            blocks = started.popleft().result()
            started.extend(pool.submit(read, one) for one in islice(behind, 1))
            yield from blocks


def _read_partition(options: CommonOptions, schema: pa.Schema, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, LogPartition):
        return read_log(options, schema, partition)
    if isinstance(partition, WindowPartition):
        return read_window(options, schema, partition)
    if isinstance(partition, ChunkPartition):
        return read_chunks(options, schema, partition)
    if isinstance(partition, WarmPartition):
        return iter([pa.RecordBatch.from_pylist([], schema=schema)])
    if isinstance(partition, AnnouncementPartition):
        return iter([pa.RecordBatch.from_pylist(partition.rows, schema=schema)])
    if isinstance(partition, GapPartition):
        if options.format == "arrow":
            return iter([gap_rows(partition.gaps)])
        if options.format == "events":
            return iter(
                [
                    converted_batch(
                        gap_batch(partition.gaps, options, event_schema((), options.chooses_partitions)), GAPS, options
                    )
                ]
            )
        return iter([gap_batch(partition.gaps, options, schema)])
    if options.format != "events":
        return iter(())
    if isinstance(partition, NotificationPartition):
        batch = notification_batch(partition.notifications, options, f"{partition.position}-00")
        return iter([transformed_batch(batch, NOTIFICATIONS, options)])
    assert isinstance(partition, HeartbeatPartition)
    batch = heartbeat_batch(partition.time_ms, options, partition.position)
    return iter([transformed_batch(batch, HEARTBEATS, options)])


def read_log(options: CommonOptions, schema: pa.Schema, partition: LogPartition) -> Iterator[pa.RecordBatch]:
    """Yield the events of a part of the log; with ``errors.tables=isolate`` without those of tables that fail.

    With ``event.processing.failure.handling.mode`` other than ``fail``, records that can't be decoded are left out and
    kept as dead letters.

    Raises:
        LogGoneError: its segment is missing.
        StateDirError: its segment is damaged, or cannot be read.
        DecodeError: a record violates the protocol.
        SchemaChangeError: the table of typed rows was altered.
        NoTableLeftError: the table of typed rows can't be decoded.
    """
    data = _segment(partition)
    failed: list[TableFailure] | None = [] if options.errors_tables == "isolate" else None
    mode = options.event_processing_failure_handling_mode
    dead: list[DeadLetter] | None = None if mode == "fail" else []
    yield from (
        _side(options)
        .make_decoder(options, _versions(options, schema, partition.settled))
        .decode(
            DecodeRequest(data, partition.after, partition.upto, partition.excluded, partition.only, partition.context),
            DecodeProblems(failed, dead),
        )
    )
    # Dead letters and reports are written before the task ends, so no micro-batch is committed without them.
    if dead:
        keep_dead_letters(partition.uri, partition.owner, f"{partition.batch}-{partition.after}", dead)
        for letter in dead if mode == "warn" else ():
            log.warning("record_is_left_out", table=letter.table, position=letter.position, error=letter.error)
    if failed and options.format == "rows":
        # There are no other tables to go on with, and the micro-batch is not delivered.
        raise no_table_left({one.table: one.error for one in failed})
    if failed:
        reports = [Report("log", (), "failed", 0, one.table, one.oid, one.error) for one in failed]
        ReportBox(partition.uri, partition.owner).write(partition.batch, reports)


def read_window(options: CommonOptions, schema: pa.Schema, partition: WindowPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows that the planner has read and that are still valid at their window's end; report failures.

    Raises:
        LogGoneError: a file is missing.
        StateDirError: a file is damaged, or cannot be read.
    """
    began = time.time()
    store = SegmentStore(partition.uri, partition.owner, partition.run)
    reader = _side(options).make_local_row_reader(options, _versions(options, schema))
    reports = []
    for chunk in partition.chunks:
        try:
            files = map(store.read, chunk.files)
            log = ((_segment(part), part.after, part.upto) for part in in_window(partition.log, chunk))
            yield from reader.read(chunk, files, log)
        except (ConnectError, LogGoneError, StateDirError, SchemaChangeError):
            # Not the table's fault: its rows, or the log, are read again when the query is restarted.
            raise
        except Exception as exc:
            # Any other error must not stop the other tables.
            if options.errors_tables == "fail":
                raise
            report = _failure(partition.part, chunk, 0, exc)
            if partition.required:
                raise no_table_left({report.table: report.error}) from exc
            reports.append(report)
    reports += _time(partition.part, began)
    if reports:
        ReportBox(partition.uri, partition.owner).write(partition.batch, reports)


def _time(part: Part, began: float) -> list[Report]:
    """Return a report of how long a task took, if the snapshot adapts its pace to that."""
    return [Report("time", (), "complete", began=began, ended=time.time())] if part == "incremental" else []


class _Reading:
    """Iterates over a chunk's rows and keeps what the generator returns at the end."""

    def __init__(self, rows: Generator[pa.RecordBatch, None, ChunkOutcome]) -> None:
        self._rows = rows
        self.outcome: ChunkOutcome = "nothing"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.outcome = yield from self._rows


def read_chunks(options: CommonOptions, schema: pa.Schema, partition: ChunkPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's chunks, and write a report of each chunk's outcome at the end.

    Raises:
        ConnectError: the source was unavailable for too long, or the connection was lost in the middle of a chunk.
        StateDirError: the report cannot be written.
    """
    reports = []
    began = time.time()
    policy = RetryPolicy.from_options(options)
    side = cast(ReadingSide, connector_module(options.connector, "executor"))
    with closing(side.make_chunk_reader(options, _versions(options, schema))) as reader:
        for chunk in partition.chunks:
            rows = 0
            try:
                reading = _Reading(read_chunk(reader, policy, chunk))
                for batch in reading:
                    rows += row_count(batch)
                    yield batch
                reports.append(Report(partition.part, chunk.number, reading.outcome, rows))
            except (ConnectError, SchemaChangeError):
                raise
            except Exception as exc:
                # Any other error must not stop the other tables.
                report = _failure(partition.part, chunk, rows, exc)
                if options.errors_tables == "fail" and report.outcome == "failed":
                    raise
                if partition.required and report.outcome == "failed":
                    raise no_table_left({report.table: report.error}) from exc
                reports.append(report)
    reports += _time(partition.part, began)
    ReportBox(options.state_dir, partition.owner).write(partition.batch, reports)


def _failure(part: Part, chunk: Chunk, rows: int, error: Exception) -> Report:
    outcome: Outcome = "failed"
    if chunk.streams and isinstance(error, StatementTimeoutError):
        outcome = "locked" if isinstance(error, LockTimeoutError) else "slow"
    return Report(part, chunk.number, outcome, rows, chunk.table.name, chunk.table.oid, describe(error))


def read_chunk(reader: ChunkReader, policy: RetryPolicy, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
    """Yield a chunk's rows and return its outcome; retry while the source is unavailable.

    Rows that were yielded can't be taken back, so a connection lost after that fails the task:
    Spark runs it again, if ``spark.task.maxFailures`` (or ``local[N,F]``) allows.

    Raises:
        ConnectError: the source was unavailable for too long, or the connection was lost in the middle of the chunk.
    """
    failures = 0
    begun = False
    while True:
        reading = _Reading(reader.read(chunk))
        try:
            for batch in reading:
                begun = True
                yield batch
            return reading.outcome
        except ConnectError:
            failures += 1
            if begun or policy.gave_up(failures):
                raise
            time.sleep(policy.delay_s(failures))
