"""What the readers of streaming queries have in common, whatever the version of Spark.

Spark starts a process that only creates a reader and pickles it, and executors start others. So the planner and the
partition readers are imported where they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from floodmark.spark.failures import plainly

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.config.common import CommonOptions
    from floodmark.spark.stream.offsets import Offset
    from floodmark.spark.stream.planning.planner import Planner


class PlanningReader(DataSourceStreamReader):
    """One instance lives in Spark's source process and plans; others read in executors.

    It is pickled, so it holds nothing but options until it plans or reads.

    Args:
        options: the source's options, already validated.
        schema: the DataFrame's columns.
    """

    def __init__(self, options: Mapping[str, str], schema: pa.Schema) -> None:
        self._given = tuple(options.items())
        self._schema = schema
        self._planner: Planner | None = None
        self._recent: list[tuple[str, Offset]] = []

    @property
    def _options(self) -> CommonOptions:
        return _loaded(self._given)

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first micro-batch; the source is not contacted."""
        from floodmark.spark.stream.offsets import Offset

        return Offset({}, "").to_json()

    @plainly()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch."""
        if start == end:
            return []
        return self._plan().partitions(self._offset(start), self._offset(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a partition's events; runs in an executor."""
        from floodmark.spark.stream.readers import read_partition

        return read_partition(self._options, self._schema, partition)

    @plainly()
    def commit(self, end: dict[str, Any]) -> None:
        """Release what has been delivered."""
        self._plan().commit(self._offset(end))

    def stop(self) -> None:
        """End capture and close all connections."""
        if self._planner is not None:
            self._planner.stop()
            self._planner = None

    def _next(self, start: dict[str, Any], rows: int | None) -> dict[str, Any]:
        """Return where the next micro-batch ends.

        Args:
            start: where it begins.
            rows: maximum number of log records in it; None: no limit.
        """
        begin = self._offset(start)
        end = self._plan().latest_offset(begin, rows)
        if end is begin:
            # Return the given data: another version may have written it, and Spark takes another text for new data.
            return start
        data = end.to_json()
        self._remember(data, end)
        return data

    def _offset(self, data: dict[str, Any]) -> Offset:
        """Parse an offset that Spark passes; mostly it is one of the last two, which are cached."""
        from floodmark.spark.stream.offsets import Offset

        text = _text(data)
        for known, offset in self._recent:
            if known == text:
                return offset
        offset = Offset.from_json(data)
        self._recent = [*self._recent[-1:], (text, offset)]
        return offset

    def _remember(self, data: dict[str, Any], offset: Offset) -> None:
        self._recent = [*self._recent[-1:], (_text(data), offset)]

    def _plan(self) -> Planner:
        if self._planner is None:
            from floodmark.spark.stream.planning.make import make_planner

            self._planner = make_planner(self._options, self._schema)
            if self._options.trigger_available_now:
                self._planner.fix_target()
        return self._planner


@lru_cache(maxsize=8)
def _loaded(options: tuple[tuple[str, str], ...]) -> CommonOptions:
    """Return a source's options; a worker process runs many tasks of the same query."""
    from floodmark.connectors.load import load_options

    return load_options(dict(options))


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)
