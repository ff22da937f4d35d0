"""What is slow or locked at the source keeps a snapshot waiting, and not the stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import StatementTimeoutError
from floodmark.snapshots import patience
from floodmark.spark.stream.planning import new_tables, planner
from tests.conftest import Source, drop, make_source
from tests.integration.test_incremental import SIGNALS, over, query_of, signal
from tests.support.first_rows import first_rows, keys
from tests.support.inprocess import InProcess
from tests.support.patience import within

BOUND_MS = 400
BOUNDED = {"snapshot_statement_timeout_ms": str(BOUND_MS), "snapshot_new_tables": "parallel"}
# A micro-batch waits for one or two statements, on a machine that has other things to do.
MOST_S = within(6.0)


@pytest.fixture
def shop(pg18: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    source = make_source(pg18, tmp_path / "state")
    monkeypatch.setattr(patience.PutOff.__init__, "__defaults__", (0.5,))
    monkeypatch.setattr(new_tables, "EVERY_S", 0.3)
    # No signal may call a function; here those that sleep stand for what is slow.
    monkeypatch.setattr(PostgresTables, "row_filter", lambda *given: given[-1])
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer PRIMARY KEY, v integer DEFAULT 7, at timestamptz DEFAULT now())",
        "CREATE TABLE busy (id bigserial PRIMARY KEY, v integer DEFAULT 1)",
        "INSERT INTO t SELECT generate_series(1, 1000)",
    )
    yield source
    drop(source)


def streaming(source: Source, **options: str) -> InProcess:
    query = query_of(source, None, snapshot_mode="no_data", **BOUNDED, **options)
    query.drain()
    query.stop()
    return query_of(source, query.offset, snapshot_mode="no_data", **BOUNDED, **options)


def follow(
    source: Source, query: InProcess, done: Callable[[list[dict[str, Any]]], bool], most_s: float = MOST_S
) -> list[dict[str, Any]]:
    """Run micro-batches with a change beside each, which must come soon, until something has happened."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(90)
    count = 0
    finished = done(rows)
    while not finished:
        assert time.monotonic() < deadline
        count += 1
        source.execute("INSERT INTO busy DEFAULT VALUES")
        began = time.monotonic()
        while sum(row["table"] == "busy" for row in rows) < count:
            rows += query.step()
            finished = done(rows)
            assert time.monotonic() - began < most_s, "the stream waits"
    return rows


def asked(source: Source, condition: str) -> None:
    conditions = [{"data-collection": "public.t", "filter": condition}]
    signal(source, "execute-snapshot", data_collections=["public.t"], additional_conditions=conditions)


def ended(query: InProcess) -> Callable[[list[dict[str, Any]]], bool]:
    begun: list[bool] = []

    def done(_: list[dict[str, Any]]) -> bool:
        begun.extend([True] if not over(query.offset) else [])
        return bool(begun) and over(query.offset)

    return done


@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_a_condition_that_is_slow_where_no_row_fulfils_it(shop: Source, points: str) -> None:
    """Looking for the highest key would read the whole table; cut by its keys alone the table is read in time."""
    query = streaming(shop, incremental_snapshot_read_points=points, incremental_snapshot_chunk_size="64")
    asked(shop, "pg_sleep(0.001) IS NULL OR id % 100 = 0 AND id < 400")
    rows = follow(shop, query, ended(query))
    query.stop()
    assert keys(rows) == [100, 200, 300]
    assert query.offset["aside"] == []


def test_a_condition_of_which_each_row_takes_long(shop: Source) -> None:
    query = streaming(shop)
    asked(shop, "pg_sleep(0.002) IS NULL OR id <= 300 AND id % 2 = 0")
    rows = follow(shop, query, ended(query))
    query.stop()
    assert keys(rows) == list(range(2, 301, 2))
    assert query.offset["aside"] == []


@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_a_condition_that_takes_too_long_for_a_single_row(shop: Source, points: str) -> None:
    query = streaming(shop, incremental_snapshot_read_points=points)
    asked(shop, "pg_sleep(3600) IS NOT NULL")
    follow(shop, query, ended(query))
    query.stop()
    (aside,) = query.offset["aside"]
    assert aside["name"] == "public.t"
    assert aside["what"] == "incremental"
    assert "statement timeout" in aside["error"]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_a_table_that_is_locked(shop: Source, points: str, when: str) -> None:
    query = streaming(shop, incremental_snapshot_read_points=points, incremental_snapshot_chunk_size="10")
    with psycopg.connect(shop.conninfo) as other:
        if when == "meanwhile":
            signal(shop, "execute-snapshot", data_collections=["public.t"])
            rows = first_rows(query)
            other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        else:
            other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            signal(shop, "execute-snapshot", data_collections=["public.t"])
            rows = []
        until = time.monotonic() + 4 * BOUND_MS / 1000
        rows += follow(shop, query, lambda _: time.monotonic() > until)
        assert not over(query.offset)
    rows += follow(shop, query, lambda _: over(query.offset))
    query.stop()
    assert keys(rows) == list(range(1, 1001))
    assert query.offset["aside"] == [], "a lock says nothing against the table"


