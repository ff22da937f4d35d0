"""The database: its tables, accounts, redo threads and settings."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.clock import Clock
from tests.support.oracle.model.dictionaries import StoredDictionary
from tests.support.oracle.model.failing import Failing
from tests.support.oracle.model.logs import Destination, RedoThread
from tests.support.oracle.model.redo import Operation, RedoRecord
from tests.support.oracle.model.tables import Column, Structure, Table
from tests.support.oracle.model.transactions import Transaction

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

ROOT = "CDB$ROOT"
FIRST_OBJECT = 72_726
FIRST_OBJECT_OF_SESSIONS = 172_726
STEP = 1_000_000
GROUPS = 3
IDLE_RECORDS = 5


@dataclass
class Account:
    """A user who may log in.

    Attributes:
        name: in capitals.
        password: their password.
        denied: views and packages that they may not use, in capitals.
    """

    name: str
    password: str
    denied: set[str] = field(default_factory=set)


@dataclass
class Settings:
    """What the database's parameters and properties say; tests change them."""

    name: str = "FREE"
    version: str = "19.22.0.0.0"
    log_mode: str = "ARCHIVELOG"
    supplemental_min: str = "YES"
    supplemental_all: str = "NO"
    role: str = "PRIMARY"
    open_mode: str = "READ WRITE"
    force_logging: str = "YES"
    max_string_size: str = "STANDARD"
    charset: str = "AL32UTF8"
    national_charset: str = "AL16UTF16"
    database_id: int = 1_385_061_571
    resetlogs: int = 1
    undo_scns: int = 1 << 60
    """For how many changes earlier rows can be read; then ORA-01555 follows."""
    archives: bool = True
    """Whether the archiver works."""
    dictionary_logs: int = 1
    """Into how many logs a dictionary is written."""


@dataclass
class OutboundState:
    """What the dictionary says of an XStream outbound server.

    Attributes:
        status: ``STATUS``.
        committed_only: whether it sends transactions once they are committed.
        user: who may attach; empty: everybody.
        low: the position up to which all was processed; empty: there is none.
        low_scn: its change number.
    """

    status: str = "ENABLED"
    committed_only: bool = True
    user: str = ""
    low: bytes = b""
    low_scn: int = 0


@dataclass(frozen=True)
class Asked:
    """A statement that a session was asked to execute.

    Attributes:
        session: the session's number.
        text: the statement.
        binds: values, or pairs of names and values.
    """

    session: int
    text: str
    binds: tuple[object, ...]


