"""Generated workloads: whatever happens between a read point and its rows, the result is the source."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from floodmark.connectors.postgres.snapshot import chunks, window_reader
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.key_ranges import PostgresKeyRanges
from floodmark.connectors.postgres.snapshot.watermarks import PostgresWatermarks, PostgresWindow
from floodmark.connectors.postgres.source.read_points import PlacedPoint, PlacedWindow, PostgresSnapshots
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.snapshots.incremental import reconcile
from floodmark.snapshots.incremental.reconcile import Reconciled, Touches
from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.planning import new_tables
from tests.conftest import Source, drop, make_source
from tests.integration.test_incremental import SIGNALS, signal
from tests.support.following import Follower
from tests.support.inprocess import InProcess
from tests.support.interleaving import ACTIONS, KEYS, KINDS, TYPES, KeyKind, Sessions, Step

CASES = int(os.environ.get("FLOODMARK_GENERATED_CASES", "125"))
OTHER_CASES = CASES // 5
LIMIT_S = max(600, 2 * CASES)
SESSIONS = 3
HOOKS: dict[type, tuple[str, ...]] = {
    PostgresSnapshots: ("open_unsettled",),
    PlacedPoint: ("settle", "key_ranges"),
    PlacedWindow: ("rows",),
    PostgresTables: ("describe", "fingerprints"),
    PostgresKeyRanges: ("last", "bounds"),
    PostgresWindow: ("__init__", "end_view"),
    PostgresWatermarks: ("close",),
}
CRASHES = ("planned, not kept", "planned", "read, not delivered", "delivered")
CHUNKS = -1
"""Instead of a micro-batch's number: the first one that has chunks."""
NUMBERS = itertools.count()

numbers = st.integers(0, KEYS - 1)
steps = st.tuples(st.integers(0, SESSIONS - 1), st.sampled_from(ACTIONS), numbers, numbers)


