"""Snapshots that the planner's process reads itself, on a source that is made up."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.connectors.contract.captured_table import UNCOUNTED, CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, KeyRangeChunk
from floodmark.connectors.contract.read_points import ChunkOutcome, KeyRanges
from floodmark.connectors.contract.source import Source
from floodmark.connectors.contract.table_key import TableKey
from floodmark.errors import ConnectError, SourceStateError
from floodmark.json_data import Json
from floodmark.notifications.records import InitialSnapshotNotifications, Notification
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import RETRIES, ExcludedTables
from floodmark.snapshots.initial.engine import SMALL_TABLES
from floodmark.snapshots.initial.read_ahead import LEAST_ROWS, ReadAheadEngine
from floodmark.snapshots.reports import Report, TaskReports
from floodmark.snapshots.state import SnapshotState

ROWS = 3
"""In each file."""
CHUNK_BYTES = 8


@dataclass
class Point:
    """A read point."""

    source: Made
    position: str
    token: dict[str, Any]
    held: bool = True

    @property
    def visible(self) -> str:
        return ""

    @property
    def local(self) -> Point:
        return self

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        return self.source.rows(chunk)

    def split(self, oid: int, count: int) -> list[list[str]]:
        return self.source.split(oid, count)

    def alive(self) -> bool:
        return self.held

    def settle(self, after: str) -> bool:
        return True

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> KeyRanges:
        raise AssertionError("an initial snapshot asks for no key ranges")

    def release(self) -> None:
        self.held = False


@dataclass
class Made:
    """A source whose tables are lists of numbers.

    Attributes:
        keyless: tables without a key.
        broken: tables whose reading fails.
        altered: tables that the read point does not show any more.
        cut: tables that can be cut, whose rows are told to be many.
        lost: whether the connection is lost with the next rows.
        queries: what was asked for: table, key before the first row, and whether to the table's end.
    """

    tables_of: dict[str, list[int]]
    keyless: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    altered: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    lost: bool = False
    points: int = 0
    queries: list[tuple[str, list[str] | None, bool]] = field(default_factory=list)

    def reopen(self, token: dict[str, Json]) -> None:
        del token

    @property
    def tables(self) -> Made:
        return self

    @property
    def snapshots(self) -> Made:
        return self

    def open(self) -> Point:
        self.points += 1
        self.altered.clear()
        return Point(self, f"{self.points:02}", {"id": self.points, "visible": ""})

    def names(self) -> list[str]:
        return [table.published for table in self.to_snapshot()]

    def to_snapshot(self) -> list[CapturedTable]:
        return [
            CapturedTable(
                name=name,
                published=name,
                oid=number,
                logged=number,
                file="1",
                units=1 if name in self.keyless else UNCOUNTED,
                rows=len(rows) + (LEAST_ROWS * 10 if name in self.cut else 0),
            )
            for number, (name, rows) in enumerate(self.tables_of.items(), 1)
        ]

    captured = to_snapshot

    def describe(self, oids: list[int]) -> dict[int, DescribedTable]:
        names = list(self.tables_of)
        return {oid: DescribedTable(oid, names[oid - 1], None) for oid in oids}

    def key_of(self, oid: int, surrogate: str | None) -> TableKey:
        return TableKey(("id",), False)

    def split(self, oid: int, count: int) -> list[list[str]]:
        rows = self.tables_of[list(self.tables_of)[oid - 1]]
        return [[str(rows[len(rows) * number // count])] for number in range(1, count)]

    def chunk_units(self) -> int:
        return 1

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        name = chunk.table.name
        low, high, in_order = 0, 1 << 30, False
        if isinstance(chunk, KeyRangeChunk):
            low = int(chunk.after[0]) if chunk.after else 0
            high = int(chunk.upto[0]) if chunk.upto else high
            in_order = chunk.in_order
            self.queries.append((name, chunk.after, chunk.to_end))
        rows = [row for row in self.tables_of[name] if low < row <= high]
        for first in range(0, len(rows), ROWS):
            if self.lost:
                raise ConnectError("gone")
            if name in self.broken:
                raise SourceStateError("broken")
            if name in self.altered:
                return "nothing"
            part = rows[first : first + ROWS]
            header = {"last": [str(part[-1])]} if in_order else {}
            yield SegmentData(
                np.frombuffer(json.dumps(part).encode(), np.uint8), np.zeros(len(part), np.uint32), header
            )
        return "complete"


class Run:
    """A snapshot that is planned, and whose tasks run here."""

    def __init__(
        self,
        source: Made,
        directory: Path,
        most_bytes: int = 1 << 30,
        isolate: bool = True,
        threads: int = 2,
        chunk_bytes: int = CHUNK_BYTES,
        target_s: float = 0.2,
    ) -> None:
        self.source = source
        self._threads = threads
        self._directory = directory
        self._most_bytes = most_bytes
        self._isolate = isolate
        self._chunk_bytes = chunk_bytes
        self._target_s = target_s
        self.told: list[Notification] = []
        self.aside = ExcludedTables()
        self.store = SegmentStore(str(directory), "owner", "run")
        self.store.create()
        self.engine = self._new_engine()
        self.state = self._again(self.engine.begin(source.open()))
        self.reports = TaskReports()
        self.rows: dict[str, list[int]] = {name: [] for name in source.tables_of}
        self.coming_again: dict[str, int] = dict.fromkeys(source.tables_of, 0)

    def _new_engine(self, chunks: int = 2) -> ReadAheadEngine:
        context = SnapshotContext(cast(Source, self.source), self.told.append, self.aside)
        notifications = InitialSnapshotNotifications("p")
        return ReadAheadEngine(
            context,
            notifications,
            "consistent",
            self._target_s,
            chunks,
            self.store,
            self._threads,
            self._most_bytes,
            self._chunk_bytes,
            self._isolate,
        )

    @staticmethod
    def _again(state: SnapshotState) -> SnapshotState:
        return SnapshotState.from_json(json.loads(json.dumps(state.to_json())))

    def restart(self) -> None:
        """Go on in another process."""
        self.engine.release()
        self.engine = self._new_engine()

    def plan(self) -> bool:
        """Plan a micro-batch; return False at the end."""
        state = self._again(self.state)
        self.engine.settle(state, self.reports)
        if not state.pending:
            self.state = self._again(state)
            return False
        state = self.engine.revive(state)
        state.batch = []
        self.engine.plan(state, False)
        self.state = self._again(state)
        return True

    def tasks(self, *failing: int) -> None:
        """Run the micro-batch's tasks; some fail. A chunk of several files has as many tasks, and fails as a whole."""
        reports = []
        chunks = self.engine.chunks(self.state)
        failed = {chunk.number for number, chunk in enumerate(chunks) if number in failing}
        for number, chunk in enumerate(chunks):
            if number in failing:
                reports.append(Report("consistent", chunk.number, "failed", 0, "t", 0, "task"))
                continue
            for name in chunk.files:
                table = chunk.table.name
                rows = json.loads(bytes(self.store.read(name).payload))
                self.rows[table] += rows
                self.coming_again[table] += len(rows) if chunk.number in failed else 0
        self.reports = TaskReports(reports)

    def finish(self) -> dict[str, list[int]]:
        for _ in range(100):
            if not self.plan():
                break
            self.tasks()
        self.engine.complete()
        return self.rows

    def files(self) -> list[str]:
        return [path.name for path in self._directory.glob("owner/run/*")]


