"""Reads Java's ``.properties`` files.

Format: the documentation of ``java.util.Properties.load`` (lines, separators, continuations and escapes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from floodmark.errors import ConfigError

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_SPACE = " \t\f"


def parse_properties(text: str, path: Path) -> dict[str, str]:
    """Return the properties of a file, in its order.

    Args:
        text: the file's.
        path: its name, for errors.

    Raises:
        ConfigError: a property has two values.
    """
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _logical_lines(text):
        pair = _PAIR.fullmatch(line)
        assert pair is not None, "each part of the pattern may be empty"
        name, value = _unescaped(pair[1]), _unescaped(pair[2])
        if found.get(name, value) != value:
            # Java takes the last one, which its writer may not know.
            raise ConfigError(
                f"The file {path} has '{name}' twice, with different values, in lines {lines[name]} and {number}.",
                "Remove one of them: Java takes the last one.",
            )
        found[name] = value
        lines[name] = number
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a property, joined where a backslash continues them, with their first one's number."""
    pending, first = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.lstrip(_SPACE)
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield first, pending + line
        pending = ""
    if pending:
        yield first, pending


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda one: chr(int(one[1][1:], 16)) if len(one[1]) > 1 else _CONTROL.get(one[1], one[1]), text)
