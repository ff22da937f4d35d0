"""What changes behind the connection, when, on which server: each goes on and is right, or stops and says what changed.

``docs/continuity.md`` has the same rows. By default each row is run once, with another moment and another server from
row to row; ``FLOODMARK_FULL_MATRIX=1`` runs all cells.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest

from floodmark.errors import ConnectError, FloodmarkError
from tests.support.binlog import log_end
from tests.support.mysql import PRIVILEGES, MysqlServer
from tests.support.replication import replica_of, stop_replica, wait_for_replica
from tests.support.worlds import DATABASE, KINDS, ROWS, TABLE, WAIT_S, World, flavor_of, settings_of, until

WHENS = ("stopped", "running", "retry", "planned", "snapshot")
RIGHT = ""
FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))


@dataclass(frozen=True)
class Row:
    """What changes.

    Attributes:
        name: as the table in the documentation has it.
        change: changes the world; the query's connections are cut before or after, as the moment asks.
        outcome: ``RIGHT``, or what the error says; by ``kind/when``, kind, moment or ``""``.
        prepare: what comes before the query begins, or while it runs, so that the change can come.
        undo: makes the server usable for other cells; None: it isn't.
        kinds: the worlds that have it.
        whens: the moments that it can come at.
    """

    name: str
    change: Callable[[World], None]
    outcome: Mapping[str, str] = field(default_factory=lambda: {"": RIGHT})
    prepare: Callable[[World], None] = lambda _: None
    undo: Callable[[World], None] | None = lambda _: None
    kinds: tuple[str, ...] = KINDS
    whens: tuple[str, ...] = WHENS

    def expected(self, kind: str, when: str) -> str:
        """Return the outcome of a cell."""
        return next(self.outcome[key] for key in (f"{kind}/{when}", kind, when, "") if key in self.outcome)


def restart(world: World) -> None:
    world.here.restart()


def crash(world: World) -> None:
    world.here.restart(kill=True)


def kill_connections(world: World) -> None:
    with world.here.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SELECT id FROM information_schema.processlist WHERE user = '{world.here.user}'")
        for (thread,) in cursor.fetchall():
            try:
                cursor.execute(f"KILL {thread}")
            except pymysql.err.OperationalError:
                continue  # it has ended by itself


def rotate(world: World) -> None:
    world.here.execute(*["FLUSH BINARY LOGS"] * 3)
    world.cut()


def purge_what_was_read(world: World) -> None:
    name = log_end(world.here)[0]
    world.here.execute(f"PURGE BINARY LOGS TO '{name}'")
    world.cut()


def purge_all(world: World) -> None:
    world.write()
    world.here.purge_old_logs()
    world.cut()


def reset(world: World) -> None:
    mariadb = world.flavor == "mariadb"
    world.here.execute("RESET MASTER" if mariadb else "RESET BINARY LOGS AND GTIDS")
    world.cut()
    world.write()


def reset_and_outgrow(world: World) -> None:
    """The log becomes longer than it was, in as many files."""
    files = int(log_end(world.here)[0].rsplit(".", 1)[1])
    reset(world)
    world.here.execute(*["FLUSH BINARY LOGS"] * (files - 1))
    world.here.execute(f"CREATE TABLE {DATABASE}.filler (id int PRIMARY KEY AUTO_INCREMENT, x longtext)")
    world.here.execute(*[f"INSERT INTO {DATABASE}.filler (x) VALUES (REPEAT('y', 200000))"] * 4)
    world.cut()


def keep_a_copy(world: World) -> None:
    world.notes["copy"] = world.copy()
    world.write()
    if world.query is not None:
        world.drain()


def restore_the_copy(world: World) -> None:
    world.restore(world.notes["copy"])
    world.write()
    world.cut()


def restore_and_outgrow(world: World) -> None:
    world.restore(world.notes["copy"])
    for _ in range(8):
        world.write()
    world.cut()


def follow_a_clone_that_went_on(world: World) -> None:
    clone = world.another(world.notes["copy"], server_id=world.first.settings["server_id"])
    for _ in range(8):
        world.write(clone)
    world.move(clone)


def follow_a_clone(world: World) -> None:
    """The clone has all that the query was told, and goes on by itself."""
    # Where the server itself went on after the copy, its next file is another one than the clone's.
    world.address.lead_to(None)
    clone = world.another(world.copy(), server_id=world.first.settings["server_id"])
    world.move(clone)


def unrelated(world: World, **settings: str | None) -> MysqlServer:
    other = world.another(None, **settings)
    other.execute(f"CREATE DATABASE {DATABASE}")
    other.execute(f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v int, pad varchar(100))")
    other.execute(*[f"INSERT INTO {TABLE} VALUES ({n}, 1000000, 'foreign')" for n in range(60)])
    return other


def follow_an_unrelated_server(world: World) -> None:
    world.move(unrelated(world))


def follow_one_with_the_same_identity(world: World) -> None:
    other = unrelated(world, server_id=world.first.settings["server_id"])
    if world.flavor == "mysql":
        other.stop()
        shutil.copy(world.first.data / "auto.cnf", other.data / "auto.cnf")
        other.start()
        other.execute(*[f"INSERT INTO {TABLE} VALUES ({n}, 1000000, 'foreign')" for n in range(100, 160)])
    world.move(other)


def make_a_replica(world: World) -> None:
    """Begin with a replica; its files have other numbers."""
    replica = world.another()
    replica.execute("FLUSH BINARY LOGS")
    world.notes["replica"] = replica
    if world.kind == "mysql-no-gtids":
        # The brief history of the source, by hand.
        replica.execute(f"CREATE DATABASE {DATABASE}")
        replica.execute(f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v int, pad varchar(100))")
        return
    replica_of(world.first, replica)
    wait_for_replica(world.first, replica)


def take_over(world: World) -> None:
    replica = world.notes["replica"]
    if world.kind != "mysql-no-gtids":
        wait_for_replica(world.first, replica)
        stop_replica(replica)
    world.move(replica)


def make_a_replica_that_leaves_out(world: World) -> None:
    make_a_replica(world)
    replica = world.notes["replica"]
    stop_replica(replica)
    if world.flavor == "mariadb":
        replica.execute(f"SET GLOBAL replicate_wild_ignore_table = '{DATABASE}.%'", "START SLAVE")
    else:
        replica.execute(f"CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = ('{DATABASE}.%')", "START REPLICA")


def make_a_replica_that_stops(world: World) -> None:
    """The query delivers what the replica doesn't receive."""
    make_a_replica(world)
    if world.kind != "mysql-no-gtids":
        stop_replica(world.notes["replica"])


