"""A table's shadow gets what the table gets, and takes its place by one commit."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import LocalStore

from floodmark.errors import FloodmarkError, TargetChangedError, TargetDamagedError, TargetError
from floodmark.sinks.delta import upkeep
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DeltaLog
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.replacing import Replacement
from floodmark.sinks.delta.rebuilding.shadows import ShadowedWriter
from floodmark.sinks.delta.upkeep import AtOnce, Upkeep
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced
from tests.support.delta_mirror import in_order
from tests.support.lake import KEY, Lake
from tests.support.patience import within
from tests.support.planting import Planter
from tests.unit.test_last_changes import CHANGES

TABLE, QUERY = "db.a", "floodmark-query"
MARK = RebuildMark("one", TABLE, "signal", -1)
MARK_FILE = "_floodmark/rebuilds/db.a.json"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Return targets of which the first one has a row too many, and lacks another one."""
    made = Lake(tmp_path)
    made.change(*(("insert", number) for number in range(4)))
    made.write(0)
    spoil(made)
    return made


def spoil(lake: Lake) -> None:
    planter = Planter(lake.path / TABLE)
    planter.lose([1])
    planter.spoil(2, v=-1)


def marks(lake: Lake) -> RebuildMarks:
    return RebuildMarks(str(lake.path))


def replacement(lake: Lake, mark: RebuildMark = MARK) -> Replacement:
    return Replacement(str(lake.path), mark, QUERY)


def read_again(lake: Lake, batch: int, *changes: tuple[str, int]) -> None:
    """Write a micro-batch in which a snapshot delivers all rows, and some changes follow."""
    first = len(lake.source.told)
    for row in list(lake.source.rows.values()):
        lake.source.tell("r", None, row, [])
    told = lake.source.told[first:]
    lake.change(*changes)
    lake.told = told + lake.told
    lake.write(batch)


def expected(lake: Lake) -> list[dict[str, Any]]:
    return in_order(lake.expected.values())


def files(lake: Lake) -> set[str]:
    return {path.name for path in (lake.path / TABLE).glob("*.*")}


def test_a_table_is_replaced_by_one_commit(lake: Lake) -> None:
    assert marks(lake).add(MARK)
    lake.change(("update", 0), ("delete", 3))
    lake.write(1)
    before, earlier = lake.rows(TABLE), DeltaTable(str(lake.path / TABLE)).version()
    assert before != expected(lake)
    read_again(lake, 2, ("update", 1), ("insert", 7))
    version = DeltaTable(str(lake.path / TABLE)).version()
    assert replacement(lake).attempt(False) is Replaced.DONE
    assert lake.rows(TABLE) == expected(lake) == lake.rows("db.b")
    assert DeltaTable(str(lake.path / TABLE)).version() == version + 1
    assert lake.rows(TABLE, earlier) == before
    # Again, as by a process that doesn't know that it was done.
    assert replacement(lake).attempt(False) is Replaced.DONE
    assert DeltaTable(str(lake.path / TABLE)).version() == version + 1
    # The query goes on, whether or not the mark is there still, and with a process that was there before.
    lake.change(("update", 0), ("delete", 7), ("insert", 9))
    lake.write(3)
    marks(lake).remove(TABLE)
    marks(lake).remove_shadows(TABLE)
    lake.change(("update", 9), ("insert", 10))
    lake.write(4)
    assert lake.rows(TABLE) == expected(lake) == lake.rows("db.b")


