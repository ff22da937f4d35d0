"""A notebook whose log is gone, or is another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from floodmark.errors import ForkedLogError, LogGoneError
from tests.support.inprocess import InProcess
from tests.toy.conftest import Start
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.test_stream import applied, streaming


def write(notebook: Notebook, v: int) -> None:
    with notebook.page() as page:
        page.update("t", {"id": v}, v=v)


@pytest.fixture
def stopped(start: Start, notebook: Notebook) -> InProcess:
    """A query that has delivered everything and was stopped."""
    query = start()
    query.drain()
    write(notebook, 1)
    query.drain()
    query.stop()
    return query


def test_log_that_was_delivered_may_be_removed(stopped: InProcess, start: Start, notebook: Notebook) -> None:
    notebook.cut_log()
    write(notebook, 2)
    assert [row["op"] for row in start(stopped.offset).drain()] == ["u"]


def test_log_that_is_removed_while_it_is_read(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data")
    streaming(query)
    write(notebook, 1)
    rows = query.step()
    while not rows:
        rows += query.step()
    notebook.cut_log()
    write(notebook, 2)
    for _ in range(50):
        rows += query.step()
        if len(rows) == 2:
            break
    assert [json.loads(row["value"])["after"]["id"] for row in rows] == [1, 2]


def test_a_lost_log_is_refused(stopped: InProcess, start: Start, notebook: Notebook) -> None:
    write(notebook, 2)
    notebook.cut_log()
    write(notebook, 3)
    for _ in range(2):
        with pytest.raises(LogGoneError, match="log begins at 000000000004-00000000 by now") as caught:
            start(stopped.offset).step()
        assert not isinstance(caught.value, ForkedLogError)
        assert "when_needed" in caught.value.cure


def test_a_new_snapshot_follows_if_that_is_wanted(stopped: InProcess, start: Start, notebook: Notebook) -> None:
    write(notebook, 2)
    notebook.cut_log()
    write(notebook, 3)
    query = start(stopped.offset, snapshot_mode="when_needed")
    rows = query.drain()
    assert [row["op"] for row in rows] == ["gap", *["r"] * 20]
    gap = json.loads(rows[0]["value"])
    assert gap["after"] == stopped.offset["log"]
    assert gap["option"] == "snapshot.mode=when_needed"
    assert stopped.offset["log"] < rows[0]["position"] < rows[1]["position"]
    write(notebook, 4)
    rows += query.drain()
    assert rows[-1]["op"] == "u"
    assert applied(rows) == notebook.rows("t")


def test_another_log_is_refused(stopped: InProcess, start: Start, notebook: Notebook, tmp_path: Path) -> None:
    other = Notebook.make(tmp_path / "other")
    other.create("t", {"id": "integer", "v": "integer?", "pad": "text?"})
    for number in range(5):
        with other.page() as page:
            page.insert("t", {"id": number})
    for mode in ("initial", "when_needed"):
        query = start(stopped.offset, notebook_path=str(other.path), snapshot_mode=mode)
        with pytest.raises(ForkedLogError, match="another one"):
            query.step()


def test_a_log_that_ends_too_early_is_refused(stopped: InProcess, start: Start, notebook: Notebook) -> None:
    offset = {**stopped.offset, "log": "000000000099-00000000"}
    with pytest.raises(ForkedLogError, match="which it had reached"):
        start(offset).step()
