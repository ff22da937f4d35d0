"""``floodmark offsets`` on a PostgreSQL server, with offsets made from what its slot sends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets, move, reset, show_offsets
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.offsets import StoredOffset
from floodmark.errors import CheckpointError, OffsetError
from floodmark.spark.checkpoint import Checkpoint
from tests.conftest import Source
from tests.support.cli import CLI
from tests.support.driver import Driver
from tests.support.handed_over import pipeline_file
from tests.support.inprocess import InProcess
from tests.support.patience import within
from tests.support.sink import read_batches

NAMES = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "T": "TRUNCATE"}
PG_EPOCH_US = 946_684_800_000_000


class Message(NamedTuple):
    """A message of the slot: its LSN as Debezium takes it, and what it is."""

    lsn: int
    kind: str
    content: bytes


class Taken:
    """A source with a slot that Debezium might have read, its file of offsets, and a pipeline."""

    def __init__(self, source: Source, directory: Path) -> None:
        self.source = source
        self.slot = source.options["slot.name"]
        self.options = {**source.options, "snapshot.mode": "no_data"}
        self.directory = directory / "pipeline"
        self.directory.mkdir()
        self.store = self.directory / "offsets.dat"
        self.file = pipeline_file(self.directory, self.options)
        source.execute(
            "CREATE TABLE t (id integer PRIMARY KEY, v text)",
            "CREATE TABLE other (id integer PRIMARY KEY)",
            "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
            f"SELECT pg_create_logical_replication_slot('{self.slot}', 'pgoutput')",
        )

    def one(self, statement: str) -> Any:
        """Return the value that a query has."""
        with psycopg.connect(self.source.conninfo, autocommit=True) as conn:
            row = conn.execute(statement.encode()).fetchone()
        return None if row is None else row[0]

    def messages(self) -> list[Message]:
        """Return what the slot sends, without advancing it."""
        with psycopg.connect(self.source.conninfo, autocommit=True) as conn:
            rows = conn.execute(
                "SELECT lsn - '0/0', data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, "
                "'proto_version', '1', 'publication_names', 'dbz_publication')",
                [self.slot],
            ).fetchall()
        return [Message(int(lsn), chr(data[0]), bytes(data)) for lsn, data in rows]

    def store_offset(self, fields: Mapping[str, Any], name: str = "reference", server: str = "test") -> None:
        """Write an offset as Debezium does."""
        offset = StoredOffset(name, {"server": server}, dict(fields))
        FileOffsets(self.store, "test").write(offset.key, offset.value)

    def take_over(self, yes: bool = True) -> None:
        """Import the offset."""
        import_offsets(self.file, None, Stores(str(self.store)), yes)

    @property
    def checkpoint(self) -> Checkpoint:
        """The pipeline's checkpoint."""
        return Checkpoint(str(self.directory / "checkpoint"))

    def events(self) -> list[tuple[str, int]]:
        """Let a query go on from the checkpoint, and return operation and key of its events. It confirms nothing."""
        query = InProcess(self.options, self.checkpoint.delivered())
        query.reader.prepareForTriggerAvailableNow()
        rows = []
        while (end := query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())) != query.offset:
            rows += query.run(end)
            query.offset = end
        query.stop()
        events = [json.loads(row["value"] or "null") for row in rows]
        changes = [event for event in events if event is not None and "op" in event]
        return [(event["op"], (event["after"] or event["before"] or {"id": 0})["id"]) for event in changes]


@pytest.fixture
def taken(source: Source, tmp_path: Path) -> Taken:
    return Taken(source, tmp_path)