def numbers(count: int) -> list[int]:
    return list(range(1, count + 1))


@pytest.mark.parametrize("most_bytes", [1 << 30, 1])
def test_every_row_is_delivered_once_and_no_file_is_left(tmp_path: Path, most_bytes: int) -> None:
    source = Made({"a": numbers(20), "b": [], "c": numbers(1), "k": numbers(10), "e": []}, keyless={"k", "e"})
    run = Run(source, tmp_path, most_bytes)
    assert run.finish() == source.tables_of
    assert run.files() == []
    outcomes = [table.outcome for table in run.state.tables]
    assert outcomes == ["SUCCEEDED"] * 5
    assert [(table.read, table.keys) for table in run.state.tables] == [(20, {}), (0, {}), (1, {}), (10, {}), (0, {})]
    assert source.points == 1
    assert all(table.progress[0] == table.progress[1] for table in run.state.tables)


def test_small_tables_share_micro_batches_and_are_not_all_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Within a process offsets stay as they are: packed, many tables would lack what is looked up at another read point.
    monkeypatch.setattr(Run, "_again", staticmethod(SnapshotState.copy))
    source = Made({f"t{number}": numbers(1) for number in range(2000)})
    run = Run(source, tmp_path, chunk_bytes=1 << 20, target_s=60)
    batches, most_ahead = 0, 0
    while run.plan():
        batches += 1
        most_ahead = max(most_ahead, len(source.queries) - sum(map(len, run.rows.values())))
        run.tasks()
    run.engine.complete()
    assert run.rows == source.tables_of
    assert len(source.queries) == 2000
    # Twice four full chunks, then two at a time, each of 64 small tables.
    assert batches <= 16
    # Each of the two threads may have one more.
    assert most_ahead <= 2 * 2 * SMALL_TABLES + 2
    assert run.files() == []


def test_a_table_without_key_is_delivered_in_one_micro_batch(tmp_path: Path) -> None:
    run = Run(Made({"k": numbers(100)}, keyless={"k"}), tmp_path)
    assert run.plan()
    run.tasks()
    assert run.rows["k"] == numbers(100)
    assert not run.plan()
    run.engine.release()


def test_what_a_task_could_not_do_is_read_again(tmp_path: Path) -> None:
    source = Made({"a": numbers(30), "k": numbers(30)}, keyless={"k"})
    run = Run(source, tmp_path)
    for failing in ((0,), (1,), (0, 1), ()):
        run.plan()
        run.tasks(*failing)
    rows = run.finish()
    assert sorted(rows["a"]) == numbers(30)
    assert set(rows["k"]) == set(numbers(30))
    assert source.points == 1
    assert run.files() == []


