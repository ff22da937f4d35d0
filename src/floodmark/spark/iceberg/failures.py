"""What errors of Spark and Iceberg mean for a target table."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.redact import without_named_secrets
from floodmark.spark.java import java_exceptions

SPARK_ERRORS = (PySparkException, Py4JError)
"""What Spark's Python interface raises: not all errors of the JVM have a class of PySpark's."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]")
"""The name of an error condition, with which messages of Spark begin."""
_CONFLICTS = (
    "org.apache.iceberg.exceptions.AlreadyExistsException",
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.CommitStateUnknownException",
    "org.apache.iceberg.exceptions.NoSuchTableException",
)
"""Errors after which the table is to be looked at again: somebody else was faster, or the outcome is not known."""
_CONFLICT_CONDITIONS = (
    "FIELD_ALREADY_EXISTS",
    "FIELDS_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "TABLE_OR_VIEW_NOT_FOUND",
)
_UNFIT = ("NOT_NULL_ASSERT_VIOLATION",)


def java_names(error: Exception) -> list[str]:
    """Return the classes of the errors of the JVM behind one."""
    return [str(one.getClass().getName()) for one in java_exceptions(error)]


def is_conflict(error: Exception) -> bool:
    """Return whether the table may be another one now, so that it is to be looked at again."""
    if any(name in _CONFLICT_CONDITIONS for name in _CONDITION.findall(str(error))):
        return True
    return any(name in _CONFLICTS for name in java_names(error))


def reason_of(error: Exception) -> str:
    """Return why something failed, in one line without rows and secrets."""
    text = str(error)
    found = _CONDITION.search(text)
    if found is None:
        # The innermost error tells what the others only pass on.
        messages = [str(one.getMessage()) for one in java_exceptions(error) if one.getMessage()]
        text = messages[-1] if messages else text
    # What follows the first line may be rows of the table.
    line = (text[found.start() :] if found is not None else text).strip().splitlines() or [type(error).__name__]
    return without_named_secrets(line[0]).strip().rstrip(".")


def target_error(table: str, error: Exception) -> TargetError:
    """Return the error for a table that Spark can't write.

    Args:
        table: the table's name.
        error: one of ``SPARK_ERRORS``.
    """
    unfit = any(name in _UNFIT for name in _CONDITION.findall(str(error)))
    return (TargetUnfitError if unfit else TargetError)(
        f"Spark can't write the Iceberg table '{table}': {reason_of(error)}.",
        "Remove what keeps rows out of the table, or the table itself."
        if unfit
        else "See to it that Spark can write the table, and start the query again. Nothing is lost.",
    )