class Laboratory:
    """One query that goes on over all cases, and the sessions that change tables meanwhile."""

    def __init__(self, source: Source, way: str) -> None:
        self.source = source
        self.way = way
        source.execute(SIGNALS, *TYPES)
        self.connections = [psycopg.connect(source.conninfo) for _ in range(SESSIONS)]
        self.inject: Callable[[], None] = lambda: None
        self.query = self._open(None)
        # The slot is there before the first signal.
        self.query.drain()
        self.query.restart()

    def run(self, kind: KeyKind, present: list[int], script: list[Step], crashes: dict[int, str]) -> None:
        """Snapshot a table while its rows change and the query dies, and compare."""
        sessions = Sessions(self.source.conninfo, f"t{next(NUMBERS)}", kind, self.connections)
        try:
            self._run(sessions, present, script, crashes)
        finally:
            self.inject = lambda: None
            sessions.abandon()
        sessions.drop()

    def _run(self, sessions: Sessions, present: list[int], script: list[Step], crashes: dict[int, str]) -> None:
        sessions.create(present)
        follower = Follower()
        todo = iter(script)

        def inject() -> None:
            for step in itertools.islice(todo, 2):
                sessions.step(step)

        self.ask(sessions.table)
        self.inject = inject
        self._follow(follower, sessions, dict(crashes), rounds=len(script) + 10)
        self.inject = lambda: None
        sessions.finish()
        signal(self.source, "log", message="the end")
        ended = False
        while not ended or self._running(self.query.offset):
            rows = self.query.step()
            ended = ended or any(row["table"] == "signals" and '"type":"log"' in row["value"] for row in rows)
            self._apply(follower, rows, sessions, self.query.offset)
        follower.check(sessions)

    @staticmethod
    def _apply(follower: Follower, rows: list[dict[str, Any]], sessions: Sessions, end: dict[str, Any]) -> None:
        follower.apply(rows, sessions)
        # Of a second lane no signal tells. It may begin late: a read point waits for what commits meanwhile.
        follower.begun = follower.begun or bool((end["lane"] or {}).get("position"))

    def ask(self, table: str) -> None:
        """Ask for a snapshot of a table; a second lane begins by itself, since the table is new."""
        if self.way != "parallel":
            signal(self.source, "execute-snapshot", data_collections=[rf"public\.{table}"])

    def _follow(self, follower: Follower, sessions: Sessions, crashes: dict[int, str], rounds: int) -> None:
        """Run micro-batches until the snapshot is over, changing rows between all their steps."""
        begun = self._running(self.query.offset)
        for number in range(rounds):
            self.inject()
            end = self.query.reader.latestOffset(self.query.offset, self.query.reader.getDefaultReadLimit())
            begun = begun or self._running(end)
            self.inject()
            state = (end["lane"] or {}).get("snapshot") if self.way == "parallel" else end["incremental"]
            chunks_planned = state is not None and state["batch"]
            crash = crashes.pop(CHUNKS if chunks_planned and CHUNKS in crashes else number, None)
            if crash == "planned, not kept":
                self._die()
                continue
            if crash == "planned":
                self._die()
            rows = self._read(end)
            if crash == "read, not delivered":
                self._die()
                rows = self._read(end)
            self._apply(follower, rows, sessions, end)
            self.query.offset = end
            if crash == "delivered":
                self._die()
            else:
                self.query.reader.commit(end)
            if begun and not self._running(end):
                return

    def _running(self, offset: dict[str, Any]) -> bool:
        return offset["lane" if self.way == "parallel" else "incremental"] is not None

    def _read(self, end: dict[str, Any]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        if end != self.query.offset:
            for partition in self.query.reader.partitions(self.query.offset, end):
                self.inject()
                for batch in self.query.reader.read(partition):
                    rows += batch.to_pylist()
        return rows

    def _die(self) -> None:
        """Go on in another process, as far as the source can tell."""
        self.query.stop()
        self.query = self._open(self.query.offset)

    def options(self) -> dict[str, str]:
        """Return the query's options."""
        options = {"skipped.operations": "none", "max.batch.rows": "16", "incremental.snapshot.chunk.size": "1"}
        options |= {"snapshot.mode": "no_data", "signal.data.collection": "public.signals"}
        if self.way == "parallel":
            options["snapshot.new.tables"] = "parallel"
        else:
            options["incremental.snapshot.read.points"] = self.way
        return {**self.source.options, **options}

    def _open(self, offset: dict[str, Any] | None) -> InProcess:
        return InProcess(self.options(), offset)

    def close(self) -> None:
        self.query.stop()
        for conn in self.connections:
            conn.close()


@contextmanager
def opened(version: int, way: str, state: Path, kind: type[Laboratory] = Laboratory) -> Iterator[Laboratory]:
    # The standby doesn't exist.
    server_settings = {
        "synchronous_standby_names": "nobody",
        "synchronous_commit": "local",
    }
    with EmbeddedPostgres(version, server_settings) as server:
        source = make_source(server, state)
        made = kind(source, way)
        with pytest.MonkeyPatch.context() as patch:
            for owner, names in HOOKS.items():
                for name in names:
                    patch.setattr(owner, name, injecting(made, getattr(owner, name)))
            yield made
        made.close()
        drop(source)


@pytest.fixture(scope="module", params=[16, 18])
def laboratory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with opened(request.param, "exact", Path(tmp_path_factory.mktemp("generated")) / "state") as made:
        yield made


@pytest.fixture(scope="module", params=[16, 18])
def windows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with opened(request.param, "watermarks", Path(tmp_path_factory.mktemp("windows")) / "state") as made:
        yield made


@pytest.fixture(scope="module", params=[16, 18])
def lanes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_tables, "EVERY_S", 0.0)
        with opened(request.param, "parallel", Path(tmp_path_factory.mktemp("lanes")) / "state") as made:
            yield made


