"""What a user gets wrong ends in one clear error, before or instead of work."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from floodmark.capture.store import SegmentStore
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import (
    CheckpointError,
    ConfigError,
    ConnectError,
    FloodmarkError,
    LogGoneError,
    SlotBusyError,
    SourceStateError,
    StateDirError,
)
from tests.conftest import Source
from tests.support.batch import wait_for
from tests.support.inprocess import InProcess
from tests.support.patience import within

RUN = "[0-9a-f]" * 32
"""The names of the directories that hold segments."""


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute("CREATE TABLE orders (id integer PRIMARY KEY, note text)", "INSERT INTO orders VALUES (1, 'a')")
    return source


def run(options: dict[str, str]) -> None:
    """Run a query until it has caught up."""
    query = InProcess(options)
    try:
        query.drain()
    finally:
        query.stop()


def fails(options: dict[str, str], error: type[FloodmarkError], *words: str) -> None:
    """Run a query and expect one error that has all the words and no secret."""
    with pytest.raises(error) as raised:
        run(options)
    text = str(raised.value)
    for word in words:
        assert word in text
    assert "s3cret" not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("tabel.include.list", "x", ["tabel.include.list", "table.include.list"]),
        ("max.batch.rows", "many", ["max.batch.rows", "many", "whole number"]),
        ("max.batch.rows", "0", ["max.batch.rows", "at least 1"]),
        ("table.include.list", "public.(", ["table.include.list", "regular expression"]),
        ("snapshot.mode", "intial", ["snapshot.mode", "intial", "initial, initial_only, no_data", "Did you mean"]),
        ("slot.name", "My-Slot", ["slot.name", "My-Slot"]),
        ("skipped.operations", "x", ["skipped.operations", "c, u, d, t"]),
    ],
)
def test_wrong_option(shop: Source, option: str, value: str, words: list[str]) -> None:
    fails({**shop.options, option: value}, ConfigError, *words)


def test_missing_option(shop: Source) -> None:
    del shop.options["topic.prefix"]
    fails(shop.options, ConfigError, "topic.prefix", "required")


def test_unreachable_server(shop: Source) -> None:
    fails({**shop.options, "database.port": "1", "database.password": "s3cret"}, ConnectError, "127.0.0.1:1")


def test_wrong_database(shop: Source) -> None:
    fails({**shop.options, "database.dbname": "nowhere"}, ConnectError, "nowhere", "does not exist")


def test_role_without_replication(shop: Source) -> None:
    shop.execute(f"CREATE ROLE weak_{shop.dbname} LOGIN PASSWORD 's3cret'")
    options = {**shop.options, "database.user": f"weak_{shop.dbname}", "database.password": "s3cret"}
    fails(options, FloodmarkError, "REPLICATION")


def test_missing_table(shop: Source) -> None:
    fails({**shop.options, "table.include.list": "public.odrers"}, SourceStateError, "public.odrers")


def test_publication_disabled(shop: Source) -> None:
    options = {**shop.options, "publication.autocreate.mode": "disabled"}
    fails(options, SourceStateError, "dbz_publication", "disabled")


def test_a_publication_for_all_tables_cannot_be_filtered(shop: Source) -> None:
    shop.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    options = {**shop.options, "publication.autocreate.mode": "filtered"}
    fails(options, SourceStateError, "dbz_publication", "for all tables", "all_tables", "publication.name")


def wait_until_read(shop: Source) -> None:
    """Wait until a query's capture has its connection, for which nothing else waits."""
    active = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{shop.options['slot.name']}'"
    with psycopg.connect(shop.conninfo, autocommit=True) as conn:
        deadline = time.monotonic() + within(60)
        while conn.execute(active).fetchone() != (True,):
            assert time.monotonic() < deadline, "nothing reads the slot"
            time.sleep(0.05)


