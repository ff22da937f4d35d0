"""A ``filtered`` publication follows the filters without keeping the stream waiting, and without a gap."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import connection
from floodmark.connectors.postgres.server.publication import ensure_publication
from floodmark.errors import LogGoneError, SourceStateError
from floodmark.spark.stream.planning import new_tables
from tests.conftest import Source
from tests.integration.test_incremental import query_of
from tests.support.inprocess import InProcess
from tests.support.patience import within

FILTERED = {"publication_autocreate_mode": "filtered"}


def published(source: Source) -> list[tuple[Any, ...]]:
    """Return the tables of the publication, each with its row in the catalog, which a SET TABLE would replace."""
    with psycopg.connect(source.conninfo) as conn:
        query = "SELECT prrelid::regclass::text, oid FROM pg_publication_rel ORDER BY 1"
        return conn.execute(query).fetchall()


def names(source: Source) -> list[str]:
    return [name for name, _ in published(source)]


def until(query: InProcess, done: Callable[[], bool]) -> list[dict[str, Any]]:
    """Run micro-batches as a query with a processing-time trigger does."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(60)
    while not done():
        assert time.monotonic() < deadline
        rows += query.step()
    return rows


@pytest.fixture
def shop(source: Source, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(new_tables, "EVERY_S", 0.2)
    monkeypatch.setattr(new_tables, "LATE_EVERY_S", 0.2)
    source.execute("CREATE TABLE a (id integer PRIMARY KEY)", "CREATE TABLE b (id integer PRIMARY KEY)")
    return source


def test_a_publication_that_is_right_is_left_alone(shop: Source) -> None:
    query = query_of(shop, None, snapshot_new_tables="incremental", **FILTERED)
    query.drain()
    query.stop()
    before = published(shop)
    assert [name for name, _ in before] == ["a", "b"]
    with psycopg.connect(shop.conninfo) as other:
        # What an ALTER PUBLICATION of these tables would wait for.
        other.execute("LOCK TABLE a, b IN SHARE UPDATE EXCLUSIVE MODE")
        query = query_of(shop, query.offset, snapshot_new_tables="incremental", **FILTERED)
        began = time.monotonic()
        query.drain()
        assert time.monotonic() - began < within(0.9 * 10)
        shop.execute("CREATE TABLE c (id integer PRIMARY KEY)")
        until(query, lambda: "public.c" in known(query))
    assert published(shop)[:2] == before
    shop.execute("DROP TABLE b")
    until(query, lambda: "public.b" not in known(query))
    query.stop()
    assert names(shop) == ["a", "c"]


def known(query: InProcess) -> tuple[str, ...]:
    from floodmark.spark.stream.offsets import Offset

    return Offset.from_json(query.offset).known


def test_tables_that_leave_the_filters_and_parts_of_tables(shop: Source) -> None:
    shop.execute(
        "CREATE PUBLICATION dbz_publication FOR TABLE b, a WHERE (id > 10)", "CREATE TABLE c (id integer PRIMARY KEY)"
    )
    kept = published(shop)
    query = query_of(shop, None, table_include_list="public.a,public.c", **FILTERED)
    query.drain()
    shop.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)", "INSERT INTO c VALUES (1)")
    assert sorted(row["table"] for row in query.drain()) == ["a", "c"]
    query.stop()
    assert names(shop) == ["a", "c"]
    assert kept[0] not in published(shop), "its row filter is gone"


@pytest.mark.parametrize("mode", ["off", "incremental", "parallel"])
def test_a_new_table_that_is_locked_keeps_nothing_waiting(shop: Source, mode: str) -> None:
    options = {"snapshot_new_tables": mode, **FILTERED}
    query = query_of(shop, None, table_include_list="public.a", **options)
    query.drain()
    query.stop()
    shop.execute("INSERT INTO b VALUES (0)")
    query = query_of(shop, query.offset, table_include_list="public.a,public.b", **options)
    with psycopg.connect(shop.conninfo) as other:
        other.execute("LOCK TABLE b IN SHARE UPDATE EXCLUSIVE MODE")
        other.execute("INSERT INTO b VALUES (1)")
        shop.execute("INSERT INTO a VALUES (1)")
        began = time.monotonic()
        rows = some(query)
        assert time.monotonic() - began < within(20)
        assert names(shop) == ["a"]
        assert "public.b" not in known(query)
    rows += until(query, lambda: "public.b" in known(query))
    shop.execute("INSERT INTO b VALUES (2)")
    rows += query.drain()
    query.stop()
    of_b = {row["key"] for row in rows if row["table"] == "b"}
    expected = {'{"id":2}'} if mode == "off" else {'{"id":0}', '{"id":1}', '{"id":2}'}
    assert of_b == expected


