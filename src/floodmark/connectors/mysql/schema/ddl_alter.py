"""``ALTER TABLE``: its clauses are collected first and then done together, as the servers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from floodmark.connectors.mysql.schema.charsets import charset_name, collation_name, max_bytes
from floodmark.connectors.mysql.schema.cursor import Cursor, words
from floodmark.connectors.mysql.schema.ddl_columns import (
    ColumnDefinition,
    parse_column,
    parse_default,
    settle_timestamps,
)
from floodmark.connectors.mysql.schema.ddl_create import (
    TableOptions,
    column_keys,
    database_charset,
    finished,
    parse_elements,
    parse_period,
    parse_table_option,
    server_charset,
)
from floodmark.connectors.mysql.schema.ddl_keys import KeyDefinition, parse_key, sees_key
from floodmark.connectors.mysql.schema.ddl_types import AS_BINARY, Charset, ColumnType
from floodmark.connectors.mysql.schema.literals import default_text
from floodmark.connectors.mysql.schema.schema import Draft, TableId
from floodmark.connectors.mysql.schema.table import PRIMARY, Column, Index, Table
from floodmark.errors import DdlError

_OF_PARTITIONS = words(
    "ANALYZE CHECK OPTIMIZE REBUILD REPAIR REORGANIZE COALESCE TRUNCATE EXCHANGE REMOVE DISCARD IMPORT PARTITION "
    "SECONDARY_LOAD SECONDARY_UNLOAD UPGRADE"
)
_WORDS = words("FORCE WITH WITHOUT ENABLE DISABLE")
_GROWN = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}

Edit = Callable[[Column], Column]


@dataclass
class Clauses:
    """What an ``ALTER TABLE`` wants, clause by clause.

    Attributes:
        defined: columns added or redefined, in order: name of the old column or None, definition.
        dropped, dropped_keys: names in lower case.
        renamed, renamed_keys: new names by old ones in lower case.
        edited: changes of single columns by their old names in lower case.
        converted: whether all columns get the table's new character set.
        renamed_to: the table's new name.
    """

    defined: list[tuple[str | None, ColumnDefinition]] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    edited: list[tuple[str, Edit]] = field(default_factory=list)
    keys: list[KeyDefinition] = field(default_factory=list)
    dropped_keys: set[str] = field(default_factory=set)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    periods: dict[str, tuple[str, str]] = field(default_factory=dict)
    options: TableOptions = field(default_factory=TableOptions)
    converted: bool = False
    renamed_to: TableId | None = None


def alter_table(cursor: Cursor, draft: Draft) -> None:
    """Apply ``ALTER TABLE``, of which the words before the name are taken already."""
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name()
    skip_wait(cursor)
    table = draft.find(name)
    clauses = Clauses()
    while not cursor.at_end():
        if not _parse_clause(cursor, clauses, table, draft):
            break
        cursor.accept(",")
    if table is None:
        return
    altered = _altered(table, clauses, cursor)
    target = clauses.renamed_to or name
    if target != name:
        draft.drop(name)
    draft.put(replace(altered, database=target[0], name=target[1]))
    draft.changed("ALTER", target, name if target != name else None)


def skip_wait(cursor: Cursor) -> None:
    """Go behind MariaDB's ``WAIT n`` and ``NOWAIT``."""
    if cursor.accept("WAIT"):
        cursor.take()
    else:
        cursor.accept("NOWAIT")