def test_changes_of_a_table_that_is_locked_when_they_are_decoded(shop: Source) -> None:
    """What the catalog says of its defaults is asked for while the lock is held."""
    query = streaming(shop)
    with psycopg.connect(shop.conninfo) as other:
        shop.execute("INSERT INTO t VALUES (5000)")
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        rows = follow(shop, query, lambda rows: keys(rows, "c") == [5000])
        other.execute("ALTER TABLE t ADD more integer DEFAULT 9")
        until = time.monotonic() + 2
        rows += follow(shop, query, lambda _: time.monotonic() > until)
    query.stop()
    assert keys(rows, "c") == [5000]


def test_the_signal_table_is_locked(shop: Source) -> None:
    query = streaming(shop, incremental_snapshot_read_points="watermarks", incremental_snapshot_chunk_size="10")
    signal(shop, "execute-snapshot", data_collections=["public.t"])
    rows = first_rows(query)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE signals IN ACCESS EXCLUSIVE MODE")
        until = time.monotonic() + 4 * BOUND_MS / 1000
        rows += follow(shop, query, lambda _: time.monotonic() > until)
        assert not over(query.offset)
    rows += follow(shop, query, lambda _: over(query.offset))
    query.stop()
    assert keys(rows) == list(range(1, 1001))
    assert query.offset["aside"] == []


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_new_table_that_is_locked(shop: Source, when: str) -> None:
    query = query_of(shop, None, table_include_list="public.busy", snapshot_mode="no_data", **BOUNDED)
    query.drain()
    query.stop()
    options = {"table_include_list": "public.busy,public.t", "snapshot_chunk_bytes": "8192", **BOUNDED}
    query = query_of(shop, query.offset, snapshot_mode="no_data", snapshot_max_threads="1", **options)
    rows: list[dict[str, Any]] = []
    with psycopg.connect(shop.conninfo) as other:
        if when == "meanwhile":
            rows += first_rows(query)
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        until = time.monotonic() + 4 * BOUND_MS / 1000
        rows += follow(shop, query, lambda _: time.monotonic() > until)
        assert query.offset["lane"] is not None
    rows += follow(shop, query, lambda _: query.offset["lane"] is None)
    query.stop()
    assert keys(rows) == list(range(1, 1001))
    assert query.offset["aside"] == []


def test_a_blocking_snapshot_of_a_table_that_is_locked(shop: Source) -> None:
    query = streaming(shop)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        signal(shop, "execute-snapshot", type="blocking", data_collections=["public.t"])
        until = time.monotonic() + 4 * BOUND_MS / 1000
        rows = follow(shop, query, lambda _: time.monotonic() > until)
        assert query.offset["snapshot"] is None
    rows += follow(shop, query, lambda rows: len(keys(rows)) == 1000 and query.offset["snapshot"] is None)
    query.stop()


def test_a_table_that_is_locked_does_not_hide_the_others(shop: Source) -> None:
    """Tables that come while another is locked are captured all the same."""
    query = streaming(shop)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        shop.execute("CREATE TABLE fresh (id integer PRIMARY KEY)", "INSERT INTO fresh VALUES (1)")
        rows = follow(shop, query, lambda rows: any(row["table"] == "fresh" for row in rows))
    query.stop()
    assert {row["key"] for row in rows if row["table"] == "fresh"} == {'{"id":1}'}


def test_a_query_that_ends_waits_for_a_lock(shop: Source) -> None:
    query = streaming(shop)
    signal(shop, "execute-snapshot", data_collections=["public.t"])
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        follow(shop, query, lambda _: not over(query.offset))
        other.execute("SET LOCAL statement_timeout = 0")
    rows = query.drain()
    query.stop()
    assert keys(rows) == list(range(1, 1001))


def in_the_middle_of_a_snapshot(source: Source) -> InProcess:
    """Return a query whose initial snapshot goes on at another read point, where nothing has been read yet."""
    query = query_of(source, None, snapshot_mode="initial", **BOUNDED)
    # Planned, and read by no task.
    query.offset = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.restart()
    source.execute("INSERT INTO busy DEFAULT VALUES")
    query.step()
    assert query.offset["snapshot"] is not None
    return query


def test_a_query_that_ends_waits_for_a_lock_in_the_middle_of_its_snapshot(shop: Source) -> None:
    query = in_the_middle_of_a_snapshot(shop)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        release = threading.Timer(4 * BOUND_MS / 1000, other.rollback)
        release.start()
        query.drain()
        release.join()
    query.stop()
    assert query.offset["snapshot"] is None


def test_a_query_that_ends_does_not_end_well_if_its_snapshot_waits_for_too_long(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ENDING_PATIENCE_S", 1.0)
    query = in_the_middle_of_a_snapshot(shop)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StatementTimeoutError, match="the sizes of the tables"):
            query.drain()
    query.drain()
    query.stop()
    assert query.offset["snapshot"] is None


def test_a_replica_identity_that_is_to_be_set_on_a_table_that_is_locked(shop: Source) -> None:
    query = streaming(shop)
    query.drain()
    query.stop()
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE t IN ACCESS SHARE MODE")
        identity = {"replica_identity_autoset_values": "public.t:FULL"}
        query = query_of(shop, query.offset, **BOUNDED, **identity)
        follow(shop, query, lambda rows: bool(rows), most_s=within(20.0))
        query.stop()
    query = query_of(shop, query.offset, **BOUNDED, **identity)
    query.drain()
    query.stop()
    with psycopg.connect(shop.conninfo) as conn:
        assert conn.execute("SELECT relreplident::text FROM pg_class WHERE relname = 't'").fetchall() == [("f",)]
