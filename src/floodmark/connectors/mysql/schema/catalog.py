"""Reads the structures of tables from information_schema of a live server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from floodmark.connectors.mysql.ddl.column_types import Charset, ColumnType, parse_type
from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.defaults import parse_default
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition
from floodmark.connectors.mysql.ddl.schema import Schema, TableId
from floodmark.connectors.mysql.ddl.temporal_literals import USUAL
from floodmark.connectors.mysql.server.connection import Connection, Row, run
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column, Index, Table, effective_key
from floodmark.errors import SourceStateError

SYSTEM_DATABASES = ("information_schema", "mysql", "performance_schema", "sys")

_WHERE = "TABLE_SCHEMA NOT IN ({}){{}}".format(", ".join(f"'{name}'" for name in SYSTEM_DATABASES))
_TABLES = """
    SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_COLLATION, TABLE_COMMENT
    FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE') AND {where}
"""
_COLUMNS = """
    SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COLUMN_DEFAULT, IS_NULLABLE, CHARACTER_SET_NAME,
           COLLATION_NAME, EXTRA, COLUMN_COMMENT, {srid}
    FROM information_schema.COLUMNS WHERE {where} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""
_INDEXES = """
    SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, {direction}
    FROM information_schema.STATISTICS WHERE {where} ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX
"""


def read_server(connection: Connection) -> Server:
    """Return the properties of the server that the grammar depends on."""
    asked = "SELECT VERSION(), @@lower_case_table_names, @@system_time_zone"
    ((version, folding, time_zone),) = _rows(connection, asked)
    collations = _rows(
        connection, "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"
    )
    chosen: dict[str, str] = dict(_rows(connection, "SHOW GLOBAL VARIABLES LIKE 'character_set_collations'"))
    # MariaDB 11.2 and later let the default collation of a character set be chosen.
    pairs = [pair.split("=") for pair in chosen.get("character_set_collations", "").split(",") if pair]
    numbers = [int("".join(filter(str.isdigit, part)) or 0) for part in version.split("-")[0].split(".")]
    major, minor, patch = [*numbers, 0, 0][:3]
    flavor = "mariadb" if "mariadb" in version.lower() else "mysql"
    number = major * 10000 + minor * 100 + patch
    return Server(flavor, number, {**dict(collations), **dict(pairs)}, bool(folding), str(time_zone))


def read_collations(connection: Connection) -> dict[int, str]:
    """Return the server's collations by their numbers."""
    query = "SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL"
    if not read_server(connection).mariadb:
        return dict(_rows(connection, query))
    full = "SELECT ID, FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    return dict(_rows(connection, f"{query} UNION {full} WHERE ID IS NOT NULL"))


def read_schema(connection: Connection, server: Server, tables: Sequence[TableId] | None = None) -> Schema:
    """Return the structures of all tables that are not the server's own.

    Args:
        tables: only these, by database and name, and no databases without one of them.
    """
    where = _where(connection, tables)
    # Some servers compare names without their case, so tables whose names differ only in that are found, too.
    wanted = None if tables is None or server.fold_names else set(tables)
    columns: dict[TableId, list[Column]] = defaultdict(list)
    srid = "NULL" if server.mariadb else "SRS_ID"
    for database, name, *rest in _rows(connection, _COLUMNS.format(where=where, srid=srid)):
        columns[database, name].append(_column(server, *rest))
    direction = "NULL" if server.mariadb else "COLLATION"
    indexes = _indexes(_rows(connection, _INDEXES.format(where=where, direction=direction)))
    found = {}
    for database, name, kind, collation, comment in _rows(connection, _TABLES.format(where=where)):
        at = (database, name)
        if at not in columns or (wanted is not None and at not in wanted):
            continue
        own = _in_order(connection, at, indexes.get(at, ()))
        found[at] = Table(
            database,
            name,
            tuple(columns[at]),
            effective_key(columns[at], own),
            collation.partition("_")[0] if collation else None,
            collation,
            comment or None,
            own,
            kind == "SEQUENCE",
        )
    return Schema(_databases(connection, {database for database, _ in found} if tables is not None else None), found)


def _where(connection: Connection, tables: Sequence[TableId] | None) -> str:
    if tables is None:
        return _WHERE.format("")
    pairs = ", ".join(f"({connection.escape(database)}, {connection.escape(name)})" for database, name in tables)
    return _WHERE.format(f" AND (TABLE_SCHEMA, TABLE_NAME) IN ({pairs})" if tables else " AND FALSE")


