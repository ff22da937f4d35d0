"""Incremental snapshots of Oracle between watermarks, and what happens in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.oracle.source.windows import OracleWindow
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError, SourceStateError
from tests.support.hurry import hurry
from tests.support.oracle.model.tables import column
from tests.support.oracle.scene import COLUMNS, SCHEMA, Scene, applied
from tests.support.oracle.signalled import Signalled, read

WINDOWS = {"incremental_snapshot_read_points": "watermarks"}
LONG = pytest.mark.long


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture(params=["logminer", pytest.param("logminer_unbuffered", marks=LONG)])
def signalled(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Signalled]:
    with Scene(tmp_path, adapter=request.param) as scene:
        yield Signalled(scene)


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen once in the first window, behind what is read."""
    close = OracleWindow.close
    acts = [act]

    def closing(self: OracleWindow) -> None:
        if acts:
            acts.pop()()
        close(self)

    monkeypatch.setattr(OracleWindow, "close", closing)


def ask(signalled: Signalled, **more: Any) -> None:
    signalled.send("execute-snapshot", **{"data-collections": [r"S\.T"], **more})


def marks(signalled: Signalled) -> list[str]:
    """Return what was written into the signal table by connectors."""
    found = [one.text for one in signalled.scene.database.statements if '"S"."G"' in one.text]
    return [text.split("'")[3] if text.startswith("INSERT") else text.split()[0] for text in found]


@pytest.mark.parametrize(
    ("strategy", "written"),
    [
        ("insert_insert", ["snapshot-window-open", "snapshot-window-close"]),
        pytest.param("insert_delete", ["snapshot-window-open", "DELETE"], marks=LONG),
    ],
)
def test_rows_are_read_between_two_marks_without_undo(signalled: Signalled, strategy: str, written: list[str]) -> None:
    query, _ = signalled.query(**WINDOWS, incremental_snapshot_watermarking_strategy=strategy)
    signalled.scene.database.settings.undo_scns = 0
    asked = len(signalled.scene.database.statements)
    ask(signalled)
    assert read(signalled.after(query)) == [("T", number) for number in range(20)]
    assert marks(signalled)[:2] == written
    assert not [one.text for one in signalled.scene.database.statements[asked:] if "AS OF SCN" in one.text]


