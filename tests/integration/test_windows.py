"""Incremental snapshots by windows between marks in the signal table."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import floodmark
from floodmark.connectors.postgres.checks.server import check_source
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.snapshot.watermarks import PostgresWatermarks, PostgresWindow
from floodmark.connectors.postgres.source.read_points import PlacedWindow
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.connectors.postgres.wire import channel
from floodmark.errors import SourceStateError
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, ids, over, read_rows, running, signal, told, until
from tests.support.following import UNAVAILABLE
from tests.support.inprocess import InProcess
from tests.support.patience import within

WINDOWS = {"incremental.snapshot.read.points": "watermarks"}
STRATEGIES = ("insert_insert", "insert_delete")
TOLD = {"notification.enabled.channels": "sink", "notification.sink.topic.name": "told"}


def windows_of(
    source: Source, options: dict[str, str] | None = None, offset: dict[str, Any] | None = None
) -> InProcess:
    base = {"snapshot.mode": "no_data", "signal.data.collection": "public.signals", **WINDOWS}
    return InProcess({**source.options, **base, **(options or {})}, offset)


def between_the_marks(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None]) -> None:
    """Do something after the rows of a window have been read, once."""
    close = PostgresWatermarks.close
    todo = list(steps)

    def closing(self: PostgresWatermarks, *args: Any) -> None:
        while todo:
            todo.pop(0)()
        close(self, *args)

    monkeypatch.setattr(PostgresWatermarks, "close", closing)


def before_the_view(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None]) -> None:
    """Do something after the first mark of a window and before its rows are read, once."""
    make = PostgresWindow.__init__
    todo = list(steps)

    def making(self: PostgresWindow, *args: Any) -> None:
        while todo:
            todo.pop(0)()
        make(self, *args)

    monkeypatch.setattr(PostgresWindow, "__init__", making)


def history(rows: list[dict[str, Any]], table: str = "t") -> dict[str, list[tuple[str, Any]]]:
    """Return what happened to each key: operation and row, in the order of positions."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: str(row["position"])):
        if row["table"] == table and row["value"] is not None:
            found.setdefault(row["key"], []).append((row["op"], json.loads(row["value"])["after"]))
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_signal_reads_tables_and_marks_windows_as_debezium_does(source: Source, strategy: str) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer PRIMARY KEY, v text)",
        'CREATE TABLE parts (a integer, "B b" text, PRIMARY KEY (a, "B b"))',
    )
    source.execute("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 10000) g")
    source.execute("INSERT INTO parts SELECT g % 3, chr(9) || g FROM generate_series(1, 5000) g")
    # Few rows a micro-batch, so that there are several windows.
    query = windows_of(source, {"incremental.snapshot.watermarking.strategy": strategy, "max.batch.rows": "3000"})
    assert query.drain() == []
    signal(source, "execute-snapshot", data_collections=["public.t", "public.parts"])
    rows = query.drain()
    state = Path(source.options["state.dir"])
    assert list(state.glob("*/*/rows-*")) == []
    query.stop()
    assert ids(rows) == list(range(1, 10001))
    parts = [(event["after"]["a"], event["after"]["B b"]) for event in read_rows(rows, "parts")]
    assert sorted(parts) == sorted((g % 3, f"\t{g}") for g in range(1, 5001))
    assert {event["source"]["snapshot"] for event in read_rows(rows, "t")} == {"incremental"}
    assert query.offset["incremental"] is None

    marks = [row for row in rows if row["table"] == "signals" and "snapshot-window" in str(row["value"])]
    written = [json.loads(row["value"])["after"] for row in marks if row["op"] == "c"]
    time = r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z"'
    kinds = {"open": rf'{{"openWindowTimestamp": {time}}}'}
    if strategy == "insert_insert":
        kinds["close"] = rf'{{"openWindowTimestamp": {time}, "closeWindowTimestamp": {time}}}'
    windows = {row["id"].rpartition("-")[0] for row in written}
    assert len(windows) > 1
    assert sorted(row["id"] for row in written) == sorted(f"{name}-{kind}" for name in windows for kind in kinds)
    for row in written:
        kind = row["id"].rpartition("-")[2]
        assert row["type"] == f"snapshot-window-{kind}"
        assert re.fullmatch(kinds[kind], row["data"])
    deleted = [row["key"] for row in rows if row["op"] == "d" and row["table"] == "signals" and row["value"]]
    expected = [f'{{"id":"{name}-open"}}' for name in windows] if strategy == "insert_delete" else []
    assert sorted(deleted) == sorted(expected)
    # Every row comes after its window's closing mark.
    ends = sorted(
        row["position"] for row in rows if row["op"] == ("d" if expected else "c") and row["table"] == "signals"
    )
    assert min(row["position"] for row in rows if row["op"] == "r") > ends[0]


