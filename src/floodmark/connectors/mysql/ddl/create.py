"""Parses ``CREATE TABLE`` and the options of tables."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from floodmark.connectors.mysql.ddl.column_types import Charset, choose_charset
from floodmark.connectors.mysql.ddl.columns import parse_column
from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition, settle_timestamps, zero_time
from floodmark.connectors.mysql.ddl.keys import KeyDefinition, Sorting, arranged, parse_key, sees_key, sorting
from floodmark.connectors.mysql.ddl.schema import Draft
from floodmark.connectors.mysql.structures.charsets import DEFAULT, charset_of
from floodmark.connectors.mysql.structures.table import PRIMARY, Column, Table, effective_key

_TWO_WORDS = ("DATA", "INDEX")
_OPTIONS = words(
    "ENGINE TYPE AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM COMPRESSION CONNECTION DELAY_KEY_WRITE "
    "ENCRYPTION ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SECONDARY_ENGINE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS "
    "MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES TABLESPACE "
    "STORAGE AUTOEXTEND_SIZE TRANSACTIONAL PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL ENCRYPTED "
    "ENCRYPTION_KEY_ID IETF_QUOTES SEQUENCE NODEGROUP"
)
_QUERY_STARTS = words("SELECT WITH VALUES TABLE AS IGNORE REPLACE")
_BIGINT = Column("", "bigint", length=21, optional=False)
_SEQUENCE_COLUMNS = (
    replace(_BIGINT, name="next_not_cached_value"),
    replace(_BIGINT, name="minimum_value"),
    replace(_BIGINT, name="maximum_value"),
    replace(_BIGINT, name="start_value", comment="start value when sequences is created or value if RESTART is used"),
    replace(_BIGINT, name="increment", comment="increment value"),
    replace(_BIGINT, name="cache_size", unsigned=True),
    Column(
        "cycle_option",
        "tinyint",
        length=1,
        unsigned=True,
        optional=False,
        comment="0 if no cycles are allowed, 1 if the sequence should begin a new cycle when maximum_value is passed",
    ),
    replace(_BIGINT, name="cycle_count", comment="How many cycles have been done"),
)


_MOST_OF_COMMENT = 2048
"""The servers cut longer comments off if they don't refuse them."""


@dataclass
class TableOptions:
    """The options of a table in a statement; None for those that it doesn't mention."""

    charset: str | None = None
    collation: str | None = None
    comment: str | None = None
    sequence: bool = False

    def chosen(self, default: Charset, cursor: Cursor, of_database: Charset) -> Charset:
        """Return the table's character set, given what it has without these options, and that of its database."""
        if self.charset == DEFAULT:
            default = of_database
        return choose_charset(self.charset, self.collation, default, cursor.server, cursor.session)


@dataclass
class Elements:
    """The contents of the parentheses of ``CREATE TABLE``."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    keys: list[KeyDefinition] = field(default_factory=list)
    periods: dict[str, tuple[str, str]] = field(default_factory=dict)


def column_keys(definition: ColumnDefinition, cursor: Cursor) -> list[KeyDefinition]:
    """Return the keys that a column's own attributes define."""
    names: list[str | None] = [PRIMARY] if definition.primary else []
    if definition.unique and not (definition.primary and cursor.server.mariadb):
        names.append(None)
    columns, conditional = (definition.name,), definition.conditional
    keys = [KeyDefinition(name, columns, unique=True, if_not_exists=conditional) for name in names]
    if definition.foreign:
        keys.append(KeyDefinition(definition.foreign_name, columns, foreign=True, if_not_exists=conditional))
    return keys


def create_table(cursor: Cursor, draft: Draft, replacing: bool) -> None:
    """Apply ``CREATE TABLE``, whose words before the name are consumed already."""
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
    if elements is None or cursor.sees_any(_QUERY_STARTS) or cursor.sees("("):
        cursor.fail("columns, which the log holds even for a table that is made from a query")
    if not cursor.sees("PARTITION") and not cursor.at_end():
        cursor.fail("an option of the table")
    of_database = database_charset(draft, database, cursor)
    charset = options.chosen(of_database, cursor, of_database)
    settle_timestamps(elements.columns, cursor)
    columns = [definition.column(charset, cursor) for definition in elements.columns]
    end = next((definition.name for definition in elements.columns if definition.row_end), None)
    if end is not None:
        elements.keys = [_with_row_end(key, end) for key in elements.keys]
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
        sorting(cursor, elements.keys),
        elements.periods,
        {column.name for column in columns},
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
        how = Sorting.MARIADB if cursor.server.mariadb else Sorting.MYSQL
        draft.put(finished(replace(origin, database=database, name=name), [], how))
        draft.changed("CREATE", (database, name))