@pytest.mark.parametrize("options", [{}, {"deletion.vectors": "off"}, {"compact.files": "2"}])
@given(
    batches=st.lists(st.lists(CHANGES, max_size=6), min_size=3, max_size=6),
    deaths=st.lists(st.sampled_from(["none", "none", "before", "between", "after"]), min_size=6, max_size=6),
    again=st.integers(0, 2),
)
@settings(max_examples=25)
def test_whatever_happens_meanwhile(
    options: dict[str, str],
    batches: list[list[tuple[Any, ...]]],
    deaths: list[str],
    again: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Changes of all kinds, and a query that dies between its steps: the table is the source's in the end."""
    lake = Lake(tmp_path_factory.mktemp("rebuilt"))
    lake.options = options
    lake.change(*(("insert", number) for number in range(4)))
    lake.write(0)
    if options.get("deletion.vectors"):
        DeltaTable(str(lake.path / TABLE)).delete("id = 1")
    else:
        spoil(lake)
    marks(lake).add(MARK)
    for number, changes in enumerate(batches, 1):
        first = len(lake.source.told)
        if number == again + 1:
            for row in list(lake.source.rows.values()):
                lake.source.tell("r", None, row, [])
        for what, one, other, value, _ in changes:
            lake.source.change(what, one, other, value, False)
        lake.told = lake.source.told[first:]
        if not lake.told:
            continue
        write_dying(lake, number, deaths[number - 1])
    deadline = time.monotonic() + within(10)
    while replacement(lake).attempt(not lake.source.rows) is Replaced.LATER:
        # Compaction was faster.
        assert options.get("compact.files")
        assert time.monotonic() < deadline
    found = [{"id": row["id"], "v": row["v"], "big": row["big"]} for row in lake.source.rows.values()]
    assert lake.rows(TABLE) == in_order(found) == lake.rows("db.b")


class Death(BaseException):
    """The query's process dies."""


def write_dying(lake: Lake, batch: int, when: str) -> None:
    """Write a micro-batch by a query that dies, and then by one that is started again."""
    with pytest.MonkeyPatch.context() as patch:
        write, write_shadow = ShadowedWriter.write, ShadowedWriter._write_shadow

        def before(writer: Any, *args: Any) -> Any:
            raise Death

        def between(writer: Any, *args: Any) -> Any:
            write_shadow(writer, *args)
            raise Death

        def after(writer: Any, *args: Any) -> Any:
            write(writer, *args)
            raise Death

        if when == "before":
            patch.setattr(ShadowedWriter, "write", before)
        elif when == "between":
            patch.setattr(ShadowedWriter, "_write_shadow", between)
        elif when == "after":
            patch.setattr(ShadowedWriter, "write", after)
        if when != "none":
            with pytest.raises(Death):
                lake.write(batch)
    lake.write(batch)


def test_a_micro_batch_from_before_the_mark_comes_again(lake: Lake) -> None:
    lake.change(("insert", 8))
    lake.write(1)
    marks(lake).add(MARK)
    # The shadow takes the files of this try, though the table has those of the first one.
    lake.write(1)
    read_again(lake, 2, ("update", 8))
    assert replacement(lake).attempt(False) is Replaced.DONE
    assert lake.rows(TABLE) == expected(lake)


def test_the_shadow_has_what_the_table_is_about_to_get(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    marks(lake).add(MARK)
    read_again(lake, 1)
    lake.change(("insert", 8))
    write_shadow = ShadowedWriter._write_shadow

    def dies(writer: Any, *args: Any) -> None:
        write_shadow(writer, *args)
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(ShadowedWriter, "_write_shadow", dies)
        with pytest.raises(Death):
            lake.write(2)
    assert replacement(lake).attempt(False) is Replaced.LATER
    assert replacement(lake).discard() == 0
    lake.write(2)
    assert replacement(lake).attempt(False) is Replaced.DONE
    assert lake.rows(TABLE) == expected(lake)


def test_a_query_that_writes_at_the_same_time(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is replaced just before the query commits what it has planned: it plans that again."""
    marks(lake).add(MARK)
    read_again(lake, 1)
    lake.change(("update", 0), ("delete", 3), ("insert", 8))
    actions, replaced, planned = DeltaWriter._actions, [], []

    def meanwhile(writer: DeltaWriter, *args: Any) -> Any:
        planned.append(actions(writer, *args))
        if len(planned) == 2:
            # The shadow has the micro-batch already, and a process that saw it before replaces the table.
            replaced.append(earlier.attempt(False))
        return planned[-1]

    earlier = replacement(lake)
    state = earlier._shadow.state()
    monkeypatch.setattr(earlier._shadow, "state", lambda: state)
    monkeypatch.setattr(DeltaWriter, "_actions", meanwhile)
    lake.write(2, (TABLE,))
    assert (replaced, len(planned)) == ([Replaced.DONE], 3)
    assert lake.rows(TABLE) == expected(lake)


@pytest.mark.parametrize("follows", [False, True])
def test_a_rebuilding_that_ends_while_a_micro_batch_is_written(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, follows: bool
) -> None:
    """The query removes what it has written to the shadow after the others removed that, and no other shadow."""
    marks(lake).add(MARK)
    read_again(lake, 1)
    lake.change(("update", 0), ("insert", 8))
    write_shadow = ShadowedWriter._write_shadow
    logs = lake.path / TABLE / "_floodmark"

    def ends(writer: Any, *args: Any) -> None:
        assert replacement(lake).attempt(False) is Replaced.DONE
        marks(lake).remove(TABLE)
        marks(lake).remove_shadows(TABLE)
        if follows:
            marks(lake).add(replace(MARK, id="two"))
            (logs / "rebuild-two").mkdir(parents=True)
            (logs / "rebuild-two" / "file").touch()
        write_shadow(writer, *args)

    with monkeypatch.context() as patch:
        patch.setattr(ShadowedWriter, "_write_shadow", ends)
        lake.write(2, (TABLE,))
    assert lake.rows(TABLE) == expected(lake)
    assert [path.name for path in logs.glob("*")] == ["rebuild-two"] * follows


def test_a_shadow_that_cannot_be_written(lake: Lake) -> None:
    """The query goes on with the table, and nobody takes the shadow for whole."""
    marks(lake).add(MARK)
    read_again(lake, 1)
    log = lake.path / TABLE / "_floodmark" / "rebuild-one" / "_delta_log"
    (log / f"{1:020d}.json").write_text("nonsense\n")
    (log / f"{2:020d}.json").write_text("nonsense\n")
    lake.change(("insert", 8))
    lake.write(2)
    lake.write(2)
    lake.change(("insert", 9))
    lake.write(3)
    noted = marks(lake).get(TABLE)
    assert noted is not None
    assert noted.error.startswith("Micro-batch 2 couldn't be written: ")
    with pytest.raises(FloodmarkError, match=r"Rebuild|damaged|JSON"):
        replacement(lake).attempt(False)
    assert {8, 9} <= {row["id"] for row in lake.rows(TABLE)}
    assert lake.rows("db.b") == expected(lake)


def test_a_failure_that_cannot_be_noted_ends_the_query(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    marks(lake).add(MARK)
    read_again(lake, 1)
    lake.change(("insert", 8))
    version = DeltaTable(str(lake.path / TABLE)).version()

    def full(*args: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ShadowedWriter, "_shadow_of", full)
        patch.setattr(RebuildMarks, "fail", full)
        with pytest.raises(TargetError, match="can't be written or read"):
            lake.write(2, (TABLE,))
    assert DeltaTable(str(lake.path / TABLE)).version() == version
    lake.write(2)
    assert replacement(lake).attempt(False) is Replaced.DONE
    assert lake.rows(TABLE) == expected(lake)


def test_a_query_that_writes_no_shadow(lake: Lake) -> None:
    read_again(lake, 1)
    marks(lake).add(MARK)
    with pytest.raises(TargetChangedError, match=r"has written no shadow of the table 'db\.a'"):
        replacement(lake).attempt(False)


def test_a_table_without_rows(lake: Lake) -> None:
    lake.change(*(("delete", number) for number in range(4)))
    lake.write(1)
    assert lake.rows(TABLE) == []
    DeltaTable(str(lake.path / TABLE)).restore(1)
    marks(lake).add(MARK)
    assert replacement(lake).attempt(True) is Replaced.DONE
    assert lake.rows(TABLE) == []


def test_a_rebuilding_that_is_given_up_leaves_nothing(lake: Lake) -> None:
    lake.options = {"compact.files": "2"}
    marks(lake).add(MARK)
    for batch in range(1, 9):
        lake.change(("update", batch % 4), ("insert", 10 + batch))
        lake.write(batch)
    before, rows = files(lake), lake.rows(TABLE)
    marks(lake).remove(TABLE)
    removed = replacement(lake).discard()
    marks(lake).remove_shadows(TABLE)
    assert removed
    assert len(before - files(lake)) == removed
    assert not list((lake.path / TABLE).glob("_floodmark/**/*.json"))
    # Neither the table nor an earlier version of it lacks a file.
    assert lake.rows(TABLE) == rows
    for version in range(1, DeltaTable(str(lake.path / TABLE)).version() + 1):
        assert lake.rows(TABLE, version)
    named = {
        json.loads(line)["add"]["path"]
        for commit in (lake.path / TABLE / "_delta_log").glob("*.json")
        for line in commit.read_text().splitlines()
        if "add" in json.loads(line)
    }
    assert named <= files(lake)


def test_files_that_a_vacuum_has_removed(lake: Lake) -> None:
    marks(lake).add(MARK)
    read_again(lake, 1)
    lake.change(("update", 0))
    lake.write(2)
    state = replacement(lake)._shadow.state()
    gone = next(iter(state.files.values())).path
    (lake.path / TABLE / gone).unlink()
    with pytest.raises(TargetDamagedError, match=f"lacks the file {gone}"):
        replacement(lake).attempt(False)


def test_no_vacuum_of_its_own_removes_what_only_the_shadow_names(lake: Lake) -> None:
    seen: list[bool] = []
    marks(lake).add(MARK)
    with pytest.MonkeyPatch.context() as patch:
        begin = Upkeep.begin

        def begun(upkeep: Upkeep, *args: Any) -> None:
            seen.append(upkeep._files.shared)
            begin(upkeep, *args)

        patch.setattr(Upkeep, "begin", begun)
        read_again(lake, 1)
        marks(lake).remove(TABLE)
        lake.change(("update", 0))
        lake.write(2, (TABLE,))
    # The shadow and its table, and a table that isn't rebuilt; then the table alone.
    assert (sorted(seen[:3]), seen[3:]) == ([False, True, True], [False])


@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        (lambda lake: shutil.rmtree(lake.path / TABLE), "is gone"),
        (lambda lake: marks(lake).remove(TABLE), "was cancelled meanwhile"),
        (lambda lake: marks(lake).fail(MARK, "Why."), "can't be rebuilt. Why. Rebuild the table again."),
        (lambda lake: DeltaTable(str(lake.path / TABLE)).restore(0), "has other micro-batches"),
    ],
)
def test_what_is_not_replaced(lake: Lake, spoiled: Callable[[Lake], object], says: str) -> None:
    marks(lake).add(MARK)
    read_again(lake, 1)
    spoiled(lake)
    with pytest.raises(TargetChangedError, match=says):
        replacement(lake).attempt(False)


def test_another_query_s_table(lake: Lake) -> None:
    marks(lake).add(MARK)
    read_again(lake, 1)
    with pytest.raises(TargetChangedError, match=r"Another query writes the Delta table 'db\.a' now"):
        Replacement(str(lake.path), MARK, "floodmark-other").attempt(False)


def test_a_damaged_mark(lake: Lake) -> None:
    marks(lake).add(MARK)
    assert not marks(lake).add(MARK)
    assert marks(lake).all() == {TABLE: MARK}
    (lake.path / MARK_FILE).write_text('{"id": 1}')
    with pytest.raises(TargetDamagedError, match=r"has no 'id' that is a text\. Remove the file"):
        marks(lake).get(TABLE)
    # The query goes on without it.
    read_again(lake, 1)
    assert lake.rows("db.b") == expected(lake)
    assert not (lake.path / TABLE / "_floodmark").exists()


def test_rows_that_come_back_while_files_are_rewritten(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is replaced, or restored, may have rows again that a rewriting has left out."""
    lake.options = {"compact.files": "0"}
    lake.change(("insert", 8))
    lake.write(1, (TABLE,))
    table = DeltaTable(str(lake.path / TABLE))
    expected_rows, version = lake.rows(TABLE), table.version()
    Planter(lake.path / TABLE).lose([0])
    restored: list[Any] = []

    def meanwhile(*args: Any) -> Any:
        made = rewritten(*args)
        if not restored:
            restored.append(DeltaTable(str(lake.path / TABLE)).restore(version))
        return made

    monkeypatch.setattr(upkeep, "rewritten", meanwhile)
    log = DeltaLog(LocalStore(str(lake.path / TABLE)))
    files = DataFiles(LocalStore(str(lake.path / TABLE)), TABLE)
    one = Upkeep(
        log,
        files,
        TargetRows(files, TABLE, KeptRows()),
        str(lake.path / TABLE),
        MirrorOptions.parse({"compact.files": "2"}),
        lambda _: True,
        AtOnce(),
        Lock(),
    )
    one.begin(log.state(), KEY)
    assert restored
    assert lake.rows(TABLE) == expected_rows
