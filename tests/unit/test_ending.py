from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from floodmark.spark.stream.planning import ending
from floodmark.spark.stream.planning.ending import LINGERS_S, Ending


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(ending.log, "warning", lambda event, **_: found.append(event))
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("floodmark.spark.stream.planning.ending.time.monotonic", lambda: made.now)
    return made


def made() -> Ending:
    log: Any = SimpleNamespace(end=lambda: "7")
    return Ending(log)


def test_a_query_that_stays_after_its_end_is_warned_of_once(warned: list[str], clock: SimpleNamespace) -> None:
    query = made()
    query.ask()
    query.fix()
    for _ in range(5):
        query.reached()
        assert warned == []
        clock.now += LINGERS_S / 5
    clock.now += 1
    for _ in range(3):
        query.reached()
        clock.now += LINGERS_S * 2
    assert warned == ["query_goes_on_after_its_end"]


def test_a_query_without_an_end_may_idle(warned: list[str], clock: SimpleNamespace) -> None:
    query = made()
    query.reached()
    query.ask()
    query.withdraw()
    for _ in range(3):
        query.reached()
        clock.now += LINGERS_S * 2
    assert warned == []