def take_over_too_early(world: World) -> None:
    replica = world.notes["replica"]
    world.write(replica)
    world.move(replica)


def take_over_with_errant_transactions(world: World) -> None:
    replica = world.notes["replica"]
    wait_for_replica(world.first, replica)
    world.write(replica)
    stop_replica(replica)
    world.write(replica)
    world.move(replica)


def set_global(name: str, value: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.here.execute(f"SET GLOBAL {name} = {value}")
        world.cut()

    return change


def start_with(**settings: str | None) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.here.settings.update(settings)
        world.here.restart()

    return change


def without_binlog(world: World) -> None:
    world.here.settings.pop("log_bin")
    start_with(skip_log_bin=None)(world)


def gtids_off(world: World) -> None:
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
        world.here.execute(f"SET GLOBAL gtid_mode = {mode}")
    world.write()
    world.cut()


def gtids_on(world: World) -> None:
    world.here.execute("SET GLOBAL enforce_gtid_consistency = ON")
    for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
        world.here.execute(f"SET GLOBAL gtid_mode = {mode}")
    world.write()
    world.cut()


def new_uuid(world: World) -> None:
    world.here.stop()
    (world.here.data / "auto.cnf").unlink()
    world.here.start()


def revoke(world: World) -> None:
    world.here.execute(f"REVOKE REPLICATION SLAVE ON *.* FROM '{world.here.user}'@'%'")
    world.cut()


def grant(world: World) -> None:
    world.here.execute(f"GRANT {PRIVILEGES} ON *.* TO '{world.here.user}'@'%'")


def lock_account(world: World) -> None:
    world.here.execute(f"ALTER USER '{world.here.user}'@'%' IDENTIFIED BY 'another'")
    world.cut()


def unlock_account(world: World) -> None:
    world.here.execute(f"ALTER USER '{world.here.user}'@'%' IDENTIFIED BY '{world.here.password}'")


def recreate_table(world: World) -> None:
    world.here.execute(f"DELETE FROM {TABLE}")
    world.here.execute(f"DROP TABLE {TABLE}")
    world.make_table()
    world.cut()


def recreate_database(world: World) -> None:
    world.here.execute(f"DELETE FROM {TABLE}")
    world.here.execute(f"DROP DATABASE {DATABASE}", f"CREATE DATABASE {DATABASE}")
    world.make_table()
    world.cut()


def remove_the_file(world: World) -> None:
    """The file that the position lies in, which is not the last one."""
    name = log_end(world.here)[0]
    world.here.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    (world.here.data / name).unlink()
    world.cut()


def lose_the_end(world: World) -> None:
    """As a crash of the machine does with sync_binlog=0."""
    name = log_end(world.here)[0]
    world.here.stop()
    path = world.here.data / name
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 200)
    world.here.start()


