"""Lets tables of a relational database follow the source's, from a stream with ``format=arrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.logger import get_logger
from floodmark.sinks.relational.connect import dialect_of, persistent
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import MESSAGE, Part, failed, make_parts
from floodmark.sinks.relational.staging import StageLostError, stage_part
from floodmark.sinks.relational.targets import RelationalTargets
from floodmark.spark.running_query import RunningQuery
from floodmark.spark.sinks.blocks import messages_by_table, rows_by_table
from floodmark.spark.versions import spark_schema

log = get_logger(__name__)

_ATTEMPTS = 3
"""How often tasks load their rows again that the target has lost in a crash."""


class JdbcSink:
    """Applies micro-batches to tables of a relational database: what ``foreachBatch`` calls.

    Spark's tasks reduce their rows, and load many of them into staging tables; the driver applies all of them, and
    notes the micro-batch, in one transaction. A micro-batch that Spark delivers again changes nothing.

    Args:
        source: the source's options.
        options: the sink's.

    Raises:
        ConfigError: the source's options are not those that the sink needs, or the driver is not installed.
    """

    def __init__(self, source: CommonOptions, options: JdbcOptions) -> None:
        if source.format != "arrow" or any(map(source.skips, "cudt")):
            raise ConfigError(
                "The sink 'jdbc' needs other options of the source.", "Set format=arrow and skipped.operations=none."
            )
        self._source = source
        self._options = options
        self._dialect = dialect_of(options)
        self._targets: RelationalTargets | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Apply a micro-batch.

        Args:
            batch: rows of a stream with ``format=arrow``.
            number: as Spark counts.

        Raises:
            TargetError: it can't be applied.
        """
        query = RunningQuery.of(batch.sparkSession.sparkContext).id
        targets = self._targets
        if targets is None or targets.query != query:
            # The query's id is known with the first micro-batch only.
            targets = self._targets = RelationalTargets(self._dialect, self._source, self._options, query)
        for attempt in range(1, _ATTEMPTS + 1):
            found = self._found(batch, number, query, targets.aside())
            try:
                targets.write(number, found)
            except StageLostError as error:
                if attempt == _ATTEMPTS:
                    raise
                log.warning("the_target_lost_staged_rows", batch=number, error=error.what)
            else:
                return

    def _found(self, batch: DataFrame, number: int, query: str, aside: Set[str]) -> dict[str, list[Mapping[str, Any]]]:
        """Run the tasks, and return what they have sent, by table."""
        parts = _parts_of(self._options, number, query, aside)
        return messages_by_table(number, batch.mapInArrow(parts, spark_schema(MESSAGE)).toArrow())


def _parts_of(options: JdbcOptions, batch: int, query: str, aside: Set[str]) -> Any:
    """Return what a task does with its rows.

    Args:
        options: the sink's.
        batch: the number of the micro-batch.
        query: the query's id.
        aside: tables whose rows are left out.
    """

    def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = rows_by_table(batches, aside)
        stage = _Stage(options, query, batch)
        try:
            messages = [message for table, rows in tables.items() for message in _messages(table, rows, stage)]
        finally:
            stage.close()
        yield pa.RecordBatch.from_pylist(messages, schema=MESSAGE)

    return parts


class _Stage:
    """Loads the rows of one task; its connection is opened when the first ones need it."""

    def __init__(self, options: JdbcOptions, query: str, batch: int) -> None:
        self._options = options
        self._query = query
        self._batch = batch
        self._close: Callable[[], None] = lambda: None

    def put(self, part: Part) -> Part:
        """Load a part if it has too many rows for the driver."""
        if part.rows is None or part.rows.nbytes < self._options.stage_bytes or not part.count:
            return part
        return persistent(self._options, lambda: self._put(part))

    def _put(self, part: Part) -> Part:
        # A connection for each part: they are large, and one that has failed is of no use.
        dialect = dialect_of(self._options)
        self.close()
        # The schema of a connection's user is known once there is one.
        session = dialect.connect()
        self._close = session.close
        return stage_part(dialect, session, part, self._query, self._batch)

    def close(self) -> None:
        """Close the connection."""
        self._close()
        self._close = lambda: None


def _messages(table: str | None, rows: Sequence[pa.Table], stage: _Stage) -> list[dict[str, Any]]:
    if table is None:
        return [dict.fromkeys(MESSAGE.names)]
    # Where the key changes within a micro-batch, any of them says that there is one.
    key = rows[0]["key"][0].as_py()
    try:
        return [stage.put(part).to_message(table) for part in make_parts(table, rows)]
    except FloodmarkError as error:
        return [failed(table, key, error)]
