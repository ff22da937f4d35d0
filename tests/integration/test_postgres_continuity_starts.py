"""What a query finds when it starts: a publication that lacks something, rows that a policy hides, old checkpoints."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.capture.gaps import Gap
from floodmark.connectors.load import load_options
from floodmark.connectors.postgres.connector import PostgresSource
from floodmark.connectors.postgres.continuity import published
from floodmark.connectors.postgres.continuity.check import parse_history
from floodmark.connectors.postgres.wire import channel as channel_module
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import FloodmarkError, LogGoneError, LoginError, SourceStateError
from floodmark.spark.stream import captured_log
from tests.conftest import Source, make_source
from tests.support.address import Address
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.reader import read_only
from tests.support.world import World


@pytest.fixture
def shop(pg18: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    hurry(monkeypatch)
    monkeypatch.setattr(captured_log, "IDLE_ADVANCE_S", 0.3)
    monkeypatch.setattr(published, "WHOLE_CHECK_S", 0.3)
    source = make_source(pg18, tmp_path / "state", **{"table.include.list": r"public\.(t|u|part.*)"})
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v integer)", "INSERT INTO t SELECT g, g FROM generate_series(1, 10) g"
    )
    return source


@pytest.fixture
def world(pg18: EmbeddedPostgres, shop: Source, tmp_path: Path) -> Iterator[World]:
    with Address(pg18.port) as address:
        made = World(pg18, address, shop.dbname, tmp_path / "state")
        shop.execute("DROP TABLE t")
        yield made
        made.end()
        made.free_slot("SELECT 1")
        made.ask(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{made.slot}'"
        )


def events(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    values = [(row["op"], json.loads(row["value"])) for row in rows if row["value"] is not None]
    return sorted((op, (value["after"] or value["before"])["id"]) for op, value in values if op not in ("t", "gap"))


def refused(options: dict[str, str], text: str, offset: dict[str, Any] | None = None) -> FloodmarkError:
    query = InProcess(options, offset)
    with pytest.raises(FloodmarkError, match=text) as raised:
        query.drain()
    query.stop()
    return raised.value


def failure(query: InProcess) -> FloodmarkError:
    """Run micro-batches until the query fails."""
    while True:
        try:
            query.step()
        except FloodmarkError as exc:
            return exc


def slots(source: Source) -> list[Any]:
    with psycopg.connect(source.conninfo) as conn:
        return conn.execute(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [source.options["slot.name"]]
        ).fetchall()


ALL = "insert, update, delete, truncate"
LACKING = [
    ("FOR ALL TABLES WITH (publish = 'insert, update')", "does not publish delete:", {}),
    (
        "FOR ALL TABLES WITH (publish = 'insert, update, delete')",
        "does not publish truncate:",
        {"skipped.operations": "none"},
    ),
    ("FOR ALL TABLES WITH (publish = 'insert, delete')", "", {"skipped.operations": "u,t"}),
    ("FOR ALL TABLES WITH (publish_via_partition_root = true)", "publish_via_partition_root = true, but", {}),
    ("FOR TABLE u", "lacks public.t:", {}),
    ("FOR TABLE u", "", {"table.include.list": "public.u"}),
    ("FOR TABLES IN SCHEMA public", "", {}),
    ("FOR TABLE u, TABLES IN SCHEMA public", "", {}),
    ("FOR TABLE u, t WHERE (id > 5)", "leaves out rows of public.t", {}),
    ("FOR TABLE u, t (id)", "leaves out the columns v of public.t", {}),
    ("FOR TABLE u, t (id)", "", {"column.exclude.list": "public.t.v"}),
]


@pytest.mark.parametrize(("publication", "error", "options"), LACKING, ids=[f"{p} {e[:16]}" for p, e, _ in LACKING])
def test_a_publication_that_lacks_something(
    shop: Source, publication: str, error: str, options: dict[str, str]
) -> None:
    """The error's own statement is the cure; before, nothing is made at the server."""
    shop.execute("CREATE TABLE u (id integer PRIMARY KEY)", f"CREATE PUBLICATION dbz_publication {publication}")
    merged = {**shop.options, **options}
    if error:
        raised = refused(merged, error)
        assert isinstance(raised, SourceStateError)
        assert slots(shop) == []
        cure = re.search(r"ALTER PUBLICATION [^;…]*?(?=[.;]( |$)|$)", str(raised))
        if cure is not None:
            shop.execute(cure[0])
    if not error or cure is not None:
        query = InProcess(merged)
        query.drain()
        query.stop()


