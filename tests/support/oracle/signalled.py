"""A scene with a signal table."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.support.inprocess import InProcess
from tests.support.oracle.model.tables import Table, column
from tests.support.oracle.scene import COLUMNS, SCHEMA, Rows, Scene

SIGNALS = "G"
PDB = "ORCLPDB1"
NOTIFICATIONS = "told"


class Signalled:
    """A scene with a table of signals, and a query that takes them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        with scene.database.lock:
            self.other = scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"], logged=False)
            columns = [column("ID", "VARCHAR2(42)", nullable=False), column("TYPE", "VARCHAR2(32)")]
            columns.append(column("DATA", "VARCHAR2(2048)"))
            self.signals: Table = scene.database.create_table(SCHEMA, SIGNALS, columns, ["ID"], logged=False)
        with scene.change() as transaction:
            transaction.insert(self.other, ID=Decimal(1), V=Decimal(1), PAD="other")
        self.options = {
            "signal_data_collection": f"{PDB}.{SCHEMA}.{SIGNALS}",
            "notification_enabled_channels": "sink",
            "notification_sink_topic_name": NOTIFICATIONS,
        }
        self._sent = 0

    def send(self, kind: str, **data: Any) -> None:
        self._sent += 1
        with self.scene.change() as transaction:
            transaction.insert(self.signals, ID=f"s{self._sent}", TYPE=kind, DATA=json.dumps(data))

    def query(self, **more: str) -> tuple[InProcess, Rows]:
        query = self.scene.query(snapshot_mode="no_data", **self.options, **more)
        return query, query.drain()

    def after(self, query: InProcess) -> Rows:
        """Return what comes until nothing else does."""
        rows: Rows = []
        for _ in range(4):
            rows += query.drain()
        return rows


def read(rows: Rows) -> list[tuple[str, int]]:
    """Return the tables and keys of read events."""
    return sorted((row["table"], json.loads(row["value"])["after"]["ID"]) for row in rows if row["op"] == "r")


def told(rows: Rows) -> list[dict[str, Any]]:
    return [json.loads(row["value"]) for row in rows if row["topic"] == NOTIFICATIONS]
