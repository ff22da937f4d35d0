"""Verifies that the tables of a typed-row query still have the columns that the query was created with."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from floodmark.changes.typed_tables import prove_same, row_types
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.source import LogSource
from floodmark.spark.stream.readers import output_schema


class RowSchema:
    """Finds the log position after which the tables must have the query's columns.

    Up to there, the log may hold rows of earlier versions of a table, of which the query's columns are the latest
    form. A version that differs after it is a change that the query's rows don't show.

    Args:
        options: the source's options.
        schema: the DataFrame's columns.
        log: the source's log.
    """

    def __init__(self, options: CommonOptions, schema: pa.Schema, log: LogSource) -> None:
        self._options = options
        self._schema = schema
        self._log = log
        self._settled: str | None = None

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of the query's tables; empty for ``format=rows``, where the name isn't known."""
        return frozenset() if self._options.format == "rows" else frozenset(row_types(self._options, self._schema))

    def settled(self) -> str:
        """Return the position up to which table versions may differ from the query's columns.

        Raises:
            SchemaChangeError: a table has other columns by now, or is new, and ``schema.changes`` is ``fail``.
        """
        if self._settled is None:
            self._settled = self._settle()
        return self._settled

    def _settle(self) -> str:
        # In this order: a change made after the columns were checked then lies after the position.
        position = self._log.end()
        prove_same(self._options, self._schema, output_schema(self._options))
        return position
