"""What TABLE_MAP events of real servers say of columns."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.binlog import column_types as tm
from floodmark.connectors.mysql.binlog.event_types import CHECKSUM_BYTES, TABLE_MAP, TYPE
from floodmark.connectors.mysql.binlog.segments import event_at
from floodmark.connectors.mysql.binlog.table_map import NUMERIC, TableMap, parse_table_map
from tests.support.binlog import Follower
from tests.support.mysql import MysqlServer

COLUMNS = {
    "t": "tinyint unsigned",
    "y": "year",
    "i": "int",
    "b": "bigint unsigned NOT NULL",
    "d": "decimal(10,3) unsigned",
    "f": "float unsigned",
    "g": "double",
    "n": "mediumint",
    "bits": "bit(13)",
    "c": "char(10) CHARACTER SET latin1",
    "long_c": "char(200)",
    "v": "varchar(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "vb": "varbinary(20)",
    "tx": "mediumtext CHARACTER SET ucs2",
    "bl": "blob",
    "e": "enum('one','zwei, drei','''')",
    "e2": "enum('x') CHARACTER SET latin1",
    "s": "set('a','b')",
    "j": "json",
    "p": "point",
    "geo": "geometry",
    "da": "date",
    "ti": "time(3)",
    "dt": "datetime(6)",
    "ts": "timestamp(2) NULL",
    "u": "smallint unsigned",
}
MORE = {"mysql": {"h": "int unsigned INVISIBLE", "ve": "vector(3)"}, "mariadb": {"h": "int unsigned INVISIBLE"}}
UNSIGNED = {"t", "b", "d", "f", "u", "h", "y"}
GEOMETRY, POINT = 0, 1


def table_map(server: MysqlServer, metadata: str, database: str) -> TableMap:
    columns = {**COLUMNS, **MORE[server.flavor]}
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    server.execute(
        f"DROP DATABASE IF EXISTS {database}",
        f"CREATE DATABASE {database} CHARACTER SET utf8mb4",
        f"CREATE TABLE {database}.kinds ({declared}, PRIMARY KEY (v(20), b))",
    )
    follower = Follower(server)
    try:
        server.execute(
            f"SET GLOBAL binlog_row_metadata = {metadata}", f"INSERT INTO {database}.kinds (b, v) VALUES (1, 'x')"
        )
    finally:
        server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")
    follower.to_end()
    follower.close()
    events = [
        event_at(cut.data.payload, at, CHECKSUM_BYTES) for cut in follower.cuts for at in cut.data.starts.tolist()
    ]
    return parse_table_map(next(event for event in events if event[TYPE] == TABLE_MAP), server.flavor)


def test_full_metadata(binlog_server: MysqlServer) -> None:
    found = table_map(binlog_server, "FULL", "full_metadata")
    assert (found.database, found.table) == ("full_metadata", "kinds")
    columns = {column.name: column for column in found.columns}
    assert list(columns) == [*COLUMNS, *MORE[binlog_server.flavor]]
    numeric = {name for name, column in columns.items() if column.type in NUMERIC}
    assert {name for name in numeric if columns[name].unsigned} == UNSIGNED
    assert all(columns[name].unsigned is not None for name in numeric)
    assert {name for name, column in columns.items() if not column.nullable} == {"b", "v"}
    assert (columns["v"].key, columns["v"].key_prefix) == (0, 20)
    assert (columns["b"].key, columns["b"].key_prefix) == (1, 0)
    assert [name for name, column in columns.items() if column.key is not None] == ["b", "v"]
    assert columns["e"].type == tm.ENUM
    assert columns["e"].labels == (b"one", b"zwei, drei", b"'")
    assert (columns["s"].type, columns["s"].labels) == (tm.SET, (b"a", b"b"))
    assert (columns["p"].geometry, columns["geo"].geometry) == (POINT, GEOMETRY)
    with binlog_server.connect() as session, session.cursor() as cursor:
        names = "COLLATIONS", "collation_name"
        if binlog_server.flavor == "mariadb":
            # A collation may belong to several character sets, and has a number in each.
            names = "COLLATION_CHARACTER_SET_APPLICABILITY", "full_collation_name"
        cursor.execute(
            f"SELECT column_name, id FROM information_schema.columns c JOIN information_schema.{names[0]} k "
            f"ON k.{names[1]} = c.collation_name WHERE table_schema = 'full_metadata'"
        )
        collations = dict(cursor.fetchall())
    if binlog_server.flavor == "mariadb":
        collations["j"] = columns["j"].collation  # JSON is a name for longtext there
    told = {name: column.collation for name, column in columns.items() if column.collation not in (None, 63)}
    assert told == collations
    assert columns["vb"].collation == columns["bl"].collation == 63
    if binlog_server.flavor == "mysql":
        assert [name for name, column in columns.items() if not column.visible] == ["h"]
        assert columns["j"].type == tm.JSON
        assert columns["ve"].dimensions == 3


@pytest.mark.parametrize(
    ("binlog_server", "metadata"),
    [("mysql", "MINIMAL"), ("mariadb", "MINIMAL"), ("mariadb", "NO_LOG")],
    indirect=["binlog_server"],
)
def test_less_metadata(binlog_server: MysqlServer, metadata: str) -> None:
    found = table_map(binlog_server, metadata, f"less_metadata_{metadata.lower()}")
    names = [*COLUMNS, *MORE[binlog_server.flavor]]
    assert len(found.columns) == len(names)
    assert all(column.name is None and column.key is None for column in found.columns)
    unsigned = {name for name, column in zip(names, found.columns, strict=True) if column.unsigned}
    assert unsigned == (UNSIGNED if metadata == "MINIMAL" else set())
    assert found.columns[names.index("e")].type == tm.ENUM
