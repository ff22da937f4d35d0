"""Starts mirrors: what a user calls, without the packages that only mirrors need."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.delta.runtime import require_delta
from floodmark.spark.iceberg.runtime import require_catalogue, require_iceberg

OBSERVED, ROWS = "mirror", "rows"
"""Where Spark's progress reports say how many rows of tables a micro-batch had, since Spark counts blocks of them."""


def mirror(
    events: DataFrame, path: str, source: Mapping[str, str], options: Mapping[str, str] | None = None
) -> DataStreamWriter:
    """Keep a Delta or Iceberg table for each of the source's tables that equals it.

    Give the writer that is returned a checkpoint and a trigger, and start it.

    Args:
        events: a stream with ``format=arrow`` and ``skipped.operations=none``.
        path: a path or a URI, such as ``s3://bucket/tables``, below which each Delta table is a folder, and changes of
            Iceberg tables are staged. The driver and all executors must reach it.
        source: the source's options, with which the stream was made.
        options: those of the mirror (docs/mirrors.md).

    Raises:
        ConfigError: an option is wrong, what mirrors need is missing, or the stream is Spark Connect's.
    """
    chosen = MirrorOptions.parse(options or {})
    refuse_connect(events)
    try:
        from floodmark.spark.sinks.mirror import Mirror
    except ImportError as error:
        raise ConfigError(
            f"The packages that mirrors need are not installed: {error}.",
            "Install them with: pip install 'floodmark[delta]'",
        ) from None
    if chosen.catalogue:
        require_catalogue(chosen)
    elif chosen.format == "iceberg":
        require_iceberg(events.sparkSession, chosen.catalog_schema or "")
    elif chosen.engine == "spark":
        require_delta(events.sparkSession, chosen.catalog_schema)
    counted = events.observe(OBSERVED, F.sum("count").alias(ROWS))
    return counted.writeStream.foreachBatch(Mirror(path, load_options(source), chosen))


def jdbc(events: DataFrame, source: Mapping[str, str], options: Mapping[str, str]) -> DataStreamWriter:
    """Let tables of a relational database follow the source's.

    Give the writer that is returned a checkpoint and a trigger, and start it.

    Args:
        events: a stream with ``format=arrow`` and ``skipped.operations=none``.
        source: the source's options, with which the stream was made.
        options: those of the sink (docs/jdbc.md).

    Raises:
        ConfigError: an option is wrong, what the sink needs is missing, or the stream is Spark Connect's.
    """
    chosen = JdbcOptions.parse(options)
    refuse_connect(events)
    try:
        from floodmark.spark.sinks.jdbc import JdbcSink
    except ImportError as error:
        raise ConfigError(
            f"The packages that the sink 'jdbc' needs are not installed: {error}.",
            "Install them with: pip install 'floodmark[jdbc]'",
        ) from None
    counted = events.observe(OBSERVED, F.sum("count").alias(ROWS))
    return counted.writeStream.foreachBatch(JdbcSink(load_options(source), chosen))


def refuse_connect(events: DataFrame) -> None:
    """Raise an error for a stream of Spark Connect.

    Raises:
        ConfigError: it is one.
    """
    if type(events).__module__.startswith("pyspark.sql.connect."):
        raise ConfigError(
            "The stream is one of Spark Connect, with which this sink doesn't work: it needs the driver's process.",
            "Run the program there, without Spark Connect (spark.api.mode=classic), or use floodmark run.",
        )
