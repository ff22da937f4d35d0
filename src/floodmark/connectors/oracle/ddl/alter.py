"""Parses ``ALTER TABLE``, whose clauses change the table one after the other."""

from __future__ import annotations

from dataclasses import replace

from floodmark.connectors.oracle.ddl import edits
from floodmark.connectors.oracle.ddl.changes import Kind, TableChange, TableName
from floodmark.connectors.oracle.ddl.columns import parse_column
from floodmark.connectors.oracle.ddl.constraints import (
    parse_constraint,
    sees_constraint,
    sees_existing_constraint,
    skip_key_index,
    skip_modified_constraint,
    skip_switched_constraint,
)
from floodmark.connectors.oracle.ddl.create import parse_elements
from floodmark.connectors.oracle.ddl.cursor import Cursor, words
from floodmark.connectors.oracle.ddl.tokens import WORD
from floodmark.connectors.oracle.structures.table import Table

RECYCLED = "BIN$"
"""What the names of dropped tables that can be restored begin with."""
_CLAUSES = words("ADD MODIFY DROP RENAME")
_OF_WHOLE = words(
    "ALLOCATE ANNOTATIONS CACHE CLUSTERING COALESCE COMPRESS COLUMN DEALLOCATE DEFAULT DISABLE ENABLE EXCHANGE "
    "FILESYSTEM_LIKE_LOGGING FLASHBACK HASHING ILM INDEXING INITRANS INMEMORY LOB LOGGING MAPPING MAXTRANS "
    "MEMOPTIMIZE MERGE MINIMIZE MONITORING MOVE NESTED NO NOCACHE NOCOMPRESS NOLOGGING NOMAPPING NOMINIMIZE "
    "NOMONITORING NOPARALLEL OVERFLOW PARALLEL PCTFREE PCTTHRESHOLD PCTUSED READ RECORDS_PER_BLOCK REKEY "
    "RESULT_CACHE ROW SET SHARD SHRINK SPLIT STORAGE STORE SUPPLEMENTAL TABLESPACE TRUNCATE UPGRADE USING VARRAY "
    "XMLTYPE"
)
"""What clauses about storage and the like begin with, which also follow those of columns."""
_ENDING = words("ALLOCATE COALESCE EXCHANGE ILM MERGE MOVE SHRINK SPLIT TRUNCATE UPGRADE")
"""Of these, those that can be followed by none about columns, though they contain words that begin one."""
_PARTITIONED = words("PARTITION SUBPARTITION")
_OTHER_PARTS = words("PARTITION SUBPARTITION DEFAULT LOB NESTED VARRAY OPAQUE COLUMN CLUSTERING")
_BUILT_IN = words(
    "NUMBER CHAR CHARACTER VARCHAR VARCHAR2 NCHAR NVARCHAR2 INTEGER INT DATE TIMESTAMP RAW CLOB NCLOB BLOB FLOAT"
)


def alter_table(cursor: Cursor, name: TableName, table: Table | None) -> TableChange | None:
    """Parse ``ALTER TABLE``, whose words up to the name are consumed already.

    Args:
        name: the table's schema and name.
        table: the table; None if it isn't known.

    Returns:
        What is done; None if the table's structure doesn't change.
    """
    if cursor.accept("RENAME", "TO"):
        return renamed(name, (name[0], cursor.table_name()[1]), table)
    if name[1].startswith(RECYCLED):
        return None
    if table is None:
        return TableChange(Kind.ALTER, name, reread=True)
    found = table
    while not cursor.at_end():
        found = _parse_clause(cursor, found)
        cursor.accept(",")
    return TableChange(Kind.ALTER, name, found)


def renamed(old: TableName, new: TableName, table: Table | None) -> TableChange | None:
    """Return what it means that a table has another name."""
    if new[1].startswith(RECYCLED):
        # Oracle renames what it drops; the statement that drops it follows, with the old name.
        return None
    if old[1].startswith(RECYCLED):
        return TableChange(Kind.CREATE, new, reread=True)
    if table is None:
        return TableChange(Kind.ALTER, new, previous=old, reread=True)
    return TableChange(Kind.ALTER, new, replace(table, owner=new[0], name=new[1]), previous=old)


def _parse_clause(cursor: Cursor, table: Table) -> Table:
    if cursor.accept("ADD"):
        return _parse_add(cursor, table)
    if cursor.accept("MODIFY"):
        return _parse_modify(cursor, table)
    if cursor.accept("DROP"):
        return _parse_drop(cursor, table)
    if cursor.accept("RENAME"):
        return _parse_rename(cursor, table)
    if cursor.accept("SET", "UNUSED"):
        return _parse_drop_columns(cursor, table)
    _skip_clause(cursor)
    return table


