"""What a statement of the log does to tables."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.connectors.oracle.ddl.alter import RECYCLED, alter_table, renamed
from floodmark.connectors.oracle.ddl.changes import Kind, TableChange, TableName
from floodmark.connectors.oracle.ddl.create import create_table
from floodmark.connectors.oracle.ddl.cursor import Cursor
from floodmark.connectors.oracle.ddl.edits import with_comment
from floodmark.connectors.oracle.ddl.tokens import first_word
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import DdlError

_SHOWN = 200
_KINDS_OF_TABLES = ("GLOBAL", "TEMPORARY", "SHARDED", "DUPLICATED", "IMMUTABLE", "BLOCKCHAIN", "SHARED", "HYBRID")
Tables = Mapping[TableName, Table]


def apply(statement: str, tables: Tables, owner: str, database: str) -> list[TableChange]:
    """Return what a statement does to tables; nothing if it is about something else.

    The tables aren't changed: a caller replaces those of which it follows the structure. A statement that changes or
    renames a table that isn't among them results in a change that must be read from the dictionary (``reread``), since
    only the caller knows whether it follows a table of that name.

    Args:
        statement: as LogMiner shows it.
        tables: the known ones.
        owner: the schema of names that have none (``SEG_OWNER``).
        database: the pluggable database, or the database that has none.

    Raises:
        DdlError: it changes a table in a way that is not understood.
    """
    try:
        parse = _PARSERS.get(first_word(statement))
        if parse is None:
            return []
        cursor = Cursor(statement, owner)
        cursor.take()
        change = parse(cursor, tables, database)
    except DdlError as error:
        shown = statement if len(statement) <= _SHOWN else statement[:_SHOWN] + " …"
        raise DdlError(f"{error.what} The statement is: {shown}") from None
    return [] if change is None else [change]


def _create(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    while cursor.accept_any(*_KINDS_OF_TABLES) is not None:
        pass
    if not cursor.accept("TABLE"):
        # PRIVATE TEMPORARY ones have no changes in the log, and a JSON COLLECTION has no columns of its own.
        return None
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    name, change = create_table(cursor, database)
    return None if only_new and name in tables else change


def _alter(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    del database
    if not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name()
    return alter_table(cursor, name, tables.get(name))


def _drop(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    del database
    if not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name()
    # A name in the recycle bin is of a table that was dropped before.
    return None if name[1].startswith(RECYCLED) else TableChange(Kind.DROP, name, tables.get(name))


def _truncate(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    del database
    if not cursor.accept("TABLE"):
        return None
    name = cursor.table_name()
    return TableChange(Kind.TRUNCATE, name, tables.get(name))


def _rename(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    del database
    old = cursor.table_name()
    cursor.expect("TO")
    return renamed(old, (old[0], cursor.table_name()[1]), tables.get(old))


def _flashback(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    """Parse ``FLASHBACK TABLE``; only a table that was dropped is another one afterwards."""
    del tables, database
    if not cursor.accept("TABLE"):
        return None
    name = cursor.table_name()
    if not cursor.accept("TO", "BEFORE", "DROP"):
        return None
    if cursor.accept("RENAME", "TO"):
        name = (name[0], cursor.table_name()[1])
    return TableChange(Kind.CREATE, name, reread=True)


def _comment(cursor: Cursor, tables: Tables, database: str) -> TableChange | None:
    del database
    cursor.expect("ON")
    column: str | None = None
    if cursor.accept("COLUMN"):
        name, column = _column_of_table(cursor)
    elif cursor.accept("TABLE"):
        name = cursor.table_name()
    else:
        return None
    cursor.expect("IS")
    table = tables.get(name)
    return None if table is None else TableChange(Kind.COMMENT, name, with_comment(table, column, cursor.string()))


def _column_of_table(cursor: Cursor) -> tuple[TableName, str]:
    parts = [cursor.name()]
    while cursor.accept("."):
        parts.append(cursor.name())
    if len(parts) == 1:
        cursor.fail("the name of a column")
    owner = parts[-3] if len(parts) > 2 else cursor.owner
    return (owner, parts[-2]), parts[-1]


_PARSERS = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "FLASHBACK": _flashback,
    "COMMENT": _comment,
}
