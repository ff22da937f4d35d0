"""What changes behind the connection: the server itself, a standby that takes over, an older copy of its files.

Each cell of the matrix in ``docs/continuity.md`` is a test. ``FLOODMARK_FULL_MATRIX=1`` runs all cells.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from floodmark.connectors.postgres.continuity import check, published
from floodmark.demo.embedded import EmbeddedPostgres, identity
from floodmark.errors import SourceStateError
from floodmark.spark.stream import captured_log
from tests.integration.test_postgres_continuity import FULL, GONE, RIGHT, assert_noticed_again
from tests.support.address import Address
from tests.support.clusters import Copy, ask, promote, standby_of, wait_for_standby, wait_until
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.world import WAIT_S, WHENS, When, World

FORKED = r"The server's log (ends at|left timeline|has another history|has something else at).*new checkpoint"
PHYSICAL = "standby_1"


@dataclass
class Servers(World):
    """A world with servers that can take over.

    Attributes:
        stack: closes what is started.
        place: for copies.
        standbys: of the first server.
        first: the server that the query began with.
    """

    stack: ExitStack = field(default_factory=ExitStack)
    place: Path = Path()
    standbys: list[EmbeddedPostgres] = field(default_factory=list)
    copy: Copy | None = None

    def add_standby(self, name: str = PHYSICAL, **settings: str) -> EmbeddedPostgres:
        """Start a standby of the present server."""
        made = self.stack.enter_context(standby_of(self.server, name, self.dbname, settings))
        self.standbys.append(made)
        return made

    def move_to(self, server: EmbeddedPostgres) -> None:
        """Let the address lead to another server."""
        self.address.cut()
        self.server = server
        self.address.lead_to(server.port)


@dataclass(frozen=True)
class ServerChange:
    """A row of the matrix.

    Attributes:
        name: of the row.
        change: what happens.
        outcome: the error, as a regular expression; empty if the query goes on and is right.
        before: what is prepared before the last changes are captured.
        at: other outcomes at some moments.
        options: more of the query.
        often: the moments that are tested in every run.
        settings: of the first server.
    """

    name: str
    change: Callable[[Servers], None]
    outcome: str
    before: Callable[[Servers], None] | None = None
    at: dict[When, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    often: tuple[When, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)


def restart(mode: str) -> Callable[[Servers], None]:
    def change(world: Servers) -> None:
        world.write()
        world.server.stop(mode)
        world.server.start()
        world.write()

    return change


def crash_before_the_flush(world: Servers) -> None:
    world.ask("SET synchronous_commit = off; INSERT INTO t SELECT -g, 0 FROM generate_series(1, 50) g")
    world.server.stop("immediate")
    world.server.start()
    world.write()


def another_cluster(world: Servers) -> None:
    other = world.stack.enter_context(EmbeddedPostgres(world.server.version))
    ask(other, f"CREATE DATABASE {world.dbname}")
    world.address.cut()
    world.server = other
    world.ask("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    world.ask("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    world.ask(f"SELECT pg_create_logical_replication_slot('{world.slot}', 'pgoutput')")
    world.write(2000)
    world.move_to(other)


def take_copy(world: Servers) -> None:
    world.copy = Copy(world.server, world.place / "copy")


def restore(world: Servers) -> None:
    assert world.copy is not None
    world.copy.restore(world.server)


def restore_and_go_on(world: Servers) -> None:
    """The log of the copy grows beyond what was captured, on the same timeline."""
    end = ask(world.server, "SELECT pg_current_wal_lsn()::text")[0][0]
    world.address.cut()
    restore(world)
    while ask(world.server, f"SELECT pg_current_wal_lsn() <= '{end}'")[0][0]:
        world.write(500)
    world.address.lead_to(world.server.port)


def add_standby(world: Servers) -> None:
    world.add_standby(sync_replication_slots="on")


def add_standby_without_slot(world: Servers) -> None:
    world.add_standby()


def add_synchronised_standby(world: Servers) -> None:
    """Start a standby that has the query's slot, and that the slot waits for."""
    world.add_standby(sync_replication_slots="on")
    ask(world.server, f"ALTER SYSTEM SET synchronized_standby_slots = '{PHYSICAL}'")
    ask(world.server, "SELECT pg_reload_conf()")
    if world.query is not None and world.query.offset["log"]:
        synchronise_slot(world)


