"""Exceptions and collections of Java's, as programs see them that call the JVM of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MOST_CAUSES = 20


def java_exceptions(error: Exception) -> Iterator[Any]:
    """Yield the exceptions of the JVM behind an error, the outermost first.

    Args:
        error: one of py4j's, or one that PySpark makes of some of these.
    """
    found = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_MOST_CAUSES):
        if found is None:
            return
        yield found
        found = found.getCause()


def java_map(jvm: Any, entries: Mapping[str, str]) -> Any:
    """Return a ``java.util.HashMap``.

    Args:
        jvm: Spark's.
        entries: what it holds.
    """
    made = jvm.java.util.HashMap()
    for name, value in entries.items():
        made.put(name, value)
    return made
