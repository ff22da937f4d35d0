"""Queries that end by themselves, on every version of Spark."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.spark.pipelines.query import stopping_at_end
from floodmark.spark.versions import GIVES_START

ENDING: dict[str, str] = {} if GIVES_START else {"trigger.available.now": "true"}
"""Options of a source whose query ends."""


def start_to_end(writer: DataStreamWriter, path: str | None = None) -> StreamingQuery:
    """Start a query whose source has the options of :data:`ENDING`; it ends when everything has been delivered."""
    if GIVES_START:
        return writer.trigger(availableNow=True).start(path)
    return stopping_at_end(writer.start(path))
