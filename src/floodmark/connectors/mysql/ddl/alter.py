"""Parses ``ALTER TABLE``: clauses are collected first and then applied together, as servers do (:mod:`.clauses`)."""

from __future__ import annotations

import re
from dataclasses import replace

from floodmark.connectors.mysql.ddl.clauses import Clauses, altered
from floodmark.connectors.mysql.ddl.column_types import ColumnType
from floodmark.connectors.mysql.ddl.columns import parse_column
from floodmark.connectors.mysql.ddl.create import (
    TableOptions,
    column_keys,
    database_charset,
    parse_elements,
    parse_period,
    parse_table_option,
    server_charset,
)
from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.defaults import parse_default
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition
from floodmark.connectors.mysql.ddl.keys import is_hashed, parse_key, sees_key
from floodmark.connectors.mysql.ddl.literals import default_text
from floodmark.connectors.mysql.ddl.schema import Draft
from floodmark.connectors.mysql.ddl.temporal_literals import Clock
from floodmark.connectors.mysql.structures.table import PRIMARY, Column, Table

_OF_PARTITIONS = words(
    "ANALYZE CHECK OPTIMIZE REBUILD REPAIR REORGANIZE COALESCE TRUNCATE EXCHANGE REMOVE DISCARD IMPORT PARTITION "
    "SECONDARY_LOAD SECONDARY_UNLOAD UPGRADE"
)
_WORDS = words("FORCE WITH WITHOUT ENABLE DISABLE")
_NOT_SORTING = words(
    "ADD DROP RENAME ALGORITHM LOCK WITH WITHOUT ENABLE DISABLE ANALYZE CHECK REPAIR TRUNCATE EXCHANGE DISCARD IMPORT"
)
_NOW = re.compile(r"CURRENT_TIMESTAMP(\(\d\))?")


def alter_table(cursor: Cursor, draft: Draft) -> None:
    """Apply ``ALTER TABLE``, whose words before the name are consumed already."""
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name()
    skip_wait(cursor)
    table = draft.find(name)
    clauses = Clauses()
    while not cursor.at_end():
        clauses.rewrites |= not cursor.sees_any(_NOT_SORTING)
        clauses.beside |= cursor.sees("ENABLE") or cursor.sees("DISABLE")
        if not _parse_clause(cursor, clauses, table, draft):
            break
        cursor.accept(",")
    if table is None:
        return
    changed = altered(table, clauses, database_charset(draft, table.database, cursor), cursor)
    target = clauses.renamed_to or name
    if target != name:
        draft.drop(name)
    draft.put(replace(changed, database=target[0], name=target[1]))
    draft.changed("ALTER", target, name if target != name else None)


def skip_wait(cursor: Cursor) -> None:
    """Skip MariaDB's ``WAIT n`` and ``NOWAIT``."""
    if cursor.accept("WAIT"):
        cursor.take()
    else:
        cursor.accept("NOWAIT")


def _parse_clause(cursor: Cursor, clauses: Clauses, table: Table | None, draft: Draft) -> bool:
    """Parse the clause that comes next; return False if the rest of the statement doesn't matter."""
    if cursor.accept("ADD"):
        return _parse_add(cursor, clauses)
    if cursor.accept("DROP"):
        return _parse_drop(cursor, clauses, table)
    if cursor.accept("CHANGE"):
        cursor.accept("COLUMN")
        present = cursor.accept("IF", "EXISTS")
        old = cursor.column_name()
        _define(clauses, old, parse_column(cursor, present), cursor)
    elif cursor.accept("MODIFY"):
        cursor.accept("COLUMN")
        definition = parse_column(cursor, cursor.accept("IF", "EXISTS"))
        _define(clauses, definition.name, definition, cursor)
    elif cursor.accept("RENAME"):
        _parse_rename(cursor, clauses)
    elif cursor.accept("ALTER"):
        _parse_alter(cursor, clauses)
    elif cursor.accept("CONVERT"):
        return _parse_convert(cursor, clauses, table, draft)
    elif cursor.accept("ORDER", "BY"):
        cursor.skip_item()
        while cursor.sees(",") and _sees_order(cursor):
            cursor.at += 1
            cursor.skip_item()
    elif cursor.sees_any(_OF_PARTITIONS):
        return False
    elif cursor.accept("ALGORITHM") or cursor.accept("LOCK"):
        cursor.accept("=")
        cursor.take()
    elif not parse_table_option(cursor, clauses.options):
        if not cursor.sees_any(_WORDS):
            cursor.fail("a clause of ALTER TABLE")
        cursor.skip_item()
    return True


