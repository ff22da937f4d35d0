"""``floodmark offsets`` on MySQL and MariaDB, with offsets as Debezium has them, made from what the server shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets, move
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.offsets import StoredOffset
from floodmark.errors import FloodmarkError, OffsetError
from floodmark.spark.checkpoint import Checkpoint
from tests.support.handed_over import pipeline_file
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "moved"


class Taken:
    """A database whose log Debezium might have read, its files, and a pipeline."""

    def __init__(self, server: MysqlServer, directory: Path) -> None:
        self.server = server
        self.directory = directory / "pipeline"
        self.directory.mkdir()
        self.store = self.directory / "offsets.dat"
        self.history = self.directory / "history.dat"
        self.options = {
            **server.options(),
            "topic.prefix": "test",
            "state.dir": str(directory / "state"),
            "database.include.list": DATABASE,
            "snapshot.mode": "no_data",
            "include.schema.changes": "false",
        }
        self.file = pipeline_file(self.directory, self.options)
        server.execute(f"CREATE DATABASE {DATABASE}")
        server.execute(f"CREATE TABLE {DATABASE}.t (id integer PRIMARY KEY, v varchar(20))")

    @property
    def mariadb(self) -> bool:
        """Whether the server is MariaDB."""
        return self.server.flavor == "mariadb"

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.server.connect(None) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def end(self) -> dict[str, Any]:
        """Return the offset that Debezium has at the end of the log."""
        status = "MASTER" if self.mariadb else "BINARY LOG"
        file, offset, *_ = self.rows(f"SHOW {status} STATUS")[0]
        variable = "gtid_binlog_pos" if self.mariadb else "gtid_executed"
        gtids = str(self.rows(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")
        return {"file": file, "pos": offset, **({"gtids": gtids} if gtids else {})}

    def insert(self, *ids: int) -> None:
        """Insert rows in one transaction, each in an event of its own."""
        with self.server.connect(DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
            for one in ids:
                cursor.execute("INSERT INTO t (id, v) VALUES (%s, 'x')", [one])
            connection.commit()

    def begin_of_transaction(self, after: Mapping[str, Any]) -> int:
        """Return where the event lies from which Debezium counts in the transaction that follows a place."""
        events = self.rows(f"SHOW BINLOG EVENTS IN '{after['file']}' FROM {after['pos']}")
        kinds = [(int(offset), str(kind)) for _, offset, kind, *_ in events]
        return next(offset for offset, kind in kinds if kind == ("Gtid" if self.mariadb else "Query"))

    def take_over(self, fields: Mapping[str, Any], history: bool = False) -> None:
        """Import an offset."""
        offset = StoredOffset("reference", {"server": "test"}, dict(fields))
        FileOffsets(self.store, "test").write(offset.key, offset.value)
        import_offsets(self.file, None, Stores(str(self.store), str(self.history) if history else None), True)

    @property
    def checkpoint(self) -> Checkpoint:
        """The pipeline's checkpoint."""
        return Checkpoint(str(self.directory / "checkpoint"))

    def events(self) -> list[dict[str, Any]]:
        """Let a query go on from the checkpoint, and return the rows that its changes leave."""
        query = InProcess(self.options, self.checkpoint.delivered())
        rows = query.drain()
        query.stop()
        self.checkpoint.go_on_from(query.offset)
        events = [json.loads(row["value"] or "null") for row in rows]
        return [event["after"] for event in events if event is not None and "after" in event]

    def ids(self) -> list[int]:
        """Let a query go on, and return the keys of its changes."""
        return [event["id"] for event in self.events()]


@pytest.fixture(params=["mysql", "mariadb"])
def taken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Taken]:
    server = request.getfixturevalue(request.param)
    yield Taken(server, tmp_path)
    server.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.long
def test_a_query_goes_on_from_debeziums_offset(taken: Taken) -> None:
    start = taken.end()
    taken.insert(1, 2, 3)
    taken.insert(4)
    begin = taken.begin_of_transaction(start)
    # From there Debezium counts: BEGIN, or MariaDB's GTID; then for each row a table map and the rows.
    for events, rows, expected in ((0, 0, [1, 2, 3, 4]), (3, 0, [2, 3, 4]), (4, 1, [2, 3, 4]), (5, 0, [3, 4])):
        passed = {name: count for name, count in (("event", events), ("row", rows)) if count}
        taken.take_over({**start, "pos": begin, **passed})
        assert taken.ids() == expected, (events, rows)
    taken.take_over(taken.end())
    taken.insert(5)
    assert taken.ids() == [5]