def test_partitions_that_the_publication_lacks(shop: Source) -> None:
    shop.execute(
        "CREATE TABLE part (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "CREATE PUBLICATION dbz_publication FOR TABLE t, part_1",
    )
    query = InProcess(shop.options)
    query.drain()
    shop.execute("CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20)")
    query.stop()
    refused(shop.options, "lacks public.part_2:", query.offset)
    shop.execute("ALTER PUBLICATION dbz_publication ADD TABLE part_2")
    again = InProcess(shop.options, query.offset)
    shop.execute("INSERT INTO part VALUES (1), (11)")
    assert events(again.drain()) == [("c", 1), ("c", 11)]
    # A partition that is detached is a table of its own, which the publication still lists.
    shop.execute("ALTER TABLE part DETACH PARTITION part_2", "INSERT INTO part_2 VALUES (12)")
    assert events(again.drain()) == [("c", 12)]
    again.stop()


def test_a_partition_that_leaves_the_publication(shop: Source) -> None:
    shop.execute(
        "CREATE TABLE part (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "CREATE PUBLICATION dbz_publication FOR TABLE t, part",
    )
    query = InProcess(shop.options)
    query.drain()
    shop.execute("ALTER TABLE part DETACH PARTITION part_1", "INSERT INTO part_1 VALUES (1)")
    query.stop()
    refused(shop.options, "lacks public.part_1:", query.offset)


def test_a_new_table_is_left_out_until_it_is_published(shop: Source) -> None:
    shop.execute("CREATE PUBLICATION dbz_publication FOR TABLE t")
    query = InProcess({**shop.options, "snapshot.new.tables": "incremental"})
    query.step()
    shop.execute(
        "CREATE TABLE u (id integer PRIMARY KEY)", "INSERT INTO u VALUES (101)", "INSERT INTO t VALUES (11, 11)"
    )
    found: list[tuple[str, int]] = []
    while ("c", 11) not in found:
        found += events(query.step())
    assert ("c", 101) not in found
    assert ("r", 101) not in found
    assert "public.u" not in query.offset["known"]
    query.stop()
    refused(shop.options, "lacks public.u:", query.offset)
    shop.execute("ALTER PUBLICATION dbz_publication ADD TABLE u", "INSERT INTO u VALUES (102)")
    again = InProcess({**shop.options, "snapshot.new.tables": "incremental"}, query.offset)
    found = events(again.drain())
    again.stop()
    assert {("r", 101), ("r", 102)} <= set(found)


def test_a_checkpoint_of_before(shop: Source) -> None:
    """One that says nothing of the log but its position goes on, and says it from then on."""
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    offset = copy.deepcopy(query.offset)
    assert offset["bookmark"]["timeline"] == 1
    offset["bookmark"] = None
    shop.execute("INSERT INTO t VALUES (11, 11)")
    again = InProcess(shop.options, offset)
    assert events(again.drain()) == [("c", 11)]
    assert again.offset["bookmark"]["publication"]["oldest"] > 0
    assert again.offset["bookmark"]["commit"][0]
    again.stop()


def test_a_transaction_that_ran_when_the_publication_was_made(shop: Source) -> None:
    """It is older than the publication, which must not look as if it had been altered for that."""
    with psycopg.connect(shop.conninfo) as old:
        old.execute("INSERT INTO t VALUES (11, 11)")
        shop.execute("CREATE PUBLICATION dbz_publication FOR TABLE t", "CREATE TABLE u (id integer PRIMARY KEY)")
        shop.execute("ALTER PUBLICATION dbz_publication ADD TABLE u")
        query = InProcess({**shop.options, "snapshot.mode": "no_data"})
        shop.execute("SELECT 1")
        old.commit()
        query.drain()
    shop.execute("INSERT INTO t VALUES (12, 12)")
    rows = query.drain()
    with psycopg.connect(shop.conninfo) as old:
        old.execute("INSERT INTO t VALUES (13, 13)")
        shop.execute("CREATE TABLE other (id integer)", "ALTER PUBLICATION dbz_publication ADD TABLE other")
        shop.execute("INSERT INTO t VALUES (14, 14)")
        query.restart()
        rows += query.drain()
        query.stop()
        again = InProcess({**shop.options, "snapshot.mode": "no_data"}, query.offset)
        shop.execute("INSERT INTO t VALUES (15, 15)")
        rows += again.drain()
        again.stop()
    assert [key for _, key in events(rows)] == [12, 14, 15]


