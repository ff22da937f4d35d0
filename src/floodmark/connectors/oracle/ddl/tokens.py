"""Splitting the text of a statement into tokens, as Oracle does.

A general SQL parser fails on most statements about tables that Oracle accepts (ARCHITECTURE.md has the measured
numbers), so these statements have a small grammar of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from floodmark.errors import DdlError

WORD = "word"
"""A keyword or an identifier without quotes; ``value`` is in upper case."""
NAME = "name"
"""An identifier in quotes; ``value`` is what they hold."""
STRING = "string"
NUMBER = "number"
SIGN = "sign"
"""Any other single character."""
END = "end"

# Oracle Database SQL Language Reference: "Comments", "Literals" and "Database Object Names and Qualifiers".
_SCANNER = re.compile(
    r"""
    (?P<space>[\s\0]+|--[^\n]*|/\*.*?\*/)
  | (?P<quoting>[nN]?[qQ]'(?P<delimiter>[^\s]))
  | (?P<string>[nN]?'(?:[^']|'')*')
  | (?P<name>"[^"]*")
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?(?![\w$\#]))
  | (?P<word>[^\W\d][\w$\#]*)
  | (?P<sign>[^'"])
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"[": "]", "{": "}", "<": ">", "(": ")"}
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        value: its meaning: a word in upper case, the content of quotes.
        text: as it is written in the statement.
        start: where it begins in the statement, in characters.
    """

    kind: str
    value: str
    text: str
    start: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a statement, followed by one of kind ``END``.

    Raises:
        DdlError: something in quotes or a comment does not end.
    """
    return [*scan(text), Token(END, "", "", len(text))]


def first_word(text: str) -> str:
    """Return the first word of a statement in upper case, after comments; empty if it doesn't begin with a word.

    The rest isn't scanned, so the length of the statement doesn't matter.

    Raises:
        DdlError: something in quotes or a comment does not end.
    """
    token = next(scan(text), None)
    return token.value if token is not None and token.kind == WORD else ""


def scan(text: str) -> Iterator[Token]:
    """Yield the tokens of a statement.

    Raises:
        DdlError: something in quotes or a comment does not end.
    """
    at, end = 0, len(text)
    while at < end:
        found = _SCANNER.match(text, at)
        if found is None or (text.startswith("/*", at) and found.lastgroup == "sign"):
            raise DdlError(f"What begins at character {at + 1} does not end: {text[at : at + _SHOWN]!r}.")
        kind, piece = str(found.lastgroup), found[0]
        if kind == "quoting":
            piece = _quoted(text, at, found)
            yield Token(STRING, piece[found.end() - at : -2], piece, at)
        elif kind == "word":
            yield Token(WORD, piece.upper(), piece, at)
        elif kind == "name":
            yield Token(NAME, piece[1:-1], piece, at)
        elif kind == "string":
            yield Token(STRING, piece[piece.index("'") + 1 : -1].replace("''", "'"), piece, at)
        elif kind != "space":
            yield Token(kind, piece, piece, at)
        at += len(piece)


def _quoted(text: str, at: int, opening: re.Match[str]) -> str:
    """Return a literal with a delimiter of its own: ``q'[it's]'``."""
    delimiter = opening["delimiter"]
    close = text.find(_CLOSING.get(delimiter, delimiter) + "'", opening.end())
    if close < 0:
        raise DdlError(f"What begins at character {at + 1} does not end: {text[at : at + _SHOWN]!r}.")
    return text[at : close + 2]
