"""What changes behind the connection, in the database: slot, publication, tables, roles.

Each cell of the matrix in ``docs/continuity.md`` is a test: what changed, and what the query was doing. It goes on and
is right, or stops with the error that is said there. ``FLOODMARK_FULL_MATRIX=1`` runs all cells on both servers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from floodmark.connectors.postgres.continuity import published
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import SourceStateError
from floodmark.spark.stream import captured_log
from tests.conftest import make_source
from tests.support.address import Address
from tests.support.clusters import ask
from tests.support.hurry import hurry
from tests.support.world import WHENS, When, World

FULL = os.environ.get("FLOODMARK_FULL_MATRIX") == "1"
RIGHT = ""
LISTED = "CREATE PUBLICATION dbz_publication FOR TABLE t"
GONE = r"does not exist any more.*Ways out"
BEYOND = r"beyond the checkpoint.*Ways out"
ALTERED = r"publication 'dbz_publication' was altered, or dropped and created again.*may be missing.*Ways out"
MISSING = (
    r"publication 'dbz_publication' (does not exist any more|did not exist when changes were made)|"
    r"dbz_publication. does not exist and .publication.autocreate.mode. is .disabled."
)


@dataclass(frozen=True)
class Change:
    """A row of the matrix.

    Attributes:
        name: of the row.
        change: what happens at the server.
        outcome: the error, as a regular expression; empty if the query goes on and is right.
        at: other outcomes at some moments.
        publication: how the publication was made.
        options: more of the query.
        often: the moments that are tested in every run.
    """

    name: str
    change: Callable[[World], None]
    outcome: str
    at: dict[When, str] = field(default_factory=dict)
    publication: str = "CREATE PUBLICATION dbz_publication FOR ALL TABLES"
    options: dict[str, str] = field(default_factory=dict)
    often: tuple[When, ...] = ("retry",)


def alter(*statements: str, writes: bool = True) -> Callable[[World], None]:
    """Return a change: statements, each followed by rows that could be missing."""

    def change(world: World) -> None:
        for statement in statements:
            world.ask(statement)
            if writes:
                world.write()

    return change


def drop_slot(world: World) -> None:
    world.free_slot(f"SELECT pg_drop_replication_slot('{world.slot}')")
    world.write()


def recreate_slot(world: World) -> None:
    world.free_slot(
        f"SELECT pg_drop_replication_slot('{world.slot}')",
        "INSERT INTO t VALUES (-1, 0)",
        f"SELECT pg_create_logical_replication_slot('{world.slot}', 'pgoutput')",
    )
    world.write()


def advance_slot(world: World) -> None:
    world.write()
    world.free_slot(f"SELECT pg_replication_slot_advance('{world.slot}', pg_current_wal_lsn())")
    world.write()


def read_slot(world: World) -> None:
    world.write()
    read = "'proto_version', '1', 'publication_names', 'dbz_publication'"
    world.free_slot(f"SELECT count(*) FROM pg_logical_slot_get_binary_changes('{world.slot}', NULL, NULL, {read})")
    world.write()


def two_phase_slot(world: World) -> None:
    world.free_slot(
        f"SELECT pg_drop_replication_slot('{world.slot}')",
        f"SELECT pg_create_logical_replication_slot('{world.slot}', 'pgoutput', false, true)",
    )


def physical_slot(world: World) -> None:
    world.free_slot(
        f"SELECT pg_drop_replication_slot('{world.slot}')",
        f"SELECT pg_create_physical_replication_slot('{world.slot}', true)",
    )


def cut_connections(world: World) -> None:
    world.write()
    world.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{world.dbname}' AND application_name = 'floodmark'"
    )
    world.write()


def copy_slot_there_and_back(world: World) -> None:
    """The slot is another one, but stands where the first stood."""
    world.free_slot(
        f"SELECT pg_copy_logical_replication_slot('{world.slot}', 'c_{world.dbname}')",
        f"SELECT pg_drop_replication_slot('{world.slot}')",
        f"SELECT pg_copy_logical_replication_slot('c_{world.dbname}', '{world.slot}')",
        f"SELECT pg_drop_replication_slot('c_{world.dbname}')",
    )
    world.write()


def recreate_database(world: World) -> None:
    world.free_slot("SELECT 1")
    ask(world.server, f"ALTER DATABASE {world.dbname} ALLOW_CONNECTIONS false")
    ask(world.server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{world.dbname}'")
    ask(world.server, f"DROP DATABASE {world.dbname} WITH (FORCE)")
    ask(world.server, f"CREATE DATABASE {world.dbname}")
    world.ask("CREATE TABLE t (id integer PRIMARY KEY, v integer, pad text)")
    world.ask("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    world.ask(f"SELECT pg_create_logical_replication_slot('{world.slot}', 'pgoutput')")
    world.write()


def recreate_table(world: World) -> None:
    world.ask("BEGIN; DROP TABLE t; CREATE TABLE t (id integer PRIMARY KEY, v integer); COMMIT")
    # DROP is no event, so its rows stay where they were delivered.
    world.forgotten = world.written
    world.write()


PUBLICATION = "dbz_publication"
CHANGES = [
    Change("connections cut", cut_connections, RIGHT, often=("running", "snapshot")),
    Change("slot dropped", drop_slot, GONE, often=("running", "planned", "snapshot")),
    Change("slot dropped and created again", recreate_slot, BEYOND, often=("running", "retry")),
    Change("slot advanced", advance_slot, BEYOND, often=("retry", "planned")),
    Change("slot read by another consumer", read_slot, BEYOND, often=("retry",)),
    Change("slot copied there and back", copy_slot_there_and_back, RIGHT),
    Change("slot made two-phase", two_phase_slot, "two-phase slot"),
    Change("slot made physical", physical_slot, "plug-in 'none"),
    Change(
        "publication dropped",
        alter(f"DROP PUBLICATION {PUBLICATION}"),
        MISSING,
        options={"publication.autocreate.mode": "disabled"},
        often=("running", "snapshot"),
    ),
    Change(
        "publication renamed",
        alter(f"ALTER PUBLICATION {PUBLICATION} RENAME TO other"),
        MISSING,
        options={"publication.autocreate.mode": "disabled"},
        often=("running",),
    ),
    Change(
        "publication dropped and created again",
        alter(f"DROP PUBLICATION {PUBLICATION}", f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES"),
        f"{MISSING}|{ALTERED}",
        often=("retry",),
    ),
    Change(
        "publication without inserts",
        alter(f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'update')"),
        'does not publish insert, delete.*ALTER PUBLICATION "dbz_publication" SET',
        often=("running", "stopped"),
    ),
    Change(
        "publication without inserts for a moment",
        alter(
            f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'update')",
            f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert, update, delete, truncate')",
        ),
        ALTERED,
        often=("running", "retry", "planned"),
    ),
    Change(
        "table dropped from the publication",
        alter(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE u", f"ALTER PUBLICATION {PUBLICATION} DROP TABLE t"),
        'lacks public.t.*ADD TABLE "public"."t"',
        publication=f"CREATE TABLE u (id integer); {LISTED}",
        often=("retry",),
    ),
    Change(
        "table dropped from the publication for a moment",
        alter(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE t", f"ALTER PUBLICATION {PUBLICATION} ADD TABLE t"),
        r"was given public.t \(again\).*may be missing.*Ways out",
        publication=LISTED,
        often=("stopped",),
    ),
    Change(
        "another table added to the publication",
        alter(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE u"),
        RIGHT,
        publication=f"CREATE TABLE u (id integer); {LISTED}",
        often=("stopped",),
    ),
    Change(
        "schema dropped from the publication for a moment",
        alter(
            f"ALTER PUBLICATION {PUBLICATION} DROP TABLES IN SCHEMA public",
            f"ALTER PUBLICATION {PUBLICATION} ADD TABLES IN SCHEMA public",
        ),
        r"was given public.t \(again\)",
        publication=f"CREATE PUBLICATION {PUBLICATION} FOR TABLES IN SCHEMA public",
        often=("stopped",),
    ),
    Change(
        "publication given a row filter",
        alter(f"ALTER PUBLICATION {PUBLICATION} SET TABLE t WHERE (id < 3)"),
        "leaves out rows of public.t",
        publication=LISTED,
        often=("running",),
    ),
    Change(
        "publication given a column list",
        alter(f"ALTER PUBLICATION {PUBLICATION} SET TABLE t (id, v)"),
        "leaves out the columns pad of public.t",
        publication=LISTED,
        often=("stopped",),
    ),
    Change(
        "publication's partition root switched",
        alter(f"ALTER PUBLICATION {PUBLICATION} SET (publish_via_partition_root = true)"),
        r"publish_via_partition_root = true, but 'publish\.via\.partition\.root' is false",
        often=("running",),
    ),
    Change(
        "table dropped and created again, all published",
        recreate_table,
        RIGHT,
        often=("running",),
    ),
    Change(
        "table dropped and created again, tables listed",
        recreate_table,
        'lacks public.t.*ADD TABLE "public"."t"',
        publication=LISTED,
        often=("retry",),
    ),
    Change(
        "table dropped and created again, `filtered`, new tables read",
        recreate_table,
        RIGHT,
        publication=LISTED,
        options={"publication.autocreate.mode": "filtered", "snapshot.new.tables": "parallel"},
        often=("running",),
    ),
    Change(
        "table made unlogged",
        alter("ALTER TABLE t SET UNLOGGED"),
        "changes of public.t are not logged any more|No table .* matches table.include.list",
        often=("running",),
    ),
    Change(
        "database dropped and created again",
        recreate_database,
        r"was dropped and created again \(its OID is",
        at={"running": r"was dropped and created again \(its OID is|does not exist"},
        often=("stopped",),
    ),
]

CELLS = [
    pytest.param(change, when, id=f"{change.name.replace(' ', '_')}-{when}")
    for change in CHANGES
    for when in WHENS
    if FULL or when in change.often
]


@pytest.fixture(params=["pg16", "pg18"] if FULL else ["pg18"])
def continuity_server(request: pytest.FixtureRequest) -> EmbeddedPostgres:
    found: EmbeddedPostgres = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def world(continuity_server: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    hurry(monkeypatch)
    monkeypatch.setattr(captured_log, "IDLE_ADVANCE_S", 0.5)
    monkeypatch.setattr(published, "WHOLE_CHECK_S", 0.5)
    source = make_source(continuity_server, tmp_path)
    with Address(continuity_server.port) as address:
        made = World(continuity_server, address, source.dbname, tmp_path / "state")
        yield made
        made.end()
        made.free_slot("SELECT 1")
        made.ask(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE slot_name = '{made.slot}' AND NOT temporary"
        )


def run_cell(world: World, change: Change, when: When) -> None:
    world.publication, world.more = change.publication, change.options
    world.begin(when)
    change.change(world)
    outcome = change.at.get(when, change.outcome)
    world.resume(when)
    world.follow(fails=bool(outcome))
    if outcome:
        assert world.error is not None
        assert_says(world.error, outcome)
        assert_noticed_again(world)
    else:
        assert world.error is None, world.error
        world.write()
        world.follow()
        assert world.error is None, world.error


def assert_says(error: Exception, outcome: str) -> None:
    assert re.search(outcome, str(error)), error


def assert_noticed_again(world: World) -> None:
    """What was noticed once is noticed by the next query, too."""
    world.end()
    world.error = None
    world.resume("stopped")
    world.follow(fails=True)
    assert world.error is not None


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("change", "when"), CELLS)
def test_what_changed_in_the_database(world: World, change: Change, when: When) -> None:
    run_cell(world, change, when)


@pytest.mark.parametrize("ends", [False, True])
def test_rows_that_a_publication_leaves_out_are_told_although_nothing_comes(
    world: World, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """The publication was looked at a moment before, and the log does not move on any more."""
    world.publication = LISTED
    world.begin("running")
    monkeypatch.setattr(published, "CHECK_SHARE", 1e9)
    monkeypatch.setattr(published, "MOST_BETWEEN_CHECKS_S", 3600.0 if ends else 2.0)
    world.write()
    world.follow()
    world.ask(f"ALTER PUBLICATION {PUBLICATION} SET TABLE t WHERE (id < 3)")
    world.write()
    if ends:
        assert world.query is not None
        with pytest.raises(SourceStateError, match="leaves out rows of public"):
            world.query.drain()
    else:
        world.follow(fails=True)
        assert "leaves out rows of public" in str(world.error)


def test_a_table_that_is_not_logged_any_more_is_told_at_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """That alters nothing about the publication, which is looked at as a whole only now and then."""
    world.begin("running")
    monkeypatch.setattr(published, "WHOLE_CHECK_S", 3600.0)
    world.write()
    world.follow()
    world.ask("ALTER TABLE t SET UNLOGGED")
    world.write()
    assert world.query is not None
    with pytest.raises(SourceStateError, match="are not logged any more"):
        world.query.drain()
