"""The captured tables in the dictionary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.connectors.oracle.server.connection import Connection, run
from floodmark.connectors.oracle.sql import is_one_of
from floodmark.connectors.oracle.structures.table import Column, Table, column_of

# Debezium leaves out the same: nested tables, overflow segments of index-organized tables and their mapping tables,
# logs of materialized views, and what is in the recycle bin.
_TABLES = (
    "SELECT T.OWNER, T.TABLE_NAME, O.OBJECT_ID, O.DATA_OBJECT_ID, T.NUM_ROWS, T.BLOCKS, T.TEMPORARY, T.IOT_TYPE "
    "FROM ALL_TABLES T JOIN ALL_OBJECTS O ON O.OWNER = T.OWNER AND O.OBJECT_NAME = T.TABLE_NAME AND "
    "O.OBJECT_TYPE = 'TABLE' WHERE T.NESTED = 'NO' AND T.TABLE_NAME NOT LIKE 'SYS_IOT_OVER_%' AND "
    "T.TABLE_NAME NOT LIKE 'BIN$%' AND T.TABLE_NAME NOT LIKE 'MLOG$%' AND T.TABLE_NAME NOT LIKE 'RUPD$%' AND "
    "T.TABLE_NAME NOT LIKE 'SYS_IOT_MAP_%' AND T.TABLE_NAME NOT LIKE 'MDRT_%' AND T.TABLE_NAME NOT LIKE 'MDRS_%' AND "
    "(T.IOT_TYPE IS NULL OR T.IOT_TYPE = 'IOT')"
)
_COLUMNS = (
    "SELECT OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE, NULLABLE, CHAR_LENGTH, DATA_LENGTH, DATA_PRECISION, DATA_SCALE, "
    "DATA_DEFAULT, VIRTUAL_COLUMN, IDENTITY_COLUMN FROM ALL_TAB_COLS WHERE HIDDEN_COLUMN = 'NO' AND {owners} "
    "ORDER BY OWNER, TABLE_NAME, COLUMN_ID"
)
_KEYS = (
    "SELECT C.OWNER, C.TABLE_NAME, L.COLUMN_NAME, C.CONSTRAINT_NAME FROM ALL_CONSTRAINTS C JOIN ALL_CONS_COLUMNS L ON "
    "L.OWNER = C.OWNER AND L.CONSTRAINT_NAME = C.CONSTRAINT_NAME AND L.TABLE_NAME = C.TABLE_NAME "
    "WHERE C.CONSTRAINT_TYPE = 'P' AND {owners} ORDER BY C.OWNER, C.TABLE_NAME, L.POSITION"
)
_BLOCK_BYTES = 8192
"""The usual size of a block; only how large a table is depends on it."""
_VIRTUAL = 8
"""Where a row of ``_COLUMNS`` has ``VIRTUAL_COLUMN``, behind the names of the table."""
Name = tuple[str, str]


@dataclass(frozen=True)
class StoredTable:
    """A table of the dictionary.

    Attributes:
        table: its structure.
        number: its ``OBJECT_ID``.
        segment: its ``DATA_OBJECT_ID``, which changes when its rows get other places; 0: each partition has its own.
        rows: about how many rows it has.
        size: about how many bytes they take.
        is_temporary: whether its rows are each session's own, so that no log has them.
        is_index: whether its rows are in an index, so that they have no ROWIDs that ranges could be made of.
    """

    table: Table
    number: int
    segment: int
    rows: int
    size: int
    is_temporary: bool = False
    is_index: bool = False

    @property
    def name(self) -> Name:
        """Its schema and its name."""
        return self.table.owner, self.table.name

    @property
    def full_name(self) -> str:
        """``schema.table``."""
        return f"{self.table.owner}.{self.table.name}"


def read_tables(conn: Connection, database: str, wanted: Callable[[str, str], bool]) -> list[StoredTable]:
    """Return tables with their structures, by their names.

    Args:
        conn: a connection to the database that has them.
        database: what events name as the database.
        wanted: returns whether a table is wanted, by its schema and its name.

    Raises:
        PrivilegeError: the account may not read the dictionary.
    """
    found = [row for row in run(conn, _TABLES, "reading the list of tables") if wanted(row[0], row[1])]
    if not found:
        return []
    owners = sorted({row[0] for row in found})
    columns = _grouped(run(conn, _COLUMNS.format(owners=is_one_of("OWNER", owners)), "reading the tables' columns"))
    keys = _grouped(run(conn, _KEYS.format(owners=is_one_of("C.OWNER", owners)), "reading the tables' keys"))
    return [_stored(row, database, columns, keys) for row in sorted(found)]


def _stored(
    row: Sequence[Any], database: str, columns: dict[Name, list[Any]], keys: dict[Name, list[Any]]
) -> StoredTable:
    owner, name, number, segment, rows, blocks, temporary, kind = row
    found, logged = columns.get((owner, name), []), keys.get((owner, name), [])
    key = tuple(str(column) for column, _ in logged)
    table = Table(
        database,
        owner,
        name,
        tuple(_column(one) for one in found if one[_VIRTUAL] != "YES"),
        key,
        str(logged[0][1]) if logged else None,
        tuple(str(one[0]) for one in found if one[_VIRTUAL] == "YES"),
    )
    size = int(blocks or 0) * _BLOCK_BYTES
    return StoredTable(table, int(number), int(segment or 0), int(rows or 0), size, temporary == "Y", kind is not None)


def _column(row: Sequence[Any]) -> Column:
    name, kind, nullable, characters, length, precision, scale, default, _, identity = row
    numbers = int(characters or 0), int(length or 0), _whole(precision), _whole(scale)
    # What numbers an identity column isn't its default, though the dictionary says so.
    shown = None if default is None or identity == "YES" else str(default).strip()
    return column_of(name, kind, nullable, *numbers, shown, None, identity or "NO")


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Name, list[Any]]:
    found: dict[Name, list[Any]] = defaultdict(list)
    for owner, table, *rest in rows:
        found[owner, table].append(tuple(rest))
    return found
