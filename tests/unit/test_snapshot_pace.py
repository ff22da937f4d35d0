"""How many chunks of a snapshot a micro-batch gets."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import cast

import pytest

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.source import Source
from floodmark.notifications.records import InitialSnapshotNotifications
from floodmark.snapshots.context import SnapshotContext
from floodmark.snapshots.excluded_tables import ExcludedTables
from floodmark.snapshots.initial.engine import FIRST_CHUNKS, SnapshotEngine
from floodmark.snapshots.state import first_state

TARGET_S = 2.0
UNITS = 10


@pytest.mark.parametrize(
    ("took", "sizes"),
    [
        # The first micro-batch starts the tasks' processes.
        ((60.0,), (1, 1)),
        ((60.0, 60.0, 60.0, 60.0), (1, 1, 0.5, 0.25, 0.25)),
        ((60.0, 0.5, 0.5, 2.0), (1, 1, 2, 4, 4)),
        ((60.0, 60.0, 0.5, 0.5), (1, 1, 0.5, 1, 2)),
    ],
)
def test_chunks_follow_the_time_that_they_take(
    monkeypatch: pytest.MonkeyPatch, took: tuple[float, ...], sizes: tuple[float, ...]
) -> None:
    source = cast(Source, SimpleNamespace(tables=SimpleNamespace(chunk_units=lambda: UNITS), snapshots=None))
    context = SnapshotContext(source, lambda _: None, ExcludedTables())
    made = SnapshotEngine(context, InitialSnapshotNotifications("p"), "consistent", TARGET_S, 64)
    table = CapturedTable("t", "t", 1, 1, "", 100_000, 0)
    state = first_state("0", {}, "", [table])
    times = itertools.accumulate(took, initial=0.0)
    found = []
    for now in times:
        monkeypatch.setattr(time, "monotonic", lambda now=now: now)
        made.plan(state, False)
        found.append(sum(last - first for _, (first, last, _) in state.batch))
    assert found == [max(int(FIRST_CHUNKS * size), 1) * UNITS for size in sizes]
