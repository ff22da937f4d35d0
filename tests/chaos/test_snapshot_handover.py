"""An incremental snapshot that Debezium has begun is finished by a query, and the other way round."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.offsets import find_offset
from floodmark.debezium.snapshot_state import DebeziumSnapshot
from floodmark.spark.checkpoint import Checkpoint
from tests.chaos.test_debezium_handover import once_free
from tests.conformance.debezium.debezium import Debezium
from tests.support.debezium_files import debezium_options
from tests.support.handed_over import Place, pipeline_file, place_on
from tests.support.inprocess import InProcess
from tests.support.mysql import USER
from tests.support.patience import within

ROWS = 6000
PARTS = 40
CHUNK = 100
Key = tuple[Any, ...]


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    # Debezium writes its windows into the table of signals.
    with place_on(
        request.getfixturevalue(request.param), tmp_path / "state", f"GRANT INSERT, DELETE ON handed.* TO '{USER}'@'%'"
    ) as made:
        yield made


class Handed:
    """A source with tables of several kinds of keys, and what reads it."""

    def __init__(self, place: Place, directory: Path) -> None:
        self.database, given = place
        self.directory = directory
        schema = self.database.schema
        self.tables = [f"{schema}.{name}" for name in ("numbered", "named")]
        self.options = {
            **given,
            "snapshot.mode": "no_data",
            "signal.data.collection": f"{schema}.signals",
            "incremental.snapshot.chunk.size": str(CHUNK),
        }
        self.stores = Stores(str(directory / "offsets.dat"), self._history)
        self.file = pipeline_file(directory, self.options)
        with self.database.session() as session:
            session.execute("CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2000))")
            session.execute("CREATE TABLE numbered (id bigint PRIMARY KEY, v integer NOT NULL)")
            session.execute(
                "CREATE TABLE named (part decimal(6,2), name varchar(40), v integer NOT NULL, PRIMARY KEY (part, name))"
            )
            session.execute(f"INSERT INTO numbered SELECT g, 0 FROM ({self.database.numbers}) n", [ROWS])
            text = self.database.text.replace("g", "mod(g, 997)")
            session.execute(
                f"INSERT INTO named SELECT mod(g, {PARTS}) + 0.5, {text}, 0 FROM ({self.database.numbers}) n", [ROWS]
            )
            session.commit()

    @property
    def _history(self) -> str | None:
        return None if self.options["connector"] == "postgres" else str(self.directory / "history.dat")

    def ask(self, number: str) -> None:
        """Send the signal that begins the snapshot."""
        named = self.tables[1].replace(".", r"\\.")
        data = {
            "type": "incremental",
            "data-collections": self.tables,
            "additional-conditions": [{"data-collection": named.replace(r"\\", "\\"), "filter": "part > 10"}],
        }
        with self.database.session() as session:
            session.execute("INSERT INTO signals VALUES (%s, 'execute-snapshot', %s)", [number, json.dumps(data)])
            session.commit()

    def wait_for_stream(self, connector: Debezium) -> None:
        """Wait until a new connector delivers changes: what it hasn't seen before it began, it leaves out."""
        deadline = time.monotonic() + within(60)
        while not any(".numbered" in record.topic for record in connector.records()):
            assert time.monotonic() < deadline, connector.log_text()[-2000:]
            with self.database.session() as session:
                session.execute("UPDATE numbered SET v = v + 1 WHERE id = 5")
                session.commit()
            time.sleep(0.3)

    def change(self, number: int) -> None:
        """Change and remove rows on both sides of where the snapshot is."""
        with self.database.session() as session:
            session.execute("UPDATE numbered SET v = %s WHERE id IN (5, %s)", [number, ROWS - 5])
            session.execute("DELETE FROM numbered WHERE id IN (%s, %s)", [10 + number, ROWS - 10 - number])
            session.commit()

    def wanted(self) -> dict[str, dict[Key, int]]:
        """Return the rows that the snapshot reads, by the names of their tables: their values by their keys."""
        found: dict[str, dict[Key, int]] = {}
        with self.database.session() as session:
            for table, columns, rows in (("numbered", "id", ""), ("named", "part, name", "WHERE part > 10")):
                got = list(session.execute(f"SELECT {columns}, v FROM {table} {rows}"))
                found[table] = {(*map(str, row[:-1]),): int(row[-1]) for row in got}
            session.rollback()
        return found

    def debezium(self, name: str) -> Debezium:
        """Return a connector that goes on from the file of offsets."""
        more = {"snapshot_mode": "no_data", "decimal_handling_mode": "string"}
        return Debezium(debezium_options(self.options, self.directory, **more), self.directory / name)

    def stored(self) -> DebeziumSnapshot | None:
        """Return the incremental snapshot in the file of offsets."""
        return DebeziumSnapshot.from_fields(find_offset(FileOffsets(Path(self.stores.offsets or "")), "test").fields)


