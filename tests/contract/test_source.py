"""What a source promises besides its events: an identity, a lag, log that may be discarded, nothing left open."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from tests.contract.collecting import needs
from tests.contract.conftest import Start
from tests.contract.query import LIMIT_S, Query, changes
from tests.contract.under_test import SourceUnderTest


def fill(source: SourceUnderTest, rows: int = 5) -> None:
    source.create("t")
    with source.writer() as writer:
        writer.insert("t", [(key, 0, "-") for key in range(1, rows + 1)])
        writer.commit()


def change(source: SourceUnderTest, v: int) -> None:
    with source.writer() as writer:
        writer.update("t", 1, v)
        writer.commit()


def test_the_identity_stays(start: Start, source: SourceUnderTest) -> None:
    fill(source)
    query = start()
    query.drain()
    identity = query.offset["source"]
    assert identity
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in identity.items())
    change(source, 1)
    query.die(empty=True)
    query.drain()
    assert query.offset["source"] == identity


@needs("log_rests")
def test_the_lag_is_0_at_the_end(start: Start, source: SourceUnderTest) -> None:
    fill(source)
    query = start()
    query.drain()
    query.step()
    change(source, 1)
    change(source, 2)
    behind = report(query)
    assert behind["lag_bytes"] > 0
    assert behind["log"] > query.offset["log"]
    query.until(lambda: sum(row["op"] == "u" for row in query.rows) == 2)
    reached = report(query)
    assert reached["lag_bytes"] == 0
    assert reached["lag_seconds"] == 0.0
    assert reached["log"] <= query.offset["log"]


def report(query: Query) -> dict[str, Any]:
    found = query.process.reader.reportLatestOffset()
    assert found is not None
    return found


@needs("holds_log")
def test_only_what_was_delivered_lets_the_source_discard_log(start: Start, source: SourceUnderTest) -> None:
    fill(source)
    query = start()
    query.drain()
    query.step()
    held = source.held_log()
    change(source, 1)
    query.until(lambda: any(row["op"] == "u" for row in query.rows), commit=False)
    time.sleep(0.2)
    assert source.held_log() == held
    query.process.reader.commit(query.offset)
    wait_until_more_than(held, source, query)
    # Another process needs no more than what is left.
    query.die(empty=True)
    change(source, 2)
    assert [row["op"] for row in changes(query.drain())] == ["u"]


def wait_until_more_than(held: str, source: SourceUnderTest, query: Query) -> None:
    deadline = time.monotonic() + LIMIT_S
    while source.held_log() <= held:
        assert time.monotonic() < deadline
        query.step()


def test_stopping_leaves_nothing_open(start: Start, source: SourceUnderTest, tmp_path: Path) -> None:
    fill(source, 50)
    before = threads(), sockets()
    for mode in ("initial", "no_data"):
        # In the middle of a snapshot, and while streaming.
        query = start(snapshot_mode=mode)
        query.step()
        change(source, 1)
        query.step()
        assert source.connections() >= 0
        query.stop()
        deadline = time.monotonic() + LIMIT_S
        while source.connections() or (threads(), sockets()) != before:
            assert time.monotonic() < deadline, (source.connections(), threads(), sockets(), before)
            time.sleep(0.01)
        assert not [path for path in query.state.rglob("*.seg") if path.is_file()]


def threads() -> int:
    return threading.active_count()


def sockets() -> int:
    """Return how many sockets this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            continue
    return count
