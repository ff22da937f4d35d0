"""A client's session: what it has set, and what it may do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta, timezone
from typing import Any

from sqlglot import exp

from tests.support.oracle.errors import OracleError
from tests.support.oracle.mining.session import LogMiner
from tests.support.oracle.mining.session_formats import Formats
from tests.support.oracle.model.database import ROOT, Asked, OracleDatabase
from tests.support.oracle.model.tables import Row, Table
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.sql import administration, blocks, changes, queries
from tests.support.oracle.sql.result import Result
from tests.support.oracle.sql.rewriting import parsed

_SET = re.compile(r"ALTER\s+SESSION\s+SET\s+(.*)", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(r"\s*([A-Za-z_$]+)\s*=\s*('(?:[^']|'')*'|[^\s']+)\s*")
_LOCK = re.compile(r"LOCK\s+TABLE\s+(.+?)\s+IN\s+([A-Z ]+?)\s+MODE(\s+NOWAIT|\s+WAIT\s+\d+)?", re.IGNORECASE)
_SAVEPOINT = re.compile(r"SAVEPOINT\s+(\w+)", re.IGNORECASE)
_FORMATS = {
    "NLS_DATE_FORMAT": "date_format",
    "NLS_TIMESTAMP_FORMAT": "timestamp_format",
    "NLS_TIMESTAMP_TZ_FORMAT": "zoned_format",
}
_IGNORED = {"NLS_NUMERIC_CHARACTERS", "HASH_AREA_SIZE", "SORT_AREA_SIZE", "NLS_LANGUAGE", "NLS_TERRITORY", "NLS_SORT"}
_WRITING = {"INSERT", "UPDATE", "DELETE", "CREATE"}
_ZONE = re.compile(r"([+-]?)(\d\d):(\d\d)")


class Session:
    """A session.

    Args:
        database: that it is connected to.
        user: who has logged in.
        container: that it begins in; empty: the root, or the database if it has no containers.
        thread: the redo thread of its instance.
        program: what the client calls itself.
        cut: breaks the connection.
    """

    def __init__(
        self,
        database: OracleDatabase,
        user: str,
        container: str = "",
        thread: int = 1,
        program: str = "",
        cut: Callable[[], None] = lambda: None,
    ) -> None:
        self.database = database
        self.user = user
        self.container = container or ROOT
        self.formats = Formats()
        self.logminer: LogMiner = LogMiner(database)
        self.sql_terminator = False
        self.looks_back_to: int | None = None
        self.thread = thread
        self._engine: queries.Engine | None = None
        self.schema = user
        self.program = program
        self.cut = cut
        self._number = database.new_session()
        database.sessions[self._number] = self
        self._transaction: Transaction | None = None

    def execute(self, text: str, binds: Sequence[Any] | Mapping[str, Any] = ()) -> Result:
        """Execute a statement.

        Args:
            text: the statement.
            binds: values by place or by name.

        Raises:
            OracleError: as Oracle would refuse it, or because the stand-in doesn't understand it.
        """
        with self.database.lock:
            given = tuple(binds.items()) if isinstance(binds, Mapping) else tuple(binds)
            self.database.statements.append(Asked(self._number, text, given))
            self.database.meet(text)
            return self._execute(text, binds)

    def commit(self) -> None:
        """End the session's transaction."""
        with self.database.lock:
            transaction, self._transaction = self._transaction, None
            if transaction is not None:
                transaction.commit()

    def rollback(self) -> None:
        """Undo the session's transaction."""
        with self.database.lock:
            transaction, self._transaction = self._transaction, None
            if transaction is not None:
                transaction.rollback()

    def close(self) -> None:
        """End the session."""
        self.rollback()
        self.database.sessions.pop(self._number, None)
        if self._engine is not None:
            self._engine.connection.close()
            self._engine = None

    @property
    def engine(self) -> queries.Engine:
        """What evaluates the session's queries."""
        if self._engine is None:
            self._engine = queries.Engine(self)
        return self._engine

    def _execute(self, text: str, binds: Sequence[Any] | Mapping[str, Any]) -> Result:
        stripped = text.strip()
        word = stripped.split(None, 1)[0].upper().rstrip(";") if stripped else ""
        if word in {"SELECT", "WITH"}:
            return queries.answer(self, parsed(stripped, binds))
        if word == "BEGIN":
            return blocks.run(self, stripped)
        if word in _WRITING and self.database.settings.open_mode != "READ WRITE":
            raise OracleError(16000)
        if word in {"INSERT", "UPDATE", "DELETE"}:
            return changes.change(self, parsed(stripped, binds))
        administered = administration.administer(self, stripped)
        if administered is not None:
            return administered
        if word == "CREATE":
            return changes.create(self, parsed(stripped, ()))
        if word == "COMMIT":
            self.commit()
            return Result()
        if word == "ROLLBACK":
            self.rollback()
            return Result()
        if _SAVEPOINT.fullmatch(stripped):
            return Result()
        found = _LOCK.fullmatch(stripped)
        if found is not None:
            node = exp.to_table(found.group(1), dialect="oracle")
            self.table(exp.to_identifier(node.db) if node.db else None, node)
            return Result()
        found = _SET.fullmatch(stripped)
        if found is not None:
            self._set(found.group(1))
            return Result()
        raise OracleError(900, text=f"invalid SQL statement (not known to the stand-in: {stripped[:200]})")

    def transaction(self) -> Transaction:
        """Return the session's transaction, which its first change begins."""
        if self._transaction is None:
            self._transaction = self.database.begin(self.user, self.thread, session=True)
        return self._transaction

    def require(self, name: str) -> None:
        """Verify that the user may read a view, or use a package.

        Raises:
            OracleError: they may not.
        """
        account = self.database.accounts.get(self.user)
        if account is not None and name in account.denied:
            raise OracleError(942)

    def table(self, owner: exp.Identifier | None, node: exp.Table) -> Table:
        """Return the table that a statement names.

        Raises:
            OracleError: there is none.
        """
        name = node.name if node.this.args.get("quoted") else node.name.upper()
        given = node.args.get("db")
        schema = self.schema
        if owner is not None and given is not None:
            schema = given.name if given.args.get("quoted") else given.name.upper()
        return self.database.table(schema, name, self.container if self.database.pluggable else "")

    def rows_of(self, table: Table, scn: int | None) -> dict[str, Row]:
        """Return a table's rows by their ROWIDs.

        Args:
            table: the table.
            scn: as of this number; None: as the session sees them now.

        Raises:
            OracleError: they aren't known any more.
        """
        clock, settings = self.database.clock, self.database.settings
        scn = self.looks_back_to if scn is None else scn
        if scn is None:
            rows = dict(table.rows_at(clock.scn))
            transaction = self._transaction
            if transaction is not None:
                rows = transaction.seen(table, rows)
            return rows
        if not 0 < scn <= clock.scn:
            raise OracleError(8181)
        if scn < clock.scn - settings.undo_scns:
            raise OracleError(1555)
        if table.changed_scn > scn:
            raise OracleError(1466)
        return dict(table.rows_at(scn))

    def _set(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = _PAIR.match(text, at)
            if found is None:
                raise OracleError(900, text=f"missing or invalid option: {text[at:]}")
            at = found.end()
            self._set_one(found.group(1).upper(), found.group(2).strip("'"))

    def _set_one(self, name: str, value: str) -> None:
        if name == "CONTAINER":
            self._enter(value.upper())
        elif name == "CURRENT_SCHEMA":
            self.schema = value.upper()
        elif name in _FORMATS:
            setattr(self.formats, _FORMATS[name], value)
        elif name == "TIME_ZONE":
            zone = _ZONE.fullmatch(value)
            if zone is None:
                raise OracleError(900, text=f"time zone not known to the stand-in: {value}")
            minutes = int(zone.group(2)) * 60 + int(zone.group(3))
            self.formats.zone = timezone(timedelta(minutes=-minutes if zone.group(1) == "-" else minutes))
        elif name not in _IGNORED:
            raise OracleError(900, text=f"missing or invalid option: {name}")

    def _enter(self, name: str) -> None:
        if name not in {ROOT, self.database.pluggable} or not self.database.pluggable:
            raise OracleError(65011, name)
        self.container = name
