"""Keeps tables that equal the source's, from a stream with ``format=arrow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa
from obstore.exceptions import BaseError
from pyspark.sql import DataFrame, SparkSession

from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.logger import get_logger
from floodmark.sinks.column_rules import columns_of
from floodmark.sinks.delta.access import prove_usable
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import MESSAGE, failed, make_parts
from floodmark.sinks.delta.protocols import MakeWriter, TableListener, TableWriter
from floodmark.sinks.delta.stores import TableFolder, prove_location, table_folder
from floodmark.sinks.delta.targets import Targets, unwritable
from floodmark.sinks.delta.writer import own_writers
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.iceberg.marks import IcebergMarks
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.delta.table import SparkTable
from floodmark.spark.delta.writer import SparkWriter
from floodmark.spark.iceberg.tables import IcebergTables, iceberg_files
from floodmark.spark.running_query import RunningQuery
from floodmark.spark.sinks.blocks import messages_by_table, rows_by_table
from floodmark.spark.targets.names import spark_folder
from floodmark.spark.targets.sessions import Sessions
from floodmark.spark.versions import spark_schema

log = get_logger(__name__)


class Mirror:
    """Writes micro-batches to Delta or Iceberg tables, one for each of the source's: what ``foreachBatch`` calls.

    Each Delta table is a folder below ``location`` that is named like the source's table; what is written to an Iceberg
    table is staged in such a folder. The first micro-batch that has rows of a table makes it. A micro-batch that Spark
    delivers again changes nothing.

    Spark's tasks write files; the driver looks up which earlier rows they replace, and commits each table once, or lets
    Spark do both.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``, which the driver and all executors reach.
        source: the source's options.
        options: the mirror's.

    Raises:
        ConfigError: the source's options are not those that a mirror needs, or no table can be opened or made at the
            location.
    """

    def __init__(self, location: str, source: CommonOptions, options: MirrorOptions) -> None:
        if source.format != "arrow" or any(map(source.skips, "cudt")):
            raise ConfigError(
                "A mirror needs other options of the source.", "Set format=arrow and skipped.operations=none."
            )
        prove_location(location)
        prove_usable(location)
        if options.engine == "spark" or options.format == "iceberg":
            spark_folder(location, "")
        self._location = location
        self._source = source
        self._options = options
        self._targets: Targets | None = None
        self._running: RunningQuery | None = None
        self._layouts: dict[str, Layout] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch.

        Args:
            batch: rows of a stream with ``format=arrow``.
            number: as Spark counts.

        Raises:
            TargetError: a table can't be written, and isn't set aside. The others are written.
        """
        running = RunningQuery.of(batch.sparkSession.sparkContext)
        targets = self._targets
        if targets is None or self._running != running:
            # The query's id is known with the first micro-batch only.
            targets = self._targets = self._open(batch.sparkSession, running.id)
            self._running = running
        parts = _parts_of(self._location, self._options, targets.aside(), dict(self._layouts))
        sent = batch.mapInArrow(parts, spark_schema(MESSAGE)).toArrow()
        targets.write(number, messages_by_table(number, sent))

    def _open(self, session: SparkSession, query: str) -> Targets:
        """Return the targets.

        Args:
            session: the query's.
            query: its id.
        """
        location, options = self._location, self._options
        is_iceberg = options.format == "iceberg"
        # Spark looks up a catalogue's properties in the active session, whichever it is asked with.
        sessions = Sessions(session, active=is_iceberg)
        if not is_iceberg:
            return Targets(location, self._source, options, query, self._make_writer(sessions))
        tables = IcebergTables(sessions, location, options)
        marks = IcebergMarks(location, tables.of)
        return Targets(location, self._source, options, query, tables.writers(self._layouts), marks)

    def _make_writer(self, sessions: Sessions) -> MakeWriter:
        """Return what makes the writers of Delta tables."""
        options, schema = self._options, self._options.catalog_schema

        def by_spark(
            table: str, folder: TableFolder, application: str, listener: TableListener, written: int | None
        ) -> TableWriter:
            target = SparkTable(self._location, table, schema)
            return SparkWriter(sessions, target, folder, application, table, options, listener, written)

        return by_spark if options.engine == "spark" else own_writers(self._location, options)


def _parts_of(location: str, options: MirrorOptions, aside: Set[str], layouts: Mapping[str, Layout]) -> Any:
    """Return what a task does with its rows.

    Args:
        options: the mirror's.
        aside: tables whose rows are left out.
        layouts: the columns of Iceberg tables, as far as they are known.
    """

    def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = rows_by_table(batches, aside).items()
        messages = [message for table, rows in found for message in _messages(location, table, rows, options, layouts)]
        yield pa.RecordBatch.from_pylist(messages, schema=MESSAGE)

    return parts


def _messages(
    location: str,
    table: str | None,
    rows: Sequence[pa.Table],
    options: MirrorOptions,
    layouts: Mapping[str, Layout],
) -> list[dict[str, Any]]:
    if table is None:
        return [dict.fromkeys(MESSAGE.names)]
    # Where the key changes within a micro-batch, any of them says that there is one.
    key = rows[0]["key"][0].as_py()
    try:
        parts = make_parts(_files_of(location, table, options, layouts), rows, options.mode)
        return [part.to_message(table) for part in parts]
    except FloodmarkError as error:
        return [failed(table, key, error)]
    except (BaseError, OSError) as error:
        return [failed(table, key, unwritable(location, table, error))]


def _files_of(location: str, table: str, options: MirrorOptions, layouts: Mapping[str, Layout]) -> DataFiles:
    if options.format != "iceberg" or options.engine == "spark":
        return DataFiles(table_folder(location, table).store, table, columns_of(table, options.partition_by))
    return iceberg_files(location, table, options, layouts.get(table))
