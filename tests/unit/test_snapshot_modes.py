"""The decision table of each snapshot mode, and how modes, queries and locks are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from floodmark.connectors.contract.chunk import Chunk, DescribedTable, PageChunk
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.snapshot.locks import make_lock
from floodmark.errors import ConfigError, LogGoneError
from floodmark.extensions import discovery
from floodmark.extensions.snapshotter import SnapshotLock, SnapshotQuery, Snapshotter
from floodmark.snapshots.modes import BUILT_IN, make_query, make_snapshotter
from floodmark.spark.stream.offsets import Offset
from floodmark.spark.stream.partitions import chunk_partitions
from floodmark.spark.stream.planning.startup import Start, decide, refuse_to_go_back
from tests.support.options import REQUIRED
from tests.unit.test_snapshot_state import begin

BASED = "snapshot.mode.configuration.based"
STARTS = [(False, False), (True, False), (True, True)]


class Weekly(Snapshotter):
    """A custom snapshotter that has only what has no default."""

    name = "weekly"

    def __init__(self) -> None:
        self.options: Mapping[str, Any] = {}

    def configure(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        return True

    def should_stream(self) -> bool:
        return True


class NoBodies:
    """Not a snapshotter."""

    name = "no_bodies"


class Columns(SnapshotQuery):
    name = "columns"

    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        return f"SELECT {', '.join(columns)} FROM {table}"


class Exclusive(SnapshotLock):
    name = "exclusive"

    def table_locking_statement(self, lock_timeout: timedelta, table: str) -> str | None:
        return f"LOCK TABLE {table} IN SHARE MODE"


def broken() -> Any:
    raise RuntimeError("no calendar")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the classes of this module look as if a package offered them."""
    offered = {
        "floodmark.snapshotters": {"weekly": "Weekly", "no_bodies": "NoBodies", "broken": "broken"},
        "floodmark.snapshot_queries": {"columns": "Columns"},
        "floodmark.snapshot_locks": {"exclusive": "Exclusive"},
    }

    def entry_points(group: str) -> EntryPoints:
        return EntryPoints(EntryPoint(name, f"{__name__}:{what}", group) for name, what in offered[group].items())

    monkeypatch.setattr(discovery, "entry_points", entry_points)


def options(**given: str) -> PostgresOptions:
    base = {**REQUIRED, "database.password": "s3cret"}
    return PostgresOptions.parse({**base, **{name.replace("__", "."): value for name, value in given.items()}})


@pytest.mark.parametrize(
    ("mode", "data", "schema", "stream", "on_schema_error", "on_data_error"),
    [
        ("always", [True, True, True], [True, True, True], True, False, False),
        ("initial", [True, False, True], [True, False, True], True, False, False),
        ("initial_only", [True, False, True], [True, False, True], False, False, False),
        ("no_data", [False, False, False], [True, False, True], True, False, False),
        ("when_needed", [True, False, True], [True, False, True], True, False, True),
        ("recovery", [False, False, False], [True, True, True], True, True, False),
    ],
)
def test_mode(
    mode: str, data: list[bool], schema: list[bool], stream: bool, on_schema_error: bool, on_data_error: bool
) -> None:
    snapshotter = next(built_in for built_in in BUILT_IN if built_in.name == mode)
    assert [snapshotter.should_snapshot_data(*start) for start in STARTS] == data
    assert [snapshotter.should_snapshot_schema(*start) for start in STARTS] == schema
    assert snapshotter.should_stream() == stream
    assert snapshotter.should_snapshot_on_schema_error() == on_schema_error
    assert snapshotter.should_snapshot_on_data_error() == on_data_error
    assert snapshotter.should_stream_events_starting_from_snapshot() == (mode != "recovery")


@pytest.mark.parametrize(
    ("flag", "member"),
    [
        ("start.stream", "should_stream"),
        ("snapshot.on.schema.error", "should_snapshot_on_schema_error"),
        ("snapshot.on.data.error", "should_snapshot_on_data_error"),
    ],
)
def test_a_flag_decides_one_thing(flag: str, member: str) -> None:
    members = ["should_stream", "should_snapshot_on_schema_error", "should_snapshot_on_data_error"]
    made = make_snapshotter(options(**{"snapshot__mode": "configuration_based", f"{BASED}.{flag}": "true"}))
    assert {name for name in members if getattr(made, name)()} == {member}
    assert not any(made.should_snapshot_data(*start) for start in STARTS)


