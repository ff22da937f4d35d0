"""A query that keeps Delta tables, in this process: all of a mirror but Spark's engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from floodmark.connectors.load import load_options
from floodmark.sinks.delta.parts import MESSAGE
from floodmark.sinks.delta.targets import Targets
from floodmark.sinks.delta.writer import own_writers
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.sinks.blocks import messages_by_table
from floodmark.spark.sinks.mirror import _parts_of
from tests.support.inprocess import InProcess


class MirrorSink:
    """The targets of a query, which may be started again and again.

    Args:
        folder: where they are.
    """

    options: ClassVar[dict[str, str]] = {"format": "arrow", "skipped.operations": "none"}
    """Those of the source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batch = 0

    def start(self, options: dict[str, str], offset: dict[str, Any] | None = None) -> InProcess:
        """Start the query, as a new process does."""
        return _Mirrored(self, {**options, **self.options}, offset)

    def rows(self, table: str) -> dict[int, int | None]:
        """Return the columns id and v of a target, empty if there is none."""
        path = self.folder / table
        if not DeltaTable.is_deltatable(str(path)):
            return {}
        found = QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT id, v FROM t").read_all()
        rows = pa.table(found).to_pylist()
        assert len({row["id"] for row in rows}) == len(rows), rows
        return {row["id"]: row["v"] for row in rows}


class _Mirrored(InProcess):
    def __init__(self, sink: MirrorSink, options: dict[str, str], offset: dict[str, Any] | None) -> None:
        super().__init__(options, offset)
        self._sink = sink
        self._location = str(sink.folder)
        self._mirrors = MirrorOptions.parse({})
        writers = own_writers(self._location, self._mirrors)
        self._targets = Targets(self._location, load_options(options), self._mirrors, "query", writers)

    def run(self, end: dict[str, Any]) -> list[dict[str, Any]]:
        """Write the micro-batch that ends at an offset; there are no rows to return."""
        self.batches += 1
        work = _parts_of(self._location, self._mirrors, self._targets.aside(), {})
        sent = []
        for partition in self._reader.partitions(self.offset, end):
            sent += list(work(list(self._reader.read(partition))))
        number = self._sink.batch
        self._targets.write(number, messages_by_table(number, pa.Table.from_batches(sent, MESSAGE)))
        self._sink.batch += 1
        return []
