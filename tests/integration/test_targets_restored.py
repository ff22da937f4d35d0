"""Targets that are restored, copied or replaced while their query doesn't run, as its next start finds them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from floodmark.errors import TargetChangedError
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.sinks.mirror import Mirror
from tests.support.delta_mirror import in_order
from tests.support.lake import Lake
from tests.support.object_store import s3_bucket

LACKS = r"The Delta table 'db\.a' lacks micro-batch 2, which this query has written: .*missing\.tables=read"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Return targets after three micro-batches, and a copy of everything after the second one."""
    made = Lake(tmp_path)
    for batch in range(3):
        if batch == 2:
            keep(made, "copy")
        made.change(("insert", batch), ("insert", batch + 10))
        made.write(batch)
    keep(made, "last")
    made.change(("update", 0), ("delete", 1), ("insert", 7))
    return made


def keep(lake: Lake, name: str) -> None:
    shutil.copytree(lake.path, lake.path.parent / name / "lake")
    shutil.copytree(lake.state, lake.path.parent / name / "state")


def restore(lake: Lake, name: str, what: str) -> None:
    shutil.rmtree(lake.path.parent / what)
    shutil.copytree(lake.path.parent / name / what, lake.path.parent / what)


def right(lake: Lake) -> None:
    for table in ("db.a", "db.b"):
        assert lake.rows(table) == in_order(lake.expected.values())


def test_an_older_backup_of_a_table(lake: Lake) -> None:
    restore(lake, "copy", "lake/db.a")
    for _ in range(2):
        with pytest.raises(TargetChangedError, match=LACKS):
            lake.write(3)
    assert lake.rows("db.b") == in_order(lake.expected.values())
    # As the error says.
    shutil.rmtree(lake.path / "db.a")
    with pytest.raises(TargetChangedError, match=r"The target table 'db\.a' is gone"):
        lake.write(3)
    lake.options = {"missing.tables": "read"}
    lake.write(3)
    assert list(lake.state.rglob("signals/*.json"))
    lake.options = {}
    lake.change(("insert", 20))
    lake.write(4)
    assert {row["id"] for row in lake.rows("db.a")} == {0, 7, 20}


@pytest.mark.parametrize("missing", ["fail", "read"])
def test_a_table_that_others_have_made_again(lake: Lake, missing: str) -> None:
    shutil.rmtree(lake.path / "db.a")
    shutil.copytree(lake.path / "db.b", lake.path / "db.a")
    for path in (lake.path / "db.a" / "_delta_log").glob("*[1-9].json"):
        path.unlink()
    lake.options = {"missing.tables": missing, "existing.tables": "empty"}
    with pytest.raises(TargetChangedError, match=LACKS):
        lake.write(3)


def test_the_last_version_from_a_backup(lake: Lake) -> None:
    restore(lake, "last", "lake")
    lake.write(3)
    right(lake)


def test_a_folder_that_is_copied_elsewhere(lake: Lake, tmp_path: Path) -> None:
    lake.path = lake.path.rename(tmp_path / "elsewhere")
    lake.write(3)
    right(lake)


@pytest.mark.parametrize("what", ["state", "written"])
def test_a_state_directory_that_is_lost(lake: Lake, what: str) -> None:
    (folder,) = [lake.state] if what == "state" else lake.state.rglob(what)
    shutil.rmtree(folder)
    lake.write(3)
    right(lake)


def test_a_state_directory_from_a_backup(lake: Lake) -> None:
    restore(lake, "copy", "state")
    lake.write(3)
    right(lake)


def test_checkpoint_and_tables_from_a_backup(lake: Lake) -> None:
    """The query goes on with an earlier micro-batch; one of the tables gets rows only later."""
    restore(lake, "copy", "lake")
    lake.change(("insert", 5))
    lake.write(2, ("db.a",))
    lake.write(3, ())
    lake.change(("insert", 6))
    for batch in (4, 5):
        lake.write(batch, ("db.a", "db.b"))
    assert {row["id"] for row in lake.rows("db.a")} == {0, 1, 5, 6, 10, 11}
    assert {row["id"] for row in lake.rows("db.b")} == {0, 1, 6, 10, 11}


def test_a_micro_batch_that_comes_again(lake: Lake) -> None:
    for _ in range(2):
        lake.write(3)
    right(lake)
    restore(lake, "copy", "lake/db.a")
    with pytest.raises(TargetChangedError, match=LACKS):
        lake.write(3)


def test_a_query_that_is_started_again_in_the_same_process(lake: Lake) -> None:
    """What the start before knew of a table would be in the way of what the error asks for."""
    mirror = Mirror(str(lake.path), lake.source_options, MirrorOptions.parse({}))

    def write(run: str, batch: int) -> None:
        told = {"sql.streaming.queryId": "query", "spark.jobGroup.id": run}
        session = SimpleNamespace(sparkContext=SimpleNamespace(getLocalProperty=told.get))
        result = SimpleNamespace(toArrow=lake.sent)
        rows: Any = SimpleNamespace(sparkSession=session, mapInArrow=lambda *_: result)
        mirror(rows, batch)

    write("one", 3)
    restore(lake, "copy", "lake/db.a")
    lake.change(("insert", 20))
    with pytest.raises(TargetChangedError, match=r"has no version 4 any more.*Start the query again"):
        write("one", 4)
    with pytest.raises(TargetChangedError, match=r"'db\.a' lacks micro-batch 3"):
        write("two", 4)


def test_a_state_directory_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_bucket(monkeypatch, "written") as uri:
        lake = Lake(tmp_path, uri)
        for batch in range(3):
            if batch == 1:
                shutil.copytree(lake.path / "db.a", tmp_path / "copy")
            lake.change(("insert", batch))
            lake.write(batch)
        right(lake)
        lake.change(("insert", 3))
        shutil.rmtree(lake.path / "db.a")
        shutil.copytree(tmp_path / "copy", lake.path / "db.a")
        with pytest.raises(TargetChangedError, match=LACKS):
            lake.write(3)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_earlier_version_after_a_restart(lake: Lake, checkpoint: bool) -> None:
    table = DeltaTable(lake.path / "db.a")
    table.restore(2)
    if checkpoint:
        table.create_checkpoint()
    with pytest.raises(TargetChangedError, match=r"'db\.a' was restored to an earlier version"):
        lake.write(3)
