"""Incremental snapshots while streaming goes on."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import floodmark
from floodmark.snapshots.incremental import engine
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.patience import within

SIGNALS = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"


def query_of(source: Source, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
    named = {name.replace("_", "."): value for name, value in options.items()}
    base = {"snapshot.mode": "no_data", "signal.data.collection": "public.signals"}
    return InProcess({**source.options, **base, **named}, offset)


def signal(source: Source, kind: str, **data: Any) -> None:
    text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        conn.execute("INSERT INTO signals VALUES (gen_random_uuid()::text, %s, %s)", [kind, text])


def read_rows(rows: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        json.loads(row["value"]) for row in rows if row["op"] == "r" and row["table"] == table
    ]
    return found


def test_a_signal_reads_a_table(source: Source) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 10000) g")
    query = query_of(source)
    assert query.drain() == []
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = query.drain()
    query.stop()
    events = read_rows(rows, "t")
    assert sorted(event["after"]["id"] for event in events) == list(range(1, 10001))
    assert {event["source"]["snapshot"] for event in events} == {"incremental"}
    assert query.offset["incremental"] is None


def test_a_look_at_very_many_tables_is_shared_out_among_micro_batches(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if each look took too long. The tables have no rows that could make a micro-batch full.
    monkeypatch.setattr(engine, "LONGEST", 0.0)
    source.execute(SIGNALS, "CREATE TABLE last (id integer PRIMARY KEY)", "INSERT INTO last VALUES (1), (2)")
    source.execute(*(f"CREATE TABLE empty_{n} (id integer PRIMARY KEY)" for n in range(10)))
    query = query_of(source)
    query.drain()
    signal(source, "execute-snapshot", data_collections=[r"public\.(empty_.*|last)"])
    before = query.batches
    rows = query.drain()
    query.stop()
    assert query.batches - before >= 10
    assert ids(rows, "last") == [1, 2]
    assert query.offset["incremental"] is None


def test_an_initial_snapshot_leaves_the_signal_table_out(source: Source) -> None:
    source.execute(SIGNALS, "INSERT INTO signals VALUES ('old', 'log', '{}')")
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query = query_of(source, snapshot_mode="initial")
    read = [row["table"] for row in query.drain() if row["op"] == "r"]
    signal(source, "log", message="new")
    rows = query.drain()
    query.stop()
    assert read == ["t"]
    assert [(row["table"], row["op"]) for row in rows] == [("signals", "c")]


@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_a_wait_between_micro_batches_costs_no_rows(source: Source, points: str) -> None:
    """As a processing-time trigger waits, or a sink whose commit takes long, whatever the rows."""
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 60000) g")
    query = query_of(
        source,
        incremental_snapshot_read_points=points,
        incremental_snapshot_chunk_size="10",
        snapshot_batch_target_ms="100",
    )
    query.drain()
    query.restart()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    before = query.batches
    while running(query.offset):
        time.sleep(0.3)
        rows += query.step()
    query.stop()
    assert ids(rows) == list(range(1, 60001))
    # Halved to the least, they would be thousands.
    assert query.batches - before < 100


def ids(rows: list[dict[str, Any]], table: str = "t") -> list[int]:
    return sorted(event["after"]["id"] for event in read_rows(rows, table))


def told(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, str]]]:
    """Return the notifications: type and details."""
    values = [json.loads(row["value"]) for row in rows if row["topic"] == "told"]
    return [(value["type"], value["additional_data"]) for value in values]


def until(query: InProcess, done: Callable[[dict[str, Any]], bool], limit_s: float = 20) -> list[dict[str, Any]]:
    """Run micro-batches until the offset is as wanted."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(limit_s)
    while not done(query.offset):
        assert time.monotonic() < deadline, query.offset
        rows += query.step()
    return rows


