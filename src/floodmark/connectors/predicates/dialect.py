"""Describes how conditions differ between databases."""

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
        name: the database's name, for messages.
        backslashes: whether a backslash in a text escapes the next character.
        double_quoted_text: whether double quotes enclose a text, and backticks a name; else double quotes a name.
        nested_comments: whether comments are nested.
        operators: those that combine values, with their precedence; words in upper case.
        comparisons: operators that compare values.
        ignore_case: whether there is ``ILIKE``.
        xor: whether there is ``XOR``.
        functions: the least and the most arguments of each function, by its name in lower case.
        clocks: functions that may be written without brackets, in upper case.
        types: what a value can be cast to, and how many sizes each has at most; in upper case.
        typed: types whose values can be written with the type's name before a text.
        periods: units of ``INTERVAL 3 DAY``; empty: intervals are typed texts.
        session_words: names that refer to the session unless they are quoted, in lower case.
        upper_case: whether names without quotes mean those in upper case.
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
    upper_case: bool = False


def functions(text: str) -> dict[str, tuple[int, int]]:
    """Parse functions and their numbers of arguments, written as ``name:least-most`` between blanks."""
    result = {}
    for item in text.split():
        name, _, numbers = item.partition(":")
        least, _, most = numbers.partition("-")
        result[name] = (int(least), int(most or least))
    return result