def injecting(laboratory: Laboratory, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with changes before and after it."""

    def wrapped(*args: Any) -> Any:
        laboratory.inject()
        result = method(*args)
        laboratory.inject()
        return result

    return wrapped


def cases(count: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test over generated cases."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        given_cases = given(
            kind=st.sampled_from(KINDS),
            present=st.lists(numbers, unique=True, max_size=KEYS),
            script=st.lists(steps, max_size=60),
            crashes=st.dictionaries(st.integers(CHUNKS, 12), st.sampled_from(CRASHES), max_size=2),
        )
        return settings(max_examples=count, suppress_health_check=checks, print_blob=True, **more)(given_cases(test))

    return decorate


@pytest.mark.timeout(LIMIT_S)
@cases(CASES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_convergence_and_no_time_travel(
    laboratory: Laboratory, kind: KeyKind, present: list[int], script: list[Step], crashes: dict[int, str]
) -> None:
    laboratory.run(kind, present, script, crashes)


@pytest.mark.timeout(LIMIT_S)
@cases(OTHER_CASES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_convergence_and_no_time_travel_by_windows(
    windows: Laboratory, kind: KeyKind, present: list[int], script: list[Step], crashes: dict[int, str]
) -> None:
    windows.run(kind, present, script, crashes)


@pytest.mark.timeout(LIMIT_S)
@cases(OTHER_CASES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_convergence_and_no_time_travel_by_a_second_lane(
    lanes: Laboratory, kind: KeyKind, present: list[int], script: list[Step], crashes: dict[int, str]
) -> None:
    lanes.run(kind, present, script, crashes)


def test_a_second_lane_that_begins_after_all_changes(lanes: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    reach, late = CapturedLog.reach_fresh_point, itertools.count()

    def reached(log: CapturedLog, after: str, rows: int | None) -> tuple[str, Any]:
        return (log.wait_briefly(after, rows, 0.0), None) if next(late) < 40 else reach(log, after, rows)

    monkeypatch.setattr(CapturedLog, "reach_fresh_point", reached)
    lanes.run(KINDS[0], [0, 1], [(0, "update", 0, 0)], {1: "planned, not kept"})
    assert next(late) > 40


def where_the_log_ends(commits: CommitLog, visible: Any, doubtful: Any, after: int, upto: int) -> int:
    return upto


def nothing_changed(visible: str) -> str:
    return "false"


def all_rows(keys: pa.StringArray, touches: Touches) -> Reconciled:
    return Reconciled(np.arange(len(keys)), [])


def no_rows(*args: Any) -> list[Any]:
    return []


Rule = tuple[tuple[Any, str, Callable[..., Any]], list[Step], dict[int, str]]
ALWAYS_CHANGING: list[Step] = [(0, "update", 0, 0), (0, "commit", 0, 0)] * 500

# Each rule, what breaks it, and a case that needs it: a commit that hangs while the read point is taken; a row that
# changes all the time while the query dies between planning a chunk and reading it.
BROKEN: dict[str, Rule] = {
    "the place of a read point": (
        (CommitLog, "cut", where_the_log_ends),
        [(0, "update", 0, 0), (0, "stall", 0, 0)],
        {},
    ),
    "the rows of a chunk that is read again": (
        (chunks, "changed_since", nothing_changed),
        ALWAYS_CHANGING,
        {CHUNKS: "planned"},
    ),
}
# The same for windows: a commit that hangs before the first mark; a row that changes between the marks, and whose large
# value is in no change.
BROKEN_WINDOWS: dict[str, Rule] = {
    "the beginning of a window": (
        (CommitLog, "first_hidden", where_the_log_ends),
        [(0, "update", 0, 0), (0, "stall", 0, 0)],
        {},
    ),
    "touched rows are left out": ((window_reader, "reconcile", all_rows), ALWAYS_CHANGING, {}),
    "values that the log lacks": ((reconcile, "_completed", no_rows), ALWAYS_CHANGING, {}),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found(laboratory: Laboratory, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_rule(laboratory, BROKEN[rule], monkeypatch)


@pytest.mark.parametrize("rule", BROKEN_WINDOWS)
def test_a_broken_rule_of_windows_is_found(windows: Laboratory, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_rule(windows, BROKEN_WINDOWS[rule], monkeypatch)


def break_rule(laboratory: Laboratory, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, script, crashes = rule
    laboratory.run(KINDS[0], [0], script, crashes)
    monkeypatch.setattr(*broken)
    with pytest.raises((AssertionError, ExceptionGroup)):
        laboratory.run(KINDS[0], [0], script, crashes)