def small(source: Source, count: int = 50) -> InProcess:
    """Return a query at whose first micro-batches little of the table ``t`` is read."""
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute(f"INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, {count}) g")
    query = query_of(
        source,
        incremental_snapshot_chunk_size="1",
        snapshot_batch_target_ms="1",
        notification_enabled_channels="sink",
        notification_sink_topic_name="told",
    )
    query.drain()
    query.restart()
    return query


def running(offset: dict[str, Any]) -> bool:
    return offset["incremental"] is not None and bool(offset["incremental"]["batch"])


def over(offset: dict[str, Any]) -> bool:
    return offset["incremental"] is None


def test_notifications_tell_the_course(source: Source) -> None:
    query = small(source)
    source.execute("CREATE TABLE bare (v text)", "CREATE TABLE hollow (id integer PRIMARY KEY)")
    signal(source, "execute-snapshot", data_collections=[r"public\.(t|bare|hollow)", "public.none"])
    notifications = told(query.drain())
    query.stop()
    kinds = [kind for kind, _ in notifications]
    assert kinds[0] == "STARTED"
    assert kinds[-1] == "COMPLETED"
    ended = {data["scanned_collection"]: data for kind, data in notifications if kind == "TABLE_SCAN_COMPLETED"}
    assert {name: data["status"] for name, data in ended.items()} == {
        "public.bare": "NO_PRIMARY_KEY",
        "public.hollow": "EMPTY",
        "public.t": "SUCCEEDED",
        "public.none": "UNKNOWN_SCHEMA",
    }
    assert ended["public.t"]["total_rows_scanned"] == "50"
    progress = [data for kind, data in notifications if kind == "IN_PROGRESS"]
    assert {data["maximum_key"] for data in progress} == {"50"}
    assert [int(data["last_processed_key"]) for data in progress] == sorted(
        int(data["last_processed_key"]) for data in progress
    )


def test_pause_resume_and_stop(source: Source) -> None:
    query = small(source)
    source.execute("CREATE TABLE other (id integer PRIMARY KEY)", "INSERT INTO other VALUES (1), (2)")
    signal(source, "execute-snapshot", data_collections=["public.t", "public.other"])
    rows = until(query, running)
    signal(source, "pause-snapshot", type="incremental")
    rows += until(query, lambda offset: offset["incremental"]["paused"])
    rows += query.step()
    read = len(read_rows(rows, "t"))
    assert 0 < read < 50
    source.execute("INSERT INTO t VALUES (1000, 'streamed')")
    rows += query.drain()
    assert len(read_rows(rows, "t")) == read
    assert [row["op"] for row in rows if row["table"] == "t"].count("c") == 1

    query.stop()
    query = query_of(
        source,
        query.offset,
        notification_enabled_channels="sink",
        notification_sink_topic_name="told",
        incremental_snapshot_chunk_size="1",
        snapshot_batch_target_ms="1",
    )
    signal(source, "stop-snapshot", type="incremental", data_collections=["public.t"])
    signal(source, "resume-snapshot", type="incremental")
    rows += query.drain()
    query.stop()
    assert len(read_rows(rows, "t")) == read
    assert ids(rows, "other") == [1, 2]
    kinds = [kind for kind, _ in told(rows) if kind != "IN_PROGRESS"]
    assert kinds == ["STARTED", "PAUSED", "ABORTED", "RESUMED", "TABLE_SCAN_COMPLETED", "COMPLETED"]


@pytest.mark.parametrize("stopped", ["t", "other"])
def test_a_table_stopped_while_chunks_are_planned(source: Source, stopped: str) -> None:
    query = small(source)
    source.execute("CREATE TABLE other (id integer PRIMARY KEY)", "INSERT INTO other SELECT generate_series(1, 30)")
    signal(source, "execute-snapshot", data_collections=["public.t", "public.other"])
    rows = until(query, running)
    signal(source, "stop-snapshot", type="incremental", data_collections=[f"public.{stopped}"])
    rows += until(query, over)
    query.stop()
    assert ids(rows, "other") == (list(range(1, 31)) if stopped == "t" else [])
    assert len(ids(rows)) < 50 if stopped == "t" else ids(rows) == list(range(1, 51))