def synchronise_slot(world: Servers) -> None:
    synced = f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{world.slot}' AND synced AND NOT temporary"
    while not ask(world.standbys[0], synced):
        world.write(1)
        ask(world.server, "SELECT pg_log_standby_snapshot()")
        world.follow()
        assert world.error is None, world.error


def switch_over(world: Servers) -> None:
    """The primary stops in order, and all that it has written is on the standby."""
    world.write()
    world.address.cut()
    world.server.stop("fast")
    promote(world.standbys[0])
    world.move_to(world.standbys[0])
    world.write()


def switch_over_with_the_slot(world: Servers) -> None:
    """The standby has the slot, as an administrator sees before a planned switch-over."""
    synced = f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{world.slot}' AND synced AND NOT temporary"
    deadline = time.monotonic() + WAIT_S
    while not ask(world.standbys[0], synced):
        assert time.monotonic() < deadline
        ask(world.server, "SELECT pg_log_standby_snapshot()")
        time.sleep(0.1)
    switch_over(world)


def lose_the_end(world: Servers) -> None:
    """The standby lacks what was captured last."""
    (standby,) = world.standbys
    promote(standby)
    world.server.stop("immediate")
    world.move_to(standby)


def lose_the_end_and_go_on(world: Servers) -> None:
    end = ask(world.server, "SELECT pg_current_wal_lsn()::text")[0][0]
    (standby,) = world.standbys
    promote(standby)
    world.server.stop("immediate")
    world.address.cut()
    world.server = standby
    while ask(standby, f"SELECT pg_current_wal_lsn() <= '{end}'")[0][0]:
        world.write(500)
    world.move_to(standby)


def disconnect_standby(world: Servers) -> None:
    """Take a standby that has the slot, and receives nothing any more from here on."""
    add_standby(world)
    if world.query is not None and world.query.offset["log"]:
        synchronise_slot(world)
    wait_for_standby(world.server, world.standbys[0])
    ask(world.standbys[0], "ALTER SYSTEM SET primary_conninfo = ''")
    ask(world.standbys[0], "SELECT pg_reload_conf()")
    wait_until(world.server, "NOT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = 'walreceiver')")


def lead_to_standby(world: Servers) -> None:
    world.write()
    world.move_to(world.standbys[0])


def lower_wal_level(world: Servers) -> None:
    world.free_slot(f"SELECT pg_drop_replication_slot('{world.slot}')")
    world.server.stop("fast")
    world.server.set("wal_level", "replica")
    world.server.start()
    world.write()


def outgrow_the_slot(world: Servers) -> None:
    lost = f"SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = '{world.slot}'"
    world.address.cut()
    world.wait_until_free()
    while not world.ask(lost)[0][0]:
        world.ask("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000)) FROM generate_series(1, 20)")
        world.ask("SELECT pg_switch_wal()")
        world.ask("CHECKPOINT")
    world.write()
    world.address.lead_to(world.server.port)


def reset_the_log(world: Servers) -> None:
    """What a damaged log may end with: the server forgets it, and goes on behind it."""
    world.write()
    world.ask("CHECKPOINT")
    world.server.stop("immediate")
    world.server.run_tool("pg_resetwal", "-f", "-D", str(world.server.data), **identity())
    world.server.start()
    world.write()


