"""What a snapshot of MySQL or MariaDB announces of its tables, while others drop and rename them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.mysql.schema.catalog import read_schema
from floodmark.connectors.mysql.snapshot import read_points
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "announced"
NEIGHBOUR = "announced_beside"
"""Another database; other files leave some, too."""
QUERIES: list[InProcess] = []


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"DROP DATABASE IF EXISTS {NEIGHBOUR}",
        f"CREATE DATABASE {NEIGHBOUR}",
        f"CREATE TABLE {NEIGHBOUR}.t (id int PRIMARY KEY)",
        f"CREATE TABLE {NEIGHBOUR}.neighbours (id int PRIMARY KEY)",
        f"USE {DATABASE}",
        "CREATE TABLE t (id int PRIMARY KEY, v int COMMENT 'told')",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE TABLE _t_gho (id int PRIMARY KEY, v int, made int DEFAULT 7)",
        "CREATE TABLE other (id int PRIMARY KEY)",
    )
    if binlog_server.flavor == "mariadb":
        # Else whoever alters a table waits for the snapshot's view.
        binlog_server.execute(f"GRANT BINLOG ADMIN ON *.* TO {binlog_server.user}")
    yield binlog_server
    for query in QUERIES:
        # Else a test that failed would hold its tables.
        query.stop()
    QUERIES.clear()
    binlog_server.execute(f"DROP DATABASE {DATABASE}", f"DROP DATABASE {NEIGHBOUR}")


def query_of(server: MysqlServer, directory: Path, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
    given = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory / "state"),
        "table.include.list": rf"{DATABASE}\.t",
        "database.include.list": DATABASE,
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    QUERIES.append(InProcess(given, offset))
    return QUERIES[-1]


def swap(server: MysqlServer) -> None:
    """End a schema change as online tools do."""
    server.execute(
        "INSERT INTO _t_gho (id, v) SELECT id, v FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
        "DROP TABLE other",
        database=DATABASE,
    )


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the announced changes without the time at which they were made."""
    values = [json.loads(row["value"]) for row in rows if row["topic"] == "p"]
    return [{**value, "ts_ms": 0} for value in values]


def made(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the statements that make this database's tables, as they were announced; the server has others, too."""
    return {
        change["id"].split('"')[3]: value["ddl"]
        for value in told(rows)
        for change in value["tableChanges"]
        if change["type"] == "CREATE" and change["id"].split('"')[1] == DATABASE
    }


def plan(query: InProcess) -> dict[str, Any]:
    return query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())


def test_tables_are_announced_as_of_the_read_point_and_the_same_again(shop: MysqlServer, tmp_path: Path) -> None:
    query = query_of(shop, tmp_path)
    end = plan(query)
    swap(shop)
    rows = query.run(end)
    before = query.offset
    query.stop()
    again = query_of(shop, tmp_path, before)
    assert told(again.run(end)) == told(rows)
    assert set(made(rows)) == {"t", "_t_gho", "other"}
    assert "`made`" not in made(rows)["t"]
    again.offset = end
    rows += again.drain()
    again.stop()
    after = {json.loads(row["key"])["id"]: json.loads(row["value"])["after"] for row in rows if row["table"] == "t"}
    assert after == {1: {"id": 1, "v": 1, "made": 7}, 2: {"id": 2, "v": 2, "made": 7}}
    assert not list((tmp_path / "state").rglob("*.announced"))


def test_what_is_announced_is_lost(shop: MysqlServer, tmp_path: Path) -> None:
    query = query_of(shop, tmp_path)
    end = plan(query)
    expected = told(query.run(end))
    before = query.offset
    query.stop()
    (found,) = (tmp_path / "state").rglob("*.announced")
    found.write_bytes(found.read_bytes()[:-20])
    again = query_of(shop, tmp_path, before)
    assert told(again.run(end)) == expected
    found.unlink()
    swap(shop)
    # What is there no more, or is another table by now, is left out; the others are announced.
    rows = again.run(end)
    again.offset = end
    rows += again.drain()
    again.stop()
    assert "other" not in made(rows)
    assert {json.loads(row["key"])["id"] for row in rows if row["table"] == "t"} == {1, 2}


@pytest.mark.parametrize("locking", ["minimal", "extended"])
@pytest.mark.parametrize("swaps", [1, 3])
def test_tables_change_while_the_read_point_is_opened(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locking: str, swaps: int
) -> None:
    """A table is gone between the look at the structures and the question how it was made."""
    monkeypatch.setattr(read_points, "STRUCTURE_S", 0.0)
    monkeypatch.setattr(read_points, "STRUCTURE_TRIES", 2)
    todo = list(range(swaps))

    def look(*args: Any) -> Any:
        found = read_schema(*args)
        if todo and locking == "minimal":
            todo.pop()
            shop.execute("DROP TABLE IF EXISTS other", "CREATE TABLE IF NOT EXISTS _t_gho LIKE t", database=DATABASE)
            swap_names(shop)
        return found

    monkeypatch.setattr(read_points, "read_schema", look)
    query = query_of(shop, tmp_path, snapshot_locking_mode=locking)
    rows = query.drain()
    query.stop()
    assert sum("`t`" in text.split("(")[0] for text in made(rows).values()) == 1
    assert {json.loads(row["key"])["id"] for row in rows if row["table"] == "t"} == {1, 2}


def swap_names(server: MysqlServer) -> None:
    server.execute(
        "DELETE FROM _t_gho",
        "INSERT INTO _t_gho (id, v) SELECT id, v FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
        database=DATABASE,
    )


def test_a_table_that_the_server_refuses_to_tell_of_is_one_tables_matter(shop: MysqlServer, tmp_path: Path) -> None:
    # Its files are gone, so the server lists the table and refuses to say how it was made.
    shop.execute("CREATE TABLE broken (id int) ENGINE=MyISAM", "FLUSH TABLES", database=DATABASE)
    (shop.data / DATABASE / "broken.MYI").unlink()
    (shop.data / DATABASE / "broken.MYD").unlink()
    query = query_of(shop, tmp_path)
    rows = query.drain()
    query.stop()
    assert {json.loads(row["key"])["id"] for row in rows if row["table"] == "t"} == {1, 2}
    assert {"t", "other"} <= set(made(rows))
