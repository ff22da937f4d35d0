"""Recognizes statements that change rows: the log holds them as text where ``binlog_format`` isn't ROW."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.ddl.tokens import END, NAME, SIGN, WORD, first_word
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.errors import DdlError

_CHANGES = words("INSERT REPLACE UPDATE DELETE LOAD")
_VERBS = _CHANGES | words("WITH SELECT DO")
_BEFORE = words("SET ANALYZE")
"""Words that may precede a statement that changes rows."""
_ENDS = {
    "INSERT": words("( VALUES VALUE SELECT SET TABLE WITH PARTITION"),
    "REPLACE": words("( VALUES VALUE SELECT SET TABLE WITH PARTITION"),
    "UPDATE": words("SET"),
    "DELETE": words("WHERE ORDER LIMIT RETURNING"),
}
"""What ends the part of a statement that names the tables whose rows it changes."""


def changes_rows(text: str, session: Session, server: Server) -> bool:
    """Return whether a statement of the log changes rows rather than tables.

    Args:
        text: the statement.
        session: the session that it ran in.
        server: the server that it ran on.
    """
    word = first_word(text, session, server)
    if word in _BEFORE:
        try:
            cursor = _behind_settings(text, session, server)
        except DdlError:
            return False
        word = cursor.next.value if cursor.next.kind == WORD else ""
    return word in _VERBS


def changed_tables(text: str, session: Session, server: Server) -> set[TableId] | None:
    """Return the tables whose rows a statement may change, and other names that are written beside theirs.

    Args:
        text: a statement that changes rows.
        session: the session that it ran in.
        server: the server that it ran on.

    Returns:
        None if the statement doesn't name the tables: the log has a function that changes rows as the query that
        called it.

    Raises:
        DdlError: it can't be split into tokens.
    """
    cursor = _behind_settings(text, session, server)
    depth = 0
    while cursor.next.kind != END and (depth or not cursor.sees_any(_CHANGES)):
        depth += cursor.sees("(") - cursor.sees(")")
        cursor.take()
    if cursor.next.kind == END:
        return None
    verb = cursor.take().value
    if verb == "LOAD":
        while cursor.next.kind != END and not cursor.accept("INTO", "TABLE"):
            cursor.take()
    return set(_names(cursor, _ENDS.get(verb, words("( CHARACTER FIELDS COLUMNS LINES"))))


def fills_table(text: str, session: Session, server: Server) -> bool:
    """Return whether a statement that creates a table fills it, too; otherwise its rows come as row events."""
    tokens = Cursor(text, session, server).tokens
    kinds = [token.value if token.kind in (WORD, SIGN) else "" for token in tokens]
    values = any(pair in (("VALUES", "("), ("VALUES", "ROW")) for pair in pairwise(kinds))
    return "SELECT" in kinds or kinds.count("TABLE") > 1 or values


def _behind_settings(text: str, session: Session, server: Server) -> Cursor:
    """Return a cursor after the words that only set how a statement runs."""
    cursor = Cursor(text, session, server)
    while cursor.next.kind == SIGN and cursor.next.value in ("(", ";"):
        cursor.take()
    cursor.skip_settings()
    if cursor.accept("ANALYZE") and cursor.accept("FORMAT"):
        cursor.accept("=")
        cursor.take()
    return cursor


def _names(cursor: Cursor, ends: frozenset[str]) -> Iterator[TableId]:
    depth = 0
    while cursor.next.kind != END and (depth or not cursor.sees_any(ends)):
        depth += cursor.sees("(") - cursor.sees(")")
        if not cursor.is_name():
            cursor.take()
        elif cursor.ahead(1).value == "." and cursor.ahead(2).kind not in (NAME, WORD):
            # ``DELETE t.* FROM …``
            yield cursor.session.database, cursor.name()
        else:
            yield cursor.table_name()
