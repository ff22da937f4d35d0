"""Spark's data source ``floodmark``.

Spark starts one process that imports this module to find the source, another one to create it, and more for a query,
one after the other. So each process imports only what it needs.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from floodmark.connectors.registry import require_driver
from floodmark.spark.failures import plainly
from floodmark.spark.versions import GIVES_START, arrow_schema, require_push_down, require_spark, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class FloodmarkDataSource(DataSource):
    """``spark.readStream.format("floodmark")``, and ``spark.read`` of one table."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark makes one instance for each load() and pickles it from then on.
        self._loaded = uuid.uuid4().hex

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "floodmark"

    @plainly()
    def schema(self) -> StructType:
        """Return the columns that the options select; invalid options are reported here, before any work."""
        require_spark()
        from floodmark.connectors.load import is_batch, load_batch_options, load_options

        if is_batch(self.options):
            batch = load_batch_options(self.options)
            require_driver(batch.connector)
            from floodmark.spark.batch.reader import table_schema

            return spark_schema(table_schema(batch))
        options = load_options(dict(self.options))
        from floodmark.spark.preflight import preflight

        preflight(options)
        from floodmark.spark.stream.readers import output_schema

        return spark_schema(output_schema(options))

    @plainly()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read."""
        from floodmark.connectors.load import load_batch_options
        from floodmark.spark.batch.reader import FloodmarkBatchReader, PushingBatchReader

        options = load_batch_options(self.options)
        if options.batch_filter_pushdown:
            require_push_down()
        reader = PushingBatchReader if options.batch_filter_pushdown else FloodmarkBatchReader
        return reader(options, self._loaded, arrow_schema(schema))

    @plainly()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        columns = arrow_schema(schema)
        if GIVES_START:
            from floodmark.spark.stream.reader import FloodmarkStreamReader

            return FloodmarkStreamReader(self.options, columns)
        from floodmark.spark.stream.older_reader import OlderStreamReader

        return OlderStreamReader(self.options, columns)
