"""Signals of Oracle: names with the database, as Debezium's users write them, and tables that are altered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.signals import records
from tests.support.hurry import hurry
from tests.support.oracle.model.tables import column
from tests.support.oracle.scene import Scene
from tests.support.oracle.signalled import PDB, Signalled, read, told
from tests.support.recording import Recorder

LONG = pytest.mark.long
NAMES = [
    rf"{PDB}\.S\.OTHER",
    pytest.param(f"{PDB}.S.OTHER", marks=LONG),
    pytest.param(r"S\.OTHER", marks=LONG),
    pytest.param(r".*\.OTHER", marks=LONG),
]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    recorder.listen(monkeypatch, records.__name__)
    return recorder


@pytest.fixture
def signalled(tmp_path: Path) -> Iterator[Signalled]:
    with Scene(tmp_path) as scene:
        yield Signalled(scene)


@pytest.fixture(params=["logminer", "logminer_unbuffered"])
def by_either(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Signalled]:
    with Scene(tmp_path, adapter=request.param) as scene:
        yield Signalled(scene)


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_is_asked_for_by_either_name(signalled: Signalled, kind: str, name: str) -> None:
    query, _ = signalled.query()
    signalled.send("execute-snapshot", **{"type": kind, "data-collections": [name]})
    assert read(signalled.after(query)) == [("OTHER", 1)]


def test_conditions_may_name_the_database(signalled: Signalled, logged: Recorder) -> None:
    query, _ = signalled.query()
    condition = {"data-collection": f"{PDB}.S.T", "filter": "ID < 3"}
    signalled.send("execute-snapshot", **{"data-collections": [f"{PDB}.S.T"], "additional-conditions": [condition]})
    assert read(signalled.after(query)) == [("T", number) for number in range(3)]
    assert not logged.of("signal_condition_has_no_effect")


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_name_of_another_database_is_told(signalled: Signalled, logged: Recorder, kind: str) -> None:
    query, _ = signalled.query()
    condition = {
        "data-collection": r"ELSEWHERE\.S\.T",
        "filter": "SELECT * FROM S.T" if kind == "blocking" else "ID < 3",
    }
    names = [r"ELSEWHERE\.S\.OTHER", r"S\.NONE", r"S\.T"]
    signalled.send(
        "execute-snapshot", **{"type": kind, "data-collections": names, "additional-conditions": [condition]}
    )
    rows = signalled.after(query)
    assert read(rows) == [("T", number) for number in range(20)]
    reason = f"it names the database ELSEWHERE, and the query captures {PDB}"
    assert [(one["table"], one.get("reason")) for one in logged.of("signal_matches_no_table")] == [
        (r"ELSEWHERE\.S\.OTHER", reason),
        (r"S\.NONE", None),
    ]
    assert [one["reason"] for one in logged.of("signal_condition_has_no_effect")] == [reason]
    if kind == "incremental":
        found = [one for one in told(rows) if one["type"] == "TABLE_SCAN_COMPLETED"]
        unknown = [one["additional_data"] for one in found if one["additional_data"]["status"] == "UNKNOWN_SCHEMA"]
        assert [one["scanned_collection"] for one in unknown] == names[:2]


def test_a_snapshot_is_stopped_by_either_name(signalled: Signalled, logged: Recorder) -> None:
    query, _ = signalled.query()
    signalled.send("execute-snapshot", **{"data-collections": [f"{PDB}.S.T", f"{PDB}.S.OTHER"]})
    signalled.send("stop-snapshot", **{"data-collections": [r"ELSEWHERE\.S\.T", f"{PDB}.S.OTHER"]})
    rows = signalled.after(query)
    assert {table for table, _ in read(rows)} == {"T"}
    assert [one["table"] for one in logged.of("signal_matches_no_table")] == [r"ELSEWHERE\.S\.T"]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_snapshot_reads_may_be_named_either_way(signalled: Signalled, name: str) -> None:
    rows = signalled.scene.query(snapshot_include_collection_list=name, **signalled.options).drain()
    assert read(rows) == [("OTHER", 1)]


def test_a_list_with_another_database_is_an_error(signalled: Signalled) -> None:
    name = r"S\.T,ELSEWHERE\.S\.OTHER"
    with pytest.raises(ConfigError, match="it names the database ELSEWHERE") as caught:
        signalled.scene.query(snapshot_include_collection_list=name, **signalled.options).drain()
    assert "schema.table is enough" in caught.value.cure


def test_signals_of_another_database_are_an_error(signalled: Signalled) -> None:
    with pytest.raises(ConfigError, match=r"captures the database ORCLPDB1\. Write ORCLPDB1\.S\.G"):
        load_options(signalled.scene.options(signal_data_collection="ELSEWHERE.S.G"))


@pytest.mark.parametrize(
    "altered", ["wider", pytest.param("narrower", marks=LONG), pytest.param("renamed", marks=LONG)]
)
def test_a_signal_that_is_older_than_its_table(by_either: Signalled, altered: str) -> None:
    """LogMiner shows it without the names of its columns."""
    query, _ = by_either.query(log_mining_strategy="hybrid")
    query.stop()
    database, table = by_either.scene.database, by_either.signals
    by_either.send("execute-snapshot", **{"data-collections": [r"S\.OTHER"]})
    columns = table.structure.columns
    with database.lock:
        if altered == "wider":
            added = column("AT", "DATE")
            database.ddl(table, 'ALTER TABLE "S"."G" ADD ("AT" DATE)', columns=(*columns, added))
        elif altered == "narrower":
            added = column("AT", "DATE")
            database.ddl(table, 'ALTER TABLE "S"."G" ADD ("AT" DATE)', columns=(*columns, added))
            database.ddl(table, 'ALTER TABLE "S"."G" DROP COLUMN "AT"', columns=columns)
        else:
            others = (*columns[:2], column("PAYLOAD", "VARCHAR2(2048)"))
            database.ddl(table, 'ALTER TABLE "S"."G" RENAME COLUMN "DATA" TO "PAYLOAD"', columns=others)
        database.background()
    again = by_either.scene.query(query.offset, log_mining_strategy="hybrid", **by_either.options)
    assert read(by_either.after(again)) == [("OTHER", 1)]
