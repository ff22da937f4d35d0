"""Converts Spark's filters to conditions that a connector understands."""

from __future__ import annotations

import dataclasses

from pyspark.sql import datasource as spark

from floodmark.connectors.contract.conditions import Condition, Operation

_WITH_VALUE: dict[type[spark.Filter], Operation] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.In: "in",
    spark.StringStartsWith: "starts",
    spark.StringEndsWith: "ends",
    spark.StringContains: "contains",
}


def condition_of(given: spark.Filter) -> Condition | None:
    """Return a filter as a condition; None for fields of structures and for unknown filters."""
    if isinstance(given, spark.Not):
        inner = condition_of(given.child)
        return None if inner is None else dataclasses.replace(inner, negated=not inner.negated)
    path: tuple[str, ...] = getattr(given, "attribute", ())
    if len(path) != 1:
        return None
    if isinstance(given, spark.IsNull | spark.IsNotNull):
        return Condition(path[0], "null", negated=isinstance(given, spark.IsNotNull))
    operation = _WITH_VALUE.get(type(given))
    return None if operation is None else Condition(path[0], operation, getattr(given, "value", None))
