"""Finds ``ALTER TABLE`` statements that add or remove a whole partition or file, whose rows are not in the log.

Source: the servers' manuals, "ALTER TABLE Partition Operations" (MySQL), "Partitioning Overview" (MariaDB).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from floodmark.connectors.mysql.ddl.alter import skip_wait
from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.structures.session import Server, Session

_WHOLES = re.compile(r"\b(?:PARTITION|TABLESPACE)\b", re.IGNORECASE)
_LOSES = "DROP PARTITION", "TRUNCATE PARTITION", "DISCARD TABLESPACE"


@dataclass(frozen=True)
class MovedRows:
    """Rows that a statement adds or removes.

    Attributes:
        action: what is done, in the statement's words.
        tables: the tables whose rows they are.
    """

    action: str
    tables: tuple[TableId, ...]

    @property
    def only_go(self) -> bool:
        """Whether rows are only removed, as when a table is truncated."""
        return self.action in _LOSES


def moved_rows(text: str, session: Session, server: Server) -> MovedRows | None:
    """Return which rows a statement adds or removes without logging them; None if it does neither.

    Args:
        text: the statement.
        session: the session that it ran in.
        server: the server that it ran on.
    """
    if not _WHOLES.search(text):
        return None
    cursor = Cursor(text, session, server)
    cursor.skip_settings()
    if not cursor.accept("ALTER"):
        return None
    while cursor.accept("ONLINE") or cursor.accept("IGNORE"):
        pass
    if not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name()
    skip_wait(cursor)
    for word in ("DROP", "TRUNCATE"):
        if cursor.accept(word, "PARTITION"):
            return MovedRows(f"{word} PARTITION", (name,))
    if cursor.accept("EXCHANGE", "PARTITION"):
        cursor.name()
        cursor.expect("WITH", "TABLE")
        return MovedRows("EXCHANGE PARTITION", (name, cursor.table_name()))
    if cursor.accept("CONVERT", "TABLE"):
        return MovedRows("CONVERT TABLE TO PARTITION", (name, cursor.table_name()))
    if cursor.accept("CONVERT", "PARTITION"):
        cursor.name()
        cursor.expect("TO", "TABLE")
        return MovedRows("CONVERT PARTITION TO TABLE", (name, cursor.table_name()))
    for word in ("IMPORT", "DISCARD"):
        if cursor.sees(word, "TABLESPACE") or cursor.sees(word, "PARTITION"):
            return MovedRows(f"{word} TABLESPACE", (name,))
    return None