def test_changes_between_the_marks(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 8) g")
    query = windows_of(source)
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    changes = [
        "UPDATE t SET v = 'new' WHERE id = {}",
        "DELETE FROM t WHERE id = {}",
        "UPDATE t SET id = id + 100 WHERE id = {}",
    ]
    before_the_view(monkeypatch, lambda: source.execute(*(text.format(i) for i, text in enumerate(changes, 1))))
    between_the_marks(monkeypatch, lambda: source.execute(*(text.format(i) for i, text in enumerate(changes, 4))))
    rows = query.drain()
    query.stop()
    found = history(rows)
    for first in (1, 4):
        assert found[f'{{"id":{first}}}'] == [("u", {"id": first, "v": "new"})]
        assert found[f'{{"id":{first + 1}}}'] == [("d", None)]
        assert found[f'{{"id":{first + 2}}}'] == [("d", None)]
        assert found[f'{{"id":{first + 102}}}'] == [("c", {"id": first + 102, "v": "old"})]
    assert [found[f'{{"id":{i}}}'] for i in (7, 8)] == [[("r", {"id": i, "v": "old"})] for i in (7, 8)]


@pytest.mark.parametrize("when", [before_the_view, between_the_marks])
def test_a_truncate_between_the_marks(
    source: Source, when: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 8) g")
    query = windows_of(source, {"skipped.operations": "none"})
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    when(monkeypatch, lambda: source.execute("TRUNCATE t", "INSERT INTO t VALUES (1, 'new')"))
    rows = query.drain()
    query.stop()
    kept = {row["position"]: row["op"] for row in rows if row["table"] == "t"}
    last_truncate = max(place for place, op in kept.items() if op == "t")
    assert all(place > last_truncate for place, op in kept.items() if op == "r")
    assert {key: events[-1][1] for key, events in history(rows).items() if key and events[-1][0] != "t"} == {
        '{"id":1}': {"id": 1, "v": "new"}
    }


@pytest.mark.parametrize("when", [before_the_view, between_the_marks])
def test_large_values_that_the_log_lacks_are_not_lost(
    source: Source, when: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer PRIMARY KEY, v integer, big text, other text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, 0, repeat('b', 3000), repeat('o', 3000) FROM generate_series(1, 4) g",
    )
    query = windows_of(source)
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    changes = (
        "UPDATE t SET v = 1 WHERE id = 1",
        "UPDATE t SET v = 1, other = repeat('x', 3000) WHERE id = 2",
        "UPDATE t SET v = 2 WHERE id = 2",
        "UPDATE t SET id = 30 WHERE id = 3",
    )
    when(monkeypatch, lambda: source.execute(*changes))
    found = history(query.drain())
    query.stop()
    big, other, new = "b" * 3000, "o" * 3000, "x" * 3000
    assert [op for op, _ in found['{"id":1}']] == ["u", "r"]
    assert found['{"id":1}'][0][1]["big"] == UNAVAILABLE
    assert found['{"id":1}'][-1][1] == {"id": 1, "v": 1, "big": big, "other": other}
    assert found['{"id":2}'][-1] == ("r", {"id": 2, "v": 2, "big": big, "other": new})
    assert found['{"id":3}'] == [("d", None)]
    if when is before_the_view:
        assert found['{"id":30}'][-1] == ("r", {"id": 30, "v": 0, "big": big, "other": other})
    assert found['{"id":4}'] == [("r", {"id": 4, "v": 0, "big": big, "other": other})]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_the_right_to_write_marks(source: Source, strategy: str) -> None:
    role = f"reader_{source.dbname}"
    granted = "SELECT" if strategy == "insert_insert" else "SELECT, INSERT"
    source.execute(
        SIGNALS,
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT {granted} ON signals TO {role}",
        "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
    )
    options = {"database.user": role, "incremental.snapshot.watermarking.strategy": strategy}
    query = windows_of(source, options)
    needed = "INSERT" if strategy == "insert_insert" else "INSERT, SELECT, DELETE"
    with pytest.raises(SourceStateError, match=f"the role '{role}' needs {needed}.*GRANT {needed} ON public.signals"):
        query.drain()
    query.stop()
    parsed = PostgresOptions.parse({**source.options, **WINDOWS, "signal.data.collection": "public.signals", **options})
    [finding] = [finding for finding in check_source(parsed) if finding.check == "signal table"]
    assert (finding.status, f"GRANT {needed}" in finding.fix) == ("error", True)
    with psycopg.connect(source.conninfo) as conn:
        assert conn.execute(
            "SELECT count(*) FROM pg_replication_slots WHERE database = %s", [source.dbname]
        ).fetchone() == (0,)


