"""What a snapshot reads: which tables, in which order, by which statement, under which locks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.connectors.postgres.checks.server import check_source
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import connect
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.wire import channel
from floodmark.errors import ConfigError, SourceStateError
from tests.conftest import Source, drop_slots
from tests.integration.test_postgres import payload
from tests.support.example import install
from tests.support.inprocess import InProcess
from tests.support.patience import within

OVERRIDES = "snapshot.select.statement.overrides"
SMALL = 40
EXAMPLE = Path(__file__).parents[2] / "examples" / "snapshotter"


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, note text)",
        "CREATE TABLE b (id integer PRIMARY KEY, note text)",
        'CREATE TABLE "C d" (id integer PRIMARY KEY, "Odd name" text)',
        "INSERT INTO a VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO b SELECT g, 'n' FROM generate_series(1, 5) g",
        "INSERT INTO \"C d\" VALUES (1, 'x'), (2, NULL)",
        "ANALYZE",
    )
    return source


def run(source: Source, options: dict[str, str], then: str = "") -> list[dict[str, Any]]:
    """Run a query until nothing is left, and again after a statement."""
    query = InProcess({**source.options, **options})
    try:
        rows = query.drain()
        if then:
            source.execute(then)
            rows += query.drain()
    finally:
        query.stop()
    return rows


def tables(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["table"] for row in rows if row["op"] == "r"))


def rows_of(rows: list[dict[str, Any]], table: str) -> list[Any]:
    return [payload(row)["after"] for row in rows if row["table"] == table]


def test_included_tables_are_read_in_the_order_of_the_list(shop: Source) -> None:
    rows = run(
        shop, {"snapshot.include.collection.list": r"public\.b, PUBLIC\.(A|b)"}, "INSERT INTO \"C d\" VALUES (3, 'z')"
    )
    assert tables(rows) == ["b", "a"]
    assert [row["op"] for row in rows if row["table"] == "C d"] == ["c"]


@pytest.mark.parametrize(("order", "expected"), [("ascending", ["a", "b"]), ("descending", ["b", "a"])])
def test_tables_in_the_order_of_their_rows(shop: Source, order: str, expected: list[str]) -> None:
    options = {"snapshot.tables.order.by.row.count": order, "table.include.list": "public.[ab]"}
    assert tables(run(shop, options)) == expected


def test_one_connection_reads_at_a_time(shop: Source) -> None:
    shop.execute("INSERT INTO a SELECT g, repeat('x', 1000) FROM generate_series(10, 400) g")
    query = InProcess({**shop.options, "snapshot.max.threads": "2", "snapshot.chunk.bytes": "8192"})
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert len(query.reader.partitions(query.offset, end)) == 2
    rows = query.run(end)
    query.offset = end
    rows += query.drain()
    query.stop()
    assert len(rows) == 2 + 391 + 5 + 2


@pytest.fixture
def opened(source: Source, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make forty small tables; return the processes of the connections that tasks open."""
    source.execute(*(f"CREATE TABLE small_{n} AS SELECT {n} AS id" for n in range(SMALL)))
    pids: list[int] = []

    def connect_and_note(options: PostgresOptions) -> psycopg.Connection[Any]:
        conn = connect(options)
        pids.append(conn.info.backend_pid)
        return conn

    monkeypatch.setattr(chunks, "connect", connect_and_note)
    return pids