class Seen:
    """What readers have delivered one after the other.

    Attributes:
        rows: the last value of each row by its key, by the name of its table.
        reads: the keys of the rows that the last reader has read, in order.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[Key, int]] = {"numbered": {}, "named": {}}
        self.reads: dict[str, list[Key]] = {}

    def after(self, values: Iterable[str | None]) -> Seen:
        """Return what there is after a reader's records."""
        other = Seen()
        other.rows = {table: dict(rows) for table, rows in self.rows.items()}
        other.take(values)
        return other

    def lacks(self, wanted: Mapping[str, Mapping[Key, int]]) -> str:
        """Return what is missing or different; empty: nothing."""
        wrong = {
            table: [key for key, value in rows.items() if self.rows[table].get(key) != value]
            for table, rows in wanted.items()
        }
        extra = set(self.rows["numbered"]) - set(wanted["numbered"])
        return f"{wrong}, not there any more: {extra}"[:400] if extra or any(wrong.values()) else ""

    def take(self, values: Iterable[str | None]) -> None:
        """Take the values of records."""
        self.reads = {"numbered": [], "named": []}
        for event in (json.loads(value or "null") for value in values):
            table = (event or {}).get("source", {}).get("table")
            if table not in self.rows or "op" not in event:
                continue
            row: Mapping[str, Any] = event["after"] or event["before"]
            key = (str(row["id"]),) if table == "numbered" else (str(row["part"]), row["name"])
            if event["op"] == "r":
                self.reads[table].append(key)
            if event["op"] == "d":
                self.rows[table].pop(key, None)
            else:
                self.rows[table][key] = row["v"]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_snapshot_goes_back_and_forth(
    place: Place, tmp_path: Path, kill: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    handed, seen = Handed(place, tmp_path), Seen()
    connector = handed.debezium("first")
    connector.start()
    try:
        handed.wait_for_stream(connector)
        handed.change(1)
        handed.ask("ask-1")
        connector.wait_records(ROWS // 3, within(60))
        if kill:
            os.kill(connector.pid, signal.SIGKILL)
    finally:
        connector.stop()
    seen.take(record.value for record in connector.records())
    begun = handed.stored()
    assert begun is not None, "the snapshot was interrupted"
    assert begun.last is not None
    assert begun.signal == "ask-1"
    handed.change(2)

    once_free(lambda: import_offsets(handed.file, None, handed.stores, True))
    assert f"read on after the key {begun.last[0]}" in capsys.readouterr().out
    checkpoint = Checkpoint(str(tmp_path / "checkpoint"))
    options = {**handed.options, "decimal.handling.mode": "string"}
    query = InProcess(options, checkpoint.delivered())
    rows: list[dict[str, Any]] = []
    for _ in range(30):
        rows += query.step()
        if sum('"op":"r"' in (row["value"] or "") for row in rows) > 200:
            break
    query.stop()
    checkpoint.go_on_from(query.offset)
    seen.take(row["value"] for row in rows)
    assert int(str(begun.last[0])) < min(int(key[0]) for key in seen.reads["numbered"]), "what was delivered isn't read"
    handed.change(3)

    once_free(lambda: export_offsets(handed.file, None, handed.stores, True))
    left = handed.stored()
    assert left is not None, "the query has not finished the snapshot"
    wanted = handed.wanted()
    deadline = time.monotonic() + within(60)
    with handed.debezium("last") as connector:
        while (end := seen.after(record.value for record in connector.records())).lacks(wanted):
            assert time.monotonic() < deadline, end.lacks(wanted)
            time.sleep(0.5)
    if left.last is not None:
        assert int(str(left.last[0])) < min(int(key[0]) for key in end.reads["numbered"]), "only what is left is read"
