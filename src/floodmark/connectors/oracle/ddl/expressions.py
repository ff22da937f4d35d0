"""Finds where an expression ends, which no sign marks in the definition of a column."""

from __future__ import annotations

from floodmark.connectors.oracle.ddl.cursor import Cursor
from floodmark.connectors.oracle.ddl.tokens import END, NUMBER, STRING

_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def skip_expression(cursor: Cursor) -> None:
    """Skip an expression: operands, with operators between them."""
    _skip_operand(cursor)
    while _accept_operator(cursor):
        _skip_operand(cursor)


def _accept_operator(cursor: Cursor) -> bool:
    return cursor.accept("|", "|") or cursor.accept_any("+", "-", "*", "/") is not None


def _skip_operand(cursor: Cursor) -> None:
    while cursor.accept_any("+", "-") is not None:
        pass
    if cursor.sees("("):
        cursor.skip_parentheses()
    elif cursor.accept("CASE"):
        _skip_case(cursor)
    elif cursor.sees("INTERVAL") and cursor.ahead(1).kind == STRING:
        _skip_interval(cursor)
    elif cursor.next.kind in (STRING, NUMBER):
        cursor.take()
    else:
        _skip_name(cursor)
    _skip_suffixes(cursor)


def _skip_name(cursor: Cursor) -> None:
    """Skip a name, a call, or a literal such as ``DATE '2020-01-01'``."""
    cursor.name()
    if cursor.next.kind == STRING:
        cursor.take()
    while cursor.accept(".") or cursor.accept("@"):
        cursor.name()
    if cursor.sees("("):
        cursor.skip_parentheses()


def _skip_suffixes(cursor: Cursor) -> None:
    while True:
        if cursor.accept("AT", "TIME", "ZONE"):
            _skip_operand(cursor)
        elif cursor.accept("COLLATE") or cursor.accept("."):
            _skip_name(cursor)
        elif not cursor.accept("AT", "LOCAL"):
            return


def _skip_case(cursor: Cursor) -> None:
    depth = 1
    while depth:
        depth += cursor.sees("CASE") - cursor.sees("END")
        if cursor.take().kind == END:
            cursor.fail("END")


def _skip_interval(cursor: Cursor) -> None:
    cursor.expect("INTERVAL")
    cursor.string()
    for word in ("", "TO"):
        if word and not cursor.accept(word):
            return
        if cursor.accept_any(*_UNITS) is None:
            cursor.fail("a unit of time")
        if cursor.sees("("):
            cursor.skip_parentheses()
