"""Statements that change rows: the log holds them as text where ``binlog_format`` isn't ROW."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.connectors.mysql.schema.cursor import Cursor, words
from floodmark.connectors.mysql.schema.schema import TableId
from floodmark.connectors.mysql.schema.session import Server, Session
from floodmark.connectors.mysql.schema.tokens import END, NAME, WORD

_CHANGES_ROWS = re.compile(
    r"\s*+(?>/\*.*?\*/\s*+)*+(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|WITH)\b", re.IGNORECASE | re.DOTALL
)
_VERBS = words("INSERT REPLACE UPDATE DELETE LOAD")
_ENDS = {
    "INSERT": words("( VALUES VALUE SELECT SET TABLE WITH PARTITION"),
    "REPLACE": words("( VALUES VALUE SELECT SET TABLE WITH PARTITION"),
    "UPDATE": words("SET"),
    "DELETE": words("WHERE ORDER LIMIT RETURNING"),
}
"""What ends the part of a statement that names the tables whose rows it changes."""


def changes_rows(text: str) -> bool:
    """Return whether a statement changes rows rather than tables."""
    return _CHANGES_ROWS.match(text) is not None


def changed_tables(text: str, session: Session, server: Server) -> set[TableId]:
    """Return the tables whose rows a statement may change, and other names that stand beside theirs.

    Args:
        text: a statement that changes rows.
        session: that it ran in.
        server: that it ran on.

    Raises:
        DdlError: it has no tokens.
    """
    cursor = Cursor(text, session, server)
    depth = 0
    while cursor.next.kind != END and (depth or not cursor.sees_any(_VERBS)):
        depth += cursor.sees("(") - cursor.sees(")")
        cursor.take()
    verb = cursor.take().value
    if verb == "LOAD":
        while cursor.next.kind != END and not cursor.accept("INTO", "TABLE"):
            cursor.take()
    return set(_names(cursor, _ENDS.get(verb, words("( CHARACTER FIELDS COLUMNS LINES"))))


def fills_table(text: str, session: Session, server: Server) -> bool:
    """Return whether a statement that creates a table fills it too: else the log has the rows by themselves."""
    tokens = Cursor(text, session, server).tokens
    return any(token.kind == WORD and token.value == "SELECT" for token in tokens)


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
