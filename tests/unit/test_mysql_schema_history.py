from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from floodmark.capture.store import SCHEMA_HISTORY, SegmentStore
from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema_history import store as history
from floodmark.connectors.mysql.schema_history.records import HistoryEntry
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.errors import SchemaHistoryError, StateDirError

START = Schema({"d": Charset("utf8mb4", "utf8mb4_bin")})


class Writer:
    """Writes statements into a history, each at the next position."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.history = SchemaHistory(StateDirFiles(str(directory), "owner"), "prefix")
        self.schema = START
        self.schemas = [START]
        self.history.begin(place(0), START)

    def write(self, *texts: str) -> None:
        for text in texts:
            applied = statements.apply(self.schema, text, Session("d"), Server())
            entry = HistoryEntry(place(len(self.schemas)), {"file": "b.1", "pos": 4}, 5, text, "d", applied)
            self.history.append(entry, self.schema)
            self.schema = applied.schema
            self.schemas.append(self.schema)

    @property
    def files(self) -> list[Path]:
        return sorted((self.directory / "owner" / SCHEMA_HISTORY).iterdir())

    def reopened(self) -> SchemaHistory:
        return SchemaHistory(StateDirFiles(str(self.directory), "owner"), "prefix")


def place(number: int) -> str:
    return f"00{number:08X}-0000-0000"


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    found = Writer(tmp_path)
    found.write(
        "CREATE TABLE a (id INT PRIMARY KEY, e ENUM('x','y''z') DEFAULT 'x' COMMENT 'é')",
        "CREATE TABLE b (id INT, UNIQUE (id))",
        "RENAME TABLE a TO c, b TO a",
        "CREATE UNIQUE INDEX i ON c (e)",
        "CREATE DATABASE other CHARACTER SET latin1",
        "CREATE TABLE other.t (v VARCHAR(3))",
        "DROP TABLE a",
        "DROP DATABASE other",
    )
    return found


def test_the_structures_at_every_position_come_back(writer: Writer) -> None:
    for number in reversed(range(len(writer.schemas))):
        assert writer.reopened().load(place(number)) == writer.schemas[number]


def test_what_came_later_makes_way_for_another_reading_of_the_log(writer: Writer) -> None:
    again = writer.reopened()
    again.load(place(2))
    assert len(writer.files) == 3
    applied = statements.apply(writer.schemas[2], "DROP TABLE a", Session("d"), Server())
    again.append(HistoryEntry(place(3), {}, 5, "DROP TABLE a", "d", applied), writer.schemas[2])
    assert writer.reopened().load(place(9)) == applied.schema


def test_records_are_debezium_s(writer: Writer) -> None:
    lines = [json.loads(line) for line in writer.files[3].read_bytes().splitlines()[:-1]]
    own = lines[0].pop("floodmark")
    assert set(own) == {"after", "dropped", "tables"}
    columns: list[dict[str, Any]] = lines[0]["tableChanges"][0]["table"].pop("columns")
    assert lines[0] == {
        "source": {"server": "prefix"},
        "position": {"file": "b.1", "pos": 4},
        "ts_ms": 5,
        "databaseName": "d",
        "ddl": "RENAME TABLE a TO c",
        "tableChanges": [
            {
                "type": "ALTER",
                "id": '"d"."c"',
                "previousId": '"d"."a"',
                "table": {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": ["id"], "attributes": []},
                "comment": None,
            }
        ],
    }
    assert columns[0] == {
        "name": "id",
        "jdbcType": 4,
        "typeName": "INT",
        "typeExpression": "INT",
        "charsetName": None,
        "position": 1,
        "optional": False,
        "autoIncremented": False,
        "generated": False,
        "comment": None,
        "hasDefaultValue": False,
        "enumValues": [],
    }
    assert (columns[1]["comment"], columns[1]["defaultValueExpression"]) == ("é", "x")
    assert columns[1]["enumValues"] == ["'x'", "'y''z'"]
    dropped = json.loads(writer.files[7].read_bytes().splitlines()[0])
    assert dropped["tableChanges"] == [{"type": "DROP", "id": '"d"."a"'}]


def test_the_history_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_STATEMENTS_PER_IMAGE", 3)
    writer = Writer(tmp_path)
    writer.write("CREATE TABLE t (a INT)", *(f"ALTER TABLE t ADD b{number} INT" for number in range(6)))
    assert writer.reopened().load(place(7)) == writer.schemas[7]
    assert writer.reopened().load(place(5)) == writer.schemas[5]
    writer.write("ALTER TABLE t ADD c INT")
    files = len(writer.files)
    writer.history.forget(place(5))
    assert len(writer.files) < files
    assert writer.reopened().load(place(5)) == writer.schemas[5]
    with pytest.raises(SchemaHistoryError, match="does not reach back"):
        writer.reopened().load(place(1))


def test_forgetting_keeps_what_is_needed(writer: Writer) -> None:
    writer.history.forget(place(3))
    assert writer.reopened().load(place(3)) == writer.schemas[3]


def test_a_missing_history_is_an_error_with_ways_out(tmp_path: Path) -> None:
    with pytest.raises(SchemaHistoryError, match=r"snapshot\.mode=recovery"):
        SchemaHistory(StateDirFiles(str(tmp_path), "owner"), "prefix").load(place(1))


def test_a_lost_file_is_noticed(writer: Writer) -> None:
    writer.files[2].unlink()
    with pytest.raises(SchemaHistoryError, match="which is missing"):
        writer.reopened().load(place(8))
    assert writer.reopened().load(place(1)) == writer.schemas[1]


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff\xfe" * 9])
def test_a_damaged_file_is_an_error_that_names_it(writer: Writer, damage: bytes) -> None:
    writer.files[2].write_bytes(damage)
    with pytest.raises(SchemaHistoryError, match=writer.files[2].name):
        writer.reopened().load(place(8))


def test_one_flipped_bit_is_noticed(writer: Writer) -> None:
    content = bytearray(writer.files[2].read_bytes())
    content[20] ^= 1
    writer.files[2].write_bytes(content)
    with pytest.raises(SchemaHistoryError, match="checksum"):
        writer.reopened().load(place(8))


def test_beginning_anew_forgets_everything(writer: Writer) -> None:
    writer.history.begin(place(20), writer.schema)
    assert len(writer.files) == 1
    assert writer.reopened().load(place(20)) == writer.schema


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "owner").write_text("a file")
    with pytest.raises(StateDirError, match="schema history"):
        SchemaHistory(StateDirFiles(str(tmp_path), "owner"), "prefix").begin(place(0), START)


def test_the_run_after_keeps_the_history(writer: Writer) -> None:
    store = SegmentStore(str(writer.directory), "owner", "run-2")
    store.create()
    store.take_over()
    assert writer.reopened().load(place(8)) == writer.schemas[8]