def test_a_restart_goes_on_behind_what_was_read(source: Source) -> None:
    query = small(source)
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    rows += query.step()
    query.stop()
    again = query_of(source, query.offset, incremental_snapshot_chunk_size="1")
    rows += again.drain()
    again.stop()
    assert ids(rows) == list(range(1, 51))


def test_wrong_signals_stop_nothing(source: Source) -> None:
    query = small(source)
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        for kind, data in (("execute-snapshot", "{"), ("execute-snapshot", None), ("excute", "{}"), ("log", "[]")):
            conn.execute("INSERT INTO signals VALUES (gen_random_uuid()::text, %s, %s)", [kind, data])
    signal(source, "execute-snapshot", data_collections=["("])
    signal(source, "log", message="still here at {}")
    source.execute("INSERT INTO t VALUES (51, 'x')")
    rows = query.drain()
    query.stop()
    assert [row["key"] for row in rows if row["table"] == "t"] == ['{"id":51}']
    assert over(query.offset)


def test_a_signal_by_file_and_one_by_call(source: Source, tmp_path: Path) -> None:
    small(source, 5).stop()
    file = tmp_path / "signals.txt"
    options = {"signal.enabled.channels": "file", "signal.file": str(file), "signal.poll.interval.ms": "1"}
    query = InProcess({**source.options, "snapshot.mode": "no_data", **options})
    query.drain()
    query.restart()
    file.write_text('{"id": "f", "type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}\n')
    rows = until(query, running)
    rows += until(query, over)
    assert ids(rows) == [1, 2, 3, 4, 5]
    floodmark.signal({**source.options, **options}, "execute-snapshot", {"data-collections": ["public.t"]})
    rows = until(query, running)
    rows += until(query, over)
    query.stop()
    assert ids(rows) == [1, 2, 3, 4, 5]


def test_conditions_surrogate_keys_and_names(source: Source) -> None:
    source.execute(
        SIGNALS,
        'CREATE TABLE "Odd ""Name" (id integer PRIMARY KEY, "the place" integer, "select" text)',
        """INSERT INTO "Odd ""Name" SELECT g, nullif(g % 7, 0), 'x' FROM generate_series(1, 100) g""",
    )
    query = query_of(source, incremental_snapshot_chunk_size="3")
    query.drain()
    name = 'public.Odd "Name'
    conditions = [{"data-collection": name, "filter": 'id > 10 OR "select" IS NULL'}]
    signal(
        source,
        "execute-snapshot",
        data_collections=[name],
        surrogate_key="the place",
        additional_conditions=conditions,
    )
    rows = query.drain()
    query.stop()
    assert ids(rows, 'Odd "Name') == list(range(11, 101))


@pytest.mark.parametrize(
    ("change", "first", "then"),
    [
        ("ALTER TABLE t ADD extra integer DEFAULT 7", {"id", "v"}, {"id", "v", "extra"}),
        ("ALTER TABLE t DROP v", {"id", "v"}, {"id"}),
        ("ALTER TABLE t ALTER v TYPE varchar(100)", {"id", "v"}, {"id", "v"}),
        ("VACUUM FULL t", {"id", "v"}, {"id", "v"}),
    ],
)
def test_a_table_altered_meanwhile(source: Source, change: str, first: set[str], then: set[str]) -> None:
    query = small(source)
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    # The next micro-batch is planned, and holds a read point; its chunks will be read after the change.
    waiting = threading.Thread(target=source.execute, args=(change,))
    waiting.start()
    query.reader.partitions(query.offset, end)
    query.stop()
    waiting.join(within(20))
    again = query_of(source, query.offset, incremental_snapshot_chunk_size="1")
    later = again.run(end)
    again.offset = end
    later += again.drain()
    again.stop()
    assert ids(rows + later) == list(range(1, 51))
    assert {frozenset(event["after"]) for event in read_rows(rows, "t")} == {frozenset(first)}
    assert {frozenset(event["after"]) for event in read_rows(later, "t")} == {frozenset(then)}


