"""Keeps Delta tables that equal the source's, from a stream with ``format=arrow``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from obstore.exceptions import BaseError
from pyspark.sql import DataFrame

from floodmark.changes.arrow_tables import unpacked
from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError, FloodmarkError, TargetChangedError, TargetError, describe
from floodmark.logger import get_logger
from floodmark.signals.files import new_signal, send
from floodmark.sinks.delta.parts import MESSAGE, Part, failed, make_parts
from floodmark.sinks.delta.stores import prove_location, table_folder
from floodmark.sinks.delta.target_rows import KeptRows
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.made_tables import MadeTables
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.versions import spark_schema

log = get_logger(__name__)

_AT_ONCE = 4
"""How many tables are committed at the same time."""
_QUERY = "sql.streaming.queryId"
"""The property of Spark that names the query, which the checkpoint keeps."""


class DeltaMirror:
    """Writes micro-batches to Delta tables, one for each table of the source: what ``foreachBatch`` calls.

    Each table is a folder below ``location`` that is named like the source's table. The first micro-batch that has rows
    of a table makes it. A micro-batch that Spark delivers again changes nothing.

    Spark's tasks write the files; the driver looks up which earlier rows they replace, and commits each table once.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``, which the driver and all executors reach.
        source: the source's options.
        options: the mirror's.

    Raises:
        ConfigError: the source's options are not those that a mirror needs, or no table can be opened at the location.
    """

    def __init__(self, location: str, source: CommonOptions, options: MirrorOptions) -> None:
        if source.format != "arrow" or any(map(source.skips, "cudt")):
            raise ConfigError(
                "A mirror needs other options of the source.", "Set format=arrow and skipped.operations=none."
            )
        prove_location(location)
        self._location = location
        self._source = source
        self._options = options
        self._kept = KeptRows()
        self._writers: dict[str, DeltaWriter] = {}
        self._told: set[tuple[str, str]] = set()

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch.

        Args:
            batch: rows of a stream with ``format=arrow``.
            number: as Spark counts.

        Raises:
            TargetError: a table can't be written. The others are.
        """
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
        if not query:
            raise TargetError("Spark doesn't tell which query this is.", "Start the mirror with writeStream.")
        # The query's id is known with the first micro-batch only.
        listener = _Listener(self._source, self._options, query)
        found: dict[str, list[Mapping[str, Any]]] = {}
        for row in (
            batch.mapInArrow(_parts_of(self._location, self._options.deletes == "soft"), spark_schema(MESSAGE))
            .toArrow()
            .to_pylist()
        ):
            if row["table"] is None:
                log.warning(
                    "mirror_has_a_gap", batch=number, effect="rows that were deleted meanwhile stay in the target"
                )
            else:
                found.setdefault(row["table"], []).append(row)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            written = [pool.submit(self._write, table, rows, listener, number) for table, rows in found.items()]
        errors = [error for one in written if (error := one.exception()) is not None]
        if errors:
            raise errors[0]

    def _write(self, table: str, rows: Sequence[Mapping[str, Any]], listener: _Listener, number: int) -> None:
        parts = [Part.from_message(row) for row in rows]
        writer = self._writers.get(table)
        if writer is None:
            folder = table_folder(self._location, table)
            writer = self._writers[table] = DeltaWriter(
                folder, f"floodmark-{listener.query}", table, self._options, self._kept, listener
            )
        try:
            writer.write(number, parts)
        except (BaseError, OSError) as error:
            raise _unwritable(table, error) from error
        for column in {column for part in parts for column in part.unrepresentable}:
            if (table, column) not in self._told:
                self._told.add((table, column))
                log.warning(
                    "values_are_null_in_the_target", table=table, column=column, why="its type has no such value"
                )


class _Listener:
    """Does what the options say about tables that are missing, and about new columns.

    Args:
        source: the source's options.
        options: the mirror's.
        query: the query's id.
    """

    def __init__(self, source: CommonOptions, options: MirrorOptions, query: str) -> None:
        self._source = source
        self._options = options
        self.query = query
        self._made = MadeTables(source, query)

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        known = self._made.knows(table)
        if not known and not torn:
            return
        if known and self._options.missing_tables == "fail":
            raise TargetChangedError(
                f"The target table '{table}' is gone. This query had made it, and its rows would be missing.",
                "Restore it, or set the mirror's option missing.tables to 'read', so that the table is read again.",
            )
        self._read_again(table, "incremental" if keyed else "blocking")
        log.warning("a_table_is_made", table=table, known=known, effect="the source's table is read again")

    def exists(self, table: str) -> None:
        self._made.add(table)

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        if self._options.new_columns == "fail":
            raise TargetError(
                f"The table '{table}' has new columns: {', '.join(columns)}. The log doesn't tell their values in rows "
                "that are in the target already.",
                "Set the mirror's option new.columns to 'read', so that the table is read again, or to 'leave_null'.",
            )
        reads = self._options.new_columns == "read"
        if reads:
            self._read_again(table, "incremental")
        effect = "the table is read again" if reads else "earlier rows have null there"
        log.warning("the_target_gets_columns", table=table, columns=list(columns), effect=effect)

    def _read_again(self, table: str, kind: str) -> None:
        # Before the commit, so that a driver that dies in between sends it twice rather than not at all.
        data = {"data-collections": [re.escape(table)], "type": kind}
        send(self._source, self._source.owner, new_signal("execute-snapshot", data))


def _parts_of(location: str, soft: bool) -> Any:
    """Return what a task does with its rows.

    Args:
        soft: whether deleted rows are only marked.
    """

    def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables: dict[str | None, list[pa.Table]] = {}
        for batch in batches:
            for table, rows in zip(batch["table"].to_pylist(), batch["rows"], strict=True):
                tables.setdefault(table, []).append(unpacked(rows.as_buffer()))
        messages = [message for table, rows in tables.items() for message in _messages(location, table, rows, soft)]
        yield pa.RecordBatch.from_pylist(messages, schema=MESSAGE)

    return parts


def _messages(location: str, table: str | None, rows: Sequence[pa.Table], soft: bool) -> list[dict[str, Any]]:
    if table is None:
        return [dict.fromkeys(MESSAGE.names)]
    try:
        parts = make_parts(table_folder(location, table).store, table, rows, soft)
        return [part.to_message(table) for part in parts]
    except FloodmarkError as error:
        return [failed(table, error)]
    except (BaseError, OSError) as error:
        return [failed(table, _unwritable(table, error))]


def _unwritable(table: str, error: Exception) -> TargetError:
    return TargetError(
        f"The files of the target table '{table}' can't be written or read: {describe(error)}",
        "See to it that the driver and all executors may read and write there, and start the query again.",
    )
