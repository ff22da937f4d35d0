"""Applies the statements of the log to the structures of the tables."""

from __future__ import annotations

from dataclasses import replace

from floodmark.connectors.mysql.ddl.alter import alter_table, skip_wait
from floodmark.connectors.mysql.ddl.clauses import as_it_was
from floodmark.connectors.mysql.ddl.column_types import Charset, choose_charset
from floodmark.connectors.mysql.ddl.create import chosen_before, create_sequence, create_table, finished, server_charset
from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.definition import settle_timestamps
from floodmark.connectors.mysql.ddl.keys import (
    KeyDefinition,
    parse_parts,
    says_hash,
    skip_index_options,
    sorting,
    without_void,
)
from floodmark.connectors.mysql.ddl.schema import Applied, Change, Draft, Schema, TableId
from floodmark.connectors.mysql.ddl.tokens import first_word
from floodmark.connectors.mysql.structures.charsets import DEFAULT
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column, Index, Table
from floodmark.errors import DdlError

_SHOWN = 200
_MATTERING = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "OPTIMIZE", "SET"})


def apply(schema: Schema, text: str, session: Session, server: Server) -> Applied:
    """Apply a statement to a schema.

    Args:
        text: the statement, as the log holds it.
        session: the state of the session that ran it.

    Raises:
        DdlError: it changes tables in a way that is not understood.
    """
    if first_word(text, session, server) not in _MATTERING:
        return Applied(schema)
    draft = Draft(schema)
    try:
        cursor = Cursor(text, session, server)
        _dispatch(cursor, draft)
        draft.changes = [_stated(change, cursor) for change in draft.changes]
    except DdlError as error:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
        raise DdlError(f"{error.what} The statement is: {shown}") from None
    return draft.applied()


def done_by_failed(text: str, session: Session, server: Server) -> str:
    """Return the statement for what a failed statement of the log has done.

    MariaDB first drops the table that ``CREATE OR REPLACE TABLE`` replaces. If it then can't make the new one, it logs
    the statement as it is, with an error.

    Args:
        text: the statement, as the log holds it.
        session: the state of the session that ran it.

    Raises:
        DdlError: it is not understood.
    """
    if first_word(text, session, server) not in _MATTERING:
        return text
    cursor = Cursor(text, session, server)
    cursor.skip_settings()
    replaces = cursor.take().value == "CREATE" and cursor.accept("OR", "REPLACE") and cursor.accept("TABLE")
    return f"DROP TABLE IF EXISTS {_quoted(cursor.table_name())}" if replaces else text


def _stated(change: Change, cursor: Cursor) -> Change:
    return change if change.statement is not None else replace(change, statement=cursor.statement())


def _dispatch(cursor: Cursor, draft: Draft) -> None:
    cursor.skip_settings()
    first = cursor.take().value
    if first == "CREATE":
        _create(cursor, draft)
    elif first == "ALTER":
        cursor.accept_any("ONLINE", "OFFLINE")
        cursor.accept("IGNORE")
        if cursor.accept("TABLE"):
            draft.understood = True
            alter_table(cursor, draft)
        elif cursor.accept_any("DATABASE", "SCHEMA"):
            draft.understood = True
            _alter_database(cursor, draft)
    elif first == "DROP":
        _drop(cursor, draft)
    elif first == "RENAME":
        if cursor.accept_any("TABLE", "TABLES"):
            draft.understood = True
            _rename_tables(cursor, draft)
    elif first == "TRUNCATE":
        cursor.accept("TABLE")
        name = cursor.table_name()
        draft.changed("TRUNCATE", name)
    elif first == "OPTIMIZE" and not cursor.server.mariadb:
        _optimize(cursor, draft)


def _create(cursor: Cursor, draft: Draft) -> None:
    replacing = cursor.accept("OR", "REPLACE")
    if cursor.accept("TEMPORARY"):
        return
    if cursor.accept("TABLE"):
        draft.understood = True
        create_table(cursor, draft, replacing)
    elif cursor.accept_any("DATABASE", "SCHEMA"):
        draft.understood = True
        _create_database(cursor, draft)
    elif cursor.accept("SEQUENCE"):
        create_sequence(cursor, draft)
    else:
        cursor.accept_any("ONLINE", "OFFLINE")
        unique = cursor.accept("UNIQUE")
        if not unique:
            cursor.accept_any("FULLTEXT", "SPATIAL", "VECTOR")
        if cursor.accept("INDEX"):
            draft.understood = True
            _create_index(cursor, draft, unique, replacing)


def _create_index(cursor: Cursor, draft: Draft, unique: bool, replacing: bool) -> None:
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    begin = cursor.at
    name = cursor.name()
    if cursor.accept("USING") or cursor.accept("TYPE"):
        cursor.take()
    cursor.expect("ON")
    table = draft.find(cursor.table_name())
    skip_wait(cursor)
    columns, lengths, descending = parse_parts(cursor)
    skip_index_options(cursor)
    if table is not None:
        hashed = says_hash(cursor, begin)
        key = KeyDefinition(name, columns, unique, lengths, False, hashed, only_new, descending)
        keys = without_void([key], table.indexes)
        kept = _without_index(table, name) if replacing else table.indexes
        changed = finished(_settled(replace(table, indexes=kept), cursor), keys, sorting(cursor, keys))
        draft.put(as_it_was(changed, table, cursor) if replacing else changed)
        draft.changed("ALTER", (table.database, table.name), quiet=True)


