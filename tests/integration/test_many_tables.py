"""Many small tables of MySQL and MariaDB: few micro-batches and tasks, and a table that fails is one table's matter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.changes.table_version import EventVersions
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.spark.stream import partitions
from floodmark.spark.stream.partitions import AnnouncementPartition, WindowPartition
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "many"
COUNT = 100


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    for number in range(COUNT):
        binlog_server.execute(
            f"CREATE TABLE t{number:03} (id int PRIMARY KEY, v int)",
            # Some are empty.
            f"INSERT INTO t{number:03} SELECT {number}, 1 FROM DUAL WHERE {number} % 10 <> 3",
            database=DATABASE,
        )
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


@pytest.fixture
def query(shop: MysqlServer, tmp_path: Path) -> Iterator[InProcess]:
    given = {
        **shop.options(),
        "topic.prefix": "p",
        "state.dir": str(tmp_path),
        "table.include.list": rf"{DATABASE}\..*",
        "snapshot.batch.target.ms": "60000",
    }
    made = InProcess(given)
    yield made
    made.stop()


def names(options: dict[str, str]) -> list[str]:
    """Return the names of the captured tables, which must be those of the tables as they are described."""
    connector = connector_module(options["connector"], "connector").make_source(load_options(options))
    try:
        found = connector.tables.names()
        assert sorted(set(found)) == sorted({table.published for table in connector.tables.captured()})
    finally:
        connector.close()
    return sorted(set(found))


def test_names_are_those_of_the_tables(shop: MysqlServer, source: Source, tmp_path: Path) -> None:
    shop.execute("CREATE VIEW v AS SELECT * FROM t001", "CREATE TABLE other (id int)", database=DATABASE)
    if shop.flavor == "mariadb":
        shop.execute("CREATE SEQUENCE s", "CREATE TABLE u (id int) WITH SYSTEM VERSIONING", database=DATABASE)
    given = {
        **shop.options(),
        "topic.prefix": "p",
        "state.dir": str(tmp_path),
        "table.include.list": rf"{DATABASE}\.t00[12],{DATABASE}\.[suv]",
    }
    versioned = [f"{DATABASE}.u"] if shop.flavor == "mariadb" else []
    assert names(given) == [f"{DATABASE}.t001", f"{DATABASE}.t002", *versioned]
    source.execute(
        "CREATE TABLE a (id integer)",
        "CREATE VIEW v AS SELECT * FROM a",
        "CREATE TABLE p (id integer) PARTITION BY LIST (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "CREATE UNLOGGED TABLE u (id integer)",
    )
    assert names(source.options) == ["public.a", "public.p1"]
    assert names({**source.options, "publish.via.partition.root": "true"}) == ["public.a", "public.p"]


def plan(query: InProcess) -> dict[str, Any]:
    return query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())


def keys(rows: list[dict[str, Any]]) -> list[int]:
    return [json.loads(row["value"])["after"]["id"] for row in rows if row["op"] == "r"]


FULL = [number for number in range(COUNT) if number % 10 != 3]


def test_small_tables_share_micro_batches_and_tasks(query: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MOST_ANNOUNCED", 10_000)
    rows: list[dict[str, Any]] = []
    tasks: list[WindowPartition] = []
    while (end := plan(query))["snapshot"] is not None:
        made = query.reader.partitions(query.offset, end)
        tasks += [task for task in made if isinstance(task, WindowPartition)]
        told = [task for task in made if isinstance(task, AnnouncementPartition)]
        # What is announced is too large for one task.
        assert not told or len(told) > 3
        rows += query.run(end)
        query.offset = end
    assert sorted(keys(rows)) == FULL
    assert len(tasks) <= 5
    assert query.batches <= 2
    announced = [json.loads(row["value"])["ddl"] for row in rows if row["topic"] == "p"]
    assert sum(ddl.startswith("CREATE TABLE") for ddl in announced) >= COUNT


def test_tables_that_fail_are_set_aside_and_no_others(query: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    made = EventVersions.__call__

    def make(self: EventVersions, structure: Any) -> Any:
        if structure.table in ("t005", "t042"):
            raise ValueError("nobody knows this type")
        return made(self, structure)

    monkeypatch.setattr(EventVersions, "__call__", make)
    rows = query.drain()
    assert sorted(keys(rows)) == [number for number in FULL if number not in (5, 42)]
    assert {table["name"] for table in query.offset["aside"]} == {f"{DATABASE}.t005", f"{DATABASE}.t042"}
