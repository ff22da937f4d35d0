"""The reader of a streaming query, called in the order in which Spark calls it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from floodmark.spark.stream.older_reader import OlderStreamReader
from floodmark.spark.stream.planning.planner import Planner
from floodmark.spark.versions import GIVES_START


class StreamReader(Protocol):
    """What tests call: the interface of Spark 4.2 and later."""

    def initialOffset(self) -> dict[str, Any]: ...

    def getDefaultReadLimit(self) -> Any: ...

    def prepareForTriggerAvailableNow(self) -> None: ...

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]: ...

    def reportLatestOffset(self) -> dict[str, Any] | None: ...

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]: ...

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]: ...

    def commit(self, end: dict[str, Any]) -> None: ...

    def stop(self) -> None: ...

    def _plan(self) -> Planner: ...


def make_reader(options: Mapping[str, str], schema: pa.Schema, older: bool = not GIVES_START) -> StreamReader:
    """Return a reader.

    Args:
        older: whether it is the one of Spark 4.0 and 4.1.
    """
    if older:
        return DrivenAsBefore(options, schema)
    from floodmark.spark.stream.reader import FloodmarkStreamReader

    return FloodmarkStreamReader(options, schema)


class DrivenAsBefore:
    """Calls the reader of Spark 4.0 and 4.1 as they do when a query is started or goes on."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema) -> None:
        self._reader = OlderStreamReader(options, schema)
        self._started = False

    def initialOffset(self) -> dict[str, Any]:
        return self._reader.initialOffset()

    def getDefaultReadLimit(self) -> None:
        """Return none, since these versions have no limits."""

    def prepareForTriggerAvailableNow(self) -> None:
        """Do what the option ``trigger.available.now`` does."""
        self._plan().fix_target()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        self._start(start)
        return self._reader.latestOffset()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        planner = self._reader._planner
        return None if planner is None else planner.report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._start(end)
        return self._reader.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._start(end)
        self._reader.commit(end)

    def stop(self) -> None:
        self._reader.stop()

    def _plan(self) -> Planner:
        return self._reader._plan()

    def _start(self, last: dict[str, Any]) -> None:
        """Tell the last offset that was planned, as the first call of all, unless it is the first start."""
        if not self._started and last != self.initialOffset():
            self._reader.partitions(last, last)
        self._started = True
