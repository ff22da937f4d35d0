"""A second lane: new tables are read while the log of the others goes on, and catch up (DBZ-175)."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.planning import new_tables
from tests.conftest import Source
from tests.integration.test_incremental import query_of
from tests.support.inprocess import InProcess

ROWS = 2000
OPTIONS = {
    "publication_autocreate_mode": "filtered",
    "snapshot_new_tables": "parallel",
    "snapshot_chunk_bytes": "8192",
    "snapshot_batch_target_ms": "200",
    "notification_enabled_channels": "sink",
    "notification_sink_topic_name": "told",
}


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute("CREATE TABLE old (id integer PRIMARY KEY)", "CREATE TABLE new (id integer PRIMARY KEY, v text)")
    source.execute(f"INSERT INTO new SELECT g, repeat('v', 300) FROM generate_series(1, {ROWS}) g")
    return source


def states(rows: list[dict[str, Any]]) -> dict[int, list[str | None]]:
    """Return what each row of the table ``new`` was in turn: the first letter of ``v``, None if deleted."""
    found: dict[int, list[str | None]] = {}
    for row in rows:
        if row["table"] == "new" and row["value"] is not None:
            after = json.loads(row["value"])["after"]
            key = json.loads(row["key"])["id"]
            found.setdefault(key, []).append(None if after is None else after["v"][:1])
    return found


def at(offset: dict[str, Any]) -> str:
    """Return what a second lane does."""
    lane = offset["lane"]
    if lane is None:
        return "one lane"
    return "begins" if not lane["position"] else "reads" if lane["snapshot"] else "catches up"


def extended(source: Source) -> InProcess:
    """Return a query that is started again with one more table."""
    query = query_of(source, None, table_include_list="public.old", **OPTIONS)
    query.drain()
    query.stop()
    return query_of(source, query.offset, table_include_list="public.old,public.new", **OPTIONS)


def change(source: Source, step: int) -> None:
    source.execute(
        f"INSERT INTO old VALUES ({step})",
        f"INSERT INTO new VALUES ({ROWS + step}, 'i')",
        f"UPDATE new SET v = 'u' WHERE id % 50 = {step % 50}",
        f"DELETE FROM new WHERE id = {step * 7}",
    )


def test_transactions_are_told_once_and_count_both_lanes(shop: Source) -> None:
    options = {**OPTIONS, "provide_transaction_metadata": "true"}
    query = query_of(shop, None, table_include_list="public.old", **options)
    query.drain()
    query.stop()
    query = query_of(shop, query.offset, table_include_list="public.old,public.new", **options)
    rows: list[dict[str, Any]] = []
    phases: list[str] = []
    while "reads" not in phases or phases[-1] != "one lane":
        step = len(phases) + 1
        shop.execute(f"INSERT INTO old VALUES ({step}); UPDATE new SET v = 'u' || v WHERE id = {step}")
        rows += query.step()
        phases.append(at(query.offset))
    rows += query.drain()
    query.stop()
    told = [json.loads(row["value"]) for row in rows if row["topic"] == "test.transaction"]
    for status in ("BEGIN", "END"):
        ids = [one["id"].partition(":")[0] for one in told if one["status"] == status]
        assert len(ids) == len(set(ids)) == len(told) / 2
    # The first one was committed before the new table was published.
    assert {one["event_count"] for one in told[2:] if one["status"] == "END"} == {2}
    changes = [row for row in rows if row["op"] in ("c", "u")]
    for table, order in (("old", 1), ("new", 2)):
        blocks = [json.loads(row["value"])["transaction"] for row in changes if row["table"] == table]
        assert {(block["total_order"], block["data_collection_order"]) for block in blocks} == {(order, 1)}
        assert len({block["id"] for block in blocks}) == len(blocks) > 0


@pytest.mark.parametrize("dies", [False, True])
def test_the_others_go_on_meanwhile(shop: Source, dies: bool) -> None:
    query = extended(shop)
    rows: list[dict[str, Any]] = []
    phases: list[str] = []
    seen_old: set[str] = set()
    for step in range(1, 1000):
        change(shop, step)
        batch = query.step()
        phases.append(at(query.offset))
        if any(row["table"] == "old" for row in batch):
            seen_old.add(phases[-1])
        if phases[-1] == "reads" and phases.count("reads") > 1:
            assert {row["op"] for row in batch if row["table"] == "new"} <= {"r"} or dies
        rows += batch
        # Each death costs what is under way, so with a slow machine the lane would never end.
        if dies and step % 10 == 0 and step <= 100:
            query.stop()
            query = query_of(shop, query.offset, table_include_list="public.old,public.new", **OPTIONS)
        if "reads" in phases and phases[-1] == "one lane":
            break
    rows += query.drain()
    query.stop()
    assert phases[-1] == "one lane"
    assert "reads" in seen_old
    found = states(rows)
    with_rows = {key: history[-1] for key, history in found.items() if history[-1] is not None}
    with psycopg.connect(shop.conninfo) as conn:
        assert with_rows == dict(conn.execute("SELECT id, left(v, 1) FROM new").fetchall())
    for history in found.values():
        # Rows begin as they were or are inserted, may be updated and deleted, and never go back.
        order = [("v", "i").index(s) if s in ("v", "i") else 2 if s == "u" else 3 for s in history]
        assert [min(o, 1) if o < 2 else o for o in order] == sorted(min(o, 1) if o < 2 else o for o in order)
    told = [json.loads(row["value"])["type"] for row in rows if row["topic"] == "told"]
    assert (told[0], told[-1]) == ("STARTED", "COMPLETED")


def test_a_table_that_is_created_while_the_query_runs(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_tables, "EVERY_S", 0.0)
    source.execute("CREATE TABLE old (id integer PRIMARY KEY)")
    query = query_of(source, None, table_include_list=r"public\..*", **OPTIONS)
    query.drain()
    query.restart()
    query.step()
    source.execute("CREATE TABLE new (id integer PRIMARY KEY, v text)", "INSERT INTO new VALUES (1, 'v')")
    rows = query.step()
    assert at(query.offset) != "one lane"
    source.execute("INSERT INTO new VALUES (2, 'i')")
    rows += query.drain()
    source.execute("UPDATE new SET v = 'u' WHERE id = 1")
    rows += query.drain()
    query.stop()
    assert at(query.offset) == "one lane"
    found = states(rows)
    assert found[1][-2:] == ["v", "u"]
    assert found[2][-1] == "i"


def test_the_source_keeps_the_log_that_the_lane_needs(shop: Source) -> None:
    query = extended(shop)
    while at(query.offset) != "reads":
        query.step()
    position = query.offset["lane"]["position"]
    change(shop, 1)
    while query.offset["log"] <= position:
        query.step()
    query.step()
    with psycopg.connect(shop.conninfo) as conn:
        confirmed = conn.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
            [shop.options["slot.name"]],
        ).fetchone()
    assert confirmed is not None
    high, low = confirmed[0].split("/")
    assert f"{int(high, 16):08X}{int(low, 16):08X}" <= position[:16]
    query.stop()


def test_a_lane_that_is_ahead_of_the_others_waits_for_them(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new read point lies where the log ends by then; the others may not have been delivered so far."""
    source.execute("CREATE TABLE old (id integer PRIMARY KEY)", "CREATE TABLE new (id integer PRIMARY KEY, v integer)")
    source.execute("INSERT INTO new SELECT g, 0 FROM generate_series(1, 20) g")
    query = extended(source)
    batches: list[list[dict[str, Any]]] = []
    while at(query.offset) != "reads":
        batches.append(query.step())
    for _ in range(3):
        source.execute("UPDATE new SET v = v + 1")
    offset = query.offset
    query.stop()
    query = query_of(source, offset, table_include_list="public.old,public.new", **OPTIONS)
    with monkeypatch.context() as patch:
        # Capture has nothing yet when the others look, as on a machine with too much to do.
        patch.setattr(CapturedLog, "wait_briefly", lambda _log, after, *_: after)
        batches += [query.step() for _ in range(10)]
    while at(query.offset) != "one lane":
        batches.append(query.step())
    batches.append(query.drain())
    query.stop()
    seen: dict[int, list[int]] = {}
    for batch in batches:
        for row in sorted(batch, key=lambda row: str(row["position"])):
            if row["table"] == "new" and row["value"]:
                after = json.loads(row["value"])["after"]
                seen.setdefault(after["id"], []).append(after["v"])
    assert {key: states[-1] for key, states in seen.items()} == dict.fromkeys(range(1, 21), 3)
    assert [states for states in seen.values() if states != sorted(states)] == []