@pytest.mark.parametrize("strategy", ["trust_slot", "trust_greater_lsn"])
def test_gaps_that_are_accepted_are_recorded(shop: Source, strategy: str) -> None:
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    name = shop.options["slot.name"]
    shop.execute(
        "INSERT INTO t VALUES (11, 11)",
        f"SELECT pg_replication_slot_advance('{name}', pg_current_wal_lsn())",
        "ALTER PUBLICATION dbz_publication SET (publish = 'insert')",
        f"ALTER PUBLICATION dbz_publication SET (publish = '{ALL}')",
    )
    options = {**shop.options, "offset.mismatch.strategy": strategy}
    source = PostgresSource(load_options(options))  # type: ignore[arg-type]
    offset = query.offset
    source.log.resume(offset["log"], offset["bookmark"], offset["known"])
    source.close()
    slot, publication = source.gaps.all()
    assert slot.after == publication.after == offset["log"]
    assert slot.after < slot.upto < publication.upto
    assert "beyond" in slot.reason
    assert "was altered" in publication.reason
    assert {slot.option, publication.option} == {f"offset.mismatch.strategy={strategy}"}
    assert Gap.from_json(slot.to_json()) == slot
    again = InProcess(options, offset)
    shop.execute("INSERT INTO t VALUES (12, 12)")
    assert events(again.drain()) == [("c", 12)]
    again.stop()


