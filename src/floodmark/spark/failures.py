"""Reports Floodmark's errors through Spark without a traceback, and extracts them from Spark's exceptions.

An error of the source process or of a task reaches the caller as text: a Python traceback, or its last line, inside
the message of one of Spark's exceptions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from floodmark import errors
from floodmark.errors import FloodmarkError
from floodmark.spark.sinks.kafka import kafka_error

# A message ends where Spark appends its SQLSTATE, a Java stack trace or the state of the query.
_RAISED = re.compile(
    r"(?:^|: )floodmark\.errors\.(\w+): (.*?)(?=\s+SQLSTATE:|\n\s*at |\n===|\n\n|\nTraceback|\Z)",
    re.DOTALL | re.MULTILINE,
)
HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
"""Undocumented environment variable of Spark; it takes effect only in the process that reports the error."""
_PREFIX = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_CALL = re.compile(r"^An error occurred while calling [\w.$]+\.\n: ")
"""What Py4J puts before an exception of Java that isn't one of Spark's."""
_LONGEST_LINE = 500


@contextmanager
def plainly() -> Iterator[None]:
    """Have Spark report a Floodmark error as its message alone, which explains what happened, where and what to do.

    For Spark processes that only load a source or plan its micro-batches; they end with the error. With an empty
    ``SPARK_HIDE_TRACEBACK`` in the environment the traceback is kept.
    """
    try:
        yield
    except FloodmarkError:
        os.environ.setdefault(HIDE_TRACEBACK, "1")
        raise


def floodmark_error(exc: BaseException) -> FloodmarkError | None:
    """Return the Floodmark error that a Spark exception carries; None if it carries none."""
    if isinstance(exc, FloodmarkError):
        return exc
    raised = _RAISED.findall(str(exc))
    if not raised:
        return None
    name, text = raised[-1]
    kind = getattr(errors, name, FloodmarkError)
    return kind(" ".join(text.split())) if issubclass(kind, FloodmarkError) else None


def explain(exc: BaseException) -> FloodmarkError:
    """Return the error to show for a Spark exception: Floodmark's own, or one line of Spark's message."""
    own = floodmark_error(exc) or kafka_error(str(exc))
    if own is not None:
        return own
    text = _CALL.sub("", str(exc))
    first = _python_error(text) or _first_line(text) or type(exc).__name__
    shown = first if len(first) <= _LONGEST_LINE else f"{first[:_LONGEST_LINE]}…"
    return FloodmarkError(f"Spark failed: {shown}")


def _python_error(text: str) -> str:
    """Return the last line of the last Python traceback in a text: the first one that isn't indented."""
    _, traceback, rest = text.rpartition("Traceback (most recent call last):\n")
    if not traceback:
        return ""
    return next((line for line in rest.splitlines() if line and not line[0].isspace()), "")


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _PREFIX.sub("", line)
