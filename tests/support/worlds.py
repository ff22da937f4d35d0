"""What may change behind a connection to MySQL and MariaDB: servers, copies of them, and an address that moves."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql

from tests.support.forwarder import Forwarder
from tests.support.inprocess import InProcess
from tests.support.mirrored import MirrorSink
from tests.support.mysql import Flavor, MysqlServer, give_away
from tests.support.patience import within
from tests.support.replication import SETTINGS

KINDS = ("mysql", "mysql-no-gtids", "mariadb")
DATABASE = "shop"
TABLE = f"{DATABASE}.t"
WAIT_S = within(60.0)
ROWS = 1500
WITHOUT_GTIDS: dict[str, str | None] = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}

State = dict[int, int]


def flavor_of(kind: str) -> Flavor:
    """Return the server of a kind of world."""
    return "mariadb" if kind == "mariadb" else "mysql"


def settings_of(kind: str) -> dict[str, str | None]:
    """Return the settings of the servers of a kind of world."""
    return {**SETTINGS[flavor_of(kind)], **(WITHOUT_GTIDS if kind == "mysql-no-gtids" else {})}


class World:
    """A server, the address by which a query knows it, and whatever else comes.

    Args:
        kind: one of ``KINDS``.
        first: the server that the query begins with.
        directory: for state and copies.
        options: more options of the query.

    Attributes:
        here: the server that the address leads to.
        address: the address.
        rows: what the query has delivered.
        query: the running query.
        sink: the mirror that the query keeps; None: its events are compared.
    """

    def __init__(self, kind: str, first: MysqlServer, directory: Path, **options: str) -> None:
        self.kind = kind
        self.first = self.here = first
        self.address = Forwarder(first.port)
        self.rows: list[dict[str, Any]] = []
        self.notes: dict[str, Any] = {}
        self._directory = directory
        self._stack = ExitStack()
        self._stack.callback(self.address.close)
        self._value = 0
        self.options = {
            **first.options(),
            "database.port": str(self.address.port),
            "topic.prefix": "p",
            "state.dir": str(directory / "state"),
            "table.include.list": rf"{DATABASE}\..*",
            "include.schema.changes": "false",
            "tombstones.on.delete": "false",
            "errors.retry.delay.initial.ms": "50",
            "errors.retry.delay.max.ms": "300",
            "binlog.heartbeat.ms": "1000",
            "errors.max.retries": f"{within(200):.0f}",
            **options,
        }
        self.query: InProcess | None = None
        self.sink: MirrorSink | None = None

    @property
    def flavor(self) -> Flavor:
        """The servers' flavor."""
        return flavor_of(self.kind)

    def close(self) -> None:
        """Stop the query and whatever else runs."""
        if self.query is not None:
            self.query.stop()
        self._stack.close()

    def begin(self, rows: int = 3) -> None:
        """Begin a log, and make the table."""
        self.here.execute("RESET MASTER" if self.flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
        self.here.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
        self.make_table()
        values = ", ".join(f"({number}, 0, REPEAT('x', 100))" for number in range(rows))
        self.here.execute(f"INSERT INTO {TABLE} VALUES {values}")

    def make_table(self) -> None:
        """Create the table."""
        self.here.execute(f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v int, pad varchar(100))")

    def start(self, offset: dict[str, Any] | None = None) -> InProcess:
        """Start a query, as a new process does."""
        sink = self.sink
        self.query = InProcess(self.options, offset) if sink is None else sink.start(self.options, offset)
        return self.query

    def stop(self) -> dict[str, Any]:
        """Stop the query; return its offset."""
        assert self.query is not None
        self.query.stop()
        return self.query.offset

    def drain(self) -> None:
        """Deliver all that there is."""
        assert self.query is not None
        self.rows += self.query.drain()

    def write(self, server: MysqlServer | None = None) -> None:
        """Insert a row and change two others, in two transactions."""
        self._value += 1
        value = self._value
        (server or self.here).execute(
            f"INSERT INTO {TABLE} VALUES ({100_000 + value}, {value}, 'new')",
            f"UPDATE {TABLE} SET v = {value} WHERE id < 2",
        )

    def cut(self) -> None:
        """Close the query's connections."""
        self.address.cut()

    def move(self, server: MysqlServer) -> None:
        """Let the address lead to another server."""
        self.here = server
        self.address.lead_to(server.port)

    def another(self, data: Path | None = None, **settings: str | None) -> MysqlServer:
        """Start another server, with a copy of a data directory if one is given."""
        server = MysqlServer(self.flavor, **{**settings_of(self.kind), **settings})
        self._stack.callback(server.close)
        if data is None:
            return server.__enter__()
        shutil.copytree(data, server.data)
        give_away(server.directory)
        server.start()
        return server

    def copy(self) -> Path:
        """Return a copy of the first server's data, which is stopped meanwhile."""
        self.first.stop()
        target = self._directory / "copy"
        shutil.copytree(self.first.data, target)
        self.first.start()
        return target

    def restore(self, data: Path) -> None:
        """Replace the first server's data by a copy."""
        self.first.stop()
        shutil.rmtree(self.first.data)
        shutil.copytree(data, self.first.data)
        give_away(self.first.directory)
        self.first.start()

    def state(self) -> State:
        """Return the table as its server has it; nothing if it is gone."""
        try:
            with self.here.connect() as session, session.cursor() as cursor:
                cursor.execute(f"SELECT id, v FROM {TABLE}")
                return dict(cursor.fetchall())
        except pymysql.err.ProgrammingError:
            return {}

    def delivered(self) -> State:
        """Return the table as the events leave it, in the order of their positions, or as the mirror has it."""
        if self.sink is not None:
            return {key: v for key, v in self.sink.rows(TABLE).items() if v is not None}
        found: State = {}
        for row in sorted(self.rows, key=lambda row: str(row["position"])):
            if row["table"] != "t" or row["value"] is None:
                continue
            value = json.loads(row["value"])
            if row["op"] == "d":
                found.pop(value["before"]["id"], None)
            elif row["op"] == "t":
                found.clear()
            else:
                found[value["after"]["id"]] = value["after"]["v"]
        return found

    def changes(self) -> list[tuple[str, int, int]]:
        """Return operation, key and value of each event that comes from the log, in the order of delivery."""
        found = []
        for row in self.rows:
            if row["table"] == "t" and row["value"] is not None and row["op"] != "r":
                value = json.loads(row["value"])
                state = value["after"] or value["before"]
                found.append((row["op"], state["id"], state["v"]))
        return found


def until(happens: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)
