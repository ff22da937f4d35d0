"""Capture of a real server, driven in this process."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.connectors.postgres.snapshot.chunks import changed_since
from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, make_source
from tests.support.inprocess import InProcess
from tests.support.patience import within


def payload(row: dict[str, Any]) -> Any:
    return json.loads(row["value"])


def test_a_large_transaction_spans_segments_and_batches(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, note text)")
    options = {**source.options, "segment.bytes": "65536", "max.batch.bytes": "131072", "snapshot.mode": "no_data"}
    query = InProcess(options)
    query.drain()
    source.execute("INSERT INTO t SELECT g, repeat('n', 20) FROM generate_series(1, 20000) g")
    before = query.batches
    rows = query.drain()
    assert [payload(row)["after"]["id"] for row in rows] == list(range(1, 20001))
    assert [row["position"] for row in rows] == sorted({row["position"] for row in rows})
    assert query.batches - before > 5
    query.stop()


def test_a_restart_inside_a_transaction_goes_on_where_it_was(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, note text)")
    options = {**source.options, "segment.bytes": "65536", "max.batch.bytes": "65536", "snapshot.mode": "no_data"}
    query = InProcess(options)
    query.drain()
    source.execute("INSERT INTO t SELECT g, repeat('n', 20) FROM generate_series(1, 5000) g")
    query.reader.prepareForTriggerAvailableNow()
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    first = query.run(end)
    query.stop()
    assert 0 < len(first) < 5000

    again = InProcess(options, query.offset)
    assert [row["position"] for row in again.run(end)] == [row["position"] for row in first]
    again.offset = end
    rest = again.drain()
    again.stop()
    assert [payload(row)["after"]["id"] for row in first + rest] == list(range(1, 5001))


@pytest.mark.parametrize("between", ["nothing", "rewritten", "emptied", "running", "changed"])
def test_rows_without_a_key_come_once_when_a_snapshot_goes_on(source: Source, between: str) -> None:
    """Nothing tells a row that was inserted in between from those that the log has."""
    source.execute(
        "CREATE TABLE t (id integer, v integer, filler text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 0, repeat('b', 300) FROM generate_series(1, 3000) g",
    )
    options = {**source.options, "snapshot.chunk.bytes": "16384", "max.batch.bytes": "65536"}
    with psycopg.connect(source.conninfo) as other:
        query = InProcess(options)
        rows = query.step()
        offset = query.offset
        if between == "running":
            # It begins after the slot was made, which waits for all that run, but before the snapshot goes on.
            other.execute("INSERT INTO t VALUES (3001, 1)")
        query.stop()
        source.execute("INSERT INTO t SELECT g, 1 FROM generate_series(4001, 4500) g")
        if between == "rewritten":
            source.execute("ALTER TABLE t ALTER v TYPE bigint")
        elif between == "changed":
            source.execute("UPDATE t SET v = 5 WHERE id % 7 = 0", "DELETE FROM t WHERE id % 11 = 0")
        elif between == "emptied":
            source.execute("TRUNCATE t", "INSERT INTO t SELECT g, 2 FROM generate_series(5001, 5100) g")
        other.commit()
        source.execute("INSERT INTO t VALUES (6001, 3)")
        again = InProcess(options, offset)
        rows += again.drain()
        again.stop()
    told = [payload(row) for row in rows if row["value"] is not None]
    found = Counter(event["after"]["id"] for event in told if event["op"] not in "dt")
    with psycopg.connect(source.conninfo) as conn:
        held = {number for (number,) in conn.execute("SELECT id FROM t").fetchall()}
    assert held <= set(found)
    if between in ("nothing", "running"):
        assert set(found.values()) == {1}
        assert {event["op"] for event in told if event["after"]["id"] > 3000} == {"c"}
    if between == "changed":
        last = {event["after"]["id"]: event["after"]["v"] for event in told if event["op"] != "d"}
        assert all(last[number] == 5 for number in held if number % 7 == 0)


def test_a_lost_snapshot_goes_on_without_gap_or_overlap(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, 0, repeat('b', 3000) FROM generate_series(1, 3000) g",
    )
    options = {**source.options, "snapshot.chunk.bytes": "16384", "max.batch.bytes": "65536"}
    query = InProcess(options)
    reader, start = query.reader, query.offset
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    rows = query.run(end)
    second = reader.latestOffset(end, reader.getDefaultReadLimit())
    query.stop()
    # The second batch was planned, and its driver died; rows of both parts change meanwhile.
    source.execute(
        "UPDATE t SET v = 1 WHERE id % 7 = 0", "DELETE FROM t WHERE id % 11 = 0", "INSERT INTO t VALUES (0, 2)"
    )
    again = InProcess(options, end)
    rows += again.run(second)
    again.offset = second
    rows += again.drain()
    again.stop()

    state: dict[int, tuple[int, str | None]] = {}
    for row in rows:
        if row["value"] is None:
            continue
        event = payload(row)
        if event["op"] == "d":
            state.pop(event["before"]["id"], None)
            continue
        after = event["after"]
        known = state.get(after["id"], (0, None))
        assert after["v"] >= known[0]
        big = known[1] if after["big"] == "__debezium_unavailable_value" else after["big"]
        state[after["id"]] = (after["v"], big)
    with psycopg.connect(source.conninfo) as conn:
        expected = {key: (v, big) for key, v, big in conn.execute("SELECT id, v, big FROM t").fetchall()}
    assert state == expected


def test_changed_since_knows_subtransactions(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'a')"
    )
    with psycopg.connect(source.conninfo) as writer, psycopg.connect(source.conninfo, autocommit=True) as reader:
        writer.execute("UPDATE t SET v = 'b' WHERE id = 1")
        with writer.transaction():
            writer.execute("UPDATE t SET v = 'b' WHERE id = 2")
        # Another transaction, so that the snapshot's end lies beyond the subtransaction's number.
        source.execute("CREATE TABLE other (id integer)")
        row = reader.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        writer.commit()
        changed = reader.execute(f"SELECT id FROM t WHERE {changed_since(row[0])} ORDER BY id").fetchall()
    assert changed == [(1,), (2,)]


def test_typed_rows(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, price numeric(10,2), at timestamptz, flag boolean, note text)",
        "INSERT INTO t VALUES (1, 9.50, '2024-02-29 12:00:00+00', true, 'a')",
    )
    query = InProcess({**source.options, "format": "rows", "table.include.list": "public.t"})
    rows = query.drain()
    source.execute("UPDATE t SET price = 10 WHERE id = 1", "DELETE FROM t")
    rows += query.drain()
    query.stop()
    assert [row["op"] for row in rows] == ["r", "u", "d"]
    assert str(rows[0]["after"]["price"]) == "9.50"
    assert rows[0]["after"]["at"].isoformat() == "2024-02-29T12:00:00+00:00"
    assert rows[0]["after"]["flag"] is True
    assert str(rows[1]["after"]["price"]) == "10.00"
    assert rows[2]["after"] is None
    assert rows[2]["before"]["id"] == 1


def test_partitions_and_tables_without_key(source: Source) -> None:
    source.execute(
        "CREATE TABLE p (id integer, part integer, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
        "CREATE TABLE bare (a integer)",
        "INSERT INTO p VALUES (1, 1), (2, 2)",
        "INSERT INTO bare VALUES (1)",
    )
    query = InProcess(source.options)
    rows = query.drain()
    source.execute("INSERT INTO p VALUES (3, 1)", "INSERT INTO bare VALUES (2)")
    rows += query.drain()
    query.stop()
    topics = sorted((row["topic"], row["key"], row["op"]) for row in rows if row["key"] is not None)
    assert topics == [
        ("test.public.p1", '{"id":1,"part":1}', "r"),
        ("test.public.p1", '{"id":3,"part":1}', "c"),
        ("test.public.p2", '{"id":2,"part":2}', "r"),
    ]
    assert [row["op"] for row in rows if row["table"] == "bare"] == ["r", "c"]


def test_each_event_has_the_schema_that_was_in_force(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, a text)")
    query = InProcess({**source.options, "snapshot.mode": "no_data"})
    query.drain()
    source.execute(
        "INSERT INTO t VALUES (1, 'x')",
        "ALTER TABLE t ADD b integer",
        "INSERT INTO t VALUES (2, 'x', 5)",
        "ALTER TABLE t DROP a",
        "INSERT INTO t VALUES (3, 6)",
        "ALTER TABLE t ALTER b TYPE text",
        "INSERT INTO t VALUES (4, 'y')",
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u VALUES (5, 'z')",
    )
    rows = query.drain()
    query.stop()
    assert [(row["topic"], payload(row)["after"]) for row in rows] == [
        ("test.public.t", {"id": 1, "a": "x"}),
        ("test.public.t", {"id": 2, "a": "x", "b": 5}),
        ("test.public.t", {"id": 3, "b": 6}),
        ("test.public.t", {"id": 4, "b": "y"}),
        ("test.public.u", {"id": 5, "b": "z"}),
    ]


def test_initial_only_ends_after_the_snapshot(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query = InProcess({**source.options, "snapshot.mode": "initial_only"})
    assert len(query.drain()) == 1
    source.execute("INSERT INTO t VALUES (2)")
    assert query.drain() == []
    query.stop()


def test_filtered_publication_follows_the_filters(source: Source) -> None:
    source.execute("CREATE TABLE a (id integer PRIMARY KEY)", "CREATE TABLE b (id integer PRIMARY KEY)")
    options = {**source.options, "publication.autocreate.mode": "filtered", "table.include.list": "public.a"}
    query = InProcess(options)
    query.drain()
    source.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    assert [row["table"] for row in query.drain()] == ["a"]
    query.stop()
    with psycopg.connect(source.conninfo) as conn:
        assert conn.execute("SELECT tablename FROM pg_publication_tables").fetchall() == [("a",)]


def test_idle_table_on_a_busy_server_releases_log(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    other = make_source(pg18, tmp_path / "other")
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    query = InProcess({**source.options, "snapshot.mode": "no_data"})
    query.drain()
    query.drain()
    slot = source.options["slot.name"]
    before = confirmed(source, slot)
    other.execute("CREATE TABLE noise AS SELECT g, repeat('n', 100) FROM generate_series(1, 20000) g")
    deadline = time.monotonic() + within(30)
    while confirmed(source, slot) == before and time.monotonic() < deadline:
        query.drain()
    assert confirmed(source, slot) > before
    query.stop()


def confirmed(source: Source, slot: str) -> int:
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute(
            "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s", [slot]
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_back_pressure_pauses_and_loses_nothing(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, note text)")
    options = {
        **source.options,
        "snapshot.mode": "no_data",
        "state.max.bytes": str(1 << 20),
        "segment.bytes": "65536",
        "max.batch.bytes": str(1 << 18),
    }
    query = InProcess(options)
    query.drain()
    source.execute("INSERT INTO t SELECT g, repeat('n', 200) FROM generate_series(1, 20000) g")
    query.reader.prepareForTriggerAvailableNow()
    rows, paused = [], False
    while True:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end == query.offset:
            break
        rows += query.run(end)
        query.reader.commit(query.offset)
        query.offset = end
        report = query.reader.reportLatestOffset()
        paused |= bool(report and report["capture_paused"])
    query.stop()
    assert paused
    assert len(rows) == 20000


def test_reports_tell_that_rows_wait(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v text)",
        "INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g",
    )
    query = InProcess({**source.options, "snapshot.chunk.bytes": "8192", "max.batch.bytes": "8192"})
    query.step()

    def report() -> dict[str, Any]:
        found = query.reader.reportLatestOffset()
        assert found is not None
        return found

    assert query.offset["snapshot"] is not None
    # Nothing is behind, or the log that waits: never "0 bytes" while rows do.
    assert report()["lag_bytes"] != 0
    assert report()["lag_seconds"] is None
    source.execute("INSERT INTO t VALUES (3000, 'y')")
    assert report()["lag_bytes"] > 0
    query.drain()
    assert report()["lag_seconds"] is not None
    assert (report()["tables_set_aside"], report()["set_aside"]) == (0, [])
    # As in a process that hasn't delivered a transaction yet.
    captured = query.reader._plan()._log
    captured.reached = (captured.reached[0], 0.0)
    source.execute("INSERT INTO t VALUES (3001, 'z')")
    assert report()["lag_bytes"] > 0
    assert report()["lag_seconds"] is None
    query.stop()


def test_reports_tell_that_the_rest_of_a_transaction_waits(source: Source) -> None:
    """All of its changes have the position of its commit, after which nothing may come."""
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    limits = {"max.batch.rows": "1000", "segment.bytes": "65536"}
    query = InProcess({**source.options, **limits, "snapshot.mode": "no_data"})
    query.step()
    source.execute("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 20000) g")
    delivered, lags = 0, []
    deadline = time.monotonic() + within(60)
    while delivered < 15000:
        assert time.monotonic() < deadline
        delivered += len(query.step())
        found = query.reader.reportLatestOffset()
        assert found is not None
        lags.append(found["lag_bytes"])
    query.drain()
    query.stop()
    # Segments are captured while others are delivered, so that mostly at least one waits.
    assert sorted(lags)[len(lags) // 2] > 60_000


def test_a_table_that_may_not_be_read_says_which_right_is_missing(source: Source) -> None:
    role = f"r_{source.dbname}"
    source.execute(
        "CREATE TABLE open (id integer PRIMARY KEY)",
        "CREATE TABLE shut (id integer PRIMARY KEY)",
        "CREATE PUBLICATION dbz_publication FOR TABLE open, shut",
        "INSERT INTO open VALUES (1)",
        "INSERT INTO shut VALUES (1)",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON open TO {role}",
    )
    query = InProcess({**source.options, "database.user": role, "publication.name": "dbz_publication"})
    assert [row["table"] for row in query.drain() if row["op"] == "r"] == ["open"]
    (excluded,) = query.offset["aside"]
    query.stop()
    source.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert "permission denied for table shut. GRANT SELECT" in str(excluded)


@pytest.mark.parametrize("value", ["none", "u,d"])
def test_skipped_operations(source: Source, value: str) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    query = InProcess({**source.options, "snapshot.mode": "no_data", "skipped.operations": value})
    query.drain()
    source.execute("INSERT INTO t VALUES (1, 1)", "UPDATE t SET v = 2", "DELETE FROM t", "TRUNCATE t")
    operations = [row["op"] for row in query.drain()]
    query.stop()
    assert operations == (["c", "u", "d", "d", "t"] if value == "none" else ["c", "t"])


def test_a_steady_trickle_is_delivered_while_it_goes_on(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    query = InProcess({**source.options, "snapshot.mode": "no_data"})
    reader = query.reader
    limit = reader.getDefaultReadLimit()
    query.offset = reader.latestOffset(query.offset, limit)
    stopping = threading.Event()

    def trickle() -> None:
        with psycopg.connect(source.conninfo, autocommit=True) as conn:
            number = 0
            while not stopping.is_set():
                number += 1
                conn.execute("INSERT INTO t VALUES (%s)", [number])

    writer = threading.Thread(target=trickle)
    writer.start()
    try:
        counts: list[int] = []
        deadline = time.monotonic() + within(10)
        while len(counts) < 5 and time.monotonic() < deadline:
            end = reader.latestOffset(query.offset, limit)
            if end != query.offset:
                counts.append(len(query.run(end)))
                query.offset = end
    finally:
        stopping.set()
        writer.join()
        query.stop()
    assert len(counts) == 5
    assert all(counts)
