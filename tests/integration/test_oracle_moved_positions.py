"""``floodmark offsets`` on Oracle, with offsets as Debezium has them, made from what the stand-in shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets, move
from floodmark.connectors.oracle.handover import DebeziumPlace
from floodmark.connectors.oracle.position import Position
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.history import FileHistory
from floodmark.debezium.offsets import StoredOffset, find_offset
from floodmark.debezium.snapshot_state import AskedTable, DebeziumSnapshot
from floodmark.errors import LogGoneError, OffsetError
from floodmark.json_data import Json
from floodmark.spark.checkpoint import Checkpoint
from tests.support.handed_over import pipeline_file
from tests.support.inprocess import InProcess
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.scene import COLUMNS, Scene


class Taken:
    """A stand-in whose log Debezium might have read, its files, and a pipeline."""

    def __init__(self, scene: Scene, directory: Path, **more: str) -> None:
        self.scene = scene
        self.directory = directory / "pipeline"
        self.directory.mkdir()
        self.store = self.directory / "offsets.dat"
        self.history = self.directory / "history.dat"
        nodes = "".join(f",127.0.0.1:{one.port}" for one in scene.nodes)
        more |= {"rac_nodes": f"127.0.0.1{nodes}"} if nodes else {}
        self.options = scene.options(snapshot_mode="no_data", **more)
        self.file = pipeline_file(self.directory, self.options)
        self.stores = Stores(str(self.store))

    def write(self, number: int, thread: int = 1) -> tuple[int, str]:
        """Commit a change; return the commit's number, and the transaction as Debezium writes it."""
        with self.scene.change(thread) as transaction:
            transaction.insert(self.scene.table, ID=Decimal(number), V=Decimal(number), PAD="x")
        found = next(
            record
            for record in reversed(self.scene.database.threads[thread].current.records)
            if record.operation.name == "COMMIT"
        )
        return found.scn, found.xid.lower()

    def take_over(self, fields: Mapping[str, Json], history: bool = False) -> None:
        """Import an offset."""
        offset = StoredOffset("reference", {"server": "p"}, dict(fields))
        FileOffsets(self.store, "test").write(offset.key, offset.value)
        stores = Stores(str(self.store), str(self.history) if history else None)
        import_offsets(self.file, None, stores, True)

    @property
    def checkpoint(self) -> Checkpoint:
        """The pipeline's checkpoint."""
        return Checkpoint(str(self.directory / "checkpoint"))

    def keys(self, operation: str = "c") -> list[int]:
        """Let a query go on from the checkpoint, and return the keys of the rows of its events."""
        query = InProcess(self.options, self.checkpoint.delivered())
        try:
            rows = query.drain()
        finally:
            query.stop()
        self.checkpoint.go_on_from(query.offset)
        events: Iterator[Any] = (json.loads(row["value"] or "null") for row in rows)
        return [int(event["after"]["ID"]) for event in events if event and event.get("op") == operation]


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Taken]:
    with Scene(tmp_path) as scene:
        yield Taken(scene, tmp_path)


def test_what_an_offset_says() -> None:
    read = DebeziumPlace.from_fields
    assert read({"scn": "90", "commit_scn": "100:1:0A00-0b00"}) == DebeziumPlace(
        89, Position(100), frozenset({"0a00", "0b00"}), 100, frozenset({1})
    )
    both = read({"scn": 90, "commit_scn": "100:1:0a00,120:2:0b00", "txId": "0c00", "txSeq": 3})
    assert both == DebeziumPlace(89, Position(100), frozenset({"0a00", "0b00"}), 120, frozenset({1, 2}), "0c00")
    assert both.without([1, 2]) == both
    assert both.without([1, 2, 3]).position == Position(90)
    after: dict[str, Json] = {"scn": "95", "snapshot_scn": "95", "snapshot": "INITIAL", "snapshot_completed": True}
    assert read(after) == DebeziumPlace(95, Position(96), frozenset(), 95)
    assert read({**after, "snapshot_pending_tx": "0a00:70,0b00:80"}).begin == 69


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"lsn": 5}, "it has no scn"),
        ({"scn": "x"}, "its scn is no change number"),
        ({"scn": "5", "commit_scn": "a:b"}, "commit_scn"),
        ({"scn": "5", "snapshot_pending_tx": "x"}, "snapshot_pending_tx is damaged"),
        ({"scn": "5", "snapshot": "INITIAL", "snapshot_completed": False}, "not finished its snapshot"),
        ({"scn": "5", "scn_idx": 3}, "OpenLogReplicator"),
        ({"lcr_position": "00ff"}, "XStream"),
    ],
)
def test_offsets_that_can_not_be_taken_over(fields: dict[str, Json], problem: str) -> None:
    with pytest.raises(OffsetError, match=problem):
        DebeziumPlace.from_fields(fields)


@pytest.mark.long
def test_a_query_goes_on_after_the_transactions_that_were_delivered(taken: Taken) -> None:
    begin = taken.scene.database.clock.scn
    found = [taken.write(100 + number) for number in range(4)]
    for number, (scn, xid) in enumerate(found):
        taken.take_over({"scn": str(begin), "commit_scn": f"{scn}:1:{xid}"})
        assert taken.keys() == [100 + left for left in range(number + 1, 4)]
    taken.take_over({"scn": str(begin), "commit_scn": f"{found[1][0]}:1:"})
    assert taken.keys() == [101, 102, 103], "of the commit's number nothing is known"