def test_partitions_and_their_root(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE p (id integer PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (20)",
        "CREATE TABLE p2 (v text, id integer PRIMARY KEY)",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (20) TO (100)",
        "INSERT INTO p SELECT g, 'old' FROM generate_series(1, 30) g",
    )
    query = windows_of(source, {"publish.via.partition.root": "true"})
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.p"])
    between_the_marks(
        monkeypatch, lambda: source.execute("UPDATE p SET id = 50 WHERE id = 1", "DELETE FROM p2 WHERE id = 30")
    )
    rows = query.drain()
    query.stop()
    assert ids(rows, "p") == list(range(2, 30))
    assert history(rows, "p")['{"id":50}'] == [("c", {"id": 50, "v": "old"})]


def test_an_alter_table_that_waits_for_a_window_holds_nothing_up(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 5) g")
    altering = threading.Thread(target=source.execute, args=("ALTER TABLE t ADD extra integer DEFAULT 7",))
    read = PlacedWindow.rows

    def reading(self: PlacedWindow, *args: Any) -> Any:
        if not altering.is_alive():
            altering.start()
            deadline = time.monotonic() + within(10)
            with psycopg.connect(source.conninfo, autocommit=True) as conn:
                waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
                while altering.is_alive() and not conn.execute(waits).fetchone():
                    assert time.monotonic() < deadline
        monkeypatch.setattr(PlacedWindow, "rows", read)
        return read(self, *args)

    monkeypatch.setattr(PlacedWindow, "rows", reading)
    query = windows_of(source)
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = query.drain()
    altering.join(within(20))
    query.stop()
    assert ids(rows) == list(range(1, 6))


def test_a_table_altered_before_it_is_read(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 5) g")
    query = windows_of(source)
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    before_the_view(monkeypatch, lambda: source.execute("ALTER TABLE t ADD extra integer DEFAULT 7"))
    rows = query.drain()
    query.stop()
    # The first window reads nothing, since the table isn't what was planned with; the next one does.
    final = history(rows)
    assert final == {f'{{"id":{i}}}': [("r", {"id": i, "v": "old", "extra": 7})] for i in range(1, 6)}


@pytest.mark.parametrize("channel", [None, channel._LibpqChannel])
@pytest.mark.parametrize("at", ["the first row", "a later row"])
def test_a_table_that_cannot_be_read_leaves_the_others_alone(
    source: Source, at: str, channel: Callable[..., Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if channel is not None:  # as under TLS
        monkeypatch.setattr(chunks, "open_channel", channel)
    number = 1 if at == "the first row" else 100_000
    source.execute(
        SIGNALS,
        "CREATE FUNCTION fails(number integer) RETURNS boolean VOLATILE LANGUAGE plpgsql AS $$ BEGIN "
        f"IF current_query() LIKE 'COPY%' AND number = {number} THEN RAISE 'no'; END IF; RETURN true; END $$",
        "CREATE TABLE bad (id integer PRIMARY KEY, v text)",
        "CREATE TABLE good (id integer PRIMARY KEY)",
        "INSERT INTO bad SELECT g, repeat('x', 200) FROM generate_series(1, 100000) g",
        "INSERT INTO good VALUES (1), (2)",
    )
    query = windows_of(source, {**TOLD, "incremental.snapshot.chunk.size": "100000"})
    query.drain()
    # No signal may call a function; here it stands for rows that can't be read.
    monkeypatch.setattr(PostgresTables, "row_filter", lambda *given: given[-1])
    conditions = [{"data-collection": "public.bad", "filter": "fails(id)"}]
    tables = ["public.bad", "public.good"]
    signal(source, "execute-snapshot", data_collections=tables, additional_conditions=conditions)
    rows = query.drain()
    query.stop()
    ended = {data["scanned_collection"]: data["status"] for kind, data in told(rows) if kind == "TABLE_SCAN_COMPLETED"}
    assert ended == {"public.bad": "SQL_EXCEPTION", "public.good": "SUCCEEDED"}
    assert ids(rows, "good") == [1, 2]
    assert ids(rows, "bad") == []


def test_typed_rows(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer PRIMARY KEY, v numeric(6, 2), big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, g, repeat('b', 3000) FROM generate_series(1, 4) g",
    )
    # The signal table is captured as well, so the signal comes another way: rows are those of one table.
    options = {"format": "rows", "table.include.list": "public.t", "signal.enabled.channels": "file"}
    options["signal.file"] = str(Path(source.options["state.dir"]).parent / "signals")
    query = windows_of(source, {**options, "signal.poll.interval.ms": "1"})
    query.drain()
    floodmark.signal({**source.options, **options}, "execute-snapshot", {"data-collections": ["public.t"]})
    changes = ("DELETE FROM t WHERE id = 1", "UPDATE t SET v = 0.5 WHERE id = 2")
    between_the_marks(monkeypatch, lambda: source.execute(*changes))
    rows = query.drain()
    query.stop()
    found = sorted(
        (row["after"]["id"], str(row["after"]["v"]), row["after"]["big"][:1]) for row in rows if row["op"] == "r"
    )
    assert found == [(2, "0.50", "b"), (3, "3.00", "b"), (4, "4.00", "b")]


def test_in_spark(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 3000) g")
    # A few windows even for small tables.
    base = {"snapshot.mode": "no_data", "signal.data.collection": "public.signals", "max.batch.rows": "1000", **WINDOWS}

    def run() -> None:
        stream = spark.readStream.format("floodmark").options(**source.options, **base).load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination(int(within(120)))

    run()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    run()
    found = spark.read.parquet(str(tmp_path / "out")).where("table = 't'").select("op", "key").collect()
    assert sorted(json.loads(row["key"])["id"] for row in found) == list(range(1, 3001))
    assert {row["op"] for row in found} == {"r"}


def test_without_the_signal_table(source: Source) -> None:
    query = windows_of(source)
    with pytest.raises(SourceStateError, match=r"signal table 'public\.signals'.* does not exist"):
        query.drain()
    query.stop()


def test_a_right_that_is_revoked_later_ends_the_snapshot_and_not_the_stream(source: Source) -> None:
    role = f"writer_{source.dbname}"
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 3)",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON t TO {role}",
        f"GRANT INSERT ON signals TO {role}",
        "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
    )
    query = windows_of(source, {"database.user": role, **TOLD})
    query.drain()
    source.execute(f"REVOKE INSERT ON signals FROM {role}")
    signal(source, "execute-snapshot", data_collections=["public.t"])
    source.execute("INSERT INTO t VALUES (4)")
    rows = query.drain()
    query.stop()
    assert ids(rows) == []
    assert [row["key"] for row in rows if row["table"] == "t"] == ['{"id":4}']
    ended = [data["status"] for kind, data in told(rows) if kind == "TABLE_SCAN_COMPLETED"]
    assert ended == ["SQL_EXCEPTION"]
    assert over(query.offset)


def test_a_table_without_a_key_of_its_own_is_refused(source: Source) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer)", "INSERT INTO t VALUES (1)")
    query = windows_of(source, TOLD)
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"], surrogate_key="id")
    rows = query.drain()
    query.stop()
    assert [data["status"] for kind, data in told(rows) if kind == "TABLE_SCAN_COMPLETED"] == ["NO_PRIMARY_KEY"]