def parse_elements(cursor: Cursor, conditional: bool = False) -> Elements:
    """Parse the columns and keys in the parentheses that come next.

    Args:
        conditional: whether IF NOT EXISTS precedes them, which applies to each of the columns.
    """
    elements = Elements()
    cursor.expect("(")
    while True:
        if cursor.sees("PERIOD", "FOR"):
            elements.periods |= parse_period(cursor)
        elif sees_key(cursor):
            key = parse_key(cursor)
            if key is not None:
                elements.keys.append(key)
        else:
            definition = parse_column(cursor, conditional)
            elements.columns.append(definition)
            elements.keys += column_keys(definition, cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return elements


def parse_period(cursor: Cursor) -> dict[str, tuple[str, str]]:
    """Parse MariaDB's period that comes next; return its columns by its name, all in lower case."""
    cursor.expect("PERIOD", "FOR")
    name = cursor.name().lower()
    cursor.expect("(")
    begin = cursor.name().lower()
    cursor.expect(",")
    end = cursor.name().lower()
    cursor.expect(")")
    return {name: (begin, end)}


def chosen_before(charset: str | None, before: str | None, collation: str) -> str | None:
    """Return the character set that goes with a collation that follows other options.

    ``COLLATE DEFAULT`` means the default of the character set that an earlier option has chosen.

    Args:
        charset: the one of an earlier option.
        before: the collation of an earlier option.
        collation: the one that follows.
    """
    if collation == DEFAULT and charset is None and before is not None and before != DEFAULT:
        return charset_of(before)
    return charset


def parse_table_option(cursor: Cursor, options: TableOptions) -> bool:
    """Parse the option of a table that comes next; return whether there was one."""
    begin = cursor.at
    cursor.accept("DEFAULT")
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept("CHARSET"):
        cursor.accept("=")
        options.charset = cursor.charset()
    elif cursor.accept("COLLATE"):
        cursor.accept("=")
        collation = cursor.collation()
        options.charset = chosen_before(options.charset, options.collation, collation)
        options.collation = collation
    elif cursor.accept("COMMENT"):
        cursor.accept("=")
        options.comment = cursor.string()[:_MOST_OF_COMMENT]
    elif cursor.accept("WITH", "SYSTEM", "VERSIONING") or cursor.accept("START", "TRANSACTION"):
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


def _with_row_end(key: KeyDefinition, end: str) -> KeyDefinition:
    return replace(key, columns=(*key.columns, end)) if key.unique else key


def finished(
    table: Table,
    keys: list[KeyDefinition],
    how: Sorting,
    periods: Mapping[str, tuple[str, str]] | None = None,
    defined: Set[str] = frozenset(),
) -> Table:
    """Return a table with new keys added, and its indexes in the server's order.

    Args:
        keys: those to add to the ones that it has.
        periods: MariaDB's periods; their columns can't be NULL, and the name of one in a key means both of its columns.
        defined: columns that the statement defines.
    """
    periods = periods or {}
    forbidden = {column for period in periods.values() for column in period}
    keys = [replace(key, columns=_without_periods(key.columns, periods)) for key in keys]
    for columns in (table.primary, *(key.columns for key in keys if key.name == PRIMARY)):
        forbidden |= {column.lower() for column in columns}
    kept = table.columns
    if forbidden:
        kept = tuple(_required(column, how) if column.name.lower() in forbidden else column for column in kept)
    optional = {column.name for column in table.columns if column.optional}
    indexes = arranged(kept, table.indexes, keys, optional, how, defined)
    return replace(table, columns=kept, indexes=indexes, key=effective_key(kept, indexes))


def _without_periods(columns: tuple[str, ...], periods: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    expanded: list[str] = []
    for column in columns:
        begin_end = periods.get(column.lower())
        expanded += (begin_end[1], begin_end[0]) if begin_end else (column,)
    return tuple(expanded)


def _required(column: Column, how: Sorting) -> Column:
    kind = "none" if column.default_kind == "null" else column.default_kind
    updated = column.optional and kind == "none" and column.on_update and how is not Sorting.MYSQL
    if updated and not column.no_default:
        return replace(column, optional=False, default=zero_time(column.scale), default_kind="literal")
    return replace(column, optional=False, default_kind=kind)


def create_sequence(cursor: Cursor, draft: Draft) -> None:
    """Apply MariaDB's ``CREATE SEQUENCE``, whose words before the name are consumed already."""
    only_new = cursor.accept("IF", "NOT", "EXISTS")
    database, name = cursor.table_name()
    if only_new and (database, name) in draft.tables:
        return
    charset = database_charset(draft, database, cursor)
    draft.put(
        Table(database, name, _SEQUENCE_COLUMNS, charset=charset.charset, collation=charset.collation, sequence=True)
    )
