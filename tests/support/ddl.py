"""Running statements on a server and following them through its binlog, beside its information_schema."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql

from floodmark.connectors.mysql.binlog.queries import Query, parse_query
from floodmark.connectors.mysql.ddl import statements as ddl
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema import catalog
from floodmark.connectors.mysql.structures.session import Server, session_of, statement_text
from floodmark.connectors.mysql.structures.table import Column, Index, Table
from floodmark.errors import DdlError
from tests.support.mysql import MysqlServer

FOLDER = Path(__file__).parent.parent / "data" / "ddl"
QUERY_EVENT = 2
CHECKSUM = 4
# With empty parentheses it is an expression of MySQL's.
_NOW = re.compile(r"CURRENT_TIMESTAMP(\(\d\))?")
_END = re.compile(r";\n(?:\n|$)")
_TEMPORAL = frozenset({"time", "datetime", "timestamp"})
_DIGITLESS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_UNSIZED = frozenset(
    {"float", "double", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"}
)


def statements(name: str) -> list[str]:
    """Return the statements of a file of the corpus."""
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    return [part for part in _END.split(text) if part.strip()]


def comparable(table: Table, server: Server, any_key: bool = False) -> Table:
    """Return a structure without what information_schema doesn't tell, or tells in its own words.

    Args:
        any_key: whether any of the keys that a table without a primary key may have counts, in whatever order they are.
    """
    columns = tuple(_comparable_column(column, server) for column in table.columns)
    # It gives lengths to parts of indexes that are no keys, too, such as 32 to those over geometries.
    plain = (replace(index, lengths=index.lengths if index.unique else (), made=False) for index in table.indexes)
    if not any_key:
        return replace(table, columns=columns, indexes=tuple(sorted(plain, key=_order)))
    indexes = tuple(sorted(plain, key=lambda index: index.name.lower()))
    required = {column.name for column in table.columns if not column.optional}
    candidates = sorted(index.columns for index in indexes if index.unique and required.issuperset(index.columns))
    key = candidates[0] if not table.primary and table.key in candidates else table.key
    return replace(table, columns=columns, indexes=indexes, key=key)


def _order(index: Index) -> tuple[bool, bool, str]:
    """Sort what may be the key before the rest, of which the order doesn't matter."""
    candidate = index.unique and "" not in index.columns
    return not index.primary, not candidate, "" if candidate else index.name


def _comparable_column(column: Column, server: Server) -> Column:
    length, default, kind = column.length, column.default, column.default_kind
    flag = column.type == "tinyint" and length == 1 and not column.unsigned
    usual = (column.type, length) in (("char", 1), ("binary", 1), ("vector", 2048))
    if usual or (column.type in _DIGITLESS and not flag) or (column.type in _UNSIZED and column.scale is None):
        length = None
    if _NOW.fullmatch(str(default)):
        # MariaDB gives it the digits of the column now and then.
        default = "CURRENT_TIMESTAMP"
    elif column.default_kind == "expression":
        default = None
        # MySQL leaves out some, such as those of columns that are or were in the primary key.
        kind = kind if server.mariadb else "null" if column.optional else "none"
    if column.type == "float" and column.default_kind == "literal" and column.scale is None:
        # It is printed with fewer digits than it has.
        default = f"{float(column.default or 0):.5e}"
    scale = None if column.type in _TEMPORAL and column.scale == 0 else column.scale
    return replace(
        column,
        length=length,
        scale=scale,
        default=default,
        default_kind=kind,
        declared=None,
        written=None,
        updated_apart=False,
        no_default=False,
    )


