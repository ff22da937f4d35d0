"""Debezium's Oracle connector is stopped or killed, and a query goes on from its offset; and the other way round.

Both read a stand-in for Oracle, which Debezium asks through a JDBC driver for it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.offsets import StoredOffset, find_offset
from floodmark.json_data import Json
from floodmark.spark.checkpoint import Checkpoint
from tests.conformance.debezium.debezium import Debezium, oracle_options
from tests.conformance.oracle.record_cases import DRIVER, streams
from tests.support.handed_over import pipeline_file
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.json_lines import JsonServer
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.scene import Scene
from tests.support.patience import within

CHANGES = 3
"""Those of a transaction."""
LAST_SCN = column("LAST_SCN", "NUMBER(19,0)")


class Handed:
    """The stand-in, what reads it, and the numbers of its changes.

    Attributes:
        made: the numbers of the changes that were committed.
    """

    def __init__(self, directory: Path, adapter: str, stack: ExitStack) -> None:
        self.scene = stack.enter_context(Scene(directory, rows=3, adapter=adapter))
        database = self.scene.database
        database.create_table(database.account, "LOG_MINING_FLUSH", [LAST_SCN], logged=False)
        self._front = stack.enter_context(JsonServer(database))
        self._directory = directory
        self.stores = Stores(str(directory / "offsets.dat"), str(directory / "history.dat"))
        self.options = self.scene.options(snapshot_mode="no_data")
        self.file = pipeline_file(directory, self.options)
        self.made: list[int] = []
        self._number = 0

    def change(self, transaction: Transaction) -> int:
        """Insert a row with the next number."""
        self._number += 1
        transaction.insert(self.scene.table, ID=Decimal(1000 + self._number), V=Decimal(self._number), PAD="x")
        return self._number

    def transactions(self, count: int, changes: int = CHANGES) -> None:
        """Commit transactions one after the other."""
        for _ in range(count):
            with self.scene.change() as transaction:
                self.made += [self.change(transaction) for _ in range(changes)]

    def debezium(self, name: str) -> Debezium:
        """Return a connector that goes on from the file of offsets."""
        own = {
            "table.include.list": r"S\..*",
            "topic.prefix": "p",
            "snapshot.mode": "no_data",
            "database.connection.adapter": self.scene.adapter,
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.stores.offsets),
            "offset.flush.interval.ms": "200",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.stores.history),
        }
        output = self._directory / name
        return Debezium({**oracle_options(self._front.port), **own}, output, drivers=[DRIVER])

    def wait_for_stream(self, connector: Debezium) -> None:
        """Wait until a new connector has fixed where it begins, and reads the log from there."""
        deadline = time.monotonic() + within(60)
        while not streams(self.scene.database, None):
            assert time.monotonic() < deadline, connector.log_text()[-2000:]
            time.sleep(0.05)

    @property
    def checkpoint(self) -> Checkpoint:
        """The query's checkpoint."""
        return Checkpoint(str(self._directory / "checkpoint"))

    def query(self) -> list[int]:
        """Let the query go on until nothing is left; return the numbers of what it delivers."""
        query = InProcess(self.options, self.checkpoint.delivered())
        try:
            rows = query.drain()
            query.reader.commit(query.offset)
        finally:
            query.stop()
        self.checkpoint.go_on_from(query.offset)
        return numbers(row["value"] for row in rows)

    def fields(self) -> dict[str, Json]:
        """Return the fields of Debezium's offset."""
        return find_offset(FileOffsets(Path(str(self.stores.offsets))), "p").fields

    def store(self, fields: dict[str, Json]) -> None:
        """Write an offset of Debezium's."""
        offset = StoredOffset("reference", {"server": "p"}, fields)
        FileOffsets(Path(str(self.stores.offsets)), "test").write(offset.key, offset.value)


def numbers(values: Iterable[str | None]) -> list[int]:
    """Return the numbers of the changes in events."""
    events: Iterator[Any] = (json.loads(value or "null") for value in values)
    return [int(event["after"]["V"]) for event in events if event and event.get("op") == "c"]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("adapter", ["logminer", "logminer_unbuffered"])
def test_a_log_goes_back_and_forth(adapter: str, kill: bool, tmp_path: Path) -> None:
    with ExitStack() as stack:
        handed = Handed(tmp_path, adapter, stack)
        connector = handed.debezium("first")
        connector.start()
        try:
            handed.wait_for_stream(connector)
            handed.transactions(5)
            open_one = handed.scene.database.begin()
            waits = [handed.change(open_one)]
            handed.transactions(20)
            connector.wait_for('"op":"c"', within(60), len(handed.made))
            if kill:
                os.kill(connector.pid, signal.SIGKILL)
        finally:
            connector.stop()
        first = numbers(record.value for record in connector.records())
        assert sorted(first) == handed.made
        handed.transactions(4)
        with handed.scene.database.lock:
            waits.append(handed.change(open_one))
            open_one.commit()
            handed.scene.database.background()
        handed.made += waits

        import_offsets(handed.file, None, handed.stores, True)
        second = handed.query()
        again = Counter([*first, *second])
        assert sorted(again) == sorted(handed.made), "none is missing"
        assert not [number for number, count in Counter(second).items() if count > 1]
        if not kill:
            # Debezium's offset of a transaction's last event doesn't have its commit.
            assert {number for number, count in again.items() if count > 1} <= set(first[-CHANGES:])
        open_one = handed.scene.database.begin()
        waits = [handed.change(open_one)]
        handed.transactions(3)
        second += handed.query()

        export_offsets(handed.file, None, handed.stores, True)
        handed.transactions(2)
        with handed.scene.database.lock:
            waits.append(handed.change(open_one))
            open_one.commit()
            handed.scene.database.background()
        handed.made += waits
        with handed.debezium("last") as connector:
            left = set(handed.made) - set(first) - set(second)
            connector.wait_for(f'"after":{{"ID":{1000 + waits[-1]},', within(60))
            last = numbers(record.value for record in connector.records())
        assert left <= set(last)
        assert len(last) <= len(left) + CHANGES, "only the last transaction may come again"
