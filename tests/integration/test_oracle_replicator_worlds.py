"""What the adapter ``olr`` meets: servers that restart, forget, hang, repeat themselves, or belong to somebody else."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.oracle.replicator import stream
from floodmark.connectors.registry import connector_module
from floodmark.errors import (
    CheckpointError,
    FloodmarkError,
    ForkedLogError,
    LogGoneError,
    SourceStateError,
)
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6, PROTOBUF, RELEASE_1_9_0, Format
from tests.support.oracle.replicator.messages import response
from tests.support.oracle.replicator.server import CONFIRM, INFO, START, ReplicatorServer
from tests.support.oracle.replicator.world import World
from tests.support.oracle.scene import COLUMNS, SCHEMA, Rows, applied

SECOND = 1000


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def stopped(world: World, **more: str) -> tuple[InProcess, Rows]:
    """Return a query that has delivered everything and was stopped, and its rows."""
    query = world.query(**more)
    rows = query.drain()
    query.stop()
    return query, rows


def goes_on(world: World, query: InProcess, rows: Rows, **more: str) -> Rows:
    """Deliver what follows in another process, and prove that everything came exactly once; return what came."""
    going = world.query(query.offset, **more)
    found = going.drain()
    going.stop()
    query.offset = going.offset
    rows += found
    assert applied(rows) == world.expected()
    positions = [row["position"] for row in rows if row["op"] not in ("r", None)]
    assert positions == sorted(set(positions))
    return found


def fails(kind: type[FloodmarkError], act: Callable[[], Any], words: str) -> FloodmarkError:
    with pytest.raises(FloodmarkError, match=words) as caught:
        act()
    assert isinstance(caught.value, kind), repr(caught.value)
    return caught.value


def test_the_log_goes_on_from_query_to_query(world: World) -> None:
    query, rows = stopped(world)
    for number in range(100, 106):
        world.write(number)
        assert len(goes_on(world, query, rows)) == 2
    # The server was told to forget what was delivered, and begins with what it still has.
    assert [key for code, key in world.replicator.requests if code == CONFIRM]
    assert len(world.replicator.kept()) < 10


@pytest.mark.parametrize("is_written", [True, False], ids=["checkpoint written", "checkpoint late"])
def test_a_server_that_restarts_sends_again_what_was_delivered(world: World, is_written: bool) -> None:
    query, rows = stopped(world)
    world.replicator.checkpoint.is_written = is_written
    for number in range(100, 104):
        world.write(number)
        goes_on(world, query, rows)
        world.replicator.restart()
        world.write(number + 50)
    goes_on(world, query, rows)


def test_a_server_reads_on_behind_the_piece_of_the_log_that_was_confirmed(tmp_path: Path) -> None:
    # The checkpoint behind a piece has its first number, and the commits in it have higher ones.
    with World(tmp_path, Format(idle=False)) as world:
        query = world.query()
        rows = query.drain()
        query.restart()
        for number in range(100, 104):
            world.write(number)
            rows += until(query, 2)
            query.step()
            world.replicator.restart()
        query.restart()
        world.write(200)
        rows += until(query, 2)
        assert applied(rows) == world.expected()


def test_a_server_that_restarts_while_a_query_runs(world: World) -> None:
    query = world.query()
    rows = query.drain()
    query.restart()
    for number in range(100, 104):
        world.write(number)
        rows += until(query, 2)
        world.replicator.restart()
    world.write(200)
    rows += until(query, 2)
    assert applied(rows) == world.expected()


def until(query: InProcess, count: int) -> Rows:
    rows: Rows = []
    for _ in range(400):
        rows += query.step()
        if len(rows) >= count:
            assert len(rows) == count
            return rows
    raise AssertionError("The changes don't come.")


def test_connections_that_are_lost(world: World) -> None:
    query = world.query(errors_max_retries="20")
    rows = query.drain()
    query.restart()
    for number in range(100, 110):
        world.replicator.cut_connection()
        world.write(number)
        rows += until(query, 2)
    assert applied(rows) == world.expected()


def long_transaction(world: World) -> Any:
    """Begin a transaction, and let the server come far beyond its beginning."""
    with world.database.lock:
        long = world.database.begin()
        long.insert(world.table, ID=Decimal(60), V=Decimal(1), PAD="long")
        world.database.background()
    return long


def test_release_1_9_0_has_wrong_numbers_of_commits(tmp_path: Path) -> None:
    with World(tmp_path, RELEASE_1_9_0) as world:
        query, rows = stopped(world)
        # Without transactions that overlap, its numbers ascend, too.
        for number in (100, 101):
            world.write(number)
            goes_on(world, query, rows)
        long = long_transaction(world)
        world.write(102)
        going = world.query(query.offset)
        rows += going.drain()
        going.restart()
        with world.database.lock:
            long.commit()
            world.database.background()
        fails(FloodmarkError, lambda: [going.step() for _ in range(50)], "Release 1.9.0")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    "format_", [Format(), DEBEZIUM_3_6, Format(whole=True), PROTOBUF], ids=["preset", "3.6", "whole", "protobuf"]
)
def test_long_transactions_are_sent_with_the_number_where_they_began(
    tmp_path: Path, format_: Format, restarts: bool
) -> None:
    with World(tmp_path, format_) as world:
        query, rows = stopped(world)
        long = long_transaction(world)
        for number in range(100, 104):
            # What was sent meanwhile has higher numbers, and is delivered and confirmed.
            world.write(number)
            goes_on(world, query, rows)
        with world.database.lock:
            long.update(world.table, {"ID": 60}, V=Decimal(2))
            long.commit()
            world.database.background()
        if restarts:
            world.replicator.restart()
        assert [row["op"] for row in goes_on(world, query, rows)] == ["c", "u"]


def test_what_is_open_when_a_query_begins(world: World) -> None:
    with world.database.lock:
        early = world.database.begin()
        early.insert(world.table, ID=Decimal(50), V=Decimal(1), PAD="open")
        early.update(world.table, {"ID": 2}, V=Decimal(9))
        world.database.switch_log()
    query, rows = stopped(world)
    assert len(rows) == 20
    with world.database.lock:
        early.delete(world.table, {"ID": 3})
        early.commit()
        world.database.background()
    assert [row["op"] for row in goes_on(world, query, rows)] == ["c", "u", "d", "d"]


def large_transaction(world: World, count: int) -> None:
    with world.change() as transaction:
        for number in range(1000, 1000 + count):
            transaction.insert(world.table, ID=Decimal(number), V=Decimal(0), PAD="x" * 300)


SMALL = {"segment_bytes": "65536"}
LIMITED = {**SMALL, "max_batch_rows": "300"}


def test_queries_that_stop_inside_a_transaction(tmp_path: Path) -> None:
    with World(tmp_path, buffer_bytes=1 << 30) as world:
        prove_it_goes_on_inside(world)


def prove_it_goes_on_inside(world: World) -> None:
    query, rows = stopped(world, **LIMITED)
    large_transaction(world, 2000)
    inside = 0
    for _ in range(6):
        going = world.query(query.offset, **LIMITED)
        rows += next((came for came in (going.step() for _ in range(200)) if came), [])
        going.stop()
        query.offset = going.offset
        inside += 20 < len(rows) < 2020
    assert inside > 2
    goes_on(world, query, rows, **LIMITED)


@pytest.mark.parametrize("format_", [Format(), DEBEZIUM_3_6], ids=["preset", "3.6"])
def test_a_transaction_with_more_changes_than_the_server_keeps_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: Format
) -> None:
    monkeypatch.setattr(stream, "SILENCE_S", 0.5)
    with World(tmp_path, format_, queue_size=500) as world:
        query, _ = stopped(world)
        large_transaction(world, 3000)
        going = world.query(query.offset, errors_max_retries="1")
        fails(SourceStateError, going.drain, "inside a transaction")


def test_a_server_without_checkpoints_is_refused(tmp_path: Path) -> None:
    with World(tmp_path, Format(checkpoints=False)) as world:
        query = world.query()
        query.step()
        for number in range(100, 103):
            world.write(number)
            with world.database.lock:
                world.database.clock.advance(120 * SECOND)
        error = fails(SourceStateError, lambda: [query.step() for _ in range(400)], "no checkpoint between")
        assert "4128" in error.cure


def test_a_server_that_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SILENCE_S", 0.3)
    with World(tmp_path, Format(checkpoints=False)) as world:
        query = world.query(errors_max_retries="1")
        # Once the query has connected again, the server says that it has forgotten something by itself.
        fails(LogGoneError, lambda: [query.step() for _ in range(400)], "without 4096")


def test_what_the_server_does_not_send_again_is_noticed(tmp_path: Path) -> None:
    """After a connection is lost, it only sends the newest of its buffers again, until it is restarted."""
    with World(tmp_path, buffer_bytes=2000) as world:
        query = world.query(errors_max_retries="1")
        rows = query.drain()
        query.restart()
        world.write(99)
        rows += until(query, 2)
        for number in range(100, 120):
            world.write(number)
        # It is sent, and not delivered.
        for _ in range(100):
            query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        query.stop()
        found = world.query(query.offset)
        error = fails(SourceStateError, found.drain, "hasn't sent again")
        assert "Restart the server" in error.cure
        world.replicator.restart()
        goes_on(world, query, rows)


def test_another_client_has_confirmed_what_was_not_delivered(world: World) -> None:
    query, rows = stopped(world)
    world.write(100)
    goes_on(world, query, rows)
    world.write(101)
    world.replicator.confirm_all()
    error = fails(LogGoneError, world.query(query.offset).drain, "told to forget")
    assert "when_needed" in error.cure
    again = world.query(query.offset, snapshot_mode="when_needed")
    found = again.drain()
    assert [row["op"] for row in found if row["op"] != "gap"] == ["r"] * 22
    again.stop()
    query.offset = again.offset
    world.write(102)
    rows[:] = found
    goes_on(world, query, rows, snapshot_mode="when_needed")


def test_another_client_has_confirmed_while_no_query_had_come(world: World) -> None:
    """A new query has nothing to lose of a server that was used before."""
    stopped(world)
    world.write(100)
    world.replicator.confirm_all()
    query, rows = stopped(world, topic_prefix="another")
    world.write(101)
    goes_on(world, query, rows, topic_prefix="another")


def test_a_server_that_began_later(world: World) -> None:
    query, _ = stopped(world)
    world.write(100)
    with ReplicatorServer(world.database) as later:
        later._begin(world.database.clock.scn)
        found = world.query(query.offset, **named(later.options()))
        fails(LogGoneError, found.drain, "sends only what was committed behind")


def named(options: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in options.items()}


def test_a_server_that_has_lost_all_is_started_where_the_query_needs_it(world: World) -> None:
    query, rows = stopped(world)
    long = long_transaction(world)
    world.write(100)
    goes_on(world, query, rows)
    with world.database.lock:
        long.commit()
        world.database.background()
    with ReplicatorServer(world.database) as fresh:
        goes_on(world, query, rows, **named(fresh.options()))


def test_a_server_that_has_lost_all_and_whose_redo_is_gone(world: World) -> None:
    query, _ = stopped(world)
    world.write(100)
    with world.database.lock:
        for _ in range(4):
            world.database.switch_log()
        for log in world.database.threads[1].logs[:-1]:
            world.database.delete_archived(1, log.sequence)
    with ReplicatorServer(world.database) as fresh:
        found = world.query(query.offset, **named(fresh.options()))
        error = fails(SourceStateError, found.drain, "can't start its source")
        assert "archived log is gone" in error.cure


def test_another_source(world: World) -> None:
    fails(SourceStateError, world.query(openlogreplicator_source="OTHER").drain, "has no source 'OTHER'")
    query, _ = stopped(world)
    found = world.query(query.offset, openlogreplicator_source="OTHER")
    fails(SourceStateError, found.drain, "has no source 'OTHER'")


def test_another_database_behind_the_server(world: World) -> None:
    query, _ = stopped(world)
    other = OracleDatabase(pluggable="OTHER")
    with other.lock:
        table = other.create_table(SCHEMA, "T", COLUMNS, ["ID"], logged=False)
        other.clock.jump(world.database.clock.scn - 1)
    with ReplicatorServer(other) as server:
        found = world.query(query.offset, **named(server.options()))
        with other.step():
            transaction = other.begin()
            transaction.insert(table, ID=Decimal(1))
            transaction.commit()
        fails(SourceStateError, lambda: [found.step() for _ in range(200)], "changes of the database 'OTHER'")


def test_a_database_that_was_opened_with_resetlogs(world: World) -> None:
    query, _ = stopped(world)
    world.write(100)
    with world.database.lock:
        world.database.settings.resetlogs = world.database.clock.scn
    fails(LogGoneError, world.query(query.offset).drain, "RESETLOGS")
    with world.database.lock:
        world.database.settings.resetlogs = 1
        world.database.settings.database_id += 1
    fails(ForkedLogError, world.query(query.offset).drain, "another one")


def test_a_server_that_serves_another_client(world: World) -> None:
    query, rows = stopped(world)
    world.write(100)
    with socket.create_connection(("127.0.0.1", world.replicator.port)):
        found = world.query(query.offset, errors_max_retries="1")
        fails(FloodmarkError, found.drain, "serves one client at a time")
        options = load_options(world.options())
        (busy,) = [
            one
            for one in connector_module("oracle", "checks.server").check_source(options)
            if one.status == "warning" and one.check == "OpenLogReplicator"
        ]
        assert "one client at a time" in busy.finding
    goes_on(world, query, rows)


def test_a_server_that_hangs(world: World) -> None:
    query, rows = stopped(world)
    for code in (INFO, START):
        world.replicator.answers[code] = None
    fails(FloodmarkError, world.query(query.offset, errors_max_retries="1").drain, "gives no answer")
    world.replicator.answers.clear()
    world.write(100)
    goes_on(world, query, rows)


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (struct.pack("<I", 0xFFFFFFFE), "announces a message"),
        (struct.pack("<I", 4) + b"\xff\xff\xff\xff", "no document"),
        (struct.pack("<I", 9) + b'{"scn":1,', "can't be read"),
        (struct.pack("<I", 2) + response(5), "no protocol buffer"),
        (struct.pack("<I", 39) + b'{"c_scn":1,"c_idx":1,"tm":1,"xid":null}', "no payload"),
    ],
)
def test_garbage_in_the_stream(world: World, garbage: bytes, words: str) -> None:
    query, rows = stopped(world)
    world.write(100)
    world.replicator.garbage.append(garbage)
    fails(SourceStateError, world.query(query.offset).drain, words)
    goes_on(world, query, rows)


@pytest.mark.parametrize(
    ("format_", "words"),
    [
        (Format(left_out=("c_scn",)), "no 'c_scn'"),
        (Format(left_out=("c_idx",)), "no 'c_idx'"),
        (Format(sequences=False), "no 'num'"),
        (Format(whole=True, commit_scn=False), "number the commit"),
        (Format(commits=False, commit_scn=False), "number the commit"),
    ],
)
def test_formats_that_lack_what_is_needed(tmp_path: Path, format_: Format, words: str) -> None:
    with World(tmp_path, format_) as world:
        query = world.query()
        query.step()
        world.write(100)
        error = fails(SourceStateError, lambda: [query.step() for _ in range(400)], words)
        assert "docs/oracle.md" in error.cure


@pytest.mark.parametrize(
    ("format_", "words"),
    [(Format(before=False), "lacks the row before"), (Format(full=False), "lacks the column 'PAD'")],
)
def test_rows_that_are_not_whole_are_not_delivered(tmp_path: Path, format_: Format, words: str) -> None:
    with World(tmp_path, format_) as world:
        query = world.query(errors_tables="fail")
        query.drain()
        query.restart()
        world.write(100)
        fails(FloodmarkError, query.drain, words)


def test_tables_that_are_altered(world: World) -> None:
    query, _ = stopped(world)
    with world.database.lock:
        statement = f'ALTER TABLE "{SCHEMA}"."T" ADD ("MORE" VARCHAR2(20))'
        columns = (*world.table.structure.columns, column("MORE", "VARCHAR2(20)"))
        world.database.ddl(world.table, statement, columns=columns)
    with world.change() as transaction:
        transaction.insert(world.table, ID=Decimal(77), V=Decimal(7), PAD="seven", MORE="more")
        # A row that is older than the column.
        transaction.update(world.table, {"ID": 1}, V=Decimal(8))
    row, updated = [one for one in world.query(query.offset).drain() if one["op"] in "cu"]
    assert '"MORE":"more"' in row["value"]
    assert updated["value"].count('"MORE":null') == 2


def test_statements_that_the_server_does_not_send(tmp_path: Path) -> None:
    with World(tmp_path, Format(statements=False)) as world:
        query = world.query(errors_tables="fail")
        query.drain()
        query.restart()
        with world.database.lock:
            statement = f'ALTER TABLE "{SCHEMA}"."T" ADD ("MORE" VARCHAR2(20))'
            columns = (*world.table.structure.columns, column("MORE", "VARCHAR2(20)"))
            world.database.ddl(world.table, statement, columns=columns)
        with world.change() as transaction:
            transaction.insert(world.table, ID=Decimal(77), MORE="more")
        fails(FloodmarkError, query.drain, "column 'MORE'")


def test_tables_that_are_emptied(world: World) -> None:
    query, rows = stopped(world, skipped_operations="none")
    with world.database.lock:
        world.database.truncate(world.table)
    with world.change() as transaction:
        transaction.insert(world.table, ID=Decimal(5), V=Decimal(5), PAD="five")
    assert [row["op"] for row in goes_on(world, query, rows, skipped_operations="none")] == ["t", "c"]


def test_a_query_takes_its_log_from_elsewhere(world: World) -> None:
    """From LogMiner to OpenLogReplicator, between two transactions."""
    given = world.options()
    options = {name: value for name, value in given.items() if not name.startswith("openlogreplicator.")}
    first = InProcess({**options, "database.connection.adapter": "logminer"})
    rows = first.drain()
    first.restart()
    world.write(100)
    rows += first.drain()
    first.stop()
    world.write(101)
    assert len(goes_on(world, first, rows)) == 2


def test_a_query_that_stopped_inside_a_transaction_goes_on_with_the_same_adapter(world: World) -> None:
    query = world.query(**SMALL)
    rows = query.drain()
    query.restart()
    large_transaction(world, 1000)
    while len(rows) == 20:
        rows += query.step()
    query.stop()
    given = {name: value for name, value in world.options(**SMALL).items() if "openlogreplicator" not in name}
    other = InProcess({**given, "database.connection.adapter": "logminer"}, query.offset)
    try:
        fails(CheckpointError, other.drain, "inside a transaction")
    finally:
        other.stop()


def test_what_a_check_says(world: World) -> None:
    options = load_options(world.options(log_mining_strategy="online_catalog"))
    check = connector_module("oracle", "checks.server").check_source
    found = {one.check: one for one in check(options)}
    assert found["OpenLogReplicator"].status == "warning"
    assert "log.mining.strategy has no effect" in found["OpenLogReplicator"].finding
    assert "LogMiner" not in found
    query, _ = stopped(world)
    world.write(100)
    world.replicator.confirm_all()
    offset = query.offset
    (gone,) = [one for one in check(load_options(world.options()), offset) if one.status == "error"]
    assert "told to forget" in gone.finding
