"""Snapshots of MySQL's and MariaDB's tables through the engine: read in one process, decoded in tasks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark.capture.store import SegmentStore
from floodmark.changes.table_version import EventVersions
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.connector import BinlogSource
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.snapshot.reader import BinlogRowReader
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.notifications.records import IncrementalSnapshotNotifications, InitialSnapshotNotifications, Notification
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import ExcludedTables
from floodmark.snapshots.incremental.batch_sizing import BatchSizing
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.snapshots.incremental.windows import WindowEngine, make_engine
from floodmark.snapshots.initial import read_ahead
from floodmark.snapshots.initial.read_ahead import ReadAheadEngine, make_snapshot_engine
from floodmark.snapshots.reports import TaskReports
from floodmark.snapshots.state import RANGE_UNITS, SnapshotState
from tests.support.mysql import MysqlServer

DATABASE = "snapshots"


class Reader:
    """A source's snapshots, without its log."""

    def __init__(self, server: MysqlServer, directory: Path, options: dict[str, str]) -> None:
        given = {
            **server.options(),
            "topic.prefix": "p",
            "state.dir": str(directory),
            "table.include.list": f"{DATABASE}\\..*",
            **options,
        }
        loaded = load_options(given)
        assert isinstance(loaded, BinlogOptions)
        self.options = loaded
        self.source = BinlogSource(loaded)
        self.told: list[Notification] = []
        self.store = SegmentStore(loaded.state_dir, "owner", "run")
        self.store.create()
        self._reader = BinlogRowReader(loaded, EventVersions(loaded))

    def context(self) -> SnapshotContext:
        return SnapshotContext(self.source, self.told.append, ExcludedTables())

    def events(self, chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
        """Return the events of chunks, as tasks make them."""
        found: list[dict[str, Any]] = []
        for chunk in pickle.loads(pickle.dumps(chunks)):
            batches = self._reader.read(chunk, map(self.store.read, chunk.files), [])
            found += pa.Table.from_batches(list(batches), EVENT_SCHEMA).to_pylist()
        return found

    def close(self) -> None:
        self.source.close()


class Initial:
    """An initial snapshot, planned and run here."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.engine = self._new_engine()
        self.state = self.engine.begin(reader.source.snapshots.open())
        self.rows: list[dict[str, Any]] = []
        BEGUN.append(self)

    def _new_engine(self) -> ReadAheadEngine:
        notifications = InitialSnapshotNotifications("p")
        made = make_snapshot_engine(
            self.reader.context(), notifications, "consistent", 0.5, self.reader.options, self.reader.store
        )
        assert isinstance(made, ReadAheadEngine)
        return made

    def restart(self) -> None:
        """Go on as another process, after the last micro-batch has been delivered and another one planned."""
        self.engine.settle(self.state, TaskReports())
        self.engine.plan(self.state, False)
        self.engine.release()
        self.engine = self._new_engine()

    def step(self) -> bool:
        state = SnapshotState.from_json(json.loads(json.dumps(self.state.to_json())))
        self.engine.settle(state, TaskReports())
        if state.pending:
            state = self.engine.revive(state)
            state.batch = []
            self.engine.plan(state, False)
            self.rows += self.reader.events(self.engine.chunks(state))
        self.state = state
        return bool(state.pending or state.batch)

    def finish(self) -> dict[str, list[dict[str, Any]]]:
        for _ in range(100):
            if not self.step():
                break
        self.engine.complete()
        assert not any(table.pending for table in self.state.tables)
        return self.by_table()

    def by_table(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(row["table"], []).append(json.loads(row["value"])["after"])
        return found


BEGUN: list[Initial] = []


@pytest.fixture
def shop(binlog_server: MysqlServer, tmp_path: Path) -> Iterator[MysqlServer]:
    binlog_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    yield binlog_server
    # A test that failed may have left views open, for which the server would wait.
    while BEGUN:
        BEGUN.pop().engine.release()
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def numbers(server: MysqlServer, count: int) -> None:
    """Make a table ``n`` with the numbers from 0."""
    digits = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 "
    digits += "UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
    places = len(str(count - 1))
    joined = ", ".join(f"{digits} d{i}" for i in range(places))
    total = " + ".join(f"d{i}.d * {10**i}" for i in range(places))
    server.execute(
        f"CREATE TABLE {DATABASE}.n AS SELECT n FROM (SELECT {total} AS n FROM {joined}) x WHERE n < {count}"
    )


def begin(server: MysqlServer, directory: Path, **options: str) -> Initial:
    # Small pieces, so that each table has several.
    given = {
        "snapshot.chunk.bytes": "8192",
        "max.batch.bytes": "16384",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return Initial(Reader(server, directory, given))


KEYS = {
    "int": ("id int PRIMARY KEY", "n - 5000"),
    "unsigned": ("id bigint unsigned PRIMARY KEY", "18446744073709551615 - n"),
    "decimal": ("id decimal(20,4) PRIMARY KEY", "(n - 5000) / 8"),
    "double": ("id double PRIMARY KEY", "(n - 5000) / 7e0"),
    "float": ("id float PRIMARY KEY", "n / 16"),
    "text": ("id varchar(40) PRIMARY KEY", "CONCAT(CHAR(97 + n % 26 USING utf8mb4), 'ä', n, '''\\\\')"),
    "latin": (
        "id varchar(40) CHARACTER SET latin1 COLLATE latin1_german1_ci PRIMARY KEY",
        "CONCAT('ü', n * 7919 % 10007)",
    ),
    "binary": ("id binary(16) PRIMARY KEY", "UNHEX(LEFT(SHA2(n, 256), 32))"),
    "varbinary": ("id varbinary(40) PRIMARY KEY", "UNHEX(SHA2(n, 256))"),
    "datetime": ("id datetime(6) PRIMARY KEY", "'2024-01-01' + INTERVAL n * 7 MICROSECOND"),
    "timestamp": ("id timestamp(3) PRIMARY KEY", "'2024-03-31' + INTERVAL n SECOND"),
    "time": ("id time(2) PRIMARY KEY", "SEC_TO_TIME(n - 5000)"),
    "date": ("id date PRIMARY KEY", "'1990-01-01' + INTERVAL n DAY"),
    "bit": ("id bit(20) PRIMARY KEY", "n"),
    "enum": ("id enum('z', 'y', 'a b', 'c,d'), m int, PRIMARY KEY (id, m)", "n % 4 + 1, n"),
    "set": ("id set('z', 'y', 'x'), m int, PRIMARY KEY (m, id)", "n % 8, n DIV 8"),
    "pair": ("id int, m varchar(9) COLLATE utf8mb4_bin, PRIMARY KEY (id, m)", "n % 7, LPAD(n DIV 7, 5, '0')"),
    "triple": (
        "id year, m int, k binary(2), PRIMARY KEY (id, m, k)",
        "1990 + n % 3, n % 11, UNHEX(LPAD(HEX(n), 4, '0'))",
    ),
}


CUT = {"int", "unsigned", "decimal", "binary", "varbinary", "set", "pair"}
"""Those that are read in ranges: it can be told what lies between two values of the first column."""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KEYS)
def test_tables_are_read_whatever_their_key(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, threads: int
) -> None:
    monkeypatch.setattr(read_ahead, "LEAST_ROWS", 100)
    columns, values = KEYS[kind]
    numbers(shop, 3000)
    shop.execute(
        f"CREATE TABLE t ({columns}, v int)",
        f"INSERT INTO t SELECT {values}, n FROM n",
        "ANALYZE TABLE t",
        database=DATABASE,
    )
    snapshot = begin(shop, tmp_path, table_include_list=f"{DATABASE}\\.t", snapshot_max_threads=str(threads))
    snapshot.step()
    table = snapshot.state.tables[0]
    assert len({first // RANGE_UNITS for first, _, _ in (*table.pending, *table.done)}) == (
        threads if kind in CUT else 1
    )
    while len(snapshot.rows) < 500:
        assert snapshot.step()
    # The planner goes away with half of the rows: the rest is read from the last key on.
    snapshot.restart()
    done = {row["key"] for row in snapshot.rows}
    rows = snapshot.finish()["t"]
    assert sorted(row["v"] for row in rows) == list(range(3000))
    assert len({row["key"] for row in snapshot.rows}) == 3000
    assert len(done) >= 500


def test_events_are_those_of_the_read_point(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(20))",
        "CREATE TABLE nothing (id int PRIMARY KEY)",
        "CREATE TABLE keyless (v int)",
        "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO keyless VALUES (1), (1), (2)",
        database=DATABASE,
    )
    snapshot = begin(shop, tmp_path)
    shop.execute(
        "UPDATE t SET v = 'later'", "INSERT INTO t VALUES (3, 'later')", "DELETE FROM keyless", database=DATABASE
    )
    found = snapshot.finish()
    snapshot.engine.release()
    assert found == {"t": [{"id": 1, "v": "a"}, {"id": 2, "v": None}], "keyless": [{"v": 1}, {"v": 1}, {"v": 2}]}
    row = snapshot.rows[0] if snapshot.rows[0]["table"] == "t" else snapshot.rows[-1]
    assert (row["op"], row["database"], row["schema"], row["topic"]) == ("r", DATABASE, None, f"p.{DATABASE}.t")
    assert row["position"] == f"{snapshot.state.position}-00"
    source = json.loads(row["value"])["source"]
    token = snapshot.state.token
    assert (source["snapshot"], source["file"], source["pos"]) == ("true", token["file"], token["offset"])
    assert (source["server_id"], source["gtid"], source["row"], source["thread"]) == (0, None, 0, None)
    assert source["ts_ms"] % 1000 == 0
    kinds = [notification.kind for notification in snapshot.reader.told if hasattr(notification, "kind")]
    assert kinds == kinds


def test_altered_and_dropped_tables_are_read_at_another_point(shop: MysqlServer, tmp_path: Path) -> None:
    numbers(shop, 3000)
    for name in ("a", "b", "c"):
        shop.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v varchar(200))",
            f"INSERT INTO {name} SELECT n, REPEAT('x', 200) FROM n",
            database=DATABASE,
        )
    include = f"{DATABASE}\\.[abc]"
    snapshot = begin(shop, tmp_path, table_include_list=include, snapshot_max_threads="1")
    first = snapshot.state.position
    snapshot.step()
    shop.execute("ALTER TABLE b ADD w int NOT NULL DEFAULT 7, FORCE", "DROP TABLE c", database=DATABASE)
    found = snapshot.finish()
    assert sorted(row["id"] for row in found["a"]) == list(range(3000))
    assert sorted(row["id"] for row in found["b"]) == list(range(3000))
    assert {row["w"] for row in found["b"]} == {7}
    assert "c" not in found
    assert snapshot.state.position > first


def test_statements_and_lists_say_what_is_read(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute(
        "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY, v double)", database=DATABASE
    )
    shop.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1, 0.1), (2, 1e100)", database=DATABASE)
    statements = "snapshot.select.statement.overrides"
    options = {
        statements: f"{DATABASE}.b",
        f"{statements}.{DATABASE}.b": f"SELECT * FROM {DATABASE}.b WHERE id > 1 -- not the first",
        "snapshot.include.collection.list": f"{DATABASE}.b",
    }
    snapshot = Initial(Reader(shop, tmp_path, options))
    assert snapshot.finish() == {"b": [{"id": 2, "v": 1e100}]}


def test_large_rows_are_read(tmp_path: Path) -> None:
    with MysqlServer("mysql", max_allowed_packet="128M", innodb_redo_log_capacity="512M") as server:
        server.execute(
            f"CREATE DATABASE {DATABASE}",
            f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v longtext)",
            f"INSERT INTO {DATABASE}.t VALUES (1, 'a'), (2, REPEAT('b', 20000000)), (4, 'd')",
            f"INSERT INTO {DATABASE}.t VALUES (3, REPEAT('c', 16777207))",
        )
        found = begin(server, tmp_path).finish()["t"]
        assert [(row["id"], row["v"][0], len(row["v"])) for row in found] == [
            (1, "a", 1),
            (2, "b", 20000000),
            (3, "c", 16777207),
            (4, "d", 1),
        ]


class Incremental:
    """An incremental snapshot, planned and run here."""

    def __init__(self, reader: Reader, rows: int) -> None:
        self.reader = reader
        pace = BatchSizing(60.0, rows, 4 * rows, 2)
        made = make_engine(reader.context(), IncrementalSnapshotNotifications("p"), pace, reader.options, reader.store)
        assert isinstance(made, WindowEngine)
        self.engine = made
        self.state = IncrementalState()
        self.rows: list[dict[str, Any]] = []

    def step(self) -> bool:
        state = self.engine.resume(self.state, TaskReports())
        state = IncrementalState.from_json(json.loads(json.dumps(state.to_json())))
        if state.active:
            _, position = self.engine.reach(state, "")
            assert self.engine.plan(state, "")
            assert state.position == position
            self.rows += self.reader.events(self.engine.chunks(state))
        self.state = state
        return bool(state.runs)


@pytest.mark.parametrize("kind", ["int", "text", "latin", "binary", "datetime", "enum", "pair", "triple", "double"])
def test_incremental_snapshots_read_ranges_of_keys(shop: MysqlServer, tmp_path: Path, kind: str) -> None:
    columns, values = KEYS[kind]
    numbers(shop, 3000)
    shop.execute(f"CREATE TABLE t ({columns}, v int)", f"INSERT INTO t SELECT {values}, n FROM n", database=DATABASE)
    reader = Reader(shop, tmp_path, {"table.include.list": f"{DATABASE}\\.t"})
    run = Incremental(reader, 250)
    run.engine.queue(run.state, run.engine.tables()[0], None, "v < 2000")
    batches = 0
    while run.step():
        batches += 1
    run.engine.release()
    rows = [json.loads(row["value"]) for row in run.rows]
    assert sorted(row["after"]["v"] for row in rows) == list(range(2000))
    assert {row["source"]["snapshot"] for row in rows} == {"incremental"}
    assert batches > 1