def _parse_clause(cursor: Cursor, clauses: Clauses, table: Table | None, draft: Draft) -> bool:
    """Take the clause that comes next; False if the rest of the statement doesn't matter."""
    if cursor.accept("ADD"):
        return _parse_add(cursor, clauses)
    if cursor.accept("DROP"):
        return _parse_drop(cursor, clauses, table)
    if cursor.accept("CHANGE"):
        cursor.accept("COLUMN")
        present = _if_exists(cursor)
        old = cursor.column_name()
        _define(clauses, old, parse_column(cursor), table, present)
    elif cursor.accept("MODIFY"):
        cursor.accept("COLUMN")
        present = _if_exists(cursor)
        definition = parse_column(cursor)
        _define(clauses, definition.name, definition, table, present)
    elif cursor.accept("RENAME"):
        _parse_rename(cursor, clauses)
    elif cursor.accept("ALTER"):
        _parse_alter(cursor, clauses)
    elif cursor.accept("CONVERT"):
        return _parse_convert(cursor, clauses, table, draft)
    elif cursor.accept("ORDER", "BY"):
        cursor.skip_item()
        while cursor.sees(",") and cursor.ahead(2).value in (",", "", "ASC", "DESC", ";"):
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


def _define(
    clauses: Clauses, old: str | None, definition: ColumnDefinition, table: Table | None, only_present: bool
) -> None:
    if only_present and old is not None and table is not None and _position(table.columns, old) is None:
        return
    clauses.defined.append((old, definition))
    clauses.keys += column_keys(definition)


def _if_exists(cursor: Cursor) -> bool:
    return cursor.accept("IF", "EXISTS")


def _parse_add(cursor: Cursor, clauses: Clauses) -> bool:
    if cursor.sees("PARTITION"):
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
        return True
    cursor.accept("COLUMN")
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.sees("("):
        elements = parse_elements(cursor)
        clauses.defined += [(None, definition) for definition in elements.columns]
        clauses.keys += elements.keys
        return True
    definition = parse_column(cursor)
    definition.if_not_exists = only_new
    _define(clauses, None, definition, None, False)
    return True


def _parse_drop(cursor: Cursor, clauses: Clauses, table: Table | None) -> bool:
    if cursor.sees("PARTITION") and cursor.ahead(1).value not in (",", ""):
        return False
    if cursor.accept("SYSTEM", "VERSIONING"):
        return True
    if cursor.accept("PERIOD", "FOR"):
        cursor.accept("IF", "EXISTS")
        cursor.take()
    elif cursor.accept("PRIMARY", "KEY"):
        clauses.dropped_keys.add(PRIMARY.lower())
    elif cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        clauses.dropped_keys.add(cursor.name().lower())
    elif cursor.accept("FOREIGN", "KEY") or cursor.accept("CHECK"):
        cursor.accept("IF", "EXISTS")
        cursor.name()
    elif cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "EXISTS")
        name = cursor.name().lower()
        if table is not None and any(index.unique and index.name.lower() == name for index in table.indexes):
            clauses.dropped_keys.add(name)
    else:
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
    elif cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        old = cursor.name()
        cursor.expect("TO")
        clauses.renamed_keys[old.lower()] = cursor.name()
    else:
        cursor.accept_any("TO", "AS", "=")
        clauses.renamed_to = cursor.table_name()


