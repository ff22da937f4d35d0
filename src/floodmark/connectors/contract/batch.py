"""The protocols of a connector that can be read in batch (``spark.read``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.conditions import Condition, SqlCondition


class BatchOptions(Protocol):
    """The options of a batch read that Spark's side uses."""

    @property
    def connector(self) -> str:
        """The option ``connector``."""

    @property
    def batch_filter_pushdown(self) -> bool:
        """The option ``batch.filter.pushdown``."""


class BatchSource(Protocol):
    """A connector's module ``batch.table``. ``options`` are the connector's own for batch reads."""

    def table_schema(self, options: Any) -> pa.Schema:
        """Return the columns of the table that the options name."""

    def sql_conditions(self, options: Any, conditions: Sequence[Condition | None]) -> list[SqlCondition | None]:
        """Return each condition as one that the server can evaluate; None for those that it can't."""

    def plan(self, options: Any, load: str, schema: pa.Schema, conditions: Sequence[str]) -> Sequence[Chunk]:
        """Take a snapshot, unless the ``load`` has one, and return the chunks to read.

        Args:
            options: the source's options.
            load: identifies the loaded DataFrame.
            schema: the columns to read.
            conditions: SQL of the conditions that the server evaluates.
        """

    def read(self, options: Any, schema: pa.Schema, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Return the rows of a chunk; if the source can't be reached, the task fails and Spark tries it again."""
