"""Signals that come by files are executed once, whatever they ask for and wherever the query dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import floodmark
from tests.conftest import Source
from tests.integration.test_incremental import ids, over, running, until
from tests.support.inprocess import InProcess

Send = Callable[[dict[str, Any]], None]
TABLE = ["public.t"]


@pytest.fixture
def options(source: Source, tmp_path: Path) -> dict[str, str]:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 5)")
    channels = {"signal.enabled.channels": "file", "signal.file": str(tmp_path / "signals.txt")}
    return {**source.options, **channels, "snapshot.mode": "no_data", "signal.poll.interval.ms": "1"}


@pytest.fixture(params=["file", "in-process"])
def send(request: pytest.FixtureRequest, options: dict[str, str]) -> Send:
    def by_file(data: dict[str, Any]) -> None:
        with Path(options["signal.file"]).open("a", encoding="utf-8") as out:
            out.write(json.dumps({"id": "s", "type": "execute-snapshot", "data": data}) + "\n")

    def by_call(data: dict[str, Any]) -> None:
        floodmark.signal(options, "execute-snapshot", data, id="s")

    return by_file if request.param == "file" else by_call


def started(options: dict[str, str]) -> InProcess:
    query = InProcess(options)
    query.drain()
    query.restart()
    return query


def test_another_process_does_not_repeat_a_signal(options: dict[str, str], send: Send) -> None:
    query = started(options)
    send({"data-collections": TABLE})
    rows = until(query, lambda offset: bool(offset["taken"]))
    query.stop()
    query = InProcess(options, query.offset)
    rows += until(query, over)
    for _ in range(5):
        rows += query.step()
    assert ids(rows) == [1, 2, 3, 4, 5]

    query.stop()
    send({"data-collections": TABLE})
    query = InProcess(options, query.offset)
    rows = until(query, running) + until(query, over)
    query.stop()
    assert ids(rows) == [1, 2, 3, 4, 5]


def test_a_blocking_snapshot_is_taken_once(options: dict[str, str], send: Send) -> None:
    query = started(options)
    send({"data-collections": TABLE, "type": "blocking"})
    rows = until(query, lambda offset: offset["snapshot"] is not None)
    query.stop()
    query = InProcess(options, query.offset)
    rows += until(query, lambda offset: offset["snapshot"] is None)
    for _ in range(5):
        rows += query.step()
    query.stop()
    assert ids(rows) == [1, 2, 3, 4, 5]
    assert query.offset["taken"] == []
