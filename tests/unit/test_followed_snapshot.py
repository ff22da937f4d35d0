"""What counts as a snapshot of which all rows were read is only what the query says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import SourceStateError
from floodmark.rebuilding.followed import FollowedSnapshot
from floodmark.snapshots.incremental.state import IncrementalState, TableRun
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.stream.offsets import Offset

RUN = TableRun("public.a", 1, "f", None, None, "", 100, signals=["other", "mine"])
READ = replace(RUN, begun=True, after=["9"], top=["9"], rows=90, chunks=3)
ANOTHER = replace(RUN, name="public.b", oid=2)


class Query:
    """A checkpoint that gets offsets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "offsets").mkdir()
        self.batch = 4
        self.plan()

    def plan(self, *runs: TableRun, **more: Any) -> None:
        """Plan a micro-batch with these tables of incremental snapshots."""
        self.batch += 1
        offset = Offset({}, "7", incremental=IncrementalState(list(runs)) if runs else None, **more)
        lines = ["v1", "{}", json.dumps(offset.to_json())]
        (self.folder / "offsets" / str(self.batch)).write_text("\n".join(lines))

    def follow(self) -> FollowedSnapshot:
        """Follow the signal ``mine`` from now on."""
        return FollowedSnapshot(Checkpoint(str(self.folder)), "public.a", "mine", self.batch)


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path)


def test_it_is_read_to_the_end(query: Query) -> None:
    snapshot = query.follow()
    snapshot.look()
    assert not snapshot.begun
    query.plan(ANOTHER, replace(RUN, signals=["other"]))
    snapshot.look()
    assert not snapshot.begun
    query.plan(ANOTHER, RUN)
    snapshot.look()
    assert (snapshot.begun, snapshot.done, snapshot.rows) == (True, False, (0, 100))
    query.plan(ANOTHER, READ)
    # What is read to the end as planned may have to be read again.
    query.plan(ANOTHER, replace(READ, rows=95))
    snapshot.look()
    assert (snapshot.done, snapshot.rows) == (False, (95, 100))
    query.plan(ANOTHER, read={"mine": 1, "other": 1})
    query.plan()
    snapshot.look()
    assert (snapshot.done, snapshot.empty, snapshot.batch) == (True, False, query.batch)


def test_a_table_without_rows(query: Query) -> None:
    snapshot = query.follow()
    query.plan(replace(RUN, begun=True))
    query.plan(read={"mine": 1})
    snapshot.look()
    assert (snapshot.done, snapshot.empty) == (True, True)


def test_all_parts_of_a_partitioned_table(query: Query) -> None:
    snapshot = query.follow()
    query.plan(RUN, replace(RUN, oid=3), replace(RUN, oid=4))
    query.plan(replace(RUN, oid=4), read={"mine": 2})
    snapshot.look()
    assert not snapshot.done
    query.plan(read={"mine": 1})
    snapshot.look()
    assert snapshot.done


@pytest.mark.parametrize("read", [{}, {"other": 1}])
@pytest.mark.parametrize("runs", [(), (ANOTHER,), (replace(RUN, signals=["other"]),)])
def test_it_was_stopped(query: Query, runs: tuple[TableRun, ...], read: dict[str, int]) -> None:
    snapshot = query.follow()
    query.plan(READ)
    query.plan(*runs, read=read)
    with pytest.raises(SourceStateError, match=r"public\.a was stopped before all rows were read"):
        snapshot.look()


def test_one_part_was_stopped(query: Query) -> None:
    snapshot = query.follow()
    query.plan(READ, replace(READ, oid=3))
    query.plan(read={"mine": 1})
    with pytest.raises(SourceStateError, match="was stopped"):
        snapshot.look()


def test_it_fails(query: Query) -> None:
    snapshot = query.follow()
    query.plan(replace(RUN, outcome="SQL_EXCEPTION", error="permission denied"))
    with pytest.raises(SourceStateError, match=r"The rows of public\.a can't be read: permission denied"):
        snapshot.look()


def test_the_checkpoint_has_forgotten_it(query: Query) -> None:
    snapshot = query.follow()
    query.plan(READ)
    snapshot.look()
    query.plan()
    query.plan()
    (query.folder / "offsets" / str(query.batch - 1)).unlink()
    with pytest.raises(SourceStateError, match=r"has forgotten what followed micro-batch 6"):
        snapshot.look()