def _skip_clause(cursor: Cursor) -> None:
    """Skip a clause that isn't about columns."""
    if not cursor.sees_any(_OF_WHOLE):
        cursor.fail("a clause of ALTER TABLE")
    if cursor.sees_any(_ENDING) or cursor.sees("SET") or cursor.sees("STORE", "IN"):
        cursor.skip_rest()
        return
    switched = cursor.take().value in ("ENABLE", "DISABLE")
    if switched:
        cursor.accept_any("VALIDATE", "NOVALIDATE")
        if sees_existing_constraint(cursor):
            skip_switched_constraint(cursor)
            return
    while not cursor.at_end() and not cursor.sees_any(_CLAUSES) and not cursor.sees("SET", "UNUSED"):
        if cursor.sees(","):
            return
        cursor.skip_one()


def _parse_add(cursor: Cursor, table: Table) -> Table:
    if cursor.sees("("):
        elements = parse_elements(cursor)
        if not all(one.is_typed for one in elements.columns):
            cursor.fail("types of all columns before it")
        return elements.added_to(table)
    if cursor.sees("OVERFLOW") or _sees_partition(cursor):
        cursor.skip_rest()
        return table
    if sees_constraint(cursor):
        return edits.with_constraint(table, parse_constraint(cursor))
    cursor.accept("COLUMN")
    definition = parse_column(cursor)
    if not definition.is_typed:
        cursor.fail("a type")
    return edits.with_column(table, definition)


def _sees_partition(cursor: Cursor) -> bool:
    """Return whether a partition comes next, rather than a column of that name."""
    following = cursor.ahead(1)
    return cursor.sees_any(_PARTITIONED) and not (following.kind == WORD and following.value in _BUILT_IN)


def _parse_modify(cursor: Cursor, table: Table) -> Table:
    if sees_existing_constraint(cursor):
        skip_modified_constraint(cursor)
        return table
    if _sees_partition(cursor) or (cursor.sees_any(_OTHER_PARTS) and not cursor.sees_any(_PARTITIONED)):
        cursor.skip_rest()
        return table
    if not cursor.accept("("):
        return edits.with_modified(table, parse_column(cursor))
    while True:
        table = edits.with_modified(table, parse_column(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return table


def _parse_drop(cursor: Cursor, table: Table) -> Table:
    if _sees_partition(cursor):
        cursor.skip_rest()
    elif cursor.accept("PRIMARY", "KEY"):
        skip_key_index(cursor)
        return edits.without_key(table)
    elif cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "EXISTS")
        name = cursor.name()
        skip_key_index(cursor)
        return edits.without_constraint(table, name)
    elif cursor.accept("UNIQUE"):
        cursor.skip_parentheses()
        skip_key_index(cursor)
    elif cursor.accept("UNUSED", "COLUMNS") or cursor.accept("COLUMNS", "CONTINUE"):
        _skip_checkpoint(cursor)
    elif cursor.sees("SUPPLEMENTAL", "LOG") or cursor.sees("PERIOD", "FOR"):
        while not cursor.at_end() and not cursor.sees_any(_CLAUSES):
            cursor.skip_one()
    elif cursor.sees("COLUMN") or cursor.sees("("):
        return _parse_drop_columns(cursor, table)
    else:
        cursor.fail("what is dropped")
    return table


def _parse_drop_columns(cursor: Cursor, table: Table) -> Table:
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    names = cursor.column_names() if cursor.sees("(") else [cursor.column_name()]
    while cursor.accept("CASCADE", "CONSTRAINTS") or cursor.accept("INVALIDATE") or cursor.accept("ONLINE"):
        pass
    _skip_checkpoint(cursor)
    return edits.without_columns(table, names)


def _skip_checkpoint(cursor: Cursor) -> None:
    if cursor.accept("CHECKPOINT"):
        cursor.number()


def _parse_rename(cursor: Cursor, table: Table) -> Table:
    if cursor.accept("COLUMN"):
        old = cursor.column_name()
        cursor.expect("TO")
        return edits.with_renamed(table, old, cursor.column_name())
    if cursor.accept("CONSTRAINT"):
        old = cursor.name()
        cursor.expect("TO")
        return edits.with_renamed_constraint(table, old, cursor.name())
    if not cursor.sees_any(_PARTITIONED) and not cursor.sees("LOB"):
        cursor.fail("COLUMN, CONSTRAINT or TO")
    cursor.skip_rest()
    return table