def _drop(cursor: Cursor, draft: Draft) -> None:
    if cursor.accept("TEMPORARY"):
        return
    if cursor.accept_any("TABLE", "TABLES"):
        draft.understood = True
        _drop_tables(cursor, draft)
    elif cursor.accept("SEQUENCE"):
        _drop_tables(cursor, draft)
        draft.changes.clear()
    elif cursor.accept_any("DATABASE", "SCHEMA"):
        draft.understood = True
        cursor.accept("IF", "EXISTS")
        draft.drop_database(cursor.database_name())
        draft.made = True
    else:
        cursor.accept_any("ONLINE", "OFFLINE")
        if cursor.accept("INDEX"):
            draft.understood = True
            _drop_index(cursor, draft)


def _drop_tables(cursor: Cursor, draft: Draft) -> None:
    cursor.accept("IF", "EXISTS")
    begin = cursor.slice(0, cursor.at - 1)
    names = [cursor.table_name()]
    while cursor.accept(","):
        names.append(cursor.table_name())
    how = cursor.accept_any("RESTRICT", "CASCADE")
    for name in names:
        if name not in draft.tables:
            draft.unknown.append(name)
        draft.drop(name)
        draft.changed("DROP", name, statement=f"{begin} {_quoted(name)}" + (f" {how}" if how else ""))


def _quoted(table: TableId) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in table)


def _drop_index(cursor: Cursor, draft: Draft) -> None:
    cursor.accept("IF", "EXISTS")
    name = cursor.name()
    cursor.expect("ON")
    table = draft.find(cursor.table_name())
    if table is not None:
        table = replace(table, indexes=_without_index(table, name))
        draft.put(finished(_settled(table, cursor), [], sorting(cursor, [])))
        draft.changed("ALTER", (table.database, table.name), quiet=True)


def _optimize(cursor: Cursor, draft: Draft) -> None:
    """Sort the indexes of tables that MySQL makes anew."""
    cursor.accept_any("LOCAL", "NO_WRITE_TO_BINLOG")
    if not cursor.accept_any("TABLE", "TABLES"):
        return
    while True:
        table = draft.find(cursor.table_name())
        if table is not None:
            made = finished(table, [], sorting(cursor, []))
            if made != table:
                draft.put(made)
                draft.changed("ALTER", (table.database, table.name), quiet=True)
        if not cursor.accept(","):
            return


def _settled(table: Table, cursor: Cursor) -> Table:
    columns = (column for column in settle_timestamps(table.columns, cursor) if isinstance(column, Column))
    return replace(table, columns=tuple(columns))


def _without_index(table: Table, name: str) -> tuple[Index, ...]:
    return tuple(index for index in table.indexes if index.name.lower() != name.lower())


def _rename_tables(cursor: Cursor, draft: Draft) -> None:
    cursor.accept("IF", "EXISTS")
    begin = cursor.slice(0, cursor.at - 1)
    while True:
        first = cursor.at
        old = cursor.table_name()
        shown = cursor.slice(first, cursor.at - 1)
        skip_wait(cursor)
        cursor.expect("TO")
        first = cursor.at
        new = cursor.table_name()
        shown = f"{begin} {shown} TO {cursor.slice(first, cursor.at - 1)}"
        table = draft.find(old)
        if table is not None:
            draft.drop(old)
            draft.put(replace(table, database=new[0], name=new[1]))
            draft.changed("ALTER", new, old, shown)
        if not cursor.accept(","):
            break


def _create_database(cursor: Cursor, draft: Draft) -> None:
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.database_name()
    draft.database, draft.made = name, True
    if only_new and name in draft.databases:
        return
    draft.set_database(name, _database_options(cursor, server_charset(cursor)))


def _alter_database(cursor: Cursor, draft: Draft) -> None:
    options = frozenset({"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT", "ENCRYPTION", "READ", "UPGRADE"})
    name = cursor.session.database if cursor.sees_any(options) else cursor.database_name()
    draft.set_database(name, _database_options(cursor, draft.databases.get(name) or server_charset(cursor)))


def _database_options(cursor: Cursor, before: Charset) -> Charset:
    charset: str | None = None
    collation: str | None = None
    while not cursor.at_end():
        cursor.accept("DEFAULT")
        if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            cursor.accept("=")
            charset = cursor.charset()
        elif cursor.accept("COLLATE"):
            cursor.accept("=")
            earlier, collation = collation, cursor.collation()
            charset = chosen_before(charset, earlier, collation)
        else:
            cursor.take()
    if charset == DEFAULT:
        before = server_charset(cursor)
    return choose_charset(charset, collation, before, cursor.server, cursor.session)