def test_the_position_moves_without_events_and_the_connection_is_lost(world: World) -> None:
    """The slot stands behind the last segment then, where nothing was missed."""
    world.begin("running")
    query = world.query
    assert query is not None
    before = query.offset["log"]
    while query.offset["log"] == before:
        world.ask("SELECT pg_logical_emit_message(true, 'x', 'y')")
        world.ask("CREATE TABLE IF NOT EXISTS other (id integer)")
        world.ask("INSERT INTO other VALUES (1)")
        query.step()
    query.step()
    world.ask("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
    world.write()
    world.follow()
    assert world.error is None, world.error


def test_another_consumer_holds_the_slot(world: World) -> None:
    world.more = {"slot.max.retries": "2", "slot.retry.delay.ms": "300"}
    world.begin("retry")
    other = psycopg.connect(f"{world.server.conninfo(world.dbname)} replication=database", autocommit=True)
    start = f"START_REPLICATION SLOT {world.slot} LOGICAL 0/0 (proto_version '1', publication_names 'dbz_publication')"
    other.pgconn.send_query(start.encode())
    while not world.ask(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{world.slot}'")[0][0]:
        pass
    world.resume("retry")
    world.follow(fails=True)
    assert "in use" in str(world.error) or "is active for PID" in str(world.error), world.error
    world.end()
    other.close()
    # It read and confirmed nothing, so nothing is missing.
    world.error = None
    world.more = {}
    world.write()
    world.resume("stopped")
    world.follow()
    assert world.error is None, world.error


ROLE_OPTIONS = ("database.user", "publication.name", "publication.autocreate.mode", "read.only")
POLICY = ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "CREATE POLICY half ON t USING (id > 5)")


def test_a_policy_that_hides_rows(shop: Source) -> None:
    options = read_only(shop)
    shop.execute(*POLICY)
    raised = refused(options, "Row-level security hides rows of public.t from the snapshot")
    assert "BYPASSRLS" in str(raised)
    assert slots(shop) == []
    # The log is no reading of tables.
    query = InProcess({**options, "snapshot.mode": "no_data"})
    query.drain()
    shop.execute("INSERT INTO t VALUES (1000, 0)", "INSERT INTO t VALUES (0, 0)")
    assert events(query.drain()) == [("c", 0), ("c", 1000)]
    query.stop()


@pytest.mark.parametrize("tls", [False, True], ids=["socket", "libpq"])
def test_a_policy_made_during_a_snapshot(shop: Source, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    """No rows are left out silently: the table is set aside, and its error says why; also where libpq reads them."""
    if tls:
        monkeypatch.setattr(channel_module, "_SocketChannel", channel_module._LibpqChannel)
    shop.execute("INSERT INTO t SELECT g, g FROM generate_series(11, 20000) g")
    options = {**read_only(shop), "snapshot.chunk.bytes": "8192", "max.batch.bytes": "8192"}
    query = InProcess(options)
    assert 0 < len(query.step()) < 20000
    shop.execute(*POLICY)
    while query.offset["snapshot"] is not None:
        assert query.step() == []
    (table,) = query.offset["aside"]
    assert table["name"] == "public.t"
    assert re.search(r'row-level security policy for table "t".*BYPASSRLS', table["error"])
    query.stop()


def assert_right(world: World) -> None:
    assert world.error is None, world.error


def assert_refused(world: World, text: str) -> None:
    world.follow(fails=True)
    assert isinstance(world.error, LoginError), world.error
    assert text in str(world.error)


def test_a_role_that_may_not_replicate_any_more(world: World, shop: Source) -> None:
    world.ask("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    options = read_only(shop)
    world.more = {**{name: options[name] for name in ROLE_OPTIONS}, "errors.max.retries": "-1"}
    world.publication = ""
    world.begin("running")
    world.ask(f"ALTER ROLE {options['database.user']} NOREPLICATION")
    world.write()
    world.follow()
    assert_right(world)
    world.ask(f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{world.slot}'")
    assert_refused(world, "permission denied to start WAL sender")
    world.end()
    world.error = None
    world.ask(f"ALTER ROLE {options['database.user']} REPLICATION NOLOGIN")
    world.resume("stopped")
    assert_refused(world, "not permitted to log in")


def test_a_publication_missing_in_the_past(pg16: EmbeddedPostgres, tmp_path: Path) -> None:
    """Version 16 can't decode what was changed then, whatever the publication is now; a new snapshot goes on."""
    source = make_source(pg16, tmp_path / "state", **{"snapshot.mode": "when_needed"})
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    query = InProcess(source.options)
    query.drain()
    query.stop()
    source.execute("DROP PUBLICATION dbz_publication", "INSERT INTO t VALUES (1)")
    source.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES", "INSERT INTO t VALUES (2)")
    refused({**source.options, "snapshot.mode": "initial"}, "dropped and created again", query.offset)
    again = InProcess(source.options, query.offset)
    assert events(again.drain()) == [("r", 1), ("r", 2)]
    source.execute("INSERT INTO t VALUES (3)")
    assert events(again.drain()) == [("c", 3)]
    again.stop()
    source.execute(f"SELECT pg_drop_replication_slot('{source.options['slot.name']}')")


@pytest.mark.parametrize("tls", [False, True], ids=["socket", "libpq"])
def test_a_notice_of_a_missing_publication(shop: Source, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    """Version 18 only notices it, and leaves changes out: the stream's own word, even if nothing else is looked at."""
    if tls:
        monkeypatch.setattr(channel_module, "_SocketChannel", channel_module._LibpqChannel)
    monkeypatch.setattr(published.PublicationProof, "outdated", lambda *_: False)
    monkeypatch.setattr(published.PublicationProof, "_prove_unaltered", lambda *_: None)
    query = InProcess(shop.options)
    query.drain()
    query.restart()
    shop.execute("INSERT INTO t VALUES (11, 11)", "DROP PUBLICATION dbz_publication", "INSERT INTO t VALUES (12, 12)")
    shop.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES", "INSERT INTO t VALUES (13, 13)")
    raised = failure(query)
    assert isinstance(raised, LogGoneError)
    assert "did not exist when changes were made" in str(raised)
    query.stop()
    accepting = InProcess({**shop.options, "offset.mismatch.strategy": "trust_slot"}, query.offset)
    rows = events(accepting.drain())
    assert rows[-1:] == [("c", 13)]
    assert ("c", 12) not in rows
    accepting.stop()


def test_when_needed_does_not_hide_another_history(shop: Source) -> None:
    options = {**shop.options, "snapshot.mode": "when_needed"}
    query = InProcess(options)
    query.drain()
    shop.execute("INSERT INTO t VALUES (11, 11)")
    query.drain()
    query.stop()
    for change in ({"timeline": 7}, {"commit": [query.offset["bookmark"]["commit"][0], 1]}):
        offset = copy.deepcopy(query.offset)
        offset["bookmark"].update(change)
        raised = refused(options, "another history|something else at", offset)
        assert isinstance(raised, LogGoneError)


def test_history_files() -> None:
    text = "1\t0/3000158\tno recovery target specified\n\n# a comment\n2\t16/B374D848\tbefore 2026-01-01\n"
    assert parse_history(text) == [(1, 0x3000158), (2, 0x16B374D848)]