@pytest.mark.parametrize("crash", ["planned", "delivered"])
def test_a_restart_reads_the_last_window_again(source: Source, crash: str) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 50) g")
    small = {"incremental.snapshot.chunk.size": "1", "snapshot.batch.target.ms": "1"}
    query = windows_of(source, small)
    query.drain()
    query.restart()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows: list[dict[str, Any]] = []
    end = query.offset
    while not running(end):
        rows += query.run(end) if end != query.offset else []
        query.offset = end
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    read = query.run(end)
    assert ids(read)
    query.stop()
    state = Path(source.options["state.dir"])
    assert list(state.glob("*/*/rows-*")) == []
    source.execute("UPDATE t SET v = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    if crash == "delivered":
        rows += read
        query.offset = end
    again = windows_of(source, small, query.offset)
    if crash == "planned":
        replayed = again.run(end)
        assert ids(replayed) == []
        again.offset = end
        rows += replayed
    rows += again.drain()
    again.stop()
    assert {key: events[-1][1] for key, events in history(rows).items()} == {
        f'{{"id":{i}}}': None if i == 2 else {"id": i, "v": "new" if i == 1 else "old"} for i in range(1, 51)
    }


@pytest.mark.parametrize(("before", "after"), [("exact", "watermarks"), ("watermarks", "exact")])
def test_a_snapshot_goes_on_in_the_other_way(source: Source, before: str, after: str) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 50) g")
    small = {"incremental.snapshot.chunk.size": "1", "snapshot.batch.target.ms": "1"}
    query = windows_of(source, {**small, "incremental.snapshot.read.points": before})
    query.drain()
    query.restart()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.stop()
    query = windows_of(source, {**small, "incremental.snapshot.read.points": after}, query.offset)
    source.execute("UPDATE t SET v = 'new' WHERE id < 10")
    rows += query.run(end)
    query.offset = end
    rows += query.drain()
    query.stop()
    final = {key: events[-1][1] for key, events in history(rows).items()}
    assert final == {f'{{"id":{i}}}': {"id": i, "v": "new" if i < 10 else "old"} for i in range(1, 51)}