FAILOVER = {"slot.failover": "true"}
CHANGES = [
    ServerChange("restarted", restart("fast"), RIGHT, often=("running",)),
    ServerChange("crashed", restart("immediate"), RIGHT, often=("snapshot",)),
    ServerChange("crashed, with commits that were not on disk", crash_before_the_flush, RIGHT, often=("running",)),
    ServerChange("another cluster at the address", another_cluster, "another source", often=("retry", "stopped")),
    ServerChange("older copy of the files", restore, FORKED, before=take_copy, often=("running",)),
    ServerChange(
        "older copy of the files that has gone on",
        restore_and_go_on,
        FORKED,
        before=take_copy,
        at={"snapshot": f"{FORKED}|{GONE}"},
        often=("stopped", "retry"),
    ),
    ServerChange(
        "standby promoted in order",
        switch_over_with_the_slot,
        RIGHT,
        before=add_synchronised_standby,
        options=FAILOVER,
        often=("running", "planned"),
    ),
    ServerChange(
        "standby promoted that lacked the end",
        lose_the_end,
        FORKED,
        before=disconnect_standby,
        options=FAILOVER,
        often=("running",),
    ),
    ServerChange(
        "standby promoted that lacked the end and has gone on",
        lose_the_end_and_go_on,
        FORKED,
        before=disconnect_standby,
        options=FAILOVER,
        often=("planned",),
    ),
    ServerChange(
        "standby promoted that hasn't got the slot",
        switch_over,
        GONE,
        before=add_standby_without_slot,
        often=("stopped",),
    ),
    ServerChange(
        "standby at the address",
        lead_to_standby,
        "The server is a standby",
        before=add_standby,
        options={"errors.max.retries": "3"},
        often=("retry",),
    ),
    ServerChange(
        "log reset (pg_resetwal)",
        reset_the_log,
        r"requested WAL segment \w+ has already been removed.*Ways out",
        often=("running", "stopped"),
    ),
    ServerChange("wal_level lowered", lower_wal_level, "wal_level|does not exist any more", often=("stopped",)),
    ServerChange(
        "slot invalidated",
        outgrow_the_slot,
        r"was invalidated.*max_slot_wal_keep_size.*Ways out",
        settings={"max_slot_wal_keep_size": "16MB", "min_wal_size": "32MB", "max_wal_size": "32MB"},
        often=("running",),
    ),
]
CELLS = [
    pytest.param(change, when, id=f"{change.name.replace(' ', '_')}-{when}")
    for change in CHANGES
    for when in WHENS
    if FULL or when in change.often
]


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(captured_log, "IDLE_ADVANCE_S", 0.5)
    monkeypatch.setattr(published, "WHOLE_CHECK_S", 0.5)
    monkeypatch.setattr(check, "BYTES_S", 0.0)


@pytest.fixture
def make_world(tmp_path: Path, patched: None) -> Iterator[Callable[..., Servers]]:
    with ExitStack() as stack:
        worlds = []

        def make(version: int = 18, **settings: str) -> Servers:
            server = stack.enter_context(EmbeddedPostgres(version, {"max_wal_senders": "10", **settings}))
            ask(server, "CREATE DATABASE shop")
            address = stack.enter_context(Address(server.port))
            worlds.append(Servers(server, address, "shop", tmp_path / "state", stack=stack, place=tmp_path))
            return worlds[-1]

        yield make
        for world in worlds:
            world.end()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("change", "when"), CELLS)
def test_what_changed_at_the_server(make_world: Callable[..., Servers], change: ServerChange, when: When) -> None:
    run_server_cell(make_world(**change.settings), change, when)


def run_server_cell(world: Servers, change: ServerChange, when: When) -> None:
    world.more = change.options
    world.before = change.before  # type: ignore[assignment]
    world.begin(when)
    change.change(world)
    outcome = change.at.get(when, change.outcome)
    world.resume(when)
    world.follow(fails=bool(outcome))
    if outcome:
        assert world.error is not None
        assert re.search(outcome, str(world.error)), world.error
        assert_noticed_again(world)
    else:
        assert world.error is None, world.error
        world.write()
        world.follow()
        assert world.error is None, world.error


