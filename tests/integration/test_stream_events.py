"""What a stream holds beside rows: transaction metadata, logical decoding messages, heartbeats."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from typing import Any

import psycopg
import pytest

from floodmark.connectors import side_statements
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.patience import within
from tests.support.recording import Recorder

SMALL = {"segment.bytes": "65536", "max.batch.rows": "300", "snapshot.mode": "no_data"}
METADATA = {**SMALL, "provide.transaction.metadata": "true"}
FILL = "repeat('x', 300)"
WAIT_S = within(20.0)


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute(
        "CREATE TABLE plain (id integer PRIMARY KEY, v text)",
        "CREATE TABLE whole (id integer PRIMARY KEY, v text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE unwanted (id integer PRIMARY KEY, v text)",
    )
    return source


LARGE = f"""
    INSERT INTO plain SELECT g, {FILL} FROM generate_series(1, 700) g;
    INSERT INTO unwanted SELECT g, {FILL} FROM generate_series(1, 500) g;
    INSERT INTO whole SELECT g, {FILL} FROM generate_series(1, 400) g;
    UPDATE plain SET id = id + 10000 WHERE id % 2 = 0;
    UPDATE whole SET id = id + 10000 WHERE id % 3 = 0;
    UPDATE whole SET v = 'y' || v;
    SELECT pg_logical_emit_message(true, 'note ' || g % 3, {FILL}) FROM generate_series(1, 300) g;
    DELETE FROM plain WHERE id > 10000;
    TRUNCATE unwanted, whole;
    INSERT INTO plain SELECT g, {FILL} FROM generate_series(20001, 20400) g
"""


def check_transactions(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Prove that places and counts are those of the events; return how many transactions had how many events."""
    assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)
    found: dict[str, int] = {}
    told = [row for row in rows if row["value"] is not None]
    for xid, of_one in itertools.groupby(told, lambda row: row["txid"]):
        first, *events, last = of_one
        assert first["topic"] == last["topic"] == "test.transaction"
        begin, end = json.loads(first["value"]), json.loads(last["value"])
        assert (begin["status"], end["status"]) == ("BEGIN", "END")
        assert json.loads(first["key"]) == {"id": begin["id"]}
        assert json.loads(last["key"]) == {"id": end["id"]}
        counts: Counter[str] = Counter()
        for number, row in enumerate(events, 1):
            value = json.loads(row["value"])
            source, block = value["source"], value["transaction"]
            table = f"{source['schema']}.{source['table']}" if source["table"] else "LOGICAL_DECODING_MESSAGE"
            counts[table] += 1
            assert block == {
                "id": f"{xid}:{source['lsn']}",
                "total_order": number,
                "data_collection_order": counts[table],
            }
            assert source["txId"] == int(xid)
        assert end["event_count"] == len(events)
        assert {one["data_collection"]: one["event_count"] for one in end["data_collections"]} == dict(counts)
        assert xid not in found
        found[xid] = len(events)
    return found


def test_orders_and_counts_of_a_transaction_in_many_micro_batches(shop: Source) -> None:
    options = {"table.exclude.list": "public.unwanted", "skipped.operations": "none", **METADATA}
    query = InProcess({**shop.options, **options})
    query.drain()
    shop.execute("INSERT INTO plain VALUES (0, 'before')", LARGE, "DELETE FROM plain WHERE id = 1")
    rows = query.drain()
    query.stop()
    assert query.batches > 10
    inserted, moved = 700 + 400 + 400, 351 + 133
    updated, said, deleted, emptied = 400, 300, 350, 1
    large = inserted + 2 * moved + updated + said + deleted + emptied
    assert list(check_transactions(rows).values()) == [1, large, 1]