def test_more_log_in_a_window_than_a_micro_batch_holds(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 200) g")
    query = windows_of(source, {"max.batch.rows": "10", "segment.bytes": "65536"})
    query.drain()
    query.restart()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    until(query, lambda offset: offset["incremental"] is not None)

    def backlog(rows: int) -> Callable[[], None]:
        change = f"UPDATE t SET v = repeat('x', 900) WHERE id BETWEEN {{0}} AND {{0}} + {rows - 1}"
        return lambda: source.execute(*(change.format(first) for first in range(1, 101, rows)))

    # Large transactions before the window, which end somewhere in a segment; small ones, and a large one, in it.
    before_the_view(monkeypatch, backlog(1))
    between_the_marks(monkeypatch, backlog(100))
    backlog(100)()
    rows = until(query, over)
    query.stop()
    assert sorted(ids(rows)) == list(range(101, 201))
    assert query.batches > 3
    # The window was taken once: no micro-batch ended in the middle of it.
    assert sum(row["table"] == "signals" and "snapshot-window-open" in str(row["value"]) for row in rows) == 1


def test_wide_rows_are_read_in_smaller_windows(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, repeat('x', 1500) FROM generate_series(1, 400) g")
    sizes: list[int] = []
    before: set[str] = set()
    close = PlacedWindow.close

    def closing(self: PlacedWindow, *args: Any) -> None:
        files = {file.name: file.stat().st_size for file in Path(source.options["state.dir"]).glob("*/*/rows-*")}
        sizes.append(sum(size for name, size in files.items() if name not in before))
        before.update(files)
        close(self, *args)

    monkeypatch.setattr(PlacedWindow, "close", closing)
    query = windows_of(source, {"max.batch.bytes": "100000", "incremental.snapshot.chunk.size": "10"})
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = query.drain()
    query.stop()
    assert ids(rows) == list(range(1, 401))
    assert len(sizes) > 6
    assert max(sizes) < 110_000