def test_flags_for_data_and_schema_hold_at_every_start() -> None:
    data = make_snapshotter(options(**{"snapshot__mode": "configuration_based", f"{BASED}.snapshot.data": "true"}))
    assert all(data.should_snapshot_data(*start) for start in STARTS)
    assert not any(data.should_snapshot_schema(*start) for start in STARTS)
    schema = make_snapshotter(options(**{"snapshot__mode": "configuration_based", f"{BASED}.snapshot.schema": "true"}))
    assert all(schema.should_snapshot_schema(*start) for start in STARTS)
    assert not any(schema.should_snapshot_data(*start) for start in STARTS)


STREAMING = Offset({}, "0-0")
IN_PROGRESS = Offset({}, "0-0", begin(3))


@pytest.mark.parametrize(
    ("mode", "streaming", "in_progress"),
    [
        ("always", Start.SNAPSHOT, Start.GO_ON),
        ("initial", Start.GO_ON, Start.GO_ON),
        ("initial_only", Start.GO_ON, Start.GO_ON),
        ("no_data", Start.GO_ON, Start.GIVE_UP_SNAPSHOT),
        ("when_needed", Start.GO_ON, Start.GO_ON),
    ],
)
def test_first_step_with_a_checkpoint(mode: str, streaming: Start, in_progress: Start) -> None:
    snapshotter = make_snapshotter(options(snapshot__mode=mode))
    assert decide(snapshotter, STREAMING, False) is streaming
    assert decide(snapshotter, IN_PROGRESS, False) is in_progress
    assert decide(snapshotter, STREAMING, True) is Start.START_OVER
    assert decide(snapshotter, IN_PROGRESS, True) is Start.START_OVER


def test_a_snapshot_at_each_start_without_the_log() -> None:
    snapshotter = make_snapshotter(
        options(**{"snapshot__mode": "configuration_based", f"{BASED}.snapshot.data": "true"})
    )
    assert decide(snapshotter, STREAMING, False) is Start.START_OVER
    assert decide(snapshotter, IN_PROGRESS, False) is Start.GO_ON


def test_positions_never_go_back() -> None:
    refuse_to_go_back("00A0-00", "00A0-00")
    with pytest.raises(LogGoneError, match=r"restored from a backup.*new checkpoint"):
        refuse_to_go_back("00A0-00", "009F-00")


def test_threads_bound_the_tasks_of_a_snapshot() -> None:
    table = DescribedTable(1, "t", None)
    chunks: list[Chunk] = [PageChunk(table=table, file="", first=n, last=n + 1) for n in range(5)]

    def tasks(chunks: list[Chunk], most: int | None) -> list[list[Chunk]]:
        return [list(task.chunks) for task in chunk_partitions("owner", "batch", "consistent", chunks, most)]

    assert tasks(chunks, None) == [[chunk] for chunk in chunks]
    assert [len(found) for found in tasks(chunks, 2)] == [3, 2]
    assert tasks([], 2) == []


@pytest.mark.usefixtures("installed")
def test_custom_ones_are_found_and_configured() -> None:
    given = options(
        snapshot__mode="custom",
        snapshot__mode__custom__name="weekly",
        snapshot__query__mode="custom",
        snapshot__query__mode__custom__name="columns",
        snapshot__locking__mode="custom",
        snapshot__locking__mode__custom__name="exclusive",
    )
    snapshotter = make_snapshotter(given)
    assert isinstance(snapshotter, Weekly)
    assert snapshotter.options["database.dbname"] == "shop"
    assert "s3cret" not in str(snapshotter.options)
    assert not snapshotter.should_snapshot_on_data_error()
    assert isinstance(make_query(given), Columns)
    assert isinstance(make_lock(given), Exclusive)


def test_built_in_query_and_locks() -> None:
    assert make_query(options()) is None
    assert make_lock(options()) is None
    shared = make_lock(options(snapshot__locking__mode="shared"))
    assert shared is not None
    assert shared.table_locking_statement(timedelta(seconds=1), '"a"."b"') == 'LOCK TABLE "a"."b" IN ACCESS SHARE MODE'


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "wekly",
            ["snapshot.mode.custom.name", "wekly", "floodmark.snapshotters", "Did you mean 'weekly'", "no_bodies"],
        ),
        ("broken", ["cannot be made", "RuntimeError: no calendar"]),
        ("no_bodies", ["has no configure", "should_stream", "floodmark.extensions.snapshotter.Snapshotter"]),
    ],
)
def test_a_custom_snapshotter_that_cannot_be_used(name: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        make_snapshotter(options(snapshot__mode="custom", snapshot__mode__custom__name=name))
    assert [word for word in words if word not in str(raised.value)] == []


def test_nothing_is_installed() -> None:
    with pytest.raises(ConfigError, match="None is installed"):
        make_query(options(snapshot__query__mode="custom", snapshot__query__mode__custom__name="x"))
