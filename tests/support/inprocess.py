"""Running a query's micro-batches in this process: Floodmark's own code, without Spark's engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from floodmark.connectors.load import load_options
from floodmark.spark.stream.readers import output_schema
from floodmark.spark.versions import GIVES_START
from tests.support.stream_reader import StreamReader, make_reader


class InProcess:
    """A stream reader that is driven as Spark drives it, with ``availableNow``.

    Args:
        options: the source's options.
        offset: where to go on; None: at the beginning.
        older: whether as Spark 4.0 and 4.1 drive it.
    """

    def __init__(
        self, options: dict[str, str], offset: dict[str, Any] | None = None, older: bool = not GIVES_START
    ) -> None:
        self._options = options
        self._older = older
        self._reader = self._new_reader()
        self.offset: dict[str, Any] = dict(self._reader.initialOffset() if offset is None else offset)
        self.batches = 0

    def _new_reader(self) -> StreamReader:
        return make_reader(self._options, self.schema, self._older)

    def restart(self) -> None:
        """Go on as another query, without the end that ``drain`` has set."""
        self.stop()
        self._reader = self._new_reader()

    def step(self) -> list[dict[str, Any]]:
        """Run one micro-batch; no rows if there is nothing to do."""
        end = self._reader.latestOffset(self.offset, self._reader.getDefaultReadLimit())
        rows = self.run(end) if end != self.offset else []
        self.offset = end
        self._reader.commit(end)
        return rows

    def drain(self) -> list[dict[str, Any]]:
        """Run micro-batches until everything there is has been delivered; return the rows."""
        rows: list[dict[str, Any]] = []
        self._reader.prepareForTriggerAvailableNow()
        while True:
            end = self._reader.latestOffset(self.offset, self._reader.getDefaultReadLimit())
            if end == self.offset:
                self._reader.commit(end)
                return rows
            rows += self.run(end)
            self.offset = end

    def run(self, end: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of the micro-batch that ends at an offset."""
        self.batches += 1
        rows: list[dict[str, Any]] = []
        for partition in self._reader.partitions(self.offset, end):
            for batch in self._reader.read(partition):
                rows += batch.to_pylist()
        return rows

    @property
    def reader(self) -> StreamReader:
        """The reader itself."""
        return self._reader

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return output_schema(load_options(self._options))

    def stop(self) -> None:
        """Stop as Spark does at the end of a query."""
        self._reader.stop()
