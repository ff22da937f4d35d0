"""What executors read a source's partitions with, by connector; kept light, since every worker imports it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from floodmark.capture.retry import RetryPolicy
from floodmark.config.postgres import PostgresBatchOptions, PostgresOptions
from floodmark.connectors.base import ChunkReader, LogDecoder, WindowReader
from floodmark.connectors.postgres.decode import PostgresDecoder
from floodmark.connectors.postgres.table_version import EventVersions, VersionMaker
from floodmark.errors import ConnectError
from floodmark.events.columns import EVENT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from floodmark.connectors.postgres.conditions import SqlCondition


def output_schema(options: PostgresOptions) -> pa.Schema:
    """Return the columns that the options ask for; for typed rows the source is asked."""
    if options.format == "events":
        return EVENT_SCHEMA
    from floodmark.connectors.postgres.table_rows import row_schema

    return row_schema(options)


def _versions(options: PostgresOptions, schema: pa.Schema) -> VersionMaker:
    if options.format == "events":
        return EventVersions(options)
    from floodmark.connectors.postgres.table_rows import RowVersions

    return RowVersions(options, schema)


def make_decoder(options: PostgresOptions, schema: pa.Schema) -> LogDecoder:
    """Return what decodes log segments."""
    return PostgresDecoder(options, _versions(options, schema))


def make_chunk_reader(options: PostgresOptions, schema: pa.Schema) -> ChunkReader:
    """Return what reads chunks of tables."""
    from floodmark.connectors.postgres.chunks import PostgresChunkReader

    return PostgresChunkReader(options, _versions(options, schema))


def make_window_reader(options: PostgresOptions, schema: pa.Schema) -> WindowReader:
    """Return what reads the rows of windows."""
    from floodmark.connectors.postgres.window_reader import PostgresWindowReader

    return PostgresWindowReader(options, _versions(options, schema))


def read_chunk(options: PostgresOptions, schema: pa.Schema, chunk: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Return a chunk's rows, trying again if the source is away.

    Once a part has been handed on it can't be taken back, so a connection lost after that fails the task:
    Spark runs it again, if ``spark.task.maxFailures`` (or ``local[N,F]``) allows.

    Raises:
        ConnectError: the source stayed away, or went away in the middle.
    """
    policy = RetryPolicy.from_options(options)
    reader = make_chunk_reader(options, schema)
    failures = 0
    begun = False
    while True:
        try:
            for batch in reader.read(chunk):
                begun = True
                yield batch
            return
        except ConnectError:
            failures += 1
            if begun or policy.gave_up(failures):
                raise
            time.sleep(policy.delay_s(failures))


def table_schema(options: PostgresBatchOptions) -> pa.Schema:
    """Return the columns of the table that a batch read reads."""
    from floodmark.connectors.postgres import batch

    return batch.table_schema(options)


def table_conditions(options: PostgresBatchOptions, filters: Sequence[Filter]) -> list[SqlCondition | None]:
    """Return what the source can decide of Spark's filters, in their order."""
    from floodmark.connectors.postgres import batch
    from floodmark.spark.filters import condition_of

    return batch.sql_conditions(options, [condition_of(given) for given in filters])


def plan_table(
    options: PostgresBatchOptions, load: str, schema: pa.Schema, conditions: Sequence[str]
) -> list[dict[str, Any]]:
    """Take the snapshot of a batch read, or take up that of the same loaded DataFrame, and return its chunks."""
    from floodmark.connectors.postgres import batch

    return batch.plan(options, load, schema, conditions)


def read_table_chunk(
    options: PostgresBatchOptions, schema: pa.Schema, chunk: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a batch read's chunk; a source that is away fails the task, which Spark tries again."""
    from floodmark.connectors.postgres import batch

    return batch.read(options, schema, chunk)