@pytest.mark.long
def test_threads_that_have_come_to_different_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Scene(tmp_path, OracleDatabase(threads=2)) as scene:
        taken = Taken(scene, tmp_path)
        begin = scene.database.clock.scn
        first, second, third, fourth = (taken.write(100 + number, 1 + number % 2) for number in range(4))
        taken.take_over({"scn": str(begin), "commit_scn": f"{third[0]}:1:{third[1]},{second[0]}:2:{second[1]}"})
        assert taken.keys() == [103]
        assert "comes again" in capsys.readouterr().out
        taken.take_over({"scn": str(begin), "commit_scn": f"{third[0]}:1:{third[1]}"})
        assert taken.keys() == [100, 101, 103], "nothing is known of the other thread"
        assert fourth[0] > first[0]


def test_positions_that_the_database_does_not_have(taken: Taken) -> None:
    database = taken.scene.database
    scn, xid = taken.write(100)
    future = database.clock.scn + 1000
    with pytest.raises(OffsetError, match="lies in the future"):
        taken.take_over({"scn": str(scn), "commit_scn": f"{future}:1:{xid}"})
    for _ in range(4):
        database.switch_log()
    for log in database.threads[1].logs:
        database.delete_archived(1, log.sequence)
    with pytest.raises(LogGoneError, match="the oldest log begins at"):
        taken.take_over({"scn": str(scn), "commit_scn": f"{scn}:1:{xid}"})
    database.settings.resetlogs = scn + 1
    with pytest.raises(OffsetError, match="opened with RESETLOGS"):
        taken.take_over({"scn": str(scn), "commit_scn": f"{scn}:1:{xid}"})
    assert not taken.checkpoint.is_used()


def test_what_is_handed_back_is_what_came(taken: Taken, capsys: pytest.CaptureFixture[str]) -> None:
    begin = taken.scene.database.clock.scn
    scn, xid = taken.write(100)
    taken.take_over({"scn": str(begin), "commit_scn": f"{scn}:1:{xid}"})
    stores = Stores(str(taken.store), str(taken.history))
    export_offsets(taken.file, None, stores, True)
    fields = find_offset(FileOffsets(taken.store), "p").fields
    assert fields == {"scn": str(begin - 1), "commit_scn": f"{scn}:1:{xid}", "snapshot_scn": str(begin - 1)}
    records = list(FileHistory(taken.history).read())
    assert [record["schemaName"] for record in records] == ["S"]
    taken.take_over(fields, history=True)
    assert "dictionary has now" not in capsys.readouterr().out.rpartition("Debezium's offset was written")[2]
    columns = [*COLUMNS, column("MORE", "NUMBER(5,0)")]
    taken.scene.database.ddl(taken.scene.table, 'ALTER TABLE "S"."T" ADD ("MORE" NUMBER(5,0))', columns=columns)
    with pytest.raises(OffsetError, match=r"The table S\.T was altered"):
        taken.take_over(fields, history=True)


@pytest.mark.long
def test_a_query_is_moved(taken: Taken) -> None:
    found = [taken.write(100 + number) for number in range(3)]
    move(taken.file, None, str(found[0][0]), True)
    assert taken.keys() == [101, 102]
    move(taken.file, None, None, True)
    taken.write(103)
    assert taken.keys() == [103]
    for text, problem in (("16/B374D848", "is not a position"), (str(10**12), "lies in the future")):
        with pytest.raises(OffsetError, match=problem):
            move(taken.file, None, text, True)


@pytest.mark.long
def test_an_incremental_snapshot_goes_on(taken: Taken) -> None:
    snapshot = DebeziumSnapshot((AskedTable("ORCLPDB1.S.T"),), "ask", (Decimal(15),), (Decimal(19),))
    begin = taken.scene.database.clock.scn
    scn, xid = taken.write(100)
    fields = {"scn": str(begin), "commit_scn": f"{scn}:1:{xid}", "snapshot": "INCREMENTAL", **snapshot.to_fields()}
    taken.take_over(fields)
    assert taken.keys("r") == [16, 17, 18, 19]


@pytest.mark.parametrize(
    ("adapter", "more"),
    [
        (
            "olr",
            {"openlogreplicator_source": "S", "openlogreplicator_host": "h", "openlogreplicator_port": "9000"},
        ),
        ("xstream", {"xstream_out_server_name": "S", "xstream_class_path": "/x.jar"}),
    ],
)
def test_other_adapters_are_refused(adapter: str, more: dict[str, str], tmp_path: Path) -> None:
    with Scene(tmp_path, adapter=adapter) as scene:
        taken = Taken(scene, tmp_path, **more)
        del taken.options["log.mining.poll.interval.ms"]
        pipeline_file(taken.directory, taken.options)
        with pytest.raises(OffsetError, match="can't be taken over or handed back"):
            taken.take_over({"scn": "5"})
