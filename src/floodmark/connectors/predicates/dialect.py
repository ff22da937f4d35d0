"""What differs between the databases' conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


EXTRACTED = words(
    "MICROSECOND MICROSECONDS MILLISECONDS SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR DOW DOY ISODOW ISOYEAR EPOCH"
)


@dataclass(frozen=True)
class Dialect:
    """A database's conditions.

    Attributes:
        name: of the database, for messages.
        backslashes: whether a backslash in a text escapes the next character.
        double_quoted_text: whether double quotes enclose a text, and backticks a name; else double quotes a name.
        nested_comments: whether comments are nested.
        operators: those that put values together, by how tight they bind; words in capital letters.
        comparisons: those that compare.
        ignore_case: whether there is ``ILIKE``.
        xor: whether there is ``XOR``.
        functions: the least and the most arguments of each function, by its name in small letters.
        clocks: those that may be written without brackets, in capital letters.
        types: what a value can be cast to, and how many sizes each has at most; in capital letters.
        typed: types whose values can be written with the type's name before a text.
        periods: units of ``INTERVAL 3 DAY``; none: intervals are typed texts.
        session_words: names that mean something of the session unless they are quoted, in small letters.
    """

    name: str
    backslashes: bool
    double_quoted_text: bool
    nested_comments: bool
    operators: Mapping[str, int]
    comparisons: frozenset[str]
    ignore_case: bool
    xor: bool
    functions: Mapping[str, tuple[int, int]]
    clocks: frozenset[str]
    types: Mapping[str, int]
    typed: frozenset[str]
    periods: frozenset[str]
    session_words: frozenset[str]


def functions(text: str) -> dict[str, tuple[int, int]]:
    """Return functions and their numbers of arguments, from ``name:least-most`` between blanks."""
    result = {}
    for item in text.split():
        name, _, numbers = item.partition(":")
        least, _, most = numbers.partition("-")
        result[name] = (int(least), int(most or least))
    return result
