"""``CREATE TABLE`` and the options of tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from floodmark.connectors.mysql.schema.charsets import charset_name, collation_name
from floodmark.connectors.mysql.schema.cursor import Cursor
from floodmark.connectors.mysql.schema.ddl_columns import ColumnDefinition, parse_column
from floodmark.connectors.mysql.schema.ddl_keys import KeyDefinition, arranged, parse_key, sees_key
from floodmark.connectors.mysql.schema.ddl_types import Charset, choose_charset
from floodmark.connectors.mysql.schema.schema import Draft
from floodmark.connectors.mysql.schema.table import PRIMARY, Column, Table, effective_key

_TWO_WORDS = ("DATA", "INDEX")
_OPTIONS = frozenset(
    [
        "ENGINE",
        "TYPE",
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "TABLE_CHECKSUM",
        "COMPRESSION",
        "CONNECTION",
        "DELAY_KEY_WRITE",
        "ENCRYPTION",
        "ENGINE_ATTRIBUTE",
        "SECONDARY_ENGINE_ATTRIBUTE",
        "SECONDARY_ENGINE",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PASSWORD",
        "ROW_FORMAT",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
        "TABLESPACE",
        "STORAGE",
        "AUTOEXTEND_SIZE",
        "TRANSACTIONAL",
        "PAGE_CHECKSUM",
        "PAGE_COMPRESSED",
        "PAGE_COMPRESSION_LEVEL",
        "ENCRYPTED",
        "ENCRYPTION_KEY_ID",
        "IETF_QUOTES",
        "SEQUENCE",
        "NODEGROUP",
    ]
)
_QUERY_STARTS = frozenset(["SELECT", "WITH", "VALUES", "TABLE", "AS", "IGNORE", "REPLACE"])
_SEQUENCE_COLUMNS = (
    *(
        Column(name, "bigint", length=21, optional=False)
        for name in ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment")
    ),
    Column("cache_size", "bigint", length=21, unsigned=True, optional=False),
    Column("cycle_option", "tinyint", length=1, unsigned=True, optional=False),
    Column("cycle_count", "bigint", length=21, optional=False),
)


@dataclass
class TableOptions:
    """What a statement says about a table as a whole; None is what it doesn't mention."""

    charset: str | None = None
    collation: str | None = None
    comment: str | None = None
    sequence: bool = False

    def chosen(self, default: Charset, cursor: Cursor) -> Charset:
        """Return the table's character set, given that of its database."""
        return choose_charset(self.charset, self.collation, default, cursor.server, cursor.session)


@dataclass
class Elements:
    """What stands in the parentheses of ``CREATE TABLE``."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[KeyDefinition] = field(default_factory=list)
    required: set[str] = field(default_factory=set)

    def add_column(self, definition: ColumnDefinition) -> None:
        """Take a column with the keys that its attributes make."""
        self.columns.append(definition)
        self.keys += column_keys(definition)


def column_keys(definition: ColumnDefinition) -> list[KeyDefinition]:
    """Return the keys that a column's own attributes make."""
    keys = []
    if definition.primary:
        keys.append(KeyDefinition(PRIMARY, (definition.name,), True))
    if definition.unique:
        keys.append(KeyDefinition(None, (definition.name,), True))
    return keys


def create_table(cursor: Cursor, draft: Draft, replacing: bool) -> None:
    """Apply ``CREATE TABLE``, of which the words before the name are taken already."""
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    database, name = cursor.table_name()
    if only_new and not replacing and (database, name) in draft.tables:
        return
    elements: Elements | None = None
    if cursor.accept("LIKE") or (cursor.sees("(", "LIKE") and cursor.accept("(", "LIKE")):
        _create_like(cursor, draft, database, name)
        return
    if cursor.sees("(") and cursor.ahead(1).value not in ("SELECT", "WITH", "("):
        elements = parse_elements(cursor)
    options = TableOptions()
    while parse_table_option(cursor, options):
        cursor.accept(",")
    if not cursor.sees("PARTITION"):
        cursor.accept("START", "TRANSACTION")
    if elements is None or cursor.sees_any(_QUERY_STARTS) or cursor.sees("("):
        cursor.fail("columns, which the log holds even for a table that is made from a query")
    if not cursor.sees("PARTITION") and not cursor.at_end():
        cursor.fail("an option of the table")
    charset = options.chosen(database_charset(draft, database, cursor), cursor)
    columns = [definition.column(charset, cursor) for definition in elements.columns]
    table = finished(
        Table(
            database,
            name,
            tuple(columns),
            charset=charset.charset,
            collation=charset.collation,
            comment=options.comment or None,
            sequence=options.sequence,
        ),
        elements.keys,
        elements.required,
    )
    draft.put(table)
    draft.changed("CREATE", (database, name))