def _define(clauses: Clauses, old: str | None, definition: ColumnDefinition, cursor: Cursor) -> None:
    clauses.defined.append((old, definition))
    clauses.keys += column_keys(definition, cursor)


def _parse_add(cursor: Cursor, clauses: Clauses) -> bool:
    if cursor.sees("PARTITION"):
        clauses.rewrites = True
        return False
    if cursor.accept("SYSTEM", "VERSIONING"):
        return True
    if cursor.sees("PERIOD", "FOR"):
        clauses.periods |= parse_period(cursor)
        return True
    if sees_key(cursor):
        key = parse_key(cursor)
        if key is not None:
            clauses.keys.append(key)
        clauses.rewrites |= key is None or key.foreign
        return True
    clauses.rewrites = True
    cursor.accept("COLUMN")
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.sees("("):
        elements = parse_elements(cursor, only_new)
        clauses.defined += [(None, definition) for definition in elements.columns]
        clauses.keys += elements.keys
        return True
    _define(clauses, None, parse_column(cursor, only_new), cursor)
    return True


def _sees_order(cursor: Cursor) -> bool:
    """Return whether a column to order by follows the comma, rather than another clause."""
    behind = 2
    while cursor.ahead(behind).value == ".":
        behind += 2
    return cursor.ahead(behind).value in (",", "", "ASC", "DESC", ";")


def _parse_drop(cursor: Cursor, clauses: Clauses, table: Table | None) -> bool:
    if cursor.sees("PARTITION") and cursor.ahead(1).value not in (",", ""):
        clauses.rewrites = True
        return False
    if cursor.accept("SYSTEM", "VERSIONING"):
        return True
    if cursor.accept("PERIOD", "FOR"):
        cursor.accept("IF", "EXISTS")
        cursor.take()
    elif cursor.accept("PRIMARY", "KEY") or cursor.accept("CONSTRAINT", "PRIMARY", "KEY"):
        clauses.dropped_keys.add(PRIMARY.lower())
    elif cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        clauses.dropped_keys.add(cursor.name().lower())
    elif cursor.accept("FOREIGN", "KEY") or cursor.accept("CHECK"):
        clauses.rewrites = True
        cursor.accept("IF", "EXISTS")
        cursor.name()
    elif cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "EXISTS")
        name = cursor.name().lower()
        named = [] if table is None else [index for index in table.indexes if index.name.lower() == name]
        # MariaDB doesn't find unique indexes that it hashes.
        if table is not None and any(index.unique and not is_hashed(index, table.columns) for index in named):
            clauses.dropped_keys.add(name)
        else:
            clauses.rewrites = True
    else:
        clauses.rewrites = True
        cursor.accept("COLUMN")
        cursor.accept("IF", "EXISTS")
        clauses.dropped.add(cursor.column_name().lower())
        cursor.accept_any("RESTRICT", "CASCADE")
    return True