class Follower:
    """Follows a server's binlog from now on.

    Args:
        server: the server.
        any_key: see :func:`comparable`.
    """

    def __init__(self, server: MysqlServer, any_key: bool = False) -> None:
        self.server = server
        self._any_key = any_key
        self.session: pymysql.Connection[Any] = server.connect()
        self.reader: pymysql.Connection[Any] = server.connect()
        self.info = catalog.read_server(self.reader)
        self.collations = catalog.read_collations(self.reader)
        self.schema = catalog.read_schema(self.reader, self.info)
        self._file, self._at = self._end()

    def close(self) -> None:
        """Close both sessions."""
        self.session.close()
        self.reader.close()

    def execute(self, statement: str) -> None:
        """Run a statement."""
        with self.session.cursor() as cursor:
            cursor.execute(statement)

    def follow(self) -> list[str]:
        """Apply what the log holds since the last time; return the statements."""
        texts = []
        for query in self.queries():
            text = statement_text(query, self.collations)
            texts.append(text)
            session = session_of(query, self.collations, self.info)
            if query.failed:
                text = ddl.done_by_failed(text, session, self.info)
            self.schema = ddl.apply(self.schema, text, session, self.info).schema
        return texts

    def compared(self) -> list[str]:
        """Follow the log and return the differences, or the statement that wasn't understood."""
        try:
            self.follow()
        except DdlError as error:
            self.schema = catalog.read_schema(self.reader, self.info)
            return [str(error)]
        return self.differences()

    def shown(self, table: Table) -> str:
        """Return the server's own statement that would make a table."""
        with self.reader.cursor() as cursor:
            cursor.execute(f"SHOW CREATE TABLE `{table.database}`.`{table.name}`")
            row = cursor.fetchone()
        assert row is not None
        return str(row[1])

    def queries(self) -> Iterator[Query]:
        """Yield the statements that the log holds since the last time."""
        file, end = self._end()
        assert file == self._file
        with (self.server.data / file).open("rb") as log:
            log.seek(self._at)
            data = log.read(end - self._at)
        self._at = end
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at + 9)
            if data[at + 4] == QUERY_EVENT:
                yield parse_query(data[at : at + size - CHECKSUM])
            at += size

    def differences(self) -> list[str]:
        """Return where the followed structures are not those of information_schema; begin again from these."""
        live = catalog.read_schema(self.reader, self.info)
        found = [
            f"{name}: {live.databases.get(name)} is {self.schema.databases.get(name)}"
            for name in sorted({*live.databases, *self.schema.databases})
            if live.databases.get(name) != self.schema.databases.get(name)
        ]
        for at in sorted({*live.tables, *self.schema.tables}):
            found += self._differences(live.tables.get(at), self.schema.tables.get(at))
        known = {at: self.schema.tables.get(at, table) for at, table in live.tables.items()}
        self.schema = Schema(live.databases, live.tables if found else known)
        return found

    def _end(self) -> tuple[str, int]:
        with self.reader.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS" if self.info.mariadb else "SHOW BINARY LOG STATUS")
            row = cursor.fetchone()
        assert row is not None
        return str(row[0]), int(row[1])

    def _differences(self, live: Table | None, followed: Table | None) -> list[str]:
        if live is None or followed is None:
            at = live or followed
            assert at is not None
            return [f"{at.database}.{at.name} is only {'on the server' if live else 'followed'}"]
        expected, found = (comparable(table, self.info, self._any_key) for table in (live, followed))
        if expected == found:
            return []
        name = f"{live.database}.{live.name}"
        lines = [
            f"{name}: {member} {getattr(expected, member)} is {getattr(found, member)}"
            for member in ("key", "charset", "collation", "comment", "indexes", "sequence")
            if getattr(expected, member) != getattr(found, member)
        ]
        names = [column.name for column in found.columns]
        if [column.name for column in expected.columns] != names:
            return [*lines, f"{name}: columns {[column.name for column in expected.columns]} are {names}"]
        for one, other in zip(expected.columns, found.columns, strict=True):
            if one != other:
                members = {
                    member: (getattr(one, member), getattr(other, member))
                    for member in one.__dataclass_fields__
                    if getattr(one, member) != getattr(other, member)
                }
                lines.append(f"{name}.{one.name}: {members}")
        return lines
