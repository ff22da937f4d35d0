"""Which regular expressions Oracle reads as Python does, so that a filter in the query leaves out nothing else.

What the query leaves out, nobody sees: an expression that either reads in another way would lose changes silently.
"""

from __future__ import annotations

import re
from typing import Literal

_WORD = r"[A-Za-z0-9_#]|\\[.$#_-]"
_NAME = re.compile(rf"(?:{_WORD}|[$.])+")
"""A name, in which a dot may be escaped."""
_SHARED = re.compile(
    rf"(?:{_WORD}|\\[dwsDWS]|\[\^?[A-Za-z0-9_$#.-]+\]|\((?!\?)|[.|)]|(?:[*+?]|\{{\d+(?:,\d*)?\}})(?![*+?{{]))+"
)
"""What POSIX expressions, of which Oracle's are an extension, and Python's have in common."""

_INNERMOST = re.compile(r"\([^()]*\)")


def is_pushed_alike(mode: Literal["none", "in", "regex"], expression: str) -> bool:
    """Return whether a filter of tables or schemas means the same in the query.

    Args:
        mode: ``log.mining.query.filter.mode``.
        expression: Python's regular expression, which the whole name has to match.
    """
    if mode == "none":
        return True
    if mode == "in":
        return _NAME.fullmatch(expression) is not None
    return _SHARED.fullmatch(expression) is not None and "|" not in _outside_groups(expression)


def _outside_groups(expression: str) -> str:
    """Return what is in no parentheses: the query has ``^`` and ``$`` around it, of which ``A|B`` takes one each."""
    while (rest := _INNERMOST.sub("", expression)) != expression:
        expression = rest
    return expression