def test_what_is_changed_between_the_marks_comes_from_the_log(
    signalled: Signalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = signalled.scene

    def change() -> None:
        with scene.change() as transaction:
            transaction.update(scene.table, {"ID": 1}, V=Decimal(7))
            transaction.delete(scene.table, {"ID": 2})
            transaction.update(scene.table, {"ID": 3}, ID=Decimal(300))
            transaction.insert(scene.table, ID=Decimal(400), V=Decimal(4), PAD="new")
            transaction.insert(scene.table, ID=Decimal(401), V=Decimal(4), PAD="gone")
            transaction.delete(scene.table, {"ID": 401})

    query, _ = signalled.query(**WINDOWS)
    meanwhile(monkeypatch, change)
    ask(signalled)
    rows = signalled.after(query)
    assert applied(rows) == scene.expected()
    keys = [key for _, key in read(rows)]
    assert keys == [0, *range(4, 20)]
    assert max(row["position"] for row in rows if row["op"] == "u") < min(
        row["position"] for row in rows if row["op"] == "r"
    )


@LONG
def test_what_is_open_between_the_marks_comes_later(signalled: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = signalled.scene
    with scene.database.lock:
        long = scene.database.begin()
        long.update(scene.table, {"ID": 1}, V=Decimal(7))
    query, _ = signalled.query(**WINDOWS)
    ask(signalled)
    rows = signalled.after(query)
    assert read(rows) == [("T", number) for number in range(20)]
    with scene.database.lock:
        long.commit()
        scene.database.background()
    rows += query.drain()
    assert applied(rows) == scene.expected()


@LONG
def test_a_table_that_is_emptied_between_the_marks(signalled: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = signalled.scene

    def empty() -> None:
        with scene.database.lock:
            scene.database.truncate(scene.table)
            scene.database.background()
        with scene.change() as transaction:
            transaction.insert(scene.table, ID=Decimal(5), V=Decimal(5), PAD="first")

    query, _ = signalled.query(**WINDOWS, skipped_operations="none")
    meanwhile(monkeypatch, empty)
    ask(signalled)
    rows = signalled.after(query)
    assert applied(rows) == scene.expected()


@LONG
def test_a_table_that_is_altered_between_the_marks(signalled: Signalled, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = signalled.scene

    def widen() -> None:
        with scene.database.lock:
            wider = (*COLUMNS, column("N", "NUMBER(5,0)"))
            scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" ADD ("N" NUMBER(5,0))', columns=wider)
            scene.database.background()
        with scene.change() as transaction:
            transaction.update(scene.table, {"ID": 1}, N=Decimal(9))

    query, _ = signalled.query(**WINDOWS)
    meanwhile(monkeypatch, widen)
    ask(signalled)
    rows = signalled.after(query)
    assert json.loads(next(row for row in rows if row["op"] == "u")["value"])["after"]["N"] == 9
    assert {key for _, key in read(rows)} | {1} == set(range(20))


def test_large_objects_that_the_log_lacks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last change lacks the value, which only the row that was read has."""
    columns = [*COLUMNS[:2], column("PAD", "CLOB")]
    with Scene(tmp_path, columns=columns) as scene:
        signalled = Signalled(scene)

        def change() -> None:
            with scene.change() as transaction:
                transaction.update(scene.table, {"ID": 1}, V=Decimal(7))

        query, _ = signalled.query(**WINDOWS)
        meanwhile(monkeypatch, change)
        ask(signalled)
        rows = signalled.after(query)
        assert applied(sorted(rows, key=lambda row: str(row["position"]))) == scene.expected()
        assert ("T", 1) in read(rows)


@LONG
def test_a_query_that_dies_inside_a_window(signalled: Signalled) -> None:
    query, _ = signalled.query(**WINDOWS, snapshot_batch_target_ms="1")
    query.restart()
    ask(signalled)
    end = query.offset
    for _ in range(100):
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end["incremental"] is not None:
            break
        query.run(end)
        query.offset = end
    assert end["incremental"] is not None
    query.run(end)
    query.stop()
    again = signalled.scene.query(query.offset, snapshot_mode="no_data", **signalled.options, **WINDOWS)
    signalled.scene.write(100)
    rows = signalled.after(again)
    assert {key for _, key in read(rows)} >= set(range(20)) - {1}
    assert applied(rows) == signalled.scene.expected()


def test_marks_that_cannot_be_written(signalled: Signalled) -> None:
    options = {**signalled.options, "signal_data_collection": f"{SCHEMA}.NONE"}
    with pytest.raises(SourceStateError, match=r"The signal table 'S\.NONE'.* does not exist") as caught:
        signalled.scene.query(**options, **WINDOWS).drain()
    assert "incremental.snapshot.read.points=exact" in caught.value.cure
    signalled.scene.database.settings.open_mode = "READ ONLY"
    with pytest.raises(SourceStateError, match="the database is READ ONLY"):
        signalled.scene.query(**signalled.options, **WINDOWS).drain()
    found = connector_module("oracle", "checks.server").check_source(
        load_options(signalled.scene.options(**signalled.options, **WINDOWS))
    )
    assert [one.status for one in found if one.check == "signal table"] == ["ok", "error"]


def test_marks_need_a_database_that_may_be_written(signalled: Signalled) -> None:
    options = {**signalled.options, **WINDOWS, "log_mining_read_only": "true"}
    with pytest.raises(ConfigError, match=r"log\.mining\.read\.only"):
        load_options(signalled.scene.options(**options))
