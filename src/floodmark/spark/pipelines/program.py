"""Pipelines that a program starts in a session of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.spark.failures import explain
from floodmark.spark.pipelines.checkpoints import refuse_places
from floodmark.spark.pipelines.file import PipelineFile, load_file, parse_file
from floodmark.spark.pipelines.model import Pipeline as Query
from floodmark.spark.pipelines.query import LOCAL_SOCKETS, POOL, spark_properties, start_query
from floodmark.spark.targets.sessions import settings
from floodmark.spark.versions import minor_version, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SQL = "spark.sql."
"""How properties begin that a session can take while it runs; Spark refuses the others of these."""
_MASTER = "spark.master"
_LISTS = ("spark.jars", "spark.jars.packages")
_SOCKETS_SINCE = (4, 1)
"""The first version of Spark that talks to its Python processes over local sockets."""
_ALONE = threading.Lock()
"""Settings of a session that starts a query are seen by all of its threads."""
_log = get_logger("pipeline")


class Pipeline:
    """What a pipeline file describes, for a program that has its own Spark session.

    ``from_yaml`` and ``from_dict`` make one.
    """

    def __init__(self, content: PipelineFile) -> None:
        self._content = content

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r})"

    @classmethod
    def from_yaml(cls, path: str | PathLike[str], environment: Mapping[str, str] = os.environ) -> Pipeline:
        """Read a pipeline file.

        Args:
            path: where it is.
            environment: the values of its variables (``${NAME}``).

        Raises:
            ConfigError: the file is missing or not YAML, or a key or value in it is not allowed.
        """
        return cls(load_file(Path(path), environment))

    @classmethod
    def from_dict(cls, content: Mapping[str, Json], environment: Mapping[str, str] = os.environ) -> Pipeline:
        """Read what would be the content of a pipeline file.

        Args:
            content: the file's keys and values.
            environment: the values of its variables (``${NAME}``).

        Raises:
            ConfigError: a key or value is not allowed.
        """
        if not isinstance(content, Mapping):
            raise ConfigError(
                f"The pipeline is of the type {type(content).__name__}.",
                "Give a mapping with the keys of a pipeline file, or use Pipeline.from_yaml for a file.",
            )
        return cls(parse_file(content, environment))

    @property
    def name(self) -> str:
        """The query's name: the file's ``name``, else the source's ``topic.prefix``."""
        return self._content.title

    @property
    def spark_properties(self) -> dict[str, str]:
        """The properties that ``floodmark run`` starts Spark with: those of the file, and Floodmark's own.

        For ``SparkSession.builder.config(map=…)``, before the session starts. There is a master only if the file has
        one: else it would replace the one that ``spark-submit`` was given.
        """
        properties = spark_properties(*self._content.pipelines)
        if _MASTER not in self._own_properties:
            del properties[_MASTER]
        return properties

    @property
    def _own_properties(self) -> Mapping[str, str]:
        """The properties of Spark that the file has."""
        return self._content.pipelines[0].spark

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query of a pipeline with one sink, and return it while it runs.

        Properties of the file that begin with ``spark.sql.`` count for this query only; the session keeps its own. A
        warning is logged of properties that can only be given before a session starts, and that this one lacks.

        Args:
            spark: the session.

        Raises:
            ConfigError: the pipeline has several sinks; the session is one of Spark Connect or lacks the sink's jars;
                one of the pipeline's directories contains another.
            FloodmarkError: an option can't be used, or the query doesn't start.
        """
        if len(self._content.pipelines) > 1:
            raise ConfigError(
                f"The pipeline has several sinks, each with a query: {self._content.labels}.",
                "Start them with Pipeline.start_all, which returns the queries by the names of the sinks.",
            )
        (query,) = self.start_all(spark).values()
        return query

    def start_all(self, spark: SparkSession) -> dict[str, StreamingQuery]:
        """Start the query of each sink, and return them by the sinks' names while they run; see ``start``.

        The file's key ``errors`` is for ``floodmark run``: the program decides what happens when one fails. If one
        can't be started, those that were are stopped.

        Args:
            spark: the session.

        Raises:
            ConfigError: as for ``start``.
            FloodmarkError: an option can't be used, or a query doesn't start.
        """
        if type(spark).__module__.startswith("pyspark.sql.connect."):
            raise ConfigError(
                "The session is one of Spark Connect, in which a pipeline can't be started.",
                "Run the program where Spark's driver is (spark.api.mode=classic), or use floodmark run.",
            )
        require_spark(spark.version)
        refuse_places(self._content)
        found: dict[str, StreamingQuery] = {}
        with _ALONE, self._taken_properties(spark):
            try:
                for one in self._content.pipelines:
                    found[one.label] = _started(spark, one)
            except BaseException:
                for query in found.values():
                    query.stop()
                raise
        return found

    @contextmanager
    def _taken_properties(self, spark: SparkSession) -> Iterator[None]:
        """Let the session have the pipeline's properties, as far as it takes them, for the duration of a block."""
        lacking = []
        told_of = {*self._own_properties, *(LOCAL_SOCKETS if minor_version(spark.version) >= _SOCKETS_SINCE else ())}
        with ExitStack() as stack:
            for name, value in self.spark_properties.items():
                if name.startswith(_SQL):
                    try:
                        stack.enter_context(settings(spark, {name: value}))
                        continue
                    except PySparkException:
                        pass  # a property that only a starting session takes
                if name in told_of and not _has(spark, name, value):
                    lacking.append(name)
            if lacking:
                _log.warning(
                    "the session was started without properties of the pipeline",
                    pipeline=self.name,
                    properties=sorted(lacking),
                    cure="Start it with SparkSession.builder.config(map=pipeline.spark_properties), or spark-submit "
                    "with --conf.",
                )
            yield


def _started(spark: SparkSession, query: Query) -> StreamingQuery:
    if not query.label:
        return _explained(spark, query)
    context, pool = spark.sparkContext, spark.sparkContext.getLocalProperty(POOL)
    # Each sink has its share of the cores, if the session was started so.
    context.setLocalProperty(POOL, query.label)
    try:
        return _explained(spark, query)
    finally:
        context.setLocalProperty(POOL, pool)  # type: ignore[arg-type]  # None removes it


def _explained(spark: SparkSession, query: Query) -> StreamingQuery:
    try:
        return start_query(spark, query)
    except PySparkException as exc:
        raise explain(exc) from exc


def _has(spark: SparkSession, name: str, value: str) -> bool:
    """Return whether a session was started with a property."""
    found = str(spark.conf.get(name, None) or spark.sparkContext.getConf().get(name, "") or "")
    if name in _LISTS:
        return set(value.split(",")) <= set(found.split(","))
    return found == value