class OracleDatabase:
    """A database with one pluggable database, or none.

    Args:
        pluggable: the name of the pluggable database; empty: there are no containers.
        threads: how many redo threads it has.
        account: who captures.
        password: their password.

    Attributes:
        lock: held by every statement, and by a step of a scenario.
        statements: what all sessions were asked to do.
        outbound_servers: those of XStream, by their names.
        sessions: those that are open, by their numbers.
        directories: where files are written, by the names of directories.
        dictionary_files: dictionaries in files, by their paths.
        failing: what is to fail.
    """

    def __init__(
        self, pluggable: str = "ORCLPDB1", threads: int = 1, account: str = "C##DBZUSER", password: str = "dbz"
    ) -> None:
        self.lock = threading.RLock()
        self.clock = Clock()
        self.settings = Settings()
        self.pluggable = pluggable
        self.accounts = {account: Account(account, password)}
        self.account = account
        self.tables: list[Table] = []
        self.destinations = [Destination(1, "LOG_ARCHIVE_DEST_1")]
        self.threads = {
            number: RedoThread(number, 1, GROUPS, first_group=1 + (number - 1) * GROUPS)
            for number in range(1, threads + 1)
        }
        self.transactions: dict[str, Transaction] = {}
        self.statements: list[Asked] = []
        self.outbound_servers: dict[str, OutboundState] = {}
        self.sessions: dict[int, Session] = {}
        self.directories = {"LOGMINER": "/dictionaries"}
        self.dictionary_files: dict[str, StoredDictionary] = {}
        self.failing: list[Failing] = []
        self._sessions = 0
        self._objects = FIRST_OBJECT
        self._objects_of_sessions = FIRST_OBJECT_OF_SESSIONS
        self._begun = 0
        self._begun_by_sessions = 0

    @property
    def home(self) -> str:
        """The container that tables are in."""
        return self.pluggable or ROOT

    def new_session(self) -> int:
        """Return the number of a new session."""
        with self.lock:
            self._sessions += 1
            return self._sessions

    def meet(self, what: str) -> None:
        """Fail if a statement is to, as ``failing`` says."""
        for one in self.failing:
            one.meet(what)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Hold the database for a step of a scenario, whose change numbers are the same whatever clients do."""
        with self.lock:
            self.clock.jump((self.clock.scn // STEP + 1) * STEP)
            yield
            self.background()

    def background(self) -> None:
        """Write what background processes write: redo of no table, on all open threads."""
        for thread in [*self.threads.values()] * IDLE_RECORDS:
            if thread.status == "OPEN":
                self.write(thread.number, "0" * 16, Operation.INTERNAL, info="INTERNAL")

    def write(self, thread: int, xid: str, operation: Operation, **fields: object) -> RedoRecord:
        """Append a record to the redo of a thread, with a change number of its own.

        Args:
            thread: the number of the thread.
            xid: the transaction.
            operation: what it is.
            fields: the other fields of ``RedoRecord``.
        """
        target = self.threads[thread]
        scn = self.clock.advance()
        record = RedoRecord(scn, thread, target.current.sequence, xid, operation, **fields)  # type: ignore[arg-type]
        target.write(record)
        return record

    def begin(
        self, user: str = "APP", thread: int = 1, client: str | None = None, session: bool = False
    ) -> Transaction:
        """Begin a transaction.

        Args:
            user: who makes the changes.
            thread: the instance's redo thread.
            client: what the session set as its identifier.
            session: whether a client's session begins it; these have numbers of their own.
        """
        if session:
            self._begun_by_sessions += 1
            xid = _xid(20, self._begun_by_sessions % 30, 50_000 + self._begun_by_sessions)
        else:
            self._begun += 1
            xid = _xid(1 + self._begun % 10, self._begun % 34, 700 + self._begun)
        return Transaction(self, xid, user, thread, client)

    def create_table(
        self,
        owner: str,
        name: str,
        columns: Sequence[Column],
        key: Sequence[str] = (),
        user: str = "APP",
        text: str = "",
        supplemental: bool = True,
        logged: bool = True,
        container: str = "",
        session: bool = False,
    ) -> Table:
        """Create a table.

        Args:
            owner: its schema.
            name: its name.
            columns: its columns.
            key: names of the primary key's columns.
            user: who does it.
            text: the statement; empty: it is made from the columns.
            supplemental: whether changes are logged with all columns.
            logged: whether the redo has the statement; otherwise the table was there before.
            container: where it is; empty: in the pluggable database.
            session: whether a client's session does it.
        """
        if session:
            self._objects_of_sessions += 1
            number = self._objects_of_sessions
        else:
            self._objects += 1
            number = self._objects
        at = container or self.home
        structure = Structure(owner, name, tuple(columns), tuple(key), 1, at, supplemental)
        table = Table(number, number, structure, self.clock.scn)
        self.tables.append(table)
        if logged:
            table.changed_scn = self.ddl(table, text or structure.ddl.rstrip(";"), user, session=session)
        table.created_scn = self.clock.scn
        return table

    def ddl(
        self,
        table: Table,
        statement: str,
        user: str = "APP",
        info: str = "USER DDL (PlSql=0 RecDep=0)",
        thread: int = 1,
        session: bool = False,
        **changes: object,
    ) -> int:
        """Write a statement that changes a table's structure, in a transaction of its own, and return its number.

        Args:
            table: what it changes.
            statement: its text, without the last semicolon.
            user: who does it.
            info: ``INFO`` of its row.
            thread: the redo thread.
            session: whether a client's session does it.
            changes: what it changes in ``Structure``.
        """
        transaction = self.begin(user, thread, session=session)
        transaction.start()
        self.write(
            thread,
            transaction.xid,
            Operation.DDL,
            user=user,
            container=table.structure.container,
            object_id=table.object_id,
            data_object_id=table.data_object_id,
            version=table.structure.version,
            statement=statement + ";",
            info=info,
        )
        scn = self.clock.scn
        if changes:
            table.change(scn, **changes)
        table.changed_scn = scn
        transaction.commit()
        return scn

    def truncate(self, table: Table, user: str = "APP") -> None:
        """Remove all rows of a table by a statement."""
        scn = self.ddl(table, f'TRUNCATE TABLE "{table.owner}"."{table.name}"', user)
        for place, _ in list(table.rows_at(self.clock.scn)):
            table.write(scn, place, None)
        self._objects += 1
        table.data_object_id = self._objects

    def drop_table(self, table: Table, user: str = "APP", purge: bool = True) -> None:
        """Remove a table."""
        self.ddl(table, f'DROP TABLE "{table.owner}"."{table.name}"{" PURGE" if purge else ""}', user)
        table.dropped = True

    def switch_log(self, thread: int | None = None) -> None:
        """Let threads begin their next logs; the former ones are archived."""
        scn = self.clock.advance()
        for one in self.threads.values():
            if thread in (None, one.number) and one.status == "OPEN":
                one.switch(scn, self.destinations if self.settings.archives else [])

    def archive(self) -> None:
        """Archive the logs that the archiver has left, and those to come."""
        self.settings.archives = True
        for thread in self.threads.values():
            for log in thread.logs:
                if not log.is_current and not log.archived:
                    log.archive(self.destinations)

    def delete_archived(self, thread: int, sequence: int, destination: str = "") -> None:
        """Delete archived copies of a log.

        Args:
            thread: the redo thread.
            sequence: the log's number.
            destination: where; empty: everywhere.
        """
        for log in self.threads[thread].logs:
            if log.sequence == sequence:
                log.deleted.update([destination] if destination else log.archived)

    def table(self, owner: str, name: str, container: str = "") -> Table:
        """Return a table by its name.

        Raises:
            OracleError: there is none.
        """
        for one in self.visible_tables(container):
            if (one.owner, one.name) == (owner, name):
                return one
        raise OracleError(942)

    def visible_tables(self, container: str = "") -> Iterable[Table]:
        """Return the tables of a container that are there."""
        at = container or self.home
        return [one for one in self.tables if not one.dropped and one.structure.container == at]

    def object(self, object_id: int) -> Table | None:
        """Return the table that a number identifies; None: there is none."""
        return next((one for one in self.tables if one.object_id == object_id), None)


def _xid(segment: int, slot: int, sequence: int) -> str:
    """Return a transaction's identifier as LogMiner shows it: three little-endian numbers."""
    raw = segment.to_bytes(2, "little") + slot.to_bytes(2, "little") + sequence.to_bytes(4, "little")
    return raw.hex().upper()


def xid_numbers(xid: str) -> tuple[int, int, int]:
    """Return the segment, the slot and the sequence of a transaction's identifier."""
    raw = bytes.fromhex(xid)
    segment, slot, sequence = (int.from_bytes(part, "little") for part in (raw[:2], raw[2:4], raw[4:]))
    return segment, slot, sequence
