"""When heartbeats are due, and the time that they bear."""

from __future__ import annotations

import itertools
from typing import cast

import pytest

from floodmark.connectors.contract.source import Source
from floodmark.connectors.load import load_options
from floodmark.spark.stream.planning import heartbeats
from tests.support.options import REQUIRED

INTERVAL_MS = 200


class Clock:
    """A clock that the test moves; asking the source to run a statement takes a while, too."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def time_ns(self) -> int:
        return (self.now_ms + 50_000_000) * 1_000_000

    def execute_in_background(self, statement: str) -> None:
        del statement
        self.now_ms += INTERVAL_MS // 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(heartbeats, "time", made)
    return made


def make(clock: Clock, streaming: bool = True) -> heartbeats.Heartbeats:
    given = {**REQUIRED, "heartbeat.interval.ms": str(INTERVAL_MS), "heartbeat.action.query": "SELECT 1"}
    return heartbeats.Heartbeats(load_options(given), cast(Source, clock), lambda: streaming)


def test_heartbeats_are_as_far_apart_as_their_interval(clock: Clock) -> None:
    beats = make(clock)
    times: list[int] = []
    while len(times) < 20:
        due = beats.due(alone=True, ending=False)
        if due is not None:
            times.append(due)
        clock.now_ms += 7
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(gaps) >= INTERVAL_MS
    assert max(gaps) < INTERVAL_MS + 7


def test_the_micro_batch_that_ends_a_snapshot_holds_one_at_once(clock: Clock) -> None:
    beats = make(clock, streaming=False)
    clock.now_ms += 2 * INTERVAL_MS
    assert beats.due(alone=False, ending=False) is None
    beats.after_snapshot()
    assert beats.due(alone=False, ending=True) is not None
    assert beats.due(alone=False, ending=True) is None


def test_none_keeps_a_query_going_that_ends(clock: Clock) -> None:
    beats = make(clock)
    clock.now_ms += 2 * INTERVAL_MS
    assert beats.due(alone=True, ending=True) is None
    assert beats.due(alone=True, ending=False) is not None