def test_two_queries_on_one_slot(shop: Source, tmp_path: Path) -> None:
    first = InProcess(shop.options)
    first.drain()
    try:
        wait_until_read(shop)
        options = {**shop.options, "slot.max.retries": "1", "slot.retry.delay.ms": "300"}
        fails(options, SlotBusyError, shop.options["slot.name"], "in use")
    finally:
        first.stop()


def test_a_query_goes_on_when_the_slot_is_free(shop: Source) -> None:
    earlier = InProcess(shop.options)
    earlier.drain()
    earlier.stop()
    (owned,) = Path(shop.options["state.dir"]).iterdir()
    left = owned / "left"
    left.mkdir()
    first = InProcess(shop.options, earlier.offset)
    shop.execute("INSERT INTO orders VALUES (2, 'b')")
    first.drain()
    second = InProcess(shop.options, first.offset)
    shop.execute("INSERT INTO orders VALUES (3, 'c')")
    try:
        wait_until_read(shop)
        # It has the slot before it removes what others have left, which may be the second query's otherwise.
        wait_for(lambda: not left.exists(), "the first query doesn't take over")
        (reading,) = owned.glob(RUN)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(second.drain)
            try:
                wait_for(lambda: len(list(owned.glob(RUN))) > 1, "the second query has no directory")
                # As the first query does when it has lost its connection and is back before the second notices.
                SegmentStore(shop.options["state.dir"], owned.name, reading.name).take_over()
            finally:
                first.stop()
            assert [json.loads(row["value"])["after"]["id"] for row in waiting.result()] == [3]
    finally:
        second.stop()


def test_checkpoint_of_another_source(shop: Source) -> None:
    query = InProcess(shop.options)
    query.drain()
    offset = query.offset
    query.stop()
    offset["source"]["system"] = "1"
    other = InProcess(shop.options, offset)
    with pytest.raises(CheckpointError, match="another source"):
        other.drain()
    other.stop()


def test_slot_dropped_under_a_checkpoint(shop: Source) -> None:
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    shop.execute(f"SELECT pg_drop_replication_slot('{shop.options['slot.name']}')")
    again = InProcess(shop.options, query.offset)
    with pytest.raises(LogGoneError, match=r"does not exist any more.*Ways out"):
        again.drain()
    again.stop()


def test_slot_made_again_under_a_checkpoint(shop: Source) -> None:
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    name = shop.options["slot.name"]
    shop.execute(
        f"SELECT pg_drop_replication_slot('{name}')",
        "INSERT INTO orders VALUES (2, 'lost')",
        f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')",
    )
    again = InProcess(shop.options, query.offset)
    with pytest.raises(LogGoneError, match="beyond the checkpoint"):
        again.drain()
    again.stop()


def test_state_dir_unwritable(shop: Source) -> None:
    fails({**shop.options, "state.dir": "/proc/floodmark"}, StateDirError, "state.dir", "/proc/floodmark")


def test_rows_of_two_tables(shop: Source) -> None:
    shop.execute("CREATE TABLE other (id integer PRIMARY KEY)")
    fails({**shop.options, "format": "rows"}, ConfigError, "exactly one", "public.orders, public.other")


@pytest.fixture(scope="module")
def replica_level() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(18, {"wal_level": "replica"}) as server:
        yield server


def test_wal_level(replica_level: EmbeddedPostgres, tmp_path: Path) -> None:
    options = {**replica_level.options(), "topic.prefix": "p", "state.dir": str(tmp_path)}
    fails(options, SourceStateError, "wal_level", "replica", "logical")


def test_wrong_password(tmp_path: Path) -> None:
    with EmbeddedPostgres(16) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc LOGIN REPLICATION PASSWORD 'right'")
        hba = server.data / "pg_hba.conf"
        hba.write_text("host all cdc 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n")
        server.run_tool("psql", "-c", "SELECT pg_reload_conf()", server.conninfo(), capture_output=True)
        options = {**server.options(), "database.user": "cdc", "database.password": "s3cret", "topic.prefix": "p"}
        fails({**options, "state.dir": str(tmp_path)}, ConnectError, "cdc", "password")