def hold_all_connections(world: World) -> None:
    world.here.execute("SET GLOBAL max_connections = 10")
    held: list[Any] = []
    while True:
        try:
            held.append(world.here.connect(user=world.here.user, password=world.here.password))
        except pymysql.err.OperationalError:
            break
    before = len(world.rows)
    world.cut()
    until(lambda: len(world.rows) >= before)
    for session in held:
        session.close()
    world.here.execute("SET GLOBAL max_connections = 100")


NOT_OURS = r"begun as|events before|file ends at|no binlog file|no longer has|was reset"
PLANNED_ELSEWHERE = "planned from another server's log"
FAIL_OVER = {"": RIGHT, "mysql-no-gtids": "no GTIDs", "planned": PLANNED_ELSEWHERE}
FAIL_OVER["mysql-no-gtids/planned"] = "no GTIDs"
LATER = ("stopped", "running", "retry")

MATRIX = (
    Row("the server is restarted", restart),
    Row("the server crashes and recovers", crash),
    Row("its connections are killed", kill_connections, whens=("running", "snapshot")),
    Row("the binlog is rotated", rotate),
    Row("binlog files that were read are purged", purge_what_was_read, whens=("running", "stopped", "retry")),
    Row(
        "binlog files that are needed are purged",
        purge_all,
        {"": "no longer has the binlog file"},
        whens=("stopped", "retry", "planned"),
    ),
    Row("the binlog is reset", reset, {"": NOT_OURS}),
    Row("the binlog is reset and becomes longer than before", reset_and_outgrow, {"": NOT_OURS}),
    Row("an older copy of the data is restored", restore_the_copy, {"": NOT_OURS}, keep_a_copy, None, whens=LATER),
    Row(
        "an older copy of the data is restored and becomes longer",
        restore_and_outgrow,
        {"": NOT_OURS},
        keep_a_copy,
        None,
        whens=LATER,
    ),
    Row(
        "the address leads to a copy of the data directory that went on by itself",
        follow_a_clone_that_went_on,
        {"": "begun as|events before|file ends at|no binlog file|the same server_id"},
        keep_a_copy,
        whens=LATER,
    ),
    Row("the address leads to a copy of the data directory that has all", follow_a_clone, whens=LATER),
    Row(
        "the address leads to an unrelated server",
        follow_an_unrelated_server,
        {"": "lacks transactions", "mysql-no-gtids": "no GTIDs"},
    ),
    Row(
        "the address leads to an unrelated server with the same server_id or server_uuid",
        follow_one_with_the_same_identity,
        {"": NOT_OURS, "mariadb": "the same server_id"},
    ),
    Row("a replica that has all takes over", take_over, FAIL_OVER, make_a_replica),
    Row(
        "a replica that lacks delivered transactions takes over",
        take_over_too_early,
        {"": "lacks transactions", "mysql-no-gtids": "no GTIDs"},
        make_a_replica_that_stops,
        whens=LATER,
    ),
    Row(
        "a replica with transactions of its own takes over",
        take_over_with_errant_transactions,
        prepare=make_a_replica,
        kinds=("mysql", "mariadb"),
        whens=LATER,
    ),
    Row("GTIDs are switched off", gtids_off, kinds=("mysql",), undo=None, whens=LATER),
    Row("GTIDs are switched on", gtids_on, kinds=("mysql-no-gtids",), undo=None, whens=LATER),
    Row("server_uuid changes", new_uuid, kinds=("mysql", "mysql-no-gtids")),
    Row("server_id changes", set_global("server_id", "77"), undo=restart),
    Row(
        "binlog_format becomes STATEMENT",
        set_global("binlog_format", "'STATEMENT'"),
        {"": "binlog_format is STATEMENT"},
        undo=set_global("binlog_format", "'ROW'"),
    ),
    Row(
        "binlog_format becomes MIXED",
        set_global("binlog_format", "'MIXED'"),
        {"": "binlog_format is MIXED"},
        undo=set_global("binlog_format", "'ROW'"),
    ),
    Row(
        "binlog_row_image becomes MINIMAL",
        set_global("binlog_row_image", "'MINIMAL'"),
        undo=set_global("binlog_row_image", "'FULL'"),
        whens=LATER,
    ),
    Row(
        "the database is left out by binlog_ignore_db",
        start_with(binlog_ignore_db=DATABASE),
        {"": f"doesn't log changes of {DATABASE}"},
        undo=None,
    ),
    Row(
        "the database is left out by binlog_do_db",
        start_with(binlog_do_db="another"),
        {"": f"doesn't log changes of {DATABASE}"},
        undo=None,
    ),
    Row(
        "a replica that leaves the table out takes over",
        take_over,
        {"": f"doesn't take from its source changes of {TABLE}"},
        make_a_replica_that_leaves_out,
        kinds=("mysql", "mariadb"),
        whens=LATER,
    ),
    Row("the binlog is switched off", without_binlog, {"": "log_bin"}, undo=None),
    Row("the account loses REPLICATION SLAVE", revoke, {"": "may not read the binlog"}, undo=grant),
    Row("the account's password changes", lock_account, {"": "Access denied"}, undo=unlock_account),
    Row("there are too many connections for a while", hold_all_connections, whens=LATER),
    Row("the table is dropped and created again", recreate_table, whens=LATER),
    Row("the database is dropped and created again", recreate_database, whens=LATER),
    Row(
        "a binlog file is removed by hand", remove_the_file, {"": "missing|ends at|not find|could not open"}, undo=None
    ),
    Row(
        "the end of the binlog is lost in a crash",
        lose_the_end,
        {"": "ends at|begun as|events before|truncated"},
        undo=None,
    ),
)


