"""Batch reads: ``spark.read.format("floodmark")``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from floodmark.connectors.contract.batch import BatchOptions, BatchSource
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError
from floodmark.spark.worker_memory import keep_modules

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


def _source(options: BatchOptions) -> BatchSource:
    return cast(BatchSource, connector_module(options.connector, "batch.table"))


def table_schema(options: BatchOptions) -> pa.Schema:
    """Return the columns of the table that a batch read reads."""
    return _source(options).table_schema(options)


@dataclass
class TablePartition(InputPartition):
    """A chunk of a batch read."""

    chunk: Chunk


class FloodmarkBatchReader(DataSourceReader):
    """Plans in a process of the driver; reads in executors. It is pickled in between.

    Args:
        options: the source's options.
        load: identifies the loaded DataFrame.
        schema: the DataFrame's columns.
    """

    def __init__(self, options: BatchOptions, load: str, schema: pa.Schema) -> None:
        self._options = options
        self._load = load
        self._schema = schema
        self._conditions: list[str] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Take the snapshot and return the tasks that read it.

        Spark does this once for each loaded DataFrame, and with filter push-down for each of its filtered queries.
        """
        chunks = _source(self._options).plan(self._options, self._load, self._schema, self._conditions)
        return [TablePartition(chunk) for chunk in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a partition's rows; runs in an executor."""
        if isinstance(partition, TablePartition):
            keep_modules()
            return _source(self._options).read(self._options, self._schema, partition.chunk)
        # Spark creates one partition even if there is nothing to read.
        return iter(())


_pushed: dict[str, set[str]] = {}
"""The pushed conditions by loaded DataFrame; known only as long as Spark keeps its planning process."""


class PushingBatchReader(FloodmarkBatchReader):
    """Lets the server evaluate filters.

    A class of its own, since Spark refuses a reader with ``pushFilters`` while push-down is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the filters that the server can evaluate; return those that Spark has to check.

        Raises:
            ConfigError: the DataFrame has been used with other filters.
        """
        # Spark 4.0 has no filters to import.
        from floodmark.spark.batch.filters import condition_of

        found = _source(self._options).sql_conditions(self._options, [condition_of(given) for given in filters])
        self._conditions = [one.sql for one in found if one is not None]
        if _pushed.setdefault(self._load, set(self._conditions)) != set(self._conditions):
            raise ConfigError(
                "A DataFrame that was loaded with batch.filter.pushdown is used with two different filters; Spark 4.3 "
                "would apply the last one to both.",
                "Load it again for each use, or turn batch.filter.pushdown off.",
            )
        return [given for given, one in zip(filters, found, strict=True) if one is None or not one.exact]
