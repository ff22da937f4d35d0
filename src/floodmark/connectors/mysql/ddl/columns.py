"""Parses definitions of columns: their types and attributes."""

from __future__ import annotations

from floodmark.connectors.mysql.ddl.column_types import parse_type
from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.defaults import NOW, parse_default, parse_now
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition
from floodmark.connectors.mysql.ddl.tokens import STRING

_VALUED = words("COLUMN_FORMAT STORAGE SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE COMPRESSED")

_WITHOUT_EFFECT = (("WITH", "SYSTEM", "VERSIONING"), ("WITHOUT", "SYSTEM", "VERSIONING"), ("NOT", "SECONDARY"))
_MOST_OF_COMMENT = 1024
"""The servers cut longer comments off if they don't refuse them."""
_FIRST_OF_FOREIGN_COLUMNS = 90000
"""The first version of MySQL in which ``REFERENCES`` at a column makes a foreign key."""


def parse_column(cursor: Cursor, conditional: bool = False) -> ColumnDefinition:
    """Parse the definition of the column that comes next, with its place in the table.

    Args:
        conditional: whether IF EXISTS or IF NOT EXISTS precedes it.
    """
    name = cursor.column_name()
    definition = ColumnDefinition(name, parse_type(cursor), conditional=conditional)
    if definition.type.serial:
        definition.optional, definition.auto_increment, definition.unique = False, True, True
    while _parse_attribute(cursor, definition):
        pass
    if cursor.accept("FIRST"):
        definition.place = ""
    elif cursor.accept("AFTER"):
        definition.place = cursor.column_name()
    return definition


def _parse_attribute(cursor: Cursor, definition: ColumnDefinition) -> bool:
    if cursor.accept("NOT", "NULL"):
        definition.optional = False
    elif cursor.accept("NULL"):
        definition.optional = True
    elif cursor.accept("DEFAULT"):
        parse_default(cursor, definition)
    elif cursor.accept("ON", "UPDATE"):
        parse_now(cursor)
        definition.on_update = True
    elif cursor.accept("AUTO_INCREMENT"):
        definition.auto_increment, definition.optional = True, False
    elif cursor.accept("SERIAL", "DEFAULT", "VALUE"):
        definition.auto_increment, definition.unique, definition.optional = True, True, False
    elif cursor.accept("PRIMARY"):
        cursor.accept("KEY")
        _set_primary(definition, cursor)
    elif cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        definition.unique = True
    elif cursor.accept("KEY"):
        _set_primary(definition, cursor)
    elif cursor.accept("COMMENT"):
        definition.comment = cursor.string()[:_MOST_OF_COMMENT] or None
    elif cursor.accept("COLLATE"):
        cursor.accept("=")
        definition.type.collation = cursor.collation()
    elif cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        definition.type.charset = cursor.charset()
    elif cursor.accept("BINARY"):
        definition.type.binary = True
    elif cursor.accept("INVISIBLE"):
        definition.invisible = True
    elif cursor.accept("VISIBLE"):
        definition.invisible = False
    else:
        return _parse_generated(cursor, definition) or _parse_rest(cursor, definition)
    return True


def _set_primary(definition: ColumnDefinition, cursor: Cursor) -> None:
    definition.primary = True
    if cursor.server.mariadb:
        # It stays NOT NULL even if IF NOT EXISTS leaves out the key, since there is a primary key already.
        definition.optional = False


def _parse_generated(cursor: Cursor, definition: ColumnDefinition) -> bool:
    always = cursor.accept("GENERATED", "ALWAYS")
    if not cursor.accept("AS"):
        return False
    if cursor.accept("ROW"):
        definition.row_end = cursor.take().value == "END"
        definition.row_time, definition.generated = True, "stored"
        return True
    if not cursor.sees("("):
        cursor.fail("(" if always else "an expression")
    cursor.in_parentheses()
    stored = cursor.accept_any("STORED", "PERSISTENT")
    if not stored:
        cursor.accept("VIRTUAL")
    definition.generated = "stored" if stored else "virtual"
    return True


def _parse_rest(cursor: Cursor, definition: ColumnDefinition) -> bool:
    symbol = None
    if cursor.accept("CONSTRAINT") and not cursor.sees("CHECK") and cursor.is_name():
        symbol = cursor.name()
    if cursor.accept("CHECK"):
        cursor.in_parentheses()
        if not cursor.accept("NOT", "ENFORCED"):
            cursor.accept("ENFORCED")
    elif cursor.sees("REFERENCES"):
        parse_references(cursor)
        definition.foreign = cursor.server.mariadb or cursor.server.version >= _FIRST_OF_FOREIGN_COLUMNS
        definition.foreign_name = symbol
    elif cursor.accept("SRID"):
        definition.srid = cursor.number()
    elif any(cursor.accept(*phrase) for phrase in _WITHOUT_EFFECT):
        pass
    elif cursor.sees_any(_VALUED):
        compressed = cursor.take().value == "COMPRESSED"
        if cursor.accept("=") or not compressed:
            cursor.take()
    elif cursor.is_name() and cursor.ahead(1).value == "=" and cursor.ahead(1).kind != STRING:
        cursor.skip(3)
    else:
        return False
    return True


def parse_references(cursor: Cursor) -> None:
    """Skip the clause of a foreign key that names what it refers to."""
    cursor.expect("REFERENCES")
    cursor.table_name()
    if cursor.sees("("):
        cursor.in_parentheses()
    while True:
        if cursor.accept("MATCH"):
            cursor.take()
        elif cursor.accept("ON", "DELETE") or (cursor.sees("ON", "UPDATE") and not _is_now(cursor)):
            cursor.accept("ON", "UPDATE")
            cursor.accept_any("SET", "NO")
            cursor.take()
        else:
            return


def _is_now(cursor: Cursor) -> bool:
    return cursor.ahead(2).value in NOW
