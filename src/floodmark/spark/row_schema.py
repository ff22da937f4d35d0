"""Whether the table of a query of typed rows still has the columns that the query was made with."""

from __future__ import annotations

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.connectors.base import Connector
from floodmark.rows.schema_changes import differences, heed
from floodmark.rows.typed_rows import TABLE
from floodmark.spark.readers import output_schema


class RowSchema:
    """Finds the place in the log from which on the table must have the query's columns.

    The log up to there may hold rows of earlier versions of the table: of those, the query's columns are the latest
    form. What comes behind and differs is a change that the query's rows don't show.

    Args:
        options: the source's options.
        schema: the DataFrame's columns.
        connector: the source.
    """

    def __init__(self, options: CommonOptions, schema: pa.Schema, connector: Connector) -> None:
        self._options = options
        self._schema = schema
        self._connector = connector
        self._settled: str | None = None

    def settled(self) -> str:
        """Return a position up to which all versions of the table lead to the query's columns.

        Raises:
            SchemaChangeError: the table has other columns by now, and ``schema.changes`` is ``fail``.
        """
        if self._settled is None:
            self._settled = self._settle()
        return self._settled

    def _settle(self) -> str:
        # In this order: what alters the table after it was looked at lies behind the position.
        position = self._connector.current_position()
        now = output_schema(self._options)
        found = differences(
            {field.name: field.type for field in now.field("after").type}, self._schema.field("after").type
        )
        if found:
            heed(self._options, now.metadata[TABLE].decode(), found, "since the DataFrame was loaded")
        return position