def _parse_alter(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        cursor.skip_item()
        return
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.column_name().lower()
    if cursor.accept("DROP", "DEFAULT"):
        clauses.edited.append((name, _without_default))
    elif cursor.accept("SET", "DEFAULT"):
        definition = ColumnDefinition(name, ColumnType("int", "INT"))
        parse_default(cursor, definition)
        clauses.edited.append((name, lambda column: _with_default(column, definition)))
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
    options = clauses.options
    options.charset = options.collation = None
    if cursor.accept("DEFAULT"):
        options.collation = (
            database_charset(draft, table.database, cursor) if table is not None else server_charset(cursor)
        ).collation
    else:
        options.charset = charset_name(cursor.string())
    if cursor.accept("COLLATE"):
        cursor.accept("=")
        options.collation = collation_name(cursor.string())
    clauses.converted = True
    return True


def _altered(table: Table, clauses: Clauses, cursor: Cursor) -> Table:
    old = Charset(table.charset or "utf8mb4", table.collation or "utf8mb4_general_ci")
    charset = clauses.options.chosen(old, cursor)
    options = clauses.options
    columns, names = _altered_columns(table, clauses, charset, cursor)
    indexes = []
    for index in table.indexes:
        kept = _altered_index(index, clauses, names)
        if kept is not None:
            indexes.append(kept)
    altered = replace(
        table,
        columns=tuple(columns),
        indexes=tuple(indexes),
        charset=charset.charset,
        collation=charset.collation,
        comment=table.comment if options.comment is None else options.comment or None,
    )
    return finished(altered, clauses.keys, clauses.periods)


def _altered_columns(
    table: Table, clauses: Clauses, charset: Charset, cursor: Cursor
) -> tuple[list[Column], dict[str, str]]:
    """Return the columns, and the new name of each old column that stays, by its old name."""
    redefined = {old.lower(): definition for old, definition in clauses.defined if old is not None}
    settle_timestamps([definition for _, definition in clauses.defined], cursor.session)
    columns: list[Column] = []
    names: dict[str, str] = {}
    for column in table.columns:
        key = column.name.lower()
        definition = redefined.get(key)
        if definition is not None:
            names[column.name] = definition.name
            if definition.place is None:
                columns.append(definition.column(charset, cursor))
            continue
        if key in clauses.dropped:
            continue
        old_name = column.name
        column = replace(column, name=clauses.renamed.get(key, old_name))
        names[old_name] = column.name
        for name, edit in clauses.edited:
            if name == key:
                column = edit(column)
        if clauses.converted:
            column = _converted(column, charset)
        columns.append(column)
    for old, definition in clauses.defined:
        if old is None:
            if definition.if_not_exists and _position(columns, definition.name) is not None:
                continue
            _place(columns, definition.column(charset, cursor), definition.place)
        elif definition.place is not None:
            _place(columns, definition.column(charset, cursor), definition.place)
    return columns, names


def _place(columns: list[Column], column: Column, place: str | None) -> None:
    if place is None:
        columns.append(column)
    elif place == "":
        columns.insert(int(bool(columns) and _is_generated_key(columns[0])), column)
    else:
        at = _position(columns, place)
        if at is None:
            raise DdlError(f"The statement puts a column after '{place}', which the table does not have.")
        columns.insert(at + 1, column)


def _is_generated_key(column: Column) -> bool:
    """Whether MySQL added the column to a table without a primary key (``sql_generate_invisible_primary_key``)."""
    return column.name == "my_row_id" and column.invisible and column.auto_increment


def _position(columns: list[Column] | tuple[Column, ...], name: str) -> int | None:
    wanted = name.lower()
    return next((at for at, column in enumerate(columns) if column.name.lower() == wanted), None)


def _altered_index(index: Index, clauses: Clauses, names: dict[str, str]) -> Index | None:
    key = index.name.lower()
    if key in clauses.dropped_keys:
        return None
    columns = tuple(names.get(column, "") for column in index.columns if column == "" or column in names)
    if not columns:
        return None
    return replace(index, name=clauses.renamed_keys.get(key, index.name), columns=columns)


def _without_default(column: Column) -> Column:
    return replace(column, default=None, default_kind="null" if column.optional else "none", written=None)


def _with_default(column: Column, definition: ColumnDefinition) -> Column:
    text, kind, written = definition.default, definition.default_kind, definition.written
    if kind == "literal" and text is not None:
        type_ = ColumnType(column.type, "", column.length, column.scale, zerofill=column.zerofill, values=column.values)
        kept = default_text(type_, definition.literal_kind, text)
        text, written = kept, written if written != kept else None
    return replace(column, default=text, default_kind=kind, written=written)


def _converted(column: Column, charset: Charset) -> Column:
    if column.charset is None:
        return column
    type_ = column.type
    if charset.charset == "binary":
        return replace(column, type=AS_BINARY.get(type_, type_), charset=None, collation=None)
    if max_bytes(charset.charset) > max_bytes(column.charset):
        type_ = _GROWN.get(type_, type_)
    return replace(column, type=type_, charset=charset.charset, collation=charset.collation)