def cells() -> Iterator[Any]:
    for number, row in enumerate(MATRIX):
        all_cells = [(kind, when) for kind in row.kinds for when in row.whens]
        chosen = all_cells if FULL else [all_cells[number * 7 % len(all_cells)]]
        for kind, when in chosen:
            yield pytest.param(row, kind, when, id=f"{row.name}-{when}-{kind}".replace(" ", "_"))


class Servers:
    """A server of each kind, for cells that leave it as they found it."""

    def __init__(self) -> None:
        self._running: dict[str, MysqlServer] = {}

    def take(self, kind: str) -> MysqlServer:
        """Return a server."""
        if kind not in self._running:
            self._running[kind] = MysqlServer(flavor_of(kind), **settings_of(kind)).__enter__()
        return self._running[kind]

    def discard(self, kind: str) -> None:
        """Stop the server of a kind: the next cell gets another one."""
        found = self._running.pop(kind, None)
        if found is not None:
            found.close()


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    for kind in KINDS:
        found.discard(kind)


@pytest.mark.parametrize(("row", "kind", "when"), list(cells()))
def test_cell(servers: Servers, tmp_path: Path, row: Row, kind: str, when: str) -> None:
    small = {"snapshot.chunk.bytes": "8192", "max.batch.bytes": "16384"} if when == "snapshot" else {}
    world = World(kind, servers.take(kind), tmp_path, **small)
    expected = row.expected(kind, when)
    usable = False
    try:
        world.notes["when"] = when
        world.begin(ROWS if when == "snapshot" else 3)
        if expected:
            with pytest.raises(FloodmarkError) as caught:
                MOMENTS[when](world, row)
            assert re.search(expected, str(caught.value)), caught.value
            assert not isinstance(caught.value, ConnectError) or "Access denied" in str(caught.value)
            assert caught.value.cure
            assert 1_000_000 not in world.delivered().values()
        else:
            MOMENTS[when](world, row)
            assert world.delivered() == world.state()
            changes = world.changes()
            assert len(set(changes)) == len(changes)
            positions = [row["position"] for row in world.rows]
            assert positions == sorted(positions)
        world.close()
        if row.undo is not None:
            world.here = world.first
            row.undo(world)
            usable = True
    finally:
        world.close()
        if not usable:
            servers.discard(kind)