def debezium_offsets(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the offset that Debezium has after each change and each commit of a slot's messages."""
    found: list[dict[str, Any]] = []
    commit: int | None = None
    xid = micros = 0
    for one in messages:
        if one.kind == "B":
            micros = int.from_bytes(one.content[9:17], "big") + PG_EPOCH_US
            xid = int.from_bytes(one.content[17:21], "big")
        kind = NAMES.get(one.kind, "COMMIT" if one.kind == "C" else "")
        if one.kind == "C":
            commit = one.lsn
        if kind:
            offset = {"lsn": one.lsn, "lsn_proc": one.lsn, "messageType": kind, "txId": xid, "ts_usec": micros}
            found.append(offset if commit is None else {**offset, "lsn_commit": commit})
    return found


@pytest.mark.long
def test_a_query_goes_on_after_each_change(taken: Taken) -> None:
    taken.source.execute(
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO other VALUES (100)",
        # Rows of one COPY have one LSN; a change of the key makes three records.
        "BEGIN; INSERT INTO t VALUES (2, 'b'); UPDATE t SET v = 'c' WHERE id = 1; DELETE FROM t WHERE id = 2; "
        "UPDATE t SET id = 3 WHERE id = 1; COMMIT",
        "INSERT INTO t SELECT n, 'x' FROM generate_series(10, 12) n",
        "TRUNCATE t, other",
    )
    whole = [("c", 1), ("c", 100), ("c", 2), ("u", 1), ("d", 2), ("d", 1), ("c", 3), ("c", 10), ("c", 11), ("c", 12)]
    offsets = debezium_offsets(taken.messages())
    # For each offset: how many events Debezium has certainly delivered.
    done = [1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 9, 10, 10]
    assert len(offsets) == len(done) + 1 + 1, "a truncate and its commit follow"
    for offset, count in zip(offsets, done, strict=False):
        taken.store_offset(offset)
        taken.take_over()
        assert taken.events()[: len(whole) - count] == whole[count:], offset


def test_nothing_is_written_without_yes(taken: Taken) -> None:
    taken.source.execute("INSERT INTO t VALUES (1, 'a')")
    taken.store_offset(debezium_offsets(taken.messages())[0])
    before = files(taken.directory)
    taken.take_over(yes=False)
    show_offsets(taken.file, None, Stores(str(taken.store)), True)
    assert files(taken.directory) == before
    taken.take_over()
    before = files(taken.directory)
    taken.take_over(yes=False)
    export_offsets(taken.file, None, Stores(str(taken.store)), False)
    move(taken.file, None, None, False)
    reset(taken.file, None, False)
    assert files(taken.directory) == before


def test_an_offset_of_a_snapshot(taken: Taken) -> None:
    end = taken.one("SELECT pg_current_wal_lsn() - '0/0'")
    snapshot = {"lsn": int(end), "txId": 5, "ts_usec": 1, "snapshot": "INITIAL", "snapshot_completed": False}
    taken.store_offset({**snapshot, "last_snapshot_record": False})
    with pytest.raises(OffsetError, match="has not finished its snapshot"):
        taken.take_over()
    taken.source.execute("INSERT INTO t VALUES (1, 'a')")
    taken.store_offset({**snapshot, "last_snapshot_record": True, "snapshot_completed": True})
    taken.take_over()
    assert taken.events() == [("c", 1)]


def test_positions_that_can_not_be_taken_over(taken: Taken) -> None:
    taken.source.execute("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')")
    offsets = debezium_offsets(taken.messages())
    change, commit = offsets[2], offsets[1]
    future = int(taken.one("SELECT pg_current_wal_lsn() - '0/0'")) + (1 << 30)
    refused: list[tuple[dict[str, Any], str]] = [
        ({**commit, "lsn": future, "lsn_proc": future, "lsn_commit": future}, "lies in the future"),
        ({**change, "txId": change["txId"] + 1}, "sends the transaction"),
        ({**change, "ts_usec": change["ts_usec"] + 1}, "sends the transaction"),
        ({**commit, "ts_usec": commit["ts_usec"] + 1}, "No commit of the time"),
        ({"file": "binlog.000001", "pos": 4}, "not an offset of Debezium's PostgreSQL connector"),
    ]
    for offset, text in refused:
        taken.store_offset(offset)
        with pytest.raises(OffsetError, match=text):
            taken.take_over()
    assert not (taken.directory / "checkpoint").exists()
    taken.store_offset(commit)
    with psycopg.connect(taken.source.conninfo, autocommit=True) as conn:
        conn.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", [taken.slot])
    for offset in (commit, change, {**commit, "txId": None, "ts_usec": None}):
        taken.store_offset(offset)
        with pytest.raises(OffsetError, match="beyond the position"):
            taken.take_over()
    taken.source.execute(f"SELECT pg_drop_replication_slot('{taken.slot}')")
    with pytest.raises(OffsetError, match="no replication slot"):
        taken.take_over()


def test_the_right_offset_is_taken(taken: Taken) -> None:
    taken.source.execute("INSERT INTO t VALUES (1, 'a')")
    (offset, _) = debezium_offsets(taken.messages())
    with pytest.raises(OffsetError, match="Cannot read"):
        taken.take_over()
    taken.store.write_bytes(b"")
    with pytest.raises(OffsetError, match="holds none at all"):
        taken.take_over()
    taken.store_offset(offset, server="elsewhere")
    with pytest.raises(OffsetError, match=r"It holds: connector 'reference', topic\.prefix 'elsewhere'"):
        taken.take_over()
    taken.store_offset(offset)
    taken.store_offset(offset, name="another")
    with pytest.raises(OffsetError, match=r"more than one offset.*'another'.*'reference'"):
        taken.take_over()
    import_offsets(taken.file, None, Stores(str(taken.store), name="another"), True)
    taken.store.write_bytes(taken.store.read_bytes()[:-9])
    with pytest.raises(OffsetError, match="ends too early"):
        taken.take_over()


def test_a_query_that_runs_is_left_alone(taken: Taken) -> None:
    taken.source.execute("INSERT INTO t VALUES (1, 'a')")
    taken.store_offset(debezium_offsets(taken.messages())[1])
    query = InProcess(taken.options)
    query.step()
    taken.checkpoint.go_on_from(query.offset)
    commands: tuple[Callable[[], None], ...] = (
        taken.take_over,
        lambda: move(taken.file, None, None, True),
        lambda: reset(taken.file, None, True),
    )
    for command in commands:
        with pytest.raises(OffsetError, match="The query is running"):
            command()
    query.stop()
    move(taken.file, None, None, True)


def test_a_query_is_moved(taken: Taken, capsys: pytest.CaptureFixture[str]) -> None:
    lsns = []
    for number in range(4):
        lsns.append(str(taken.one("SELECT pg_current_wal_lsn()")))
        taken.source.execute(f"INSERT INTO t VALUES ({number}, 'a')")
    move(taken.file, None, lsns[1], True)
    assert taken.events() == [("c", 1), ("c", 2), ("c", 3)]
    first = taken.checkpoint.delivered()
    move(taken.file, None, lsns[3], True)
    assert "are lost" in capsys.readouterr().out
    copies = list(taken.directory.glob("checkpoint.backup-*"))
    assert Checkpoint(str(copies[0])).delivered() == first
    query = InProcess(taken.options, taken.checkpoint.delivered())
    rows = query.drain()
    assert len([row for row in rows if "floodmark offsets set" in str(row["value"])]) == 1, "the gap is told once"
    query.stop()
    for text, problem in (
        ("FFFF/0", "lies in the future"),
        ("0/10", "beyond the position"),
        ("binlog.000001:4", "is not a position"),
    ):
        with pytest.raises(OffsetError, match=problem):
            move(taken.file, None, text, True)


def test_a_query_skips_to_the_end_and_begins_anew(taken: Taken) -> None:
    move(taken.file, None, str(taken.one("SELECT pg_current_wal_lsn()")), True)
    taken.source.execute("INSERT INTO t VALUES (1, 'a')")
    move(taken.file, None, None, True)
    taken.source.execute("INSERT INTO t VALUES (2, 'b')")
    assert taken.events() == [("c", 2)]
    reset(taken.file, None, True)
    assert not taken.checkpoint.is_used()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        reset(taken.file, None, True)


@pytest.mark.long
def test_a_query_hands_back_from_inside_of_a_transaction(taken: Taken) -> None:
    taken.source.execute(
        "INSERT INTO other VALUES (100)",
        "BEGIN; INSERT INTO t VALUES (1, 'a'); INSERT INTO t SELECT n, 'x' FROM generate_series(10, 12) n; "
        "UPDATE t SET v = 'b'; COMMIT",
    )
    known = debezium_offsets(taken.messages())
    commit = int.from_bytes(next(one for one in reversed(taken.messages()) if one.kind == "B").content[1:9], "big")
    for count, expected in ((0, None), (1, known[2]), (4, known[5]), (6, known[7])):
        move(taken.file, None, f"{commit:016X}-{count:08X}", True)
        taken.store_offset({})
        export_offsets(taken.file, None, Stores(str(taken.store)), True)
        (written,) = [json.loads(value) for value in FileOffsets(taken.store).read().values() if value]
        if expected is None:
            assert written["lsn_proc"] == written["lsn_commit"] == commit
        else:
            assert {**written, "lsn_commit": 0} == {**expected, "lsn_commit": 0}
        taken.take_over()
        position = taken.checkpoint.delivered()
        assert position is not None
        assert position["log"] == f"{commit:016X}-{count:08X}"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_spark_goes_on_from_the_checkpoint(taken: Taken) -> None:
    taken.source.execute("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')")
    taken.store_offset(debezium_offsets(taken.messages())[1])
    taken.take_over()
    for number in (2, 3):
        query = Driver(taken.options, taken.directory, available_now=True)
        assert query.wait(within(120)) == 0, query.log()[-4000:]
        rows = [row for _, found in read_batches(query.out, ["table", "value"]) for row in found if row["table"] == "t"]
        assert sorted(json.loads(row["value"])["after"]["id"] for row in rows) == list(range(2, number + 1))
        # A query that has run is moved back and forth, and Spark goes on from there, too.
        taken.source.execute(f"INSERT INTO t VALUES ({number + 1}, 'c')")
        move(taken.file, None, str(taken.one("SELECT confirmed_flush_lsn FROM pg_replication_slots")), True)


def test_the_commands_print_one_line_for_an_error(taken: Taken) -> None:
    command = [*CLI, "offsets", "import", str(taken.file), "--debezium", str(taken.store)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: Cannot read the file")
    assert done.stderr.count("\n") == 1


def files(directory: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory."""
    return {str(one): one.read_bytes() for one in directory.rglob("*") if one.is_file()}