def _databases(connection: Connection, wanted: set[str] | None) -> dict[str, Charset]:
    rows = _rows(
        connection,
        "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA",
    )
    return {
        name: Charset(charset, collation)
        for name, charset, collation in rows
        if name not in SYSTEM_DATABASES and (wanted is None or name in wanted)
    }


def _rows(connection: Connection, query: str) -> Sequence[Row]:
    return run(connection, query, "reading what the server says of its tables")


def _column(
    server: Server,
    name: str,
    column_type: str,
    default: str | None,
    nullable: str,
    charset: str | None,
    collation: str | None,
    extra: str,
    comment: str,
    srid: int | None,
) -> Column:
    type_ = parse_type(Cursor(column_type, Session(), server))
    extra = (extra or "").upper()
    optional = nullable == "YES"
    of_characters = type_.of_characters and charset != "binary"
    generated = "stored" if "STORED GENERATED" in extra else "virtual" if "VIRTUAL GENERATED" in extra else None
    auto_increment = "AUTO_INCREMENT" in extra
    text, kind = (None, "none") if generated else _default(server, type_, default, extra)
    if kind == "none" and optional and generated is None and not auto_increment:
        kind = "null"
    if kind == "null" and not optional:
        kind = "none"
    return Column(
        name,
        type_.name,
        type_.length,
        type_.scale,
        type_.unsigned,
        type_.zerofill,
        charset if of_characters else None,
        collation if of_characters else None,
        optional,
        text,
        kind,
        auto_increment,
        generated,
        "INVISIBLE" in extra,
        comment or None,
        type_.values,
        srid,
        "ON UPDATE" in extra,
    )


def _default(server: Server, type_: ColumnType, default: str | None, extra: str) -> tuple[str | None, str]:
    if default is None:
        # After some ALTERs MySQL only shows that there is an expression.
        return None, "expression" if "DEFAULT_GENERATED" in extra else "none"
    if not server.mariadb:
        if type_.name in ("enum", "set") and default.startswith("0x"):
            # MySQL prints labels that have no character set as hexadecimal digits.
            default = bytes.fromhex(default[2:]).decode(errors="replace")
        if default.upper().startswith("CURRENT_TIMESTAMP"):
            return default.upper(), "expression"
        if type_.name == "binary" and default == "0x":
            default = ""
        return default, "expression" if "DEFAULT_GENERATED" in extra else "literal"
    definition = ColumnDefinition("", type_)
    parse_default(Cursor(default, Session(), server), definition)
    if definition.default_kind == "literal":
        return definition.literal(USUAL), "literal"
    return definition.default, definition.default_kind


def _indexes(rows: Iterable[Row]) -> dict[TableId, tuple[Index, ...]]:
    # Rows of tables whose names differ only in case are mixed.
    parts: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for database, table, name, *part in rows:
        parts[database, table, name].append(tuple(part))
    found: dict[TableId, list[Index]] = defaultdict(list)
    for (database, table, name), members in parts.items():
        columns = tuple(column or "" for _, column, _, _ in members)
        lengths = tuple(int(length or 0) for _, _, length, _ in members)
        descending = tuple(number for number, member in enumerate(members) if member[3] == "D")
        index = Index(name, columns, not int(members[0][0]), lengths if any(lengths) else (), descending=descending)
        found[database, table].append(index)
    return {table: tuple(indexes) for table, indexes in found.items()}


def _in_order(connection: Connection, table: TableId, indexes: Sequence[Index]) -> tuple[Index, ...]:
    """Return indexes in the server's own order, which matters if several could be the key, now or later."""
    if sum(index.unique and not index.primary for index in indexes) < 2:
        return tuple(indexes)
    database, name = (part.replace("`", "``") for part in table)
    try:
        shown = _rows(connection, f"SHOW INDEX FROM `{name}` FROM `{database}`")
    except SourceStateError:
        # It was dropped or renamed meanwhile: callers that need the structures of one moment read them twice.
        return tuple(indexes)
    order = {row[2]: number for number, row in enumerate(shown)}
    return tuple(sorted(indexes, key=lambda index: order.get(index.name, len(order))))