def test_orders_and_counts_after_restarts_in_the_middle(shop: Source) -> None:
    query = InProcess({**shop.options, **METADATA, "skipped.operations": "none"})
    query.drain()
    query.restart()
    shop.execute(LARGE, "INSERT INTO plain VALUES (0, 'after')")
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(60)
    while not (rows and rows[-1]["topic"] == "test.transaction" and query.offset["log"] > rows[-1]["position"]):
        before = query.offset
        end = query.reader.latestOffset(before, query.reader.getDefaultReadLimit())
        batch = query.run(end)
        # A batch that is delivered again, by a new process, is the same.
        if end["log"].partition("-")[2].strip("0"):
            query.restart()
            again = query.run(end)
            assert [(row["key"], row["position"]) for row in again] == [(row["key"], row["position"]) for row in batch]
        query.offset = end
        query.reader.commit(end)
        rows += batch
        assert time.monotonic() < deadline
        if len(check_complete(rows)) == 2:
            break
    query.stop()
    assert len(check_transactions(rows)) == 2


def check_complete(rows: list[dict[str, Any]]) -> list[str]:
    return [row["txid"] for row in rows if row["topic"] == "test.transaction" and '"END"' in row["value"]]


def test_messages_outside_of_transactions_keep_their_place(shop: Source) -> None:
    query = InProcess({**shop.options, "snapshot.mode": "no_data"})
    query.drain()
    query.restart()
    sent = 0
    rows: list[dict[str, Any]] = []
    for number in range(4):
        shop.execute(
            f"SELECT pg_logical_emit_message(false, 'm', '{number} a')",
            f"INSERT INTO plain VALUES ({number}, 'x')",
            f"SELECT pg_logical_emit_message(false, 'm', '{number} b')",
            f"SELECT pg_logical_emit_message(false, 'm', '{number} c')",
            "SELECT pg_logical_emit_message(true, 'flush', '')",
        )
        sent += 5
        deadline = time.monotonic() + WAIT_S
        while len(rows) < sent:
            before = query.offset
            end = query.reader.latestOffset(before, query.reader.getDefaultReadLimit())
            batch = query.run(end) if end != before else []
            if number % 2 and batch:
                query.restart()
                assert [row["key"] for row in query.run(end)] == [row["key"] for row in batch]
            query.offset = end
            query.reader.commit(end)
            rows += batch
            assert time.monotonic() < deadline
        if number == 2:
            query.restart()
    query.stop()
    assert [row["op"] for row in rows] == ["m", "c", "m", "m", "m"] * 4
    places = [row["position"] for row in rows]
    assert places == sorted(set(places))
    outside = [row for row in rows if row["op"] == "m" and '"m"' in row["key"]]
    assert all(row["txid"] is None for row in outside)
    for row in outside:
        source = json.loads(row["value"])["source"]
        assert source["sequence"] == f'["{source["lsn"]}","{source["lsn"]}"]'


def test_floodmarks_own_messages_are_nobodys_event(shop: Source) -> None:
    query = InProcess({**shop.options, **METADATA})
    query.drain()
    shop.execute("SELECT pg_logical_emit_message(true, 'floodmark', '')", "INSERT INTO plain VALUES (1, 'x')")
    rows = query.drain()
    query.stop()
    assert [row["topic"] for row in rows] == ["test.transaction", "test.public.plain", "test.transaction"]


def test_typed_rows_are_rows_only(shop: Source) -> None:
    options = {"table.include.list": "public.plain", "format": "rows", "heartbeat.interval.ms": "1", **METADATA}
    query = InProcess({**shop.options, **options})
    query.drain()
    shop.execute("SELECT pg_logical_emit_message(true, 'x', '')", "INSERT INTO plain VALUES (1, 'x')")
    rows = query.drain()
    query.stop()
    assert [row["after"] for row in rows] == [{"id": 1, "v": "x"}]


def beats(rows: list[dict[str, Any]]) -> list[int]:
    return [json.loads(row["value"])["ts_ms"] for row in rows if row["topic"] == "__debezium-heartbeat.test"]


