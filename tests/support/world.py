"""A query, and the world behind its connection, which changes: what became of the query then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import FloodmarkError
from tests.support.address import Address
from tests.support.clusters import ask, wait_until
from tests.support.inprocess import InProcess
from tests.support.mirrored import MirrorSink
from tests.support.patience import within

When = Literal["running", "stopped", "retry", "planned", "snapshot"]
WHENS: tuple[When, ...] = ("running", "stopped", "retry", "planned", "snapshot")
WAIT_S = within(60.0)
ROWS = 2000
"""In a snapshot: several micro-batches of them."""


@dataclass
class World:
    """A server behind an address, a table t (id, v) in it, and a query that captures the table.

    Attributes:
        server: where the address leads now.
        before: happens when the query has delivered its first rows, or before its snapshot.
        forgotten: keys up to this one are not compared: their table is gone.
        sink: the mirror that the query keeps; None: its events are compared.
    """

    server: EmbeddedPostgres
    address: Address
    dbname: str
    state: Path
    more: dict[str, str] = field(default_factory=dict)
    publication: str = "CREATE PUBLICATION dbz_publication FOR ALL TABLES"
    query: InProcess | None = None
    planned: dict[str, Any] | None = None
    delivered: list[tuple[str, int, int | None]] = field(default_factory=list)
    error: FloodmarkError | None = None
    written: int = 0
    forgotten: int = 0
    before: Callable[[World], None] | None = None
    sink: MirrorSink | None = None

    @property
    def slot(self) -> str:
        return f"s_{self.dbname}"

    @property
    def options(self) -> dict[str, str]:
        return {
            **self.server.options(self.dbname),
            "database.port": str(self.address.port),
            "topic.prefix": "p",
            "slot.name": self.slot,
            "state.dir": str(self.state),
            "table.include.list": "public.t",
            "slot.max.retries": f"{within(20):.0f}",
            "slot.retry.delay.ms": "250",
            "errors.max.retries": f"{within(40):.0f}",
            "errors.retry.delay.max.ms": "500",
            "snapshot.chunk.bytes": "16384",
            "max.batch.bytes": "32768",
            **self.more,
        }

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in the query's database."""
        return ask(self.server, statement, self.dbname)

    def write(self, count: int = 3) -> None:
        """Commit rows with new keys."""
        first = self.written + 1
        self.written += count
        self.ask(f"INSERT INTO t SELECT g, g FROM generate_series({first}, {self.written}) g")

    def begin(self, when: When) -> None:
        """Bring the query to where the world is to change."""
        self.ask("CREATE TABLE IF NOT EXISTS t (id integer PRIMARY KEY, v integer, pad text DEFAULT repeat('x', 200))")
        if self.publication:
            self.ask(self.publication)
        self.write(ROWS if when == "snapshot" else 3)
        query = self.query = self.start()
        if when == "snapshot":
            if self.before is not None:
                self.before(self)
            self._take(query.step())
            snapshot = query.offset["snapshot"]
            assert snapshot is not None, "the snapshot has ended"
            return
        self.follow()
        if self.before is not None:
            self.before(self)
        self.write()
        if when == "planned":
            deadline = time.monotonic() + WAIT_S
            end = query.offset
            while end == query.offset:
                assert time.monotonic() < deadline
                end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
            self.planned = end
            query.stop()
        elif when == "stopped":
            self.follow()
            query.stop()
        else:
            self.follow()
        if when == "retry":
            self.address.cut()
            self.wait_until_free()

    def start(self, offset: dict[str, Any] | None = None) -> InProcess:
        """Start the query, as a new process does."""
        if self.sink is not None:
            return self.sink.start(self.options, offset)
        return InProcess(self.options, offset)

    def wait_until_free(self) -> None:
        """Wait until the server has noticed that the slot's connection is gone."""
        wait_until(
            self.server,
            f"NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{self.slot}' AND active)",
        )

    def free_slot(self, *statements: str) -> None:
        """Run statements that need the slot unused, ending whatever uses it."""
        deadline = time.monotonic() + WAIT_S
        with psycopg.connect(self.server.conninfo(self.dbname), autocommit=True) as conn:
            while True:
                conn.execute(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active",
                    [self.slot],
                )
                try:
                    conn.execute(statements[0])
                    break
                except psycopg.errors.ObjectInUse:
                    assert time.monotonic() < deadline
            for statement in statements[1:]:
                conn.execute(statement)

    def resume(self, when: When) -> None:
        """Let the query go on, if it waits for that."""
        assert self.query is not None
        if when in ("stopped", "planned"):
            self.query = self.start(self.query.offset)
        if self.planned is not None:
            try:
                self._take(self.query.run(self.planned))
            except FloodmarkError as exc:
                self.error = exc
                return
            self.query.offset = self.planned
        self.address.lead_to(self.server.port)

    def follow(self, fails: bool = False) -> None:
        """Run micro-batches until all rows of the source were delivered, or the query fails."""
        assert self.query is not None
        deadline = time.monotonic() + WAIT_S
        while self.error is None:
            assert time.monotonic() < deadline, "neither right nor an error"
            try:
                self._take(self.query.step())
            except FloodmarkError as exc:
                self.error = exc
                return
            if not fails and self.query.offset["snapshot"] is None and self.applied() == self.actual():
                return

    def end(self) -> None:
        """Stop the query."""
        if self.query is not None:
            self.query.stop()

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for row in sorted(rows, key=lambda row: str(row["position"])):
            if row["table"] != "t" or row["value"] is None:
                continue
            event = json.loads(row["value"])
            image = event["after"] or event["before"]
            self.delivered.append((row["op"], image["id"], image["v"]))

    def applied(self) -> dict[int, int | None]:
        """Return the rows that the events give, or that the mirror has."""
        found: dict[int, int | None] = {}
        if self.sink is not None:
            return {key: v for key, v in self.sink.rows("public.t").items() if key > self.forgotten}
        for op, key, v in self.delivered:
            if key <= self.forgotten:
                continue
            if op == "d":
                found.pop(key, None)
            else:
                found[key] = v
        return found

    def actual(self) -> dict[int, int | None]:
        """Return the rows of the source."""
        return dict(self.ask(f"SELECT id, v FROM t WHERE id > {self.forgotten}"))