@pytest.mark.parametrize("tls", [False, True], ids=["socket", "libpq"])
def test_a_task_reads_small_tables_over_one_connection(
    source: Source, opened: list[int], monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    if tls:
        monkeypatch.setattr(channel, "_SocketChannel", channel._LibpqChannel)
    query = InProcess(source.options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    tasks = query.reader.partitions(query.offset, end)
    # What is not there when it is read doesn't keep the next tables from being read.
    source.execute("ALTER TABLE small_7 RENAME TO renamed")
    locked = "SELECT count(*) FROM pg_locks WHERE relation = ANY(SELECT oid FROM pg_class WHERE relname LIKE 'small%')"
    rows = []
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        for task in tasks:
            for batch in query.reader.read(task):
                rows += batch.to_pylist()
                # A lock is held no longer than its table is read.
                assert conn.execute(locked).fetchall() == [(1,)]
        assert conn.execute(locked).fetchall() == [(0,)]
    assert len(opened) == len(tasks) < SMALL / 10
    assert sorted(tables(rows)) == sorted(f"small_{n}" for n in range(SMALL) if n != 7)
    query.offset = end
    rows += query.drain()
    query.stop()
    assert sorted(payload(row)["after"]["id"] for row in rows) == list(range(SMALL))


def test_a_connection_that_is_lost_between_small_tables(source: Source, opened: list[int]) -> None:
    query = InProcess(source.options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    tasks = query.reader.partitions(query.offset, end)
    rows = []
    for number, batch in enumerate(batch for task in tasks for batch in query.reader.read(task)):
        rows += batch.to_pylist()
        if number == 3:
            source.execute(f"SELECT pg_terminate_backend({opened[-1]}, 60000)")
    query.stop()
    assert len(opened) == len(tasks) + 1
    assert sorted(payload(row)["after"]["id"] for row in rows) == list(range(SMALL))


def test_statements_replace_the_reading_of_tables(shop: Source) -> None:
    options = {
        OVERRIDES: "public.a,public.C d",
        f"{OVERRIDES}.public.a": "SELECT note, id, 7 AS more FROM a WHERE id > 1 -- only some",
        f"{OVERRIDES}.public.c d": 'WITH few AS (SELECT * FROM "C d" ORDER BY id DESC) SELECT * FROM few;',
    }
    rows = run(shop, options, "INSERT INTO a VALUES (0, 'new')")
    assert rows_of(rows, "a") == [{"id": 2, "note": "y"}, {"id": 0, "note": "new"}]
    assert rows_of(rows, "C d") == [{"id": 2, "Odd name": None}, {"id": 1, "Odd name": "x"}]
    assert len(rows_of(rows, "b")) == 5


def test_a_statement_sees_the_read_point(shop: Source) -> None:
    options = {**shop.options, OVERRIDES: "public.a", f"{OVERRIDES}.public.a": "SELECT * FROM a"}
    query = InProcess(options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    shop.execute("UPDATE a SET note = 'later' WHERE id = 1")
    rows = query.run(end)
    query.offset = end
    rows += query.drain()
    query.stop()
    assert [(row["op"], payload(row)["after"]["note"]) for row in rows if row["table"] == "a"] == [
        ("r", "x"),
        ("r", "y"),
        ("u", "later"),
    ]


def test_a_table_with_a_statement_is_read_again_after_a_loss(shop: Source) -> None:
    options = {**shop.options, OVERRIDES: "public.a", f"{OVERRIDES}.public.a": "SELECT * FROM a WHERE id < 3"}
    query = InProcess(options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.stop()
    # The micro-batch was planned and its driver died: its replay can't read what the read point saw.
    shop.execute("UPDATE a SET note = 'later' WHERE id = 1", "DELETE FROM a WHERE id = 2")
    again = InProcess(options)
    assert rows_of(again.run(end), "a") == []
    again.offset = end
    rows = again.drain()
    again.stop()
    read = [payload(row) for row in rows if row["table"] == "a" and row["op"] == "r"]
    assert [event["after"] for event in read] == [{"id": 1, "note": "later"}]


def test_a_statement_for_a_partitioned_table_reads_it_once(source: Source) -> None:
    source.execute(
        "CREATE TABLE p (id integer, part integer, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
        "INSERT INTO p VALUES (1, 1), (2, 2), (3, 2)",
    )
    options = {
        "publish.via.partition.root": "true",
        OVERRIDES: "public.p",
        f"{OVERRIDES}.public.p": "SELECT * FROM p WHERE id > 1 ORDER BY id",
    }
    rows = run(source, options)
    assert [row["id"] for row in rows_of(rows, "p")] == [2, 3]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("table", "statement", "words"),
    [
        ("public.A", "SELECT * FROM a", ["public.A", "does not read", "public.a", "case counts"]),
        ("public.a", "SELECT id FROM a", ["public.a", "note", "all columns of the table: id, note"]),
        ("public.a", "SELECT id::bigint, note FROM a", ["another type", ": id.", "Cast"]),
        ("public.a", "DELETE FROM a RETURNING *", ["public.a", "cannot be used"]),
        ("public.a", "SELECT * FROM nothing", ["nothing", "does not exist"]),
    ],
)
def test_wrong_statements(shop: Source, table: str, statement: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        run(shop, {OVERRIDES: table, f"{OVERRIDES}.{table}": statement})
    assert [word for word in words if word not in str(raised.value)] == []
    assert "\n" not in str(raised.value)


def locks(source: Source, mode: str) -> set[str]:
    """Return the tables that idle transactions have locked."""
    with psycopg.connect(source.conninfo) as conn:
        return {
            row[0]
            for row in conn.execute(
                "SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
                "JOIN pg_stat_activity USING (pid) "
                "WHERE state = 'idle in transaction' AND relkind = 'r' AND c.oid >= 16384 AND l.mode = %s",
                [mode],
            ).fetchall()
        }


def test_shared_locks_are_held_until_the_snapshot_ends(shop: Source) -> None:
    query = InProcess({**shop.options, "snapshot.locking.mode": "shared", "table.include.list": "public.[ab]"})
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert locks(shop, "AccessShareLock") == {"a", "b"}
    shop.execute("UPDATE a SET note = 'free'")
    query.run(end)
    query.offset = end
    query.drain()
    assert locks(shop, "AccessShareLock") == set()
    query.stop()


def test_without_locks_nothing_is_locked_between_tasks(shop: Source) -> None:
    query = InProcess(shop.options)
    query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert locks(shop, "AccessShareLock") == set()
    query.stop()


@pytest.mark.usefixtures("installed")
def test_a_lock_that_is_not_granted_in_time(shop: Source) -> None:
    options = {"snapshot.locking.mode": "custom", "snapshot.locking.mode.custom.name": "no_writes"}
    with psycopg.connect(shop.conninfo) as conn:
        conn.execute("LOCK TABLE a IN ROW EXCLUSIVE MODE")
        with pytest.raises(SourceStateError, match=r"the lock on .*a.*snapshot\.lock\.timeout\.ms"):
            run(shop, {**options, "snapshot.lock.timeout.ms": "300"})


def test_an_alteration_that_waits_for_a_lock_does_not_stop_the_snapshot_for_ever(shop: Source) -> None:
    options = {**shop.options, "snapshot.locking.mode": "shared", "snapshot.lock.timeout.ms": "300"}
    options["errors.tables"] = "fail"
    query = InProcess(options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    with psycopg.connect(shop.conninfo, autocommit=True) as conn:
        altering = threading.Thread(target=shop.execute, args=["ALTER TABLE a ADD extra integer"])
        altering.start()
        try:
            while not conn.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                assert altering.is_alive()
            with pytest.raises(SourceStateError, match=r"snapshot\.locking\.mode=none"):
                query.run(end)
        finally:
            query.stop()
            altering.join(within(30))
    assert not altering.is_alive()
    again = InProcess(options)
    rows = again.run(end)
    again.offset = end
    rows += again.drain()
    again.stop()
    assert len(rows) == 9


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example package and return the directory that holds it."""
    return install(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def installed(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(example))
    yield
    sys.modules.pop("floodmark_example_snapshotter", None)


CUSTOM = {"snapshot.mode": "custom", "snapshot.mode.custom.name": "on_request"}


@pytest.mark.usefixtures("installed")
def test_a_custom_snapshotter(shop: Source) -> None:
    options = {**shop.options, **CUSTOM, "table.include.list": "public.a"}

    def run_again(offset: dict[str, Any] | None) -> tuple[list[str], dict[str, Any]]:
        query = InProcess(options, offset)
        rows = query.drain()
        query.stop()
        return [row["op"] for row in rows], query.offset

    first, offset = run_again(None)
    second, offset = run_again(offset)
    request = Path(options["state.dir"]) / "snapshot-please"
    request.touch()
    third, offset = run_again(offset)
    fourth, offset = run_again(offset)
    assert (first, second, third, fourth) == (["r", "r"], [], ["r", "r"], [])
    assert not request.exists()


@pytest.mark.usefixtures("installed")
def test_a_custom_query(shop: Source) -> None:
    shop.execute(
        "CREATE TABLE orders (id integer PRIMARY KEY, created_at timestamptz)",
        "INSERT INTO orders VALUES (1, now()), (2, now() - interval '1 year')",
        "CREATE TABLE orders_archive (id integer PRIMARY KEY)",
        "INSERT INTO orders_archive VALUES (1)",
    )
    options = {"snapshot.query.mode": "custom", "snapshot.query.mode.custom.name": "recent"}
    overridden = {OVERRIDES: "public.a", f"{OVERRIDES}.public.a": "SELECT * FROM a WHERE id = 1"}
    rows = run(shop, {**options, **overridden}, "INSERT INTO orders_archive VALUES (2)")
    assert [row["id"] for row in rows_of(rows, "orders")] == [1]
    assert [(row["op"], payload(row)["after"]["id"]) for row in rows if row["table"] == "orders_archive"] == [("c", 2)]
    assert [row["id"] for row in rows_of(rows, "a")] == [1]
    assert len(rows_of(rows, "b")) == 5


@pytest.mark.usefixtures("installed")
def test_a_custom_lock(shop: Source) -> None:
    options = {"snapshot.locking.mode": "custom", "snapshot.locking.mode.custom.name": "no_writes"}
    query = InProcess({**shop.options, **options})
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    assert locks(shop, "ShareLock") == {"a", "b", "C d"}
    rows = query.run(end)
    query.offset = end
    rows += query.drain()
    query.stop()
    assert len(rows) == 9


def test_check_knows_the_modes(shop: Source) -> None:
    def problems(offset: dict[str, Any] | None = None, **options: str) -> dict[str, str]:
        given = {name.replace("__", "."): value for name, value in options.items()}
        found = check_source(PostgresOptions.parse({**shop.options, **given}), offset)
        return {finding.check: finding.status for finding in found if finding.status == "error"}

    assert problems(snapshot__mode="custom", snapshot__mode__custom__name="nowhere") == {"snapshotter": "error"}
    assert problems(snapshot__query__mode="custom", snapshot__query__mode__custom__name="x") == {"snapshot": "error"}
    assert problems(None, **{OVERRIDES: "public.a", f"{OVERRIDES}.public.a": "SELECT 1"}) == {"snapshot": "error"}
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    drop_slots(shop)
    assert problems(query.offset) == {"checkpoint": "error"}
    assert problems(query.offset, snapshot__mode="when_needed") == {}
