"""The stand-in of Oracle in a process of its own, whose answers about a backlog are prepared before anybody asks.

It would otherwise be slower than those that are measured: it writes each statement of SQL_REDO when it is asked for.
A client's query of ``V$LOGMNR_CONTENTS`` is known once the client has asked it; the stand-in answers it then for the
whole backlog, and keeps the rows in the form in which they are sent. What a range has beside the backlog isn't shown:
changes of the table that makes the server write its log.
"""

from __future__ import annotations

import multiprocessing
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from tests.support.oracle.fronts.json_lines import JsonServer, row_text
from tests.support.oracle.fronts.tns.results import row
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Table, column
from tests.support.oracle.sql.result import Encode, Result
from tests.support.oracle.sql.session import Session

SCHEMA, TABLE = "BENCH", "T"
COLUMNS = [
    column("ID", "NUMBER(18,0)", nullable=False),
    column("ACCOUNT", "NUMBER(9,0)"),
    column("AMOUNT", "NUMBER(10,2)"),
    column("NOTE", "VARCHAR2(200)"),
    column("REGION", "VARCHAR2(20)"),
    column("SCORE", "NUMBER(9,1)"),
    column("CITY", "VARCHAR2(40)"),
    column("REMARK", "VARCHAR2(100)"),
]
INSERTS, UPDATES, DELETES = 30, 60, 10
"""Of each transaction."""
CHANGES = INSERTS + UPDATES + DELETES


@dataclass(frozen=True)
class Place:
    """Where the stand-in is.

    Attributes:
        json_port: of the front for Debezium.
        tns_port: of the front for Floodmark.
        pid: its process.
    """

    json_port: int
    tns_port: int
    pid: int


@dataclass(frozen=True)
class _Prepared(Result):
    """Rows in the form in which they are sent."""

    sent: list[bytes] = field(default_factory=list)

    def encoded(self, encode: Encode, begin: int = 0, end: int | None = None) -> Sequence[bytes]:
        """Return rows in the form of the front that they were prepared for."""
        del encode
        return self.sent[begin:end]


class _Answers:
    """What is prepared of one front's queries, by their texts.

    Args:
        encode: returns a row as the front sends it.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._last = 0
        self._answers: dict[str, tuple[list[int], _Prepared]] = {}
        self.asked: set[str] = set()

    def prepare(self, database: OracleDatabase, after: int, upto: int) -> None:
        """Answer all queries that were asked, for a range of change numbers."""
        self._last = upto
        for text in self.asked:
            session = Session(database, database.account)
            for thread in database.threads.values():
                for group in thread.online:
                    session.logminer.add(thread.member(group))
            session.logminer.start(after, upto, ["DICT_FROM_ONLINE_CATALOG", "NO_ROWID_IN_STMT"])
            found = session.execute(text, [str(after), str(upto)])
            session.close()
            assert found.columns is not None
            (place,) = (place for place, one in enumerate(found.columns) if one.name == "SCN")
            scns = [int(values[place]) for values in found.rows]
            sent = list(found.encoded(self._encode))
            self._answers[text] = scns, _Prepared(found.columns, found.rows, sent=sent)

    def answer(self, text: str, after: int, upto: int) -> Result | None:
        """Return what is prepared of a range; None: nothing is."""
        self.asked.add(text)
        if text not in self._answers or after >= self._last:
            return None
        scns, found = self._answers[text]
        chosen = slice(bisect_right(scns, after), bisect_right(scns, upto))
        return _Prepared(found.columns, found.rows[chosen], sent=found.sent[chosen])


class _Session(Session):
    """A session whose queries of the log's contents may be prepared."""

    answers: _Answers

    def execute(self, text: str, binds: Sequence[Any] | Mapping[str, Any] = ()) -> Result:
        """Execute a statement."""
        if "V$LOGMNR_CONTENTS" in text and len(binds) == 2 and not isinstance(binds, Mapping):
            with self.database.lock:
                found = self.answers.answer(text, *(int(one) for one in binds))
            if found is not None:
                return found
        return super().execute(text, binds)


class StandIn:
    """The process; use it as a context manager."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), name="oracle-stand-in")

    def __enter__(self) -> Self:
        self._process.start()
        self.place: Place = self._pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(("stop",))
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()

    def go_on(self) -> None:
        """Write what background processes write, so that the log has something to be read."""
        self._ask("go_on")

    def asked(self, front: str) -> int:
        """Return how many different queries of the log's contents have come to a front, ``json`` or ``tns``."""
        return int(self._ask("asked", front))

    def add_backlog(self, transactions: int) -> float:
        """Commit transactions, all of which clients see at the same moment; return that moment, monotonic."""
        return float(self._ask("backlog", transactions))

    def cpu_s(self) -> float:
        """Return the CPU seconds that the process has used."""
        return float(self._ask("cpu"))

    def _ask(self, *request: Any) -> Any:
        self._pipe.send(request)
        return self._pipe.recv()


def _serve(pipe: Connection) -> None:
    database = OracleDatabase()
    database.create_table(database.account, "LOG_MINING_FLUSH", [column("LAST_SCN", "NUMBER(19,0)")], logged=False)
    table = database.create_table(SCHEMA, TABLE, COLUMNS, ["ID"], logged=False)
    # A snapshot waits until the tables are older than what the clock can tell apart.
    with database.step():
        _change(database, table, 0)
    answers = {"json": _Answers(row_text), "tns": _Answers(row)}
    sessions = {name: type(f"_Session_{name}", (_Session,), {"answers": one}) for name, one in answers.items()}
    with JsonServer(database, sessions["json"]) as json_server, TnsServer(database, sessions=sessions["tns"]) as tns:
        pipe.send(Place(json_server.port, tns.port, multiprocessing.current_process().pid or 0))
        while (request := pipe.recv())[0] != "stop":
            match request:
                case ("go_on",):
                    with database.lock:
                        database.background()
                    pipe.send(None)
                case ("asked", front):
                    pipe.send(len(answers[front].asked))
                case ("cpu",):
                    pipe.send(time.process_time())
                case ("backlog", count):
                    with database.lock:
                        after = database.clock.scn
                        for number in range(1, count + 1):
                            _change(database, table, number)
                        for one in answers.values():
                            if one.asked:
                                one.prepare(database, after, database.clock.scn)
                        database.statements.clear()
                    pipe.send(time.monotonic())


def _change(database: OracleDatabase, table: Table, number: int) -> None:
    """Commit a transaction: rows are inserted, of which some are changed, and others deleted."""
    transaction = database.begin()
    places = [
        transaction.insert(
            table,
            ID=Decimal(number * INSERTS + place),
            ACCOUNT=Decimal(place * 7919 % 100_000),
            AMOUNT=Decimal(place) / 4,
            NOTE=f"note of row {place} {'x' * 40}",
            REGION="north",
            SCORE=Decimal(place) / 2,
            CITY=f"city {number % 100}",
        )
        for place in range(INSERTS)
    ]
    for place in range(UPDATES):
        chosen = places[place % INSERTS]
        transaction.update(table, chosen, AMOUNT=Decimal(place) / 2, REMARK=f"changed {place}")
    for chosen in places[:DELETES]:
        transaction.delete(table, chosen)
    transaction.commit()
