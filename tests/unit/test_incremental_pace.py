"""How many rows of an incremental snapshot a micro-batch reads."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.connectors.base import Connector
from floodmark.snapshot.aside import TablesAside
from floodmark.snapshot.incremental import IncrementalState, TableRun
from floodmark.snapshot.incremental_engine import IncrementalEngine
from floodmark.snapshot.notifications import IncrementalSnapshotNotifications
from floodmark.snapshot.pace import MARGIN, Pace
from floodmark.snapshot.reports import TaskReports
from floodmark.snapshot.surroundings import Surroundings
from floodmark.snapshot.windows import WindowEngine

FIXED_S = 0.3
READ_ROWS_S = 600_000.0
TASK_ROWS_S = 400_000.0
TARGET_S = 1.0
TOP = 1 << 40


@dataclass
class Clock:
    """A time that passes only when work is done."""

    now: float = 100.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Source:
    """A connector with one table whose keys are numbers without gaps."""

    clock: Clock
    reads: list[int] = field(default_factory=list)

    def settle(self, point: object, after: str) -> bool:
        return True

    def fresh_point(self) -> Any:
        return SimpleNamespace(position="1", token={}, alive=lambda: True, release=lambda: None)

    def open_window(self, after: str) -> Any:
        return SimpleNamespace(low="0", position="1", token={}, alive=lambda: True, release=lambda: None)

    def close_window(self, window: object) -> None:
        return None

    def key_ranges(self, *_: object) -> Any:
        def bounds(after: list[str] | None, top: list[str], size: int, most: int) -> Sequence[tuple[list[str], int]]:
            begin = int(after[0]) if after else 0
            return [([str(begin + size * number)], size) for number in range(1, most + 1)]

        return SimpleNamespace(last=lambda: [str(TOP)], bounds=bounds)

    def describe(self, oids: Sequence[int]) -> dict[int, dict[str, Any]]:
        return {oid: {"stored": {}} for oid in oids}

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(oids, "")

    def tables(self) -> list[dict[str, Any]]:
        return [{"oid": 1}]

    def window_rows(self, window: object, chunk: dict[str, Any]) -> Generator[SegmentData, None, str]:
        rows = int(chunk["upto"][0]) - int((chunk["after"] or ["0"])[0])
        self.reads.append(rows)
        self.clock.pass_by(rows / READ_ROWS_S)
        yield SegmentData(np.zeros(1, np.uint8), np.zeros(1, np.uint32))
        return "complete"


@pytest.mark.parametrize("windows", [False, True])
def test_the_number_of_rows_settles(windows: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It grows fast, and then stays where a micro-batch takes the time that it may take."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    source = Source(clock)
    around = Surroundings(cast(Connector, source), lambda _: None, TablesAside())
    notifications, pace = IncrementalSnapshotNotifications("p"), Pace(TARGET_S, 1000, 10_000_000, 4)
    store = SegmentStore(str(tmp_path), "owner", "run")
    store.create()
    made = (
        WindowEngine(around, notifications, pace, False, store, 1 << 40)
        if windows
        else IncrementalEngine(around, notifications, pace, False)
    )
    state = IncrementalState(runs=[TableRun("t", 1, "", {}, None, "", 0)])
    taken, times = [], []
    for _ in range(12):
        begin, before = clock.now, state.runs[0].rows
        state = made.resume(state, _complete(state))
        made.reach(state, "")
        assert made.plan(state, "")
        taken.append(state.runs[0].rows - before)
        clock.pass_by(FIXED_S + taken[-1] / TASK_ROWS_S)
        times.append(clock.now - begin)
    assert max(times) < 1.05 * MARGIN * TARGET_S
    assert min(times[2:]) > 0.9 * MARGIN * TARGET_S
    assert sum(taken[:4]) > taken[-1]
    if windows:
        assert source.reads == taken


def _complete(state: IncrementalState) -> TaskReports:
    return TaskReports().with_complete("incremental", {(number,): 0 for number in range(len(state.batch))})