@pytest.mark.long
def test_structures_come_from_the_history(taken: Taken) -> None:
    start = taken.end()
    taken.insert(1)
    taken.server.execute(f"ALTER TABLE {DATABASE}.t CHANGE v w varchar(20), ADD more integer FIRST")
    with pytest.raises(OffsetError, match="a statement has altered tables"):
        taken.take_over(start)
    records = [
        {
            "databaseName": DATABASE,
            "ddl": f"CREATE DATABASE {DATABASE} CHARSET utf8mb4",
            "position": {**start, "pos": 4},
        },
        {
            "databaseName": DATABASE,
            "ddl": "CREATE TABLE t (id integer PRIMARY KEY, v varchar(20))",
            "position": {**start, "pos": 4},
        },
        {
            "databaseName": DATABASE,
            "ddl": "ALTER TABLE t CHANGE v w varchar(20), ADD more integer FIRST",
            "position": taken.end(),
        },
    ]
    lines = [json.dumps({"source": {"server": "test"}, "tableChanges": [], **record}) for record in records]
    taken.history.write_text("\n".join(lines), encoding="utf-8")
    taken.take_over(start, history=True)
    taken.server.execute(f"INSERT INTO {DATABASE}.t VALUES (7, 2, 'y')")
    assert taken.events() == [{"id": 1, "v": "x"}, {"more": 7, "id": 2, "w": "y"}]
    taken.history.write_text("{}\n", encoding="utf-8")
    with pytest.raises(OffsetError, match=r"Line 1 of the file .* is no record"):
        taken.take_over(start, history=True)


def test_offsets_that_can_not_be_taken_over(taken: Taken) -> None:
    start = taken.end()
    taken.insert(1)
    by_file = {name: value for name, value in start.items() if name != "gtids"}
    other = "9-99-12345" if taken.mariadb else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    base = str(start["file"]).rpartition(".")[0]
    refused = [
        ({**start, "snapshot": "INITIAL"}, "has not delivered a change since its snapshot"),
        ({"lsn": 5}, "not an offset of Debezium's connector"),
        ({**start, "gtids": f"{start['gtids']},{other}"} if "gtids" in start else {"lsn": 5}, "lacks|not an offset"),
        ({**by_file, "file": f"{base}.999999"}, "no binlog file number 999999"),
        ({**by_file, "pos": start["pos"] + 3}, "No event begins at offset"),
        ({**by_file, "pos": 1 << 31}, "file ends at"),
        ({**by_file, "file": f"other.{str(start['file']).rpartition('.')[2]}"}, "no binlog file other"),
    ]
    for offset, text in refused:
        with pytest.raises(FloodmarkError, match=text):
            taken.take_over(offset)
    assert not (taken.directory / "checkpoint").exists()
    taken.take_over(by_file)
    assert taken.ids() == [1]
    taken.server.purge_old_logs()
    with pytest.raises(FloodmarkError, match="purged or removed"):
        taken.take_over(by_file)


@pytest.mark.long
def test_a_query_is_moved(taken: Taken) -> None:
    places = []
    for number in range(4):
        places.append(taken.end())
        taken.insert(number)
    move(taken.file, None, f"{places[1]['file']}:{places[1]['pos']}", True)
    assert taken.ids() == [1, 2, 3]
    if "gtids" in places[2]:
        move(taken.file, None, places[2]["gtids"], True)
        assert taken.ids() == [2, 3]
    taken.insert(4)
    move(taken.file, None, None, True)
    taken.insert(5)
    query = InProcess(taken.options, taken.checkpoint.delivered())
    rows = query.drain()
    query.stop()
    assert sum("floodmark offsets skip-to-latest" in str(row["value"]) for row in rows) == 1, "the gap is told once"
    assert [json.loads(row["value"])["after"]["id"] for row in rows if row["table"] == "t"] == [5]
    for text in (f"{places[1]['file']}:{1 << 31}", "16/B374D848", f"{places[1]['file']}:{places[1]['pos'] + 1}"):
        with pytest.raises(FloodmarkError):
            move(taken.file, None, text, True)


@pytest.mark.long
def test_a_query_hands_back(taken: Taken) -> None:
    start = taken.end()
    taken.insert(1, 2, 3)
    begin = taken.begin_of_transaction(start)
    stores = Stores(str(taken.store), str(taken.history))
    for events in (0, 3, 5):
        taken.take_over({**start, "pos": begin, **({"event": events} if events else {})})
        before = taken.checkpoint.delivered()
        export_offsets(taken.file, None, stores, True)
        (written,) = [json.loads(value) for value in FileOffsets(taken.store).read().values() if value]
        assert written.get("event", 0) == events
        if events:
            assert written["pos"] == begin
        import_offsets(taken.file, None, stores, True)
        after = taken.checkpoint.delivered()
        assert before is not None
        assert after is not None
        assert after["log"] == before["log"]