def some(query: InProcess) -> list[dict[str, Any]]:
    """Run micro-batches until one has rows; return those."""
    deadline = time.monotonic() + within(60)
    while not (rows := query.step()):
        assert time.monotonic() < deadline
    return rows


@pytest.mark.parametrize("mode", ["incremental", "blocking", "parallel"])
def test_a_transaction_from_before_the_table_was_published(shop: Source, mode: str) -> None:
    options = {"snapshot_new_tables": mode, **FILTERED}
    query = query_of(shop, None, table_include_list="public.a", **options)
    query.drain()
    query.stop()
    query = query_of(shop, query.offset, table_include_list="public.a,public.b", **options)
    with psycopg.connect(shop.conninfo) as other:
        # It is in no log, as the table isn't published yet, and must be in the snapshot.
        other.execute("INSERT INTO b VALUES (1)")
        rows = until(query, lambda: names(shop) == ["a", "b"])
        shop.execute("INSERT INTO b VALUES (2)")
        for _ in range(5):
            rows += query.step()
        assert "public.b" not in known(query)
    rows += until(query, lambda: "public.b" in known(query))
    rows += query.drain()
    query.stop()
    assert {row["key"] for row in rows if row["table"] == "b"} == {'{"id":1}', '{"id":2}'}


def recreate(source: Source) -> None:
    """Drop a table and create it again with other rows, and write to it before anything can publish it."""
    source.execute(
        "BEGIN; DROP TABLE a; CREATE TABLE a (id integer PRIMARY KEY, v integer); INSERT INTO a VALUES (7, 1); COMMIT",
        "INSERT INTO a VALUES (8, 1), (9, 1)",
        "UPDATE a SET v = 2 WHERE id = 8",
        "DELETE FROM a WHERE id = 9",
    )


def last(rows: list[dict[str, Any]]) -> dict[int, Any]:
    """Return the newest state of each row of the table that was created again."""
    ordered = sorted((row for row in rows if row["table"] == "a" and row["value"]), key=lambda row: row["position"])
    return {json.loads(row["key"])["id"]: json.loads(row["value"])["after"] for row in ordered}


@pytest.mark.parametrize("when", ["running", "stopped", "restarting"])
@pytest.mark.parametrize("first", ["catalog", "new_tables"])
@pytest.mark.parametrize("mode", ["incremental", "parallel"])
def test_a_table_that_is_dropped_and_created_again(
    shop: Source, monkeypatch: pytest.MonkeyPatch, mode: str, first: str, when: str
) -> None:
    """The log lacks what was written before the new table was published, so it is read as any new one."""
    query = following(shop, mode)
    if first == "catalog":
        # That the publication isn't what it was is noticed before it is looked for new tables.
        monkeypatch.setattr(new_tables, "EVERY_S", 2.0)
    if when == "stopped":
        query.restart()
        query.stop()
    recreate(shop)
    wanted = {7: {"id": 7, "v": 1}, 8: {"id": 8, "v": 2}}
    rows: list[dict[str, Any]] = []
    number = 0
    deadline = time.monotonic() + within(60)
    while last(rows) != wanted:
        assert time.monotonic() < deadline
        number += 1
        shop.execute(f"INSERT INTO b VALUES ({number})")
        rows += query.step()
        if when == "restarting" and number < 5:
            query.restart()
    query.restart()
    shop.execute("INSERT INTO a VALUES (10, 3)")
    rows += query.drain()
    query.stop()
    assert last(rows) == {**wanted, 10: {"id": 10, "v": 3}}


