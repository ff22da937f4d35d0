"""What a query does whose log is gone: one error with the ways out, or a new snapshot if that is wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from floodmark.errors import CheckpointError, FloodmarkError, LogGoneError
from tests.contract.collecting import needs
from tests.contract.conftest import Start
from tests.contract.query import Offset, Query, Rows, applied_rows, changes
from tests.contract.under_test import ConnectorUnderTest, SourceUnderTest
from tests.support.applying import time_travel

ROWS = 5
WHEN_NEEDED = {"snapshot.mode": "when_needed"}


def write(source: SourceUnderTest, v: int) -> None:
    with source.writer() as writer:
        writer.update("t", 1 + v % ROWS, v)
        writer.commit()
        writer.insert("t", [(100 + v, v, "new")])
        writer.commit()


def fill(source: SourceUnderTest) -> None:
    source.create("t")
    with source.writer() as writer:
        writer.insert("t", [(key, 0, "-") for key in range(1, ROWS + 1)])
        writer.commit()


@pytest.fixture
def stopped(start: Start, source: SourceUnderTest) -> Query:
    """A query that was stopped after it had delivered everything."""
    fill(source)
    query = start()
    query.drain()
    write(source, 1)
    query.drain()
    query.stop()
    return query


@contextmanager
def refused(kind: type[FloodmarkError] | tuple[type[FloodmarkError], ...], source: SourceUnderTest) -> Iterator[None]:
    """Expect an error that names the log that is lost, and the ways out."""
    with pytest.raises(kind) as caught:
        yield
    error = caught.value
    assert re.search(source.lost_log, error.what)
    assert "when_needed" in error.cure
    assert "checkpoint" in error.cure


@needs("loses_log")
def test_one_error_names_the_log_and_the_ways_out(stopped: Query, source: SourceUnderTest) -> None:
    write(source, 2)
    source.lose_log()
    write(source, 3)
    delivered = len(stopped.batches)
    # It isn't forgotten.
    for _ in range(2):
        stopped.die()
        with refused(LogGoneError, source):
            stopped.step()
    assert len(stopped.batches) == delivered


@needs("loses_log")
def test_a_planned_micro_batch_is_not_waited_for(stopped: Query, source: SourceUnderTest) -> None:
    stopped.die()
    write(source, 2)
    end = planned(stopped)
    stopped.stop()
    source.lose_log()
    write(source, 3)
    stopped.die()
    with refused(LogGoneError, source):
        stopped.run(end)


def planned(query: Query) -> Offset:
    """Return the end of the next micro-batch, which has rows."""
    while (end := query.plan()) == query.offset or not query.run(end):
        query.take(end, [])
    return end


@needs("loses_log")
def test_a_new_snapshot_follows_if_that_is_wanted(stopped: Query, source: SourceUnderTest) -> None:
    last = max(row["position"] for row in stopped.rows)
    write(source, 2)
    source.lose_log()
    write(source, 3)
    stopped.options.update(WHEN_NEEDED)
    stopped.die()
    rows = stopped.drain()
    gap = rows[0]
    assert operations(rows) == ["gap", *["r"] * len(source.rows("t"))]
    content = json.loads(gap["value"])
    assert content["option"] == "snapshot.mode=when_needed"
    assert re.search(source.lost_log, content["reason"])
    assert last < gap["position"] <= min(row["position"] for row in changes(rows))
    write(source, 4)
    assert operations(stopped.drain()) == ["u", "c"]
    assert not time_travel(stopped.events)
    assert applied_rows(source, "t", stopped.events) == sorted(source.rows("t"))


def operations(rows: Rows) -> list[str]:
    """Return the operations of changes and gaps."""
    return [row["op"] for row in rows if row["op"]]


@needs("loses_log")
def test_a_planned_micro_batch_is_replaced_by_a_new_snapshot(stopped: Query, source: SourceUnderTest) -> None:
    stopped.die()
    write(source, 2)
    end = planned(stopped)
    stopped.stop()
    source.lose_log()
    write(source, 3)
    stopped.options.update(WHEN_NEEDED)
    stopped.die()
    rows = stopped.run(end)
    assert rows == []
    stopped.take(end, rows)
    assert operations(stopped.drain()) == ["gap", *["r"] * len(source.rows("t"))]
    assert applied_rows(source, "t", stopped.events) == sorted(source.rows("t"))


@needs("loses_log")
def test_another_source_behind_the_same_address_is_refused(
    connector: ConnectorUnderTest, source: SourceUnderTest, stopped: Query, request: pytest.FixtureRequest
) -> None:
    with connector.open_another(request.getfixturevalue, source) as another:
        fill(another)
        write(another, 1)
        write(another, 2)
        for more in ({}, WHEN_NEEDED):
            stopped.options.update({**another.options, **more})
            stopped.die()
            rows: Rows = []
            with pytest.raises((CheckpointError, LogGoneError)) as caught:
                rows += stopped.step()
            assert not rows
            assert caught.value.what
            assert caught.value.cure
        stopped.stop()
        assert another.connections() == 0