@pytest.mark.parametrize("change", ["DROP TABLE t", "TRUNCATE t"])
def test_a_table_dropped_or_emptied_meanwhile(source: Source, change: str) -> None:
    query = small(source)
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    waiting = threading.Thread(target=source.execute, args=(change,))
    waiting.start()
    rows += until(query, over)
    waiting.join(within(20))
    query.stop()
    [status] = [data["status"] for kind, data in told(rows) if kind == "TABLE_SCAN_COMPLETED"]
    assert status == ("SKIPPED" if change.startswith("DROP") else "SUCCEEDED")


def test_partitions_and_their_root(source: Source) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE p (id integer PRIMARY KEY) PARTITION BY HASH (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "INSERT INTO p SELECT generate_series(1, 30)",
    )
    query = query_of(source, publish_via_partition_root="true")
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.p"])
    rows = query.drain()
    query.stop()
    assert ids(rows, "p") == list(range(1, 31))


def test_a_role_that_may_only_read(source: Source, tmp_path: Path) -> None:
    role = f"reader_{source.dbname}"
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 3000)",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON t TO {role}",
        "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
    )
    options = {**source.options, "database.user": role, "snapshot.mode": "no_data", "read.only": "true"}
    options |= {"signal.poll.interval.ms": "1", "notification.enabled.channels": "sink"}
    options["notification.sink.topic.name"] = "told"
    query = InProcess(options)
    query.drain()
    floodmark.signal(options, "execute-snapshot", {"data-collections": ["public.t"]})
    rows = query.drain()
    query.stop()
    kinds = [kind for kind, _ in told(rows)]
    assert (kinds[0], kinds[-2:]) == ("STARTED", ["TABLE_SCAN_COMPLETED", "COMPLETED"])
    assert ids(rows) == list(range(1, 3001))


def test_a_blocking_snapshot(source: Source) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)", "CREATE TABLE other (id integer)")
    source.execute("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 500) g", "INSERT INTO other VALUES (1)")
    query = query_of(
        source,
        snapshot_chunk_bytes="8192",
        notification_enabled_channels="sink",
        notification_sink_topic_name="told",
    )
    assert [kind for kind, _ in told(query.drain())] == ["SKIPPED"]
    query.restart()
    signal(source, "execute-snapshot", type="blocking", data_collections=["public.t", "public.other"])
    rows = until(query, lambda offset: offset["snapshot"] is not None)
    source.execute("UPDATE t SET v = 'w' WHERE id = 7", "INSERT INTO t VALUES (501, 'v')")
    rows += query.step()
    query.restart()
    rows += until(query, lambda offset: offset["snapshot"] is None)
    rows += query.drain()
    query.stop()
    kinds = [(kind, details.get("total_rows_scanned")) for kind, details in told(rows)]
    assert kinds[0] == ("STARTED", None)
    assert kinds[-1] == ("COMPLETED", None)
    assert sorted(kinds[1:-1]) == [
        *[("IN_PROGRESS", None)] * 2,
        ("TABLE_SCAN_COMPLETED", "1"),
        ("TABLE_SCAN_COMPLETED", "500"),
    ]
    assert set(ids(rows)) >= set(range(1, 501))
    assert [event["after"] for event in read_rows(rows, "other")] == [{"id": 1}]
    changes = [(row["op"], json.loads(row["value"])["after"]["v"]) for row in rows if row["key"] == '{"id":7}']
    assert changes[0] == ("r", "v")
    assert changes[-1][1] == "w"
    assert {event["source"]["snapshot"] for event in read_rows(rows, "t")} == {"true"}


