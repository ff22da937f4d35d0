"""Oracle for the contract suite: a stand-in for a server, through Oracle's own driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any

from floodmark.demo.embedded import free_port
from tests.contract.under_test import Capabilities, Row, SourceUnderTest, Writer
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.outbound.server import OutboundServer
from tests.support.oracle.replicator.server import ReplicatorServer

SCHEMA = "APP"
PASSWORD = "dbz"
PATIENCE_S = 2.0
COLUMNS = [column("id", "NUMBER(9,0)", nullable=False), column("v", "NUMBER(18,0)"), column("pad", "VARCHAR2(4000)")]
SIGNALS = [
    column("id", "VARCHAR2(42)", nullable=False),
    column("type", "VARCHAR2(32)", nullable=False),
    column("data", "VARCHAR2(2048)"),
]


class OracleUnderTest:
    """The connector with one of its adapters.

    Args:
        adapter: ``database.connection.adapter``.
    """

    capabilities = Capabilities(refuses_no_tables=False, log_rests=False)
    required: tuple[str, ...] = ("database.user", "database.dbname")
    kept: tuple[str, ...] = ("schema-history",)
    is_further_log = False

    def __init__(self, adapter: str) -> None:
        self.name = f"oracle-{adapter}"
        self._adapter = adapter
        self.is_further_log = adapter != "logminer"

    @contextmanager
    def open(self, fixture: Callable[[str], Any]) -> Iterator[SourceUnderTest]:
        del fixture  # Each test has a database of its own.
        with self._source(OracleDatabase()) as source:
            yield source

    @contextmanager
    def open_another(self, fixture: Callable[[str], Any], like: SourceUnderTest) -> Iterator[SourceUnderTest]:
        del fixture, like
        database = OracleDatabase()
        database.settings.database_id += 1
        with self._source(database) as source:
            yield source

    def _source(self, database: OracleDatabase) -> OracleSource:
        return OracleSource(database, self._adapter)


class ReplicatedUnderTest(OracleUnderTest):
    """The adapter ``olr``: the log comes from a stand-in for an OpenLogReplicator server."""

    capabilities = Capabilities(refuses_no_tables=False, log_rests=False, holds_log=True)
    required = (
        *OracleUnderTest.required,
        *("openlogreplicator.source", "openlogreplicator.host", "openlogreplicator.port"),
    )

    def __init__(self) -> None:
        super().__init__("olr")

    def _source(self, database: OracleDatabase) -> OracleSource:
        return ReplicatedSource(database)


class OutboundUnderTest(OracleUnderTest):
    """The adapter ``xstream``: the log comes from a stand-in for an outbound server, by Java classes of our own."""

    capabilities = Capabilities(
        watermarks=False, refuses_no_tables=False, log_rests=False, holds_log=True, is_slow=True
    )
    required = (*OracleUnderTest.required, "xstream.out.server.name", "xstream.class.path")

    def __init__(self) -> None:
        super().__init__("xstream")

    def _source(self, database: OracleDatabase) -> OracleSource:
        return OutboundSource(database)


class OracleSource:
    """A database, which one test captures and changes."""

    schema = SCHEMA
    quote = '"'
    lost_log = "oldest log"

    def __init__(self, database: OracleDatabase, adapter: str) -> None:
        self._database = database
        self._stack = ExitStack()
        self._server = self._stack.enter_context(TnsServer(database))
        self.options = {
            "connector": "oracle",
            "database.connection.adapter": adapter,
            "database.hostname": "127.0.0.1",
            "database.port": str(self._server.port),
            "database.user": database.account,
            "database.password": PASSWORD,
            "database.dbname": database.settings.name,
            "database.pdb.name": database.pluggable,
            "log.mining.poll.interval.ms": "20",
        }

    def __enter__(self) -> OracleSource:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def create(self, *tables: str) -> None:
        with self._database.lock:
            for table in tables:
                self._database.create_table(SCHEMA, table, COLUMNS, ["id"])

    def create_signal_table(self, table: str) -> None:
        with self._database.lock:
            self._database.create_table(SCHEMA, table, SIGNALS, ["id"])

    def signal(self, table: str, number: str, kind: str, data: str) -> None:
        with self._database.lock:
            transaction = self._database.begin()
            transaction.insert(self._database.table(SCHEMA, table), id=number, type=kind, data=data)
            transaction.commit()

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        yield OracleWriter(self._database)

    def rows(self, table: str) -> list[Row]:
        with self._database.lock:
            found = self._database.table(SCHEMA, table).rows_at(self._database.clock.scn)
            return [(int(row["id"]), int(row["v"]), str(row["pad"])) for _, row in found]

    def lose_log(self) -> None:
        with self._database.lock:
            for _ in range(4):
                self._database.switch_log()
            for thread in self._database.threads.values():
                for log in thread.logs[:-1]:
                    self._database.delete_archived(thread.number, log.sequence)
            self._database.background()

    def away(self) -> dict[str, str]:
        return {"database.port": str(free_port())}

    def refused_login(self, secret: str) -> dict[str, str]:
        return {"database.password": secret}

    def created(self) -> list[str]:
        with self._database.lock:
            own = self._database.account
            return [one.name for one in self._database.tables if one.owner == own and not one.dropped]

    def connections(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        # The server sees the end of a connection a moment after the client has closed it.
        while self._server.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._server.connections

    def cut_connections(self) -> None:
        self._server.cut_connections()

    def held_log(self) -> str:
        raise NotImplementedError("The server keeps its logs as its administrators say.")


class ReplicatedSource(OracleSource):
    """A database, and a server that sends its log."""

    lost_log = "told to forget"

    def __init__(self, database: OracleDatabase) -> None:
        super().__init__(database, "olr")
        self._replicator = self._stack.enter_context(ReplicatorServer(database))
        del self.options["log.mining.poll.interval.ms"]
        self.options |= self._replicator.options()

    def lose_log(self) -> None:
        self._replicator.confirm_all()

    def connections(self) -> int:
        super().connections()
        deadline = time.monotonic() + PATIENCE_S
        while self._replicator.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._server.connections + self._replicator.connections

    def cut_connections(self) -> None:
        super().cut_connections()
        self._replicator.cut_connection()

    def held_log(self) -> str:
        oldest = self._replicator.kept()[0]
        return f"{oldest.scn:016X}-{oldest.index:08X}"


class OutboundSource(OracleSource):
    """A database, and an outbound server that sends its log."""

    lost_log = "told to forget"

    def __init__(self, database: OracleDatabase) -> None:
        super().__init__(database, "xstream")
        self._outbound = self._stack.enter_context(OutboundServer(database))
        del self.options["log.mining.poll.interval.ms"]
        self.options |= self._outbound.options()

    def lose_log(self) -> None:
        self._outbound.forget_all()

    def connections(self) -> int:
        super().connections()
        deadline = time.monotonic() + PATIENCE_S
        while self._outbound.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._server.connections + self._outbound.connections

    def cut_connections(self) -> None:
        super().cut_connections()
        self._outbound.cut_connection()

    def held_log(self) -> str:
        return self._outbound.state.low.hex()


class OracleWriter:
    """A session of the model's own."""

    def __init__(self, database: OracleDatabase) -> None:
        self._database = database
        self._transaction: Transaction | None = None

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        with self._database.lock:
            target = self._database.table(SCHEMA, table)
            for key, v, pad in rows:
                self._begun().insert(target, id=Decimal(key), v=Decimal(v), pad=pad)

    def update(self, table: str, key: int, v: int, pad: str | None = None) -> None:
        with self._database.lock:
            values = {"v": Decimal(v), **({} if pad is None else {"pad": pad})}
            self._begun().update(self._database.table(SCHEMA, table), {"id": key}, **values)

    def delete(self, table: str, key: int) -> None:
        with self._database.lock:
            self._begun().delete(self._database.table(SCHEMA, table), {"id": key})

    def commit(self) -> None:
        with self._database.lock:
            self._begun().commit()
            self._transaction = None
            self._database.background()

    def rollback(self) -> None:
        with self._database.lock:
            self._begun().rollback()
            self._transaction = None

    def _begun(self) -> Transaction:
        if self._transaction is None:
            self._transaction = self._database.begin()
        return self._transaction