def _parse_rename(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.accept("COLUMN"):
        cursor.accept("IF", "EXISTS")
        old = cursor.name()
        cursor.expect("TO")
        clauses.renamed[old.lower()] = cursor.name()
        clauses.rewrites = True
    elif cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        old = cursor.name()
        cursor.expect("TO")
        clauses.renamed_keys[old.lower()] = cursor.name()
        clauses.rewrites = True
    else:
        cursor.accept_any("TO", "AS", "=")
        clauses.renamed_to = cursor.table_name()
        clauses.beside = True


def _parse_alter(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        cursor.skip_item()
        return
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.column_name().lower()
    mariadb, clock = cursor.server.mariadb, cursor.clock
    if cursor.accept("DROP", "DEFAULT"):
        clauses.without_default.add(name)
        clauses.edited.append((name, lambda column: _without_default(column, mariadb)))
    elif cursor.accept("SET", "DEFAULT"):
        definition = ColumnDefinition(name, ColumnType("int", "INT"))
        parse_default(cursor, definition, altered=True)
        clauses.edited.append((name, lambda column: _with_default(column, definition, mariadb, clock)))
    elif cursor.accept("SET", "INVISIBLE"):
        clauses.edited.append((name, lambda column: replace(column, invisible=True)))
    elif cursor.accept("SET", "VISIBLE"):
        clauses.edited.append((name, lambda column: replace(column, invisible=False)))
    else:
        cursor.fail("SET or DROP")


def _parse_convert(cursor: Cursor, clauses: Clauses, table: Table | None, draft: Draft) -> bool:
    if cursor.accept("PARTITION"):
        cursor.name()
        cursor.expect("TO", "TABLE")
        target = cursor.table_name()
        if table is not None:
            draft.put(replace(table, database=target[0], name=target[1]))
            draft.changed("CREATE", target)
        return False
    if cursor.accept("TABLE"):
        source = cursor.table_name()
        draft.drop(source)
        draft.changed("DROP", source)
        return False
    cursor.expect("TO")
    if not cursor.accept("CHARACTER", "SET") and not cursor.accept("CHARSET"):
        cursor.fail("CHARACTER SET")
    conversion = TableOptions()
    if cursor.server.mariadb or not cursor.accept("DEFAULT"):
        conversion.charset = cursor.charset()
    else:
        default = draft.databases.get(cursor.session.database) or server_charset(cursor)
        conversion.collation = default.collation
    if cursor.accept("COLLATE"):
        cursor.accept("=")
        conversion.collation = cursor.collation()
    elif cursor.server.mariadb and clauses.conversion is not None:
        conversion.collation = clauses.conversion.collation
    clauses.conversion = conversion
    if not cursor.server.mariadb:
        # Earlier options of the table don't count; later ones do.
        clauses.options.charset, clauses.options.collation = conversion.charset, conversion.collation
    return True


def _without_default(column: Column, mariadb: bool) -> Column:
    kind = "null" if column.optional and column.generated is None else "none"
    return replace(column, default=None, default_kind=kind, written=None, on_update=_still_updated(column, mariadb))


def _with_default(column: Column, definition: ColumnDefinition, mariadb: bool, clock: Clock) -> Column:
    """Return a column with another default."""
    text, kind, written = definition.default, definition.default_kind, definition.written
    if column.generated is not None or (column.auto_increment and kind != "expression"):
        # MariaDB ignores the clause.
        return column
    if kind == "literal" and text is not None:
        type_ = ColumnType(
            column.type,
            "",
            column.length,
            column.scale,
            zerofill=column.zerofill,
            charset=column.charset,
            values=column.values,
        )
        kept = default_text(type_, definition.literal_kind, text, clock)
        text, written = kept, written if written != kept else None
    updated = _still_updated(column, mariadb)
    apart = mariadb and updated and _is_now(text)
    return replace(
        column,
        default=text,
        default_kind=kind,
        written=written,
        on_update=updated,
        updated_apart=apart,
        no_default=False,
    )


def _still_updated(column: Column, mariadb: bool) -> bool:
    """Return whether a column keeps ON UPDATE when it gets another default."""
    return column.on_update and not (mariadb and _is_now(column.default) and not column.updated_apart)


def _is_now(default: str | None) -> bool:
    return _NOW.fullmatch(default or "") is not None