def begun(world: World, row: Row) -> None:
    world.start()
    world.drain()
    row.prepare(world)
    world.write()
    world.drain()


def finish(world: World) -> None:
    with contextlib.suppress(pymysql.err.Error):  # where the table is another one
        world.write()
    world.drain()
    world.drain()


def while_stopped(world: World, row: Row) -> None:
    begun(world, row)
    offset = world.stop()
    row.change(world)
    world.start(offset)
    finish(world)


def while_running(world: World, row: Row) -> None:
    begun(world, row)
    row.change(world)
    finish(world)


def during_a_retry(world: World, row: Row) -> None:
    begun(world, row)
    # What the change itself does with the address comes on top of the pause.
    refused = world.address.refused
    world.address.lead_to(None)
    until(lambda: world.address.refused > refused)
    row.change(world)
    world.address.lead_to(world.here.port)
    finish(world)


def between_planning_and_commit(world: World, row: Row) -> None:
    begun(world, row)
    world.write()
    query = world.query
    assert query is not None
    query.restart()
    limit = query.reader.getDefaultReadLimit()
    planned: list[dict[str, Any]] = []
    deadline = time.monotonic() + WAIT_S
    while not planned:
        assert time.monotonic() < deadline
        start, end = query.offset, query.reader.latestOffset(query.offset, limit)
        planned = query.run(end) if end != start else []
        query.offset = end
    query.stop()
    row.change(world)
    query = world.start(start)
    again = query.run(end)
    assert [(one["position"], one["key"]) for one in again] == [(one["position"], one["key"]) for one in planned]
    world.rows += again
    query.offset = end
    finish(world)


def during_a_snapshot(world: World, row: Row) -> None:
    query = world.start()
    world.rows += query.step()
    row.prepare(world)
    world.write()
    assert query.offset["snapshot"]
    row.change(world)
    finish(world)


MOMENTS = {
    "stopped": while_stopped,
    "running": while_running,
    "retry": during_a_retry,
    "planned": between_planning_and_commit,
    "snapshot": during_a_snapshot,
}
