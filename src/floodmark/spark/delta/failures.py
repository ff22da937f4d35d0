"""What errors of Spark mean for a target table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from floodmark.errors import TargetError, TargetUnfitError

SPARK_ERRORS = (PySparkException, Py4JError)
"""What Spark's Python interface raises: not all errors of the JVM have a class of PySpark's."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]")
"""The name of an error condition, with which messages of Spark and Delta begin."""
_CONFLICTS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
"""What causes say where a disk is full."""
_UNFIT = (
    "DELTA_CANNOT_MODIFY_APPEND_ONLY",
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
)
"""Conditions of a table that can't take rows whatever is tried."""


def is_conflict(error: Exception) -> bool:
    """Return whether another writer's commit kept Spark from one."""
    return any(name.startswith(_CONFLICTS) for name in _CONDITION.findall(str(error)))


def target_error(table: str, error: Exception) -> TargetError:
    """Return the error for a table that Spark can't write.

    Args:
        table: the table's name.
        error: one of ``SPARK_ERRORS``.
    """
    text = str(error)
    found = _CONDITION.search(text)
    # What follows the first line may be rows of the table.
    reason = text[found.start() if found is not None else 0 :].splitlines()[0].strip().rstrip(".")
    unfit = any(name in _UNFIT for name in _CONDITION.findall(text))
    full = next(filter(None, map(_FULL.search, _texts(error))), None)
    if full is not None and not unfit:
        return TargetError(
            f"Spark can't write the Delta table '{table}': {full[0]} ({reason}).",
            "Free some space there, or where Spark keeps temporary files, and start the query again. Nothing is lost.",
        )
    return (TargetUnfitError if unfit else TargetError)(
        f"Spark can't write the Delta table '{table}': {reason}.",
        "Remove what keeps rows out of the table, or the table itself."
        if unfit
        else "See to it that Spark can write the table, and start the query again. Nothing is lost.",
    )


def _texts(error: Exception | None) -> Iterator[str]:
    """Yield what an error and its causes in the JVM say."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None)