def test_heartbeats_come_without_other_events_and_again_with_a_repeated_batch(shop: Source) -> None:
    shop.execute("CREATE TABLE pulse (id integer PRIMARY KEY, n integer)", "INSERT INTO pulse VALUES (1, 0)")
    action = "UPDATE pulse SET n = n + 1"
    options = {"snapshot.mode": "no_data", "heartbeat.interval.ms": "200", "heartbeat.action.query": action}
    query = InProcess({**shop.options, **options, "table.include.list": "public.plain"})
    deadline = time.monotonic() + WAIT_S
    times: list[int] = []
    while len(times) < 3:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end != query.offset:
            found = query.run(end)
            assert found == query.run(end)
            assert all(row["position"] == f"{end['log']}-00" for row in found)
            times += beats(found)
            query.offset = end
            query.reader.commit(end)
        assert time.monotonic() < deadline
    query.stop()
    assert times == sorted(set(times))
    with psycopg.connect(shop.conninfo) as conn:
        row = conn.execute("SELECT n FROM pulse").fetchone()
    assert row is not None
    assert 2 <= row[0] <= 4


def test_a_heartbeat_alone_forgets_no_signal_that_was_taken(shop: Source) -> None:
    query = InProcess({**shop.options, "snapshot.mode": "no_data", "heartbeat.interval.ms": "1"})
    deadline = time.monotonic() + WAIT_S
    while not beats(query.step()):
        assert time.monotonic() < deadline
    query.offset = {**query.offset, "taken": ["receipt"]}
    end = query.offset
    while end == query.offset:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        assert time.monotonic() < deadline
    query.stop()
    assert (end["heartbeat"] is not None, end["taken"]) == (True, ["receipt"])


def test_heartbeats_dont_keep_a_query_going_that_ends(shop: Source) -> None:
    query = InProcess({**shop.options, "heartbeat.interval.ms": "1"})
    assert len(beats(query.drain())) >= 1  # the snapshot's end
    shop.execute("INSERT INTO plain VALUES (1, 'x')")
    rows = query.drain()
    assert len(beats(rows)) == 1
    assert len(rows) == 2
    assert query.drain() == []
    query.stop()


def test_a_failing_heartbeat_action_is_logged(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, side_statements.__name__)
    options = {"snapshot.mode": "no_data", "heartbeat.interval.ms": "1", "heartbeat.action.query": "SELECT 1/0"}
    query = InProcess({**shop.options, **options})
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + WAIT_S
    while not recorder.of("heartbeat_action_failed"):
        rows += query.step()
        assert time.monotonic() < deadline
    shop.execute("INSERT INTO plain VALUES (1, 'x')")
    while not any(row["op"] == "c" for row in rows):
        rows += query.step()
        assert time.monotonic() < deadline
    query.stop()
    assert "division by zero" in recorder.of("heartbeat_action_failed")[0]["error"]
    assert beats(rows)


def test_an_action_that_hangs_holds_nothing_up(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, side_statements.__name__)
    options = {
        "snapshot.mode": "no_data",
        "heartbeat.interval.ms": "1",
        "heartbeat.action.query": "SELECT pg_sleep(100)",
    }
    query = InProcess({**shop.options, **options})
    deadline = time.monotonic() + WAIT_S
    while not recorder.of("heartbeat_action_is_slow"):
        query.step()
        assert time.monotonic() < deadline
    query.stop()
    assert time.monotonic() < deadline


def test_xmin_is_the_slots(shop: Source) -> None:
    query = InProcess({**shop.options, "snapshot.mode": "no_data", "xmin.fetch.interval.ms": "1"})
    query.drain()
    shop.execute("INSERT INTO plain VALUES (1, 'x')")
    (row,) = query.drain()
    with psycopg.connect(shop.conninfo) as conn:
        found = conn.execute(
            "SELECT catalog_xmin::text::bigint FROM pg_replication_slots WHERE slot_name = %s",
            [shop.options["slot.name"]],
        ).fetchone()
    query.stop()
    assert found is not None
    assert json.loads(row["value"])["source"]["xmin"] == found[0]
