"""The errors of conditions that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from floodmark.errors import ConditionError

SHOWN = 120
CURE = "What conditions may have is in the documentation of signals, under 'Conditions'."


@contextmanager
def locating(table: str, text: str) -> Iterator[None]:
    """Add the condition and its table to errors of conditions."""
    try:
        yield
    except ConditionError as exc:
        shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
        raise ConditionError(f"The condition {shown!r} on {table} cannot be used: {exc.what}.", CURE) from None