def database_charset(draft: Draft, database: str, cursor: Cursor) -> Charset:
    """Return the default character set of a database."""
    return draft.databases.get(database) or server_charset(cursor)


def server_charset(cursor: Cursor) -> Charset:
    """Return the default character set of databases."""
    fallback = Charset("utf8mb4", cursor.server.default_collation("utf8mb4"))
    return choose_charset(None, cursor.session.collation, fallback, cursor.server, cursor.session)


def _create_like(cursor: Cursor, draft: Draft, database: str, name: str) -> None:
    origin = draft.find(cursor.table_name())
    if origin is not None:
        draft.put(replace(origin, database=database, name=name))
        draft.changed("CREATE", (database, name))


def parse_elements(cursor: Cursor) -> Elements:
    """Return the columns and keys in the parentheses that come next."""
    elements = Elements()
    cursor.expect("(")
    while True:
        if cursor.sees("PERIOD", "FOR"):
            elements.required |= parse_period(cursor)
        elif sees_key(cursor):
            key = parse_key(cursor)
            if key is not None:
                elements.keys.append(key)
        else:
            elements.add_column(parse_column(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return elements


def parse_period(cursor: Cursor) -> set[str]:
    """Return the columns of the period that comes next, in lower case: they can't be NULL."""
    cursor.expect("PERIOD", "FOR")
    cursor.name()
    cursor.expect("(")
    names = {cursor.name().lower()}
    cursor.expect(",")
    names.add(cursor.name().lower())
    cursor.expect(")")
    return names


def parse_table_option(cursor: Cursor, options: TableOptions) -> bool:
    """Take the option of a table that comes next; tell whether there was one."""
    begin = cursor.at
    cursor.accept("DEFAULT")
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept("CHARSET"):
        cursor.accept("=")
        options.charset = None if cursor.accept("DEFAULT") else charset_name(cursor.string())
        options.collation = None
        if options.charset is None:
            options.collation = server_charset(cursor).collation
    elif cursor.accept("COLLATE"):
        cursor.accept("=")
        options.collation = collation_name(cursor.string())
    elif cursor.accept("COMMENT"):
        cursor.accept("=")
        options.comment = cursor.string()
    elif cursor.accept("WITH", "SYSTEM", "VERSIONING"):
        pass
    elif cursor.accept("UNION"):
        cursor.accept("=")
        cursor.in_parentheses()
    elif cursor.next.value in _TWO_WORDS and cursor.ahead(1).value == "DIRECTORY":
        cursor.at += 2
        cursor.accept("=")
        cursor.take()
    elif cursor.sees_any(_OPTIONS) or (cursor.is_name() and cursor.ahead(1).value == "="):
        name = cursor.take().value
        cursor.accept("=")
        value = cursor.take()
        if name == "SEQUENCE":
            options.sequence = value.value == "1"
    else:
        cursor.at = begin
        return False
    return True


def finished(table: Table, keys: list[KeyDefinition], required: set[str] | None = None) -> Table:
    """Return a table with its new keys in place.

    Args:
        keys: those to add to the ones that it has.
        required: more columns that can't be NULL, in lower case.
    """
    forbidden = set(required or ())
    for key in keys:
        if key.name == PRIMARY:
            forbidden |= {column.lower() for column in key.columns}
    columns = table.columns
    if forbidden:
        columns = tuple(_required(column) if column.name.lower() in forbidden else column for column in columns)
    indexes = arranged(columns, table.indexes, keys)
    return replace(table, columns=columns, indexes=indexes, key=effective_key(columns, indexes))


def _required(column: Column) -> Column:
    kind = "none" if column.default_kind == "null" else column.default_kind
    return replace(column, optional=False, default_kind=kind)


def create_sequence(cursor: Cursor, draft: Draft) -> None:
    """Apply MariaDB's ``CREATE SEQUENCE``, of which the words before the name are taken already."""
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    database, name = cursor.table_name()
    if only_new and (database, name) in draft.tables:
        return
    charset = database_charset(draft, database, cursor)
    draft.put(
        Table(database, name, _SEQUENCE_COLUMNS, charset=charset.charset, collation=charset.collation, sequence=True)
    )
