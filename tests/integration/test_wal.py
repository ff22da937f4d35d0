"""What holds the server's log back: it is released in the end, or the error names the cause and the cure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import LogGoneError
from tests.conftest import Source, make_source
from tests.support.inprocess import InProcess
from tests.support.patience import within

WAIT_S = within(60.0)
SMALL_LOG = {"max_slot_wal_keep_size": "16MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}


@pytest.fixture
def server(pg18: EmbeddedPostgres) -> EmbeddedPostgres:
    return pg18


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE busy (id bigserial, v text)")
    source.options.update({"snapshot.mode": "no_data", "table.include.list": "public.t"})
    return source


def lsn(source: Source, column: str) -> int:
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute(
            f"SELECT {column} - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s",
            [source.options["slot.name"]],
        ).fetchone()
    assert row is not None
    return int(row[0])


def end_of_log(source: Source) -> int:
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])


def run_until(query: InProcess, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        query.drain()
        assert time.monotonic() < deadline


def write_much(source: Source) -> None:
    source.execute("INSERT INTO busy (v) SELECT repeat('x', 200) FROM generate_series(1, 5000)", "CHECKPOINT")


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
def test_an_idle_table_beside_busy_ones_releases_log(shop: Source, mode: str) -> None:
    query = InProcess({**shop.options, "publication.autocreate.mode": mode})
    query.drain()
    query.drain()
    write_much(shop)
    end = end_of_log(shop)
    run_until(query, lambda: lsn(shop, "confirmed_flush_lsn") >= end)
    shop.execute("INSERT INTO t VALUES (1)")
    assert len(query.drain()) == 1
    query.stop()


def test_a_long_transaction_holds_log_back_until_it_ends(shop: Source) -> None:
    query = InProcess(shop.options)
    query.drain()
    with psycopg.connect(shop.conninfo) as long:
        long.execute("INSERT INTO t VALUES (1)")
        begun = end_of_log(shop)
        write_much(shop)
        shop.execute("INSERT INTO t VALUES (2)")
        assert [row["key"] for row in query.drain()] == ['{"id":2}']
        end = end_of_log(shop)
        run_until(query, lambda: lsn(shop, "confirmed_flush_lsn") >= end)
        # What the transaction has written is still needed, so that it can be decoded when it is committed.
        assert lsn(shop, "restart_lsn") <= begun
        long.commit()
    assert [row["key"] for row in query.drain()] == ['{"id":1}']
    write_much(shop)

    def released() -> bool:
        shop.execute("SELECT pg_log_standby_snapshot()")  # which the server itself logs every 15 seconds
        return lsn(shop, "restart_lsn") > begun

    run_until(query, released)
    query.stop()


@pytest.fixture(scope="module")
def small_log() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(18, SMALL_LOG) as made:
        yield made


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_slot_that_fell_too_far_behind_is_told_with_the_cure(
    small_log: EmbeddedPostgres, tmp_path: Path, running: bool
) -> None:
    source = make_source(small_log, tmp_path / "state")
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE busy (id bigserial, v text)")
    source.options["snapshot.mode"] = "no_data"
    query = InProcess(source.options)
    query.drain()
    source.execute("INSERT INTO t VALUES (1)")
    query.drain()
    query.restart()
    deadline = time.monotonic() + WAIT_S
    if running:
        source.execute("INSERT INTO t VALUES (2)")
        while not query.step():
            assert time.monotonic() < deadline
    # Nobody commits a micro-batch meanwhile, so the slot stays where it is.
    while lost(source) != "lost":
        write_much(source)
        assert time.monotonic() < deadline
    with pytest.raises(LogGoneError, match=r"invalidated.*max_slot_wal_keep_size.*Ways out.*when_needed"):
        step_until(query, deadline)
    query.stop()


def step_until(query: InProcess, deadline: float) -> None:
    while time.monotonic() < deadline:
        query.step()


def lost(source: Source) -> str:
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute(
            "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", [source.options["slot.name"]]
        ).fetchone()
    assert row is not None
    return str(row[0])