@pytest.mark.timeout(300)
def test_two_standbys_that_were_promoted(make_world: Callable[..., Servers]) -> None:
    """Both are on timeline 2, which began at different places."""
    world = make_world()
    world.more = FAILOVER
    world.before = disconnect_standby  # type: ignore[assignment]
    world.begin("running")
    (behind,) = world.standbys
    follower = world.add_standby("standby_2", sync_replication_slots="on")
    world.standbys.reverse()
    synchronise_slot(world)
    switch_over(world)
    world.follow()
    assert world.error is None, world.error
    assert world.server is follower
    end = ask(follower, "SELECT pg_current_wal_lsn()::text")[0][0]
    promote(behind)
    while ask(behind, f"SELECT pg_current_wal_lsn() <= '{end}'")[0][0]:
        ask(behind, "SELECT pg_logical_emit_message(false, 'x', repeat('x', 100000)) FROM generate_series(1, 20)")
    world.move_to(behind)
    world.follow(fails=True)
    assert re.search("has another history", str(world.error)), world.error


@pytest.mark.timeout(300)
@pytest.mark.parametrize("switch", ["SELECT pg_switch_wal()", "SELECT 1"], ids=["end of a segment", "anywhere"])
def test_an_older_copy_from_after_the_last_change(make_world: Callable[..., Servers], switch: str) -> None:
    """The position moved on without a change that is captured, and the copy goes on with some before it."""
    world = make_world()
    world.begin("running")
    take_copy(world)
    query = world.query
    assert query is not None
    before = query.offset["log"]
    ask(world.server, "CREATE TABLE other (id integer)")
    ask(world.server, "INSERT INTO other SELECT generate_series(1, 100)")
    ask(world.server, switch)
    while query.offset["log"] == before:
        query.step()
    query.stop()
    restore_and_go_on(world)
    world.resume("stopped")
    world.follow(fails=True)
    assert re.search("has something else at", str(world.error)), world.error


@pytest.mark.timeout(180)
@pytest.mark.parametrize("version", [16, 18] if FULL else [18])
def test_a_new_query_on_a_standby_makes_no_slot(make_world: Callable[..., Servers], version: int) -> None:
    world = make_world(version)
    world.ask("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    world.ask("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    standby = world.add_standby()
    wait_for_standby(world.server, standby)
    world.move_to(standby)
    query = InProcess(world.options)
    with pytest.raises(SourceStateError, match=r"The server is a standby.*Connect to the primary"):
        query.step()
    query.stop()
    assert ask(standby, "SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'logical'") == []


def test_when_needed_goes_on_after_the_log_was_reset(make_world: Callable[..., Servers]) -> None:
    world = make_world()
    world.more = {"snapshot.mode": "when_needed"}
    world.begin("stopped")
    reset_the_log(world)
    world.resume("stopped")
    world.follow()
    assert world.error is None, world.error
    world.write()
    world.follow()
    assert world.error is None, world.error


def upgrade(world: Servers) -> None:
    """Upgrade the server with ``pg_upgrade``, to the same version, which migrates slots as it does between others."""
    made = world.stack.enter_context(EmbeddedPostgres(world.server.version, {"max_wal_senders": "10"}))
    world.address.cut()
    made.stop("fast")
    world.server.stop("fast")
    settings = "-c wal_level=logical -c max_replication_slots=10"
    directories = ("-d", str(world.server.data), "-D", str(made.data))
    binaries = ("-b", str(world.server.bin), "-B", str(made.bin))
    made.run_tool("pg_upgrade", *binaries, *directories, "-U", "postgres", "-o", settings, "-O", settings, **identity())
    made.start()
    world.move_to(made)


def test_after_an_upgrade_a_new_query_goes_on_at_the_migrated_slot(
    make_world: Callable[..., Servers], tmp_path: Path
) -> None:
    world = make_world()
    world.begin("stopped")
    upgrade(world)
    world.write()
    world.resume("stopped")
    world.follow(fails=True)
    assert "written for another source: system" in str(world.error)
    # The way out that docs/continuity.md names.
    world.error, world.state = None, tmp_path / "new-state"
    world.more = {"snapshot.mode": "no_data"}
    world.query = InProcess(world.options)
    world.follow()
    assert world.error is None, world.error
