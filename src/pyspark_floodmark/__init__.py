"""Spark registers this module's ``DefaultSource`` by itself, as ``format("floodmark")``."""

from floodmark.spark.source import FloodmarkDataSource


class DefaultSource(FloodmarkDataSource):
    """The data source, under the name that Spark looks for."""