def test_a_blocking_snapshot_by_a_statement(source: Source) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY, v text)")
    source.execute("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 500) g")
    query = query_of(source)
    query.drain()
    query.restart()
    conditions = [{"data-collection": "public.t", "filter": "SELECT * FROM t WHERE id <= 10 -- the first"}]
    signal(source, "execute-snapshot", type="blocking", data_collections=["public.t"], additional_conditions=conditions)
    rows = until(query, lambda offset: offset["snapshot"] is not None)
    rows += until(query, lambda offset: offset["snapshot"] is None)
    query.stop()
    assert ids(rows) == list(range(1, 11))


@pytest.mark.parametrize("mode", ["off", "incremental", "blocking", "parallel"])
def test_new_tables(source: Source, mode: str) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE other (id integer PRIMARY KEY)")
    source.execute("INSERT INTO t SELECT generate_series(1, 20)", "INSERT INTO other SELECT generate_series(1, 20)")
    filtered = {"publication_autocreate_mode": "filtered", "snapshot_new_tables": mode}
    query = query_of(source, None, table_include_list="public.t", **filtered)
    rows = query.drain()
    query.stop()
    query = query_of(source, query.offset, table_include_list="public.t,public.other", **filtered)
    rows += query.drain()
    source.execute("INSERT INTO other VALUES (21)", "INSERT INTO t VALUES (21)")
    rows += query.drain()
    query.stop()
    assert ids(rows, "other") == ([] if mode == "off" else list(range(1, 21)))
    assert ids(rows, "t") == []
    assert sorted(row["table"] for row in rows if row["op"] == "c") == ["other", "t"]


def test_a_table_that_is_captured_no_more_ends_its_snapshot(source: Source) -> None:
    query = small(source)
    signal(source, "execute-snapshot", data_collections=["public.t"])
    until(query, running)
    query.stop()
    query = query_of(source, query.offset, table_exclude_list="public.t")
    rows = query.drain()
    query.stop()
    assert over(query.offset)
    assert ids(rows) == []


def test_a_steady_trickle_does_not_delay_chunks(source: Source) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE busy (id bigserial PRIMARY KEY)")
    source.execute("INSERT INTO t SELECT generate_series(1, 2000)")
    query = query_of(source, incremental_snapshot_chunk_size="10", max_batch_rows="100")
    query.step()
    done = threading.Event()

    def trickle() -> None:
        with psycopg.connect(source.conninfo, autocommit=True) as conn:
            while not done.wait(0.002):
                conn.execute("INSERT INTO busy DEFAULT VALUES")

    writer = threading.Thread(target=trickle)
    writer.start()
    try:
        signal(source, "execute-snapshot", data_collections=["public.t"])
        rows = until(query, lambda offset: offset["incremental"] is not None)
        took = []
        while query.offset["incremental"] is not None:
            begun = time.monotonic()
            end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
            took.append(time.monotonic() - begun)
            rows += query.run(end)
            query.offset = end
            query.reader.commit(end)
    finally:
        done.set()
        writer.join()
        query.stop()
    assert {event["after"]["id"] for event in read_rows(rows, "t")} == set(range(1, 2001))
    # What comes all the time must not be waited for to stop: that takes most of half a second.
    assert statistics.median(took) < 0.2


@pytest.mark.parametrize("change", ["ALTER TABLE t ADD extra integer", "TRUNCATE t"])
def test_an_alteration_between_planning_and_reading_stops_nothing(source: Source, change: str) -> None:
    query = small(source)
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = until(query, running)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert end["incremental"]["batch"]
    altering = threading.Thread(target=source.execute, args=[change])
    altering.start()
    altering.join(within(10))
    assert not altering.is_alive()
    rows += query.run(end)
    query.offset = end
    rows += query.drain()
    query.stop()
    with psycopg.connect(source.conninfo) as conn:
        present = {row[0] for row in conn.execute("SELECT id FROM t").fetchall()}
    assert present <= set(ids(rows))
    assert over(query.offset)
