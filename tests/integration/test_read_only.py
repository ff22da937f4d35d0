"""Snapshots and signals by a role that has REPLICATION and SELECT, and nothing else."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import Phase

import floodmark
from floodmark.connectors.postgres.snapshot import read_point
from floodmark.spark.stream.planning import log_part, planner
from tests.conftest import Source
from tests.integration.test_generated_snapshots import CASES, Laboratory, cases, opened
from tests.integration.test_generated_snapshots import LIMIT_S as GENERATED_LIMIT_S
from tests.support.following import Follower
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.interleaving import KINDS, KeyKind, Sessions, Step
from tests.support.patience import within
from tests.support.reader import read_only

LIMIT_S = within(30)
ROWS = 40
NUMBERS = itertools.count()


class Capture:
    """A query of the role, and the table that its events make."""

    def __init__(self, source: Source, **options: str) -> None:
        source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer NOT NULL, filler text)")
        source.execute(f"INSERT INTO t SELECT g, 0, repeat('x', 1900) FROM generate_series(1, {ROWS}) g")
        self.source = source
        small = {
            "incremental.snapshot.chunk.size": "1",
            "max.batch.rows": "8",
            "snapshot.chunk.bytes": "8192",
            "max.batch.bytes": "8192",
            "snapshot.batch.target.ms": "1",
        }
        self.options = {**read_only(source), **small, **{name.replace("_", "."): v for name, v in options.items()}}
        self.query = InProcess(self.options)
        self.known: dict[str, dict[int, int]] = {}
        self.read: list[int] = []

    def step(self) -> None:
        """Run a micro-batch."""
        for row in sorted(self.query.step(), key=lambda row: str(row["position"])):
            if row["value"] is None:
                continue
            value = json.loads(row["value"])
            table = self.known.setdefault(row["table"], {})
            if row["op"] == "d":
                table.pop(value["before"]["id"], None)
                continue
            table[value["after"]["id"]] = value["after"]["v"]
            self.read += [value["after"]["id"]] if row["op"] == "r" else []

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> None:
        """Run micro-batches until the offset is as wanted."""
        deadline = time.monotonic() + LIMIT_S
        while not reached(self.query.offset):
            assert time.monotonic() < deadline, self.query.offset
            self.step()

    def ask(self, kind: str, *tables: str) -> None:
        floodmark.signal(self.options, "execute-snapshot", {"type": kind, "data-collections": list(tables)})

    def change(self, number: int) -> None:
        """Change rows that have been read, and others."""
        self.source.execute(
            f"UPDATE t SET v = {number} WHERE id IN (1, 3, {ROWS - 1})",
            f"DELETE FROM t WHERE id IN ({number}, {ROWS - number})",
            f"INSERT INTO t VALUES ({1000 + number}, 0)",
        )

    def check(self, *tables: str) -> None:
        """Prove convergence."""
        marker = 5000
        for table in tables:
            self.source.execute(f"INSERT INTO {table} VALUES ({marker}, 0)")
        self.until(lambda _: all(marker in self.known.get(table, {}) for table in tables))
        self.query.stop()
        for table in tables:
            with psycopg.connect(self.source.conninfo) as conn:
                assert self.known[table] == dict(conn.execute(f"SELECT id, v FROM {table}").fetchall())


def over(offset: dict[str, Any]) -> bool:
    return not offset["snapshot"] and not offset["blocking"] and not offset["incremental"]


@pytest.mark.parametrize("kind", ["initial", "incremental", "blocking"])
@pytest.mark.parametrize("dies", [False, True])
def test_a_snapshot_while_rows_change(source: Source, kind: str, dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    capture = Capture(source, snapshot_mode="initial" if kind == "initial" else "no_data")
    capture.step()
    if kind != "initial":
        capture.ask(kind, r"public\.t")
        place = "incremental" if kind == "incremental" else "snapshot"
        capture.until(lambda offset: bool(offset[place] and offset[place]["batch"]))
    assert 0 < len(set(capture.read)) < ROWS
    capture.change(5)
    capture.step()
    if dies:
        # A micro-batch is planned and not delivered; its read point goes with the process.
        end = capture.query.reader.latestOffset(capture.query.offset, capture.query.reader.getDefaultReadLimit())
        capture.change(6)
        capture.query.restart()
        capture.query.run(end)
    capture.change(7)
    capture.until(over)
    assert set(capture.read) >= set(range(1, ROWS + 1)) - {5, 6, 7, ROWS - 5, ROWS - 6, ROWS - 7}
    capture.check("t")


@pytest.mark.parametrize("mode", ["incremental", "blocking"])
def test_new_tables(source: Source, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    capture = Capture(source, table_include_list="public.t", snapshot_new_tables=mode)
    source.execute("CREATE TABLE other (id integer PRIMARY KEY, v integer)", "INSERT INTO other VALUES (1, 1), (2, 2)")
    capture.step()
    capture.until(over)
    capture.query.stop()
    options = {**capture.options, "table.include.list": "public.t,public.other"}
    capture.query = InProcess(options, capture.query.offset)
    capture.step()
    capture.until(over)
    capture.check("t", "other")


class ReadOnlyLaboratory(Laboratory):
    """A laboratory whose query has that role, and its signals from the inbox."""

    def __init__(self, source: Source, way: str) -> None:
        self._role = read_only(source)
        super().__init__(source, way)

    def options(self) -> dict[str, str]:
        options = {**super().options(), **self._role}
        del options["signal.data.collection"]
        return options

    def ask(self, table: str, kind: str = "incremental") -> None:
        # A row as any other for this query, by which the events tell when the snapshot was asked for.
        super().ask(table)
        data = {"data-collections": [rf"public\.{table}"], "type": kind}
        floodmark.signal(self.options(), "execute-snapshot", data)


@pytest.fixture(scope="module", params=[16, 18])
def laboratory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReadOnlyLaboratory]:
    state = Path(tmp_path_factory.mktemp("read_only")) / "state"
    with opened(request.param, "exact", state, ReadOnlyLaboratory) as made:
        assert isinstance(made, ReadOnlyLaboratory)
        yield made


@pytest.mark.timeout(GENERATED_LIMIT_S)
@cases(max(CASES * 6 // 25, 1), phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_convergence_and_no_time_travel(
    laboratory: ReadOnlyLaboratory, kind: KeyKind, present: list[int], script: list[Step], crashes: dict[int, str]
) -> None:
    laboratory.run(kind, present, script, crashes)


@pytest.fixture
def sessions(laboratory: ReadOnlyLaboratory) -> Iterator[Sessions]:
    made = Sessions(laboratory.source.conninfo, f"w{next(NUMBERS)}", KINDS[0], laboratory.connections)
    made.create(list(range(4)))
    yield made
    made.abandon()
    made.drop()
    # The next test's query has nothing left to do.
    laboratory.query.drain()
    laboratory.query.restart()


def take(query: InProcess, follower: Follower, sessions: Sessions, reached: Callable[[], bool]) -> int:
    """Run micro-batches until something is so; return how many rows were read."""
    deadline = time.monotonic() + LIMIT_S
    read = 0
    while not reached():
        assert time.monotonic() < deadline, query.offset
        rows = query.step()
        read += sum(row["op"] == "r" for row in rows)
        follower.apply(rows, sessions)
    return read


def waiting_commit(laboratory: ReadOnlyLaboratory, sessions: Sessions, follower: Follower) -> None:
    """Have a commit delivered that isn't visible, and start the query again, which doesn't get it any more."""
    query = laboratory.query
    take(query, follower, sessions, lambda: len(follower.seen) == 4)
    before = len(follower.seen['{"id":0}'])
    sessions.step((0, "update", 0, 0))
    sessions.step((0, "stall", 0, 0))
    take(query, follower, sessions, lambda: len(follower.seen['{"id":0}']) > before)
    query.restart()


def prove_a_waiting_commit(laboratory: ReadOnlyLaboratory, sessions: Sessions) -> None:
    query, follower = laboratory.query, Follower(begun=True)
    waiting_commit(laboratory, sessions, follower)
    laboratory.ask(sessions.table)
    take(query, follower, sessions, lambda: query.offset["incremental"] is not None)
    early = 0
    for number in range(1, 4):
        sessions.step((1, "update", number, number))
        sessions.step((1, "commit", 0, 0))
        newest = max(sessions.key_of_version)
        early += take(query, follower, sessions, partial(seen, follower, number, newest))
    sessions.step((0, "commit", 0, 0))
    later = take(query, follower, sessions, lambda: query.offset["incremental"] is None)
    follower.check(sessions)
    assert (early, later) == (0, 4)


def seen(follower: Follower, number: int, version: int) -> bool:
    state = follower.seen[f'{{"id":{number}}}'][-1]
    return state is not None and state[0] == version


def test_a_commit_that_waited_before_the_query_ran(laboratory: ReadOnlyLaboratory, sessions: Sessions) -> None:
    prove_a_waiting_commit(laboratory, sessions)


def test_a_query_that_believes_that_nobody_waits_is_found(
    laboratory: ReadOnlyLaboratory, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_point, "_waiting_commits", lambda _: frozenset())
    with pytest.raises(AssertionError, match="went back in time"):
        prove_a_waiting_commit(laboratory, sessions)


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_available_now_ends_while_a_commit_waits(
    laboratory: ReadOnlyLaboratory, sessions: Sessions, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "UNSETTLED_PATIENCE_S", 0.3)
    monkeypatch.setattr(log_part, "UNSETTLED_PATIENCE_S", 0.3)
    query, follower = laboratory.query, Follower(begun=True)
    waiting_commit(laboratory, sessions, follower)
    laboratory.ask(sessions.table, kind)
    for rounds in range(2):
        batches = query.batches
        rows = query.drain()
        assert not any(row["op"] == "r" for row in rows), rounds
        assert query.batches - batches < 10, "micro-batches without anything"
        follower.apply(rows, sessions)
        query.restart()
    sessions.step((0, "commit", 0, 0))
    rows = query.drain()
    query.restart()
    follower.apply(rows, sessions)
    assert sum(row["op"] == "r" for row in rows) == 4
    follower.check(sessions)


def comes_to_rest(query: InProcess, follower: Follower, sessions: Sessions) -> bool:
    """Return whether five plans in a row soon make no micro-batch."""
    still = 0
    for _ in range(40):
        batches = query.batches
        follower.apply(query.step(), sessions)
        still = still + 1 if query.batches == batches else 0
        if still == 5:
            return True
    return False


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_no_micro_batches_without_anything_while_a_commit_waits(
    laboratory: ReadOnlyLaboratory, sessions: Sessions, kind: str
) -> None:
    query, follower = laboratory.query, Follower(begun=True)
    waiting_commit(laboratory, sessions, follower)
    laboratory.ask(sessions.table, kind)
    take(query, follower, sessions, lambda: bool(query.offset["incremental"] or query.offset["blocking"]))
    assert comes_to_rest(query, follower, sessions)
    # The server writes such records by itself, too: the log goes on, and with it one micro-batch, or a few.
    with psycopg.connect(sessions.conninfo, autocommit=True) as conn:
        conn.execute("SELECT pg_log_standby_snapshot()")
    assert comes_to_rest(query, follower, sessions)
    sessions.step((0, "commit", 0, 0))
    assert take(query, follower, sessions, lambda: over(query.offset)) == 4
    follower.check(sessions)


def test_it_does_not_wait_for_a_moment_without_transactions(laboratory: ReadOnlyLaboratory, sessions: Sessions) -> None:
    query, follower = laboratory.query, Follower(begun=True)
    take(query, follower, sessions, lambda: len(follower.seen) == 4)
    sessions.step((0, "update", 0, 0))
    query.restart()
    laboratory.ask(sessions.table)
    turns = itertools.count(1)

    def over_or_next() -> bool:
        turn = next(turns)
        # One of two transactions always runs.
        sessions.step((turn % 2, "update", turn % 2, turn % 2))
        sessions.step(((turn + 1) % 2, "commit", 0, 0))
        return turn > 5 and over(query.offset)

    assert take(query, follower, sessions, over_or_next) == 4
    sessions.finish()
    take(query, follower, sessions, lambda: all(seen(follower, n, sessions.rows()[f"({n})"][0]) for n in (0, 1)))  # type: ignore[index]
    follower.check(sessions)