def test_planning_may_be_repeated(tmp_path: Path) -> None:
    source = Made({"a": numbers(30)})
    run = Run(source, tmp_path)
    run.plan()
    run.tasks()
    before = run.state
    for _ in range(3):
        run.state = before
        assert run.plan()
    run.tasks()
    assert run.finish()["a"] == numbers(30)


def test_another_process_reads_the_rest_at_another_point(tmp_path: Path) -> None:
    source = Made({"a": numbers(30), "k": numbers(30)}, keyless={"k"})
    run = Run(source, tmp_path)
    run.plan()
    run.tasks()
    run.plan()
    # The second micro-batch was planned, but its rows are gone with the process.
    run.restart()
    assert run.engine.chunks(run.state) == []
    run.tasks()
    before = len(run.rows["a"])
    source.tables_of["a"].append(31)
    assert run.finish()["a"] == numbers(31)
    assert run.rows["k"] in (numbers(30), numbers(30) * 2)
    assert run.state.position == "02"
    # Nothing of it, if the first micro-batch was planned before its reading had begun.
    assert ([str(before)] if before else None) in [after for _, after, *_ in source.queries[-2:]]


def test_a_lost_read_point_and_an_altered_table_need_another_one(tmp_path: Path) -> None:
    source = Made({"a": numbers(30), "b": numbers(30)})
    run = Run(source, tmp_path, most_bytes=1)
    run.plan()
    run.tasks()
    source.lost = True
    run.plan()
    run.tasks()
    run.plan()
    source.lost = False
    run.tasks()
    run.plan()
    run.tasks()
    source.altered.add("b")
    rows = run.finish()
    assert rows == source.tables_of
    assert source.points >= 3
    assert run.files() == []


def test_a_table_that_cannot_be_read_is_set_aside_or_ends_the_query(tmp_path: Path) -> None:
    source = Made({"a": numbers(30), "b": numbers(5)}, broken={"b"})
    run = Run(source, tmp_path / "isolate")
    rows = run.finish()
    assert rows == {"a": numbers(30), "b": []}
    assert [table.outcome for table in run.state.tables] == ["SUCCEEDED", "SQL_EXCEPTION"]
    assert [table.error for table in run.aside.tables] == ["broken"]
    run = Run(Made({"b": numbers(5)}, broken={"b"}), tmp_path / "fail", isolate=False)
    with pytest.raises(SourceStateError, match="broken"):
        run.plan()
    run.engine.release()


@pytest.mark.parametrize("most_bytes", [1 << 30, 1])
@pytest.mark.parametrize("threads", [2, 3])
def test_a_large_table_is_read_in_ranges_of_its_key(tmp_path: Path, threads: int, most_bytes: int) -> None:
    source = Made({"a": numbers(40), "b": numbers(7)}, cut={"a"})
    run = Run(source, tmp_path, most_bytes, threads=threads)
    rows = run.finish()
    assert {name: sorted(read) for name, read in rows.items()} == source.tables_of
    begun = {after[0] if after else "" for name, after, _ in source.queries if name == "a"}
    assert begun == {"", *(str(40 * number // threads + 1) for number in range(1, threads))}
    assert [(table.read, table.keys, table.outcome) for table in run.state.tables] == [
        (40, {}, "SUCCEEDED"),
        (7, {}, "SUCCEEDED"),
    ]
    # However many pieces there were, the offset holds a span for each range.
    assert len(run.state.tables[0].done) <= threads
    assert run.files() == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["tasks", "fail", "fail all", "restart", "lose", "again"]), max_size=12).filter(
        # With more, the table may be set aside.
        lambda happens: sum(one.startswith("fail") for one in happens) <= RETRIES
    ),
    st.integers(2, 5),
    st.sampled_from([1, 1 << 30]),
)
def test_ranges_survive_whatever_happens(tmp_path: Path, happens: list[str], threads: int, most_bytes: int) -> None:
    source = Made({"a": numbers(50), "b": numbers(20)}, cut={"a", "b"})
    run = Run(source, tmp_path / uuid.uuid4().hex, most_bytes, threads=threads)
    for one in happens:
        before = run.state
        source.lost = one == "lose"
        if not run.plan():
            break
        if one == "again":
            run.state = before
            run.plan()
        if one == "restart":
            run.restart()
        run.tasks(*({"fail": (0,), "fail all": range(100)}.get(one, ())))
    source.lost = False
    rows = run.finish()
    assert {name: sorted(set(read)) for name, read in rows.items()} == source.tables_of
    if "lose" not in happens or "again" not in happens:
        # A micro-batch that is planned again at another read point finds nothing of what was read before.
        once = {name: len(read) - run.coming_again[name] for name, read in rows.items()}
        assert once == {"a": 50, "b": 20}
    assert [table.keys for table in run.state.tables] == [{}, {}]
    assert run.files() == []