def test_a_table_that_is_created_again_is_read_before_a_query_ends(shop: Source) -> None:
    query = following(shop, "parallel")
    query.restart()
    recreate(shop)
    assert last(query.drain()) == {7: {"id": 7, "v": 1}, 8: {"id": 8, "v": 2}}
    query.stop()


@pytest.mark.parametrize("mode", ["off", "incremental"])
def test_a_table_that_comes_back_after_a_while(shop: Source, mode: str) -> None:
    query = following(shop, mode)
    shop.execute("DROP TABLE a")
    if mode == "off":
        query.restart()
    until(query, lambda: "public.a" not in known(query))
    shop.execute("CREATE TABLE a (id integer PRIMARY KEY, v integer)", "INSERT INTO a VALUES (7, 1)")
    if mode == "off":
        query.restart()
    rows = until(query, lambda: "public.a" in known(query))
    shop.execute("INSERT INTO a VALUES (8, 2)")
    query.restart()
    rows += query.drain()
    query.stop()
    # With "off" a warning says that its rows don't come.
    assert last(rows) == ({} if mode == "off" else {7: {"id": 7, "v": 1}}) | {8: {"id": 8, "v": 2}}


@pytest.mark.parametrize("stopped", [False, True])
def test_a_table_that_is_created_again_and_may_not_be_read(shop: Source, stopped: bool) -> None:
    query = following(shop, "off")
    if stopped:
        query.restart()
    recreate(shop)
    shop.execute("INSERT INTO b VALUES (1)")
    with pytest.raises((LogGoneError, SourceStateError), match=r"public\.a"):
        until(query, lambda: False)
    query.restart()
    with pytest.raises(LogGoneError, match=r"was given public\.a \(again\).*may be missing"):
        query.drain()
    query.stop()


def test_a_table_that_only_left_the_publication_was_not_created_again(shop: Source) -> None:
    """Reading it would bring what was written meanwhile, but not what was deleted."""
    query = following(shop, "incremental", "public.a,public.b,public.c")
    with psycopg.connect(shop.conninfo) as other:
        # As long as it runs, whatever is younger may not have ended.
        other.execute("SELECT pg_current_xact_id()")
        shop.execute("CREATE TABLE c (id integer PRIMARY KEY)")
        until(query, lambda: "public.c" in known(query))
        shop.execute("ALTER PUBLICATION dbz_publication DROP TABLE c", "ALTER PUBLICATION dbz_publication ADD TABLE c")
        shop.execute("INSERT INTO b VALUES (1)")
        with pytest.raises(LogGoneError, match=r"was given public\.c \(again\).*may be missing"):
            until(query, lambda: False)
        query.stop()


def following(source: Source, mode: str, tables: str = "public.a,public.b") -> InProcess:
    """Return a query that follows the tables, at the end of the log."""
    query = query_of(source, None, table_include_list=tables, snapshot_new_tables=mode, **FILTERED)
    query.drain()
    query.restart()
    source.execute("INSERT INTO a VALUES (1)")
    assert last(some(query)) == {1: {"id": 1}}
    return query


def test_queries_that_create_the_same_publication_at_once(shop: Source) -> None:
    """One of several sinks' queries creates it, with the operations of all; the others take it as it is."""
    options = load_options({**shop.options, "publication.operations": "c,u,d,t"})
    assert isinstance(options, PostgresOptions)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE 'CREATE PUBLICATION%'"
    with (
        psycopg.connect(shop.conninfo, autocommit=True) as admin,
        psycopg.connect(shop.conninfo) as first,
        connection(options) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
        late = pool.submit(ensure_publication, second, options, [])
        deadline = time.monotonic() + within(30)
        while not admin.execute(waiting).fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        first.commit()
        assert late.result(within(30)) == frozenset()
        admin.execute("DROP PUBLICATION dbz_publication")
        assert ensure_publication(second, options, []) == frozenset()
        found = admin.execute("SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication").fetchall()
    assert found == [(True, True, True, True)]
