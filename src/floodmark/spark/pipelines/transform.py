"""The transform of a sink: a SELECT over its events, which keeps them in their order.

Spark's own check of streaming queries is off, since it refuses every sort (``ordering``). So what doesn't work row by
row is refused here: it would put events in another order, or be wrong in a stream.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import NullType

from floodmark.errors import ConfigError

VIEW = "events"
KAFKA_TYPES = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""The columns that Spark's sink for Kafka takes, and their types."""
ROW_BY_ROW = frozenset(
    {"Project", "Filter", "Generate", "SubqueryAlias", "PipeOperator", "WithCTE", "CTERelationDef", "CTERelationRef"}
)
"""Spark's operations that take one row at a time and keep the order."""
_WORDS = {
    "Aggregate": "GROUP BY, DISTINCT or an aggregate function",
    "Deduplicate": "DISTINCT",
    "Distinct": "DISTINCT",
    "Except": "EXCEPT",
    "GlobalLimit": "LIMIT",
    "Intersect": "INTERSECT",
    "Join": "JOIN",
    "LateralJoin": "LATERAL",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Pivot": "PIVOT",
    "Repartition": "a hint that distributes rows",
    "RepartitionByExpression": "DISTRIBUTE BY",
    "Sample": "TABLESAMPLE",
    "ScriptTransformation": "TRANSFORM",
    "Sort": "ORDER BY or SORT BY",
    "Union": "UNION",
    "Unpivot": "UNPIVOT",
    "Window": "a window function",
}
_ALLOWED = "A transform chooses and changes rows one by one: SELECT … FROM events LATERAL VIEW explode(…) … WHERE …."
_CODE = re.compile(r"^\s*\[[A-Z_.0-9]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_POSITION = re.compile(r"(?:; |\()line (\d+),? pos (\d+)\)?")


def transformed(spark: SparkSession, events: DataFrame, text: str, key: str) -> DataFrame:
    """Return a stream's events as a SELECT makes them.

    Args:
        spark: the session.
        events: the stream, in the order that the sink needs.
        text: the SELECT, from the view ``events``.
        key: the key of the pipeline file that has it, for errors.

    Raises:
        ConfigError: the text is no such SELECT, or does more than take rows one by one.
    """
    with _one_line(key):
        # Spark runs a command when it gets it, so it is made sure first that there is only a query.
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
    events.createOrReplaceTempView(VIEW)
    try:
        with _one_line(key):
            result = spark.sql(text)
    finally:
        spark.catalog.dropTempView(VIEW)
    plan = result._jdf.queryExecution().analyzed()
    reads = _refuse_others(plan, key)
    if reads != 1 or not plan.isStreaming():
        raise ConfigError(f"Key '{key}' must read the view {VIEW}, once, and nothing else.", _ALLOWED)
    names = [name.lower() for name in result.columns]
    for name in result.columns:
        if names.count(name.lower()) > 1:
            raise ConfigError(f"Key '{key}' returns the column '{name}' twice.", "Give each a name of its own with AS.")
    return result


def require_kafka_columns(result: DataFrame, has_topic: bool, key: str) -> None:
    """Refuse a transform whose columns Kafka doesn't take.

    Args:
        result: what the transform returns.
        has_topic: whether the sink's options name the topic.
        key: the key of the pipeline file that has the transform.

    Raises:
        ConfigError: a column is missing, unknown or of another type.
    """
    found = {field.name.lower(): field.dataType.simpleString() for field in result.schema.fields}
    needed = ("value",) if has_topic else ("topic", "value")
    missing = [name for name in needed if name not in found]
    if missing:
        raise ConfigError(
            f"Key '{key}' returns no column '{missing[0]}', which the sink 'kafka' needs.",
            f"It may return {', '.join(KAFKA_TYPES)}; a column that is left out is null.",
        )
    for name, kind in found.items():
        if name not in KAFKA_TYPES:
            raise ConfigError(
                f"Key '{key}' returns the column '{name}', which the sink 'kafka' does not have.",
                f"It may return {', '.join(KAFKA_TYPES)}.",
            )
        if kind not in KAFKA_TYPES[name]:
            raise ConfigError(
                f"Key '{key}' returns the column '{name}' as {kind}; for the sink 'kafka' it must be "
                f"{' or '.join(KAFKA_TYPES[name])}.",
                f"Write CAST(… AS {KAFKA_TYPES[name][0]}) AS {name}.",
            )


def require_typed_columns(result: DataFrame, key: str) -> None:
    """Refuse a transform with a column of no type, which files of Parquet can't have.

    Raises:
        ConfigError: there is one.
    """
    for field in result.schema.fields:
        if isinstance(field.dataType, NullType):
            raise ConfigError(
                f"Key '{key}' returns the column '{field.name}' without a type, as it is always null.",
                f"Write CAST(NULL AS string) AS {field.name}, or another type.",
            )


def _refuse_others(plan: Any, key: str) -> int:
    """Refuse operations that don't take rows one by one; return how often a view is read.

    Args:
        plan: Spark's analysed plan, an object of the JVM.
    """
    name = str(plan.nodeName())
    if not plan.subqueriesAll().isEmpty():
        raise ConfigError(f"Key '{key}' has a subquery in an expression.", _ALLOWED)
    if name == "View":
        return 1
    if name not in ROW_BY_ROW:
        if plan.children().isEmpty():
            raise ConfigError(f"Key '{key}' must read the view {VIEW}, once, and nothing else.", _ALLOWED)
        raise ConfigError(f"Key '{key}' has {_WORDS.get(name, name)}, which a stream of events can't have.", _ALLOWED)
    children = plan.children()
    return sum(_refuse_others(children.apply(index), key) for index in range(children.size()))


@contextmanager
def _one_line(key: str) -> Iterator[None]:
    """Turn what Spark says of a statement into an error that names the line."""
    # Besides raising its error, PySpark logs it.
    context_log = logging.getLogger("SQLQueryContextLogger")
    was_disabled, context_log.disabled = context_log.disabled, True
    try:
        yield
    except PySparkException as exc:
        text = str(exc).split("\n\n== SQL")[0].split("\n'")[0].split("\n~")[0]
        found = _POSITION.search(text)
        where = f" in line {found[1]}, column {int(found[2]) + 1}" if found else ""
        reason = " ".join(_STATE.sub("", _CODE.sub("", _POSITION.sub("", text))).split()).rstrip(".;")
        raise ConfigError(f"Key '{key}' is wrong{where}: {reason}.", _cure(str(exc))) from None
    finally:
        context_log.disabled = was_disabled


def _cure(text: str) -> str:
    return "" if "UNRESOLVED_COLUMN" in text else _ALLOWED
