"""The targets of one query in a relational database: applies micro-batches, each in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetBusyError, TargetError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.micro_batches import mark_of
from floodmark.sinks.relational.bookkeeping import ASIDE, Bookkeeping, unwritten
from floodmark.sinks.relational.connect import persistent
from floodmark.sinks.relational.dialect import Dialect, Session
from floodmark.sinks.relational.loops import LoopCheck
from floodmark.sinks.relational.merge import Merge, SessionStages
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import Part
from floodmark.sinks.relational.preparation import Preparation, Prepared
from floodmark.sinks.relational.rebuilding.shadows import Shadows
from floodmark.sinks.relational.staging import StageLostError, drop_orphans, drop_stages
from floodmark.sinks.state.made_tables import MadeTables
from floodmark.sinks.state.targets_aside import TargetAside, TargetsAside
from floodmark.sinks.table_policies import TablePolicies

log = get_logger(__name__)

_MOST_STAGES = 200
"""Staging tables that a session keeps for tables and their versions."""
Rows = Sequence[Mapping[str, Any]]
"""What tasks have sent of a table (``MESSAGE``)."""
Errors = dict[str, TargetUnfitError]


class RelationalTargets:
    """The targets of a query.

    Args:
        dialect: the database's.
        source: the source's options.
        options: the sink's.
        query: the query's id.

    Raises:
        StateDirError: the state directory can't be read.
        TargetError: the database can't be used.
    """

    def __init__(
        self,
        dialect: Dialect,
        source: CommonOptions,
        options: JdbcOptions,
        query: str,
    ) -> None:
        self.query = query
        self._dialect = dialect
        self._options = options
        self._isolates = source.errors_tables == "isolate"
        self._made = MadeTables(source, query)
        self._books = Bookkeeping(dialect, query)
        policies = TablePolicies(source, options, self._made)
        self._policies = policies
        self._preparation = Preparation(dialect, self._books, source, options, policies, query)
        self._shadows = Shadows(dialect, query)
        self._loops = LoopCheck(source, dialect)
        self._open: Session | None = None
        self._kept: SessionStages | None = None
        self._aside = TargetsAside(source, query, _Marks(self))
        if self._aside.tables:
            log.warning("targets_are_set_aside", tables=sorted(self._aside.tables), effect="they get no rows")
        self._looked_for: set[str] = set()
        self._proved: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._retrying(lambda: drop_orphans(dialect, self.session(), query))

    @property
    def books(self) -> Bookkeeping:
        """What the database keeps of the query."""
        return self._books

    @property
    def marks_table(self) -> str:
        """The table with a row for each target that is set aside, with its schema."""
        return self._dialect.full_name(ASIDE)

    def registered(self, table: str) -> str:
        """Return the name by which the target of a table is known in Floodmark's own tables."""
        return self._preparation.registered(self._preparation.target_of(table))

    def session(self) -> Session:
        """Return the connection, which is opened if it isn't.

        Raises:
            TargetError: the database can't be used.
        """
        if self._open is None:
            session = self._dialect.connect()
            try:
                self._books.create(session)
                self._books.begin_offsets(session)
            except BaseException:
                session.close()
                raise
            self._open = session
        return self._open

    def aside(self) -> frozenset[str]:
        """Return the tables whose rows are left out, after those are taken back whose marks were removed."""
        for target in self._retrying(self._aside.removed):
            self._policies.is_removed(target)
            self._preparation.is_taken_back(target.table)
            self._aside.forget(target.table)
            self._looked_for.discard(target.table)
        return self._aside.tables

    def write(self, batch: int, found: Mapping[str, Rows]) -> None:
        """Apply a micro-batch, unless that was done before.

        Args:
            batch: its number.
            found: what tasks have sent, by table; it may be empty.

        Raises:
            StageLostError: the target has lost what tasks have loaded; they must run again.
            TargetChangedError: the target isn't the query's, or not in the state that the query has left it in.
            TargetError: it can't be written.
        """
        self._retrying(lambda: self._write(batch, found), but=StageLostError)
        staged = [row["staged"] for rows in found.values() for row in rows if row["staged"]]
        if staged:
            self._retrying(lambda: drop_stages(self._dialect, self.session(), staged))

    def _retrying(self, act: Callable[[], Any], but: type[TargetError] | None = None) -> Any:
        """Do something, on a new connection after an error that may pass.

        Args:
            but: the error after which it is of no use.
        """

        def attempt() -> tuple[Any, TargetError | None]:
            try:
                return act(), None
            except TargetError as error:
                self._disconnect()
                if but is not None and isinstance(error, but):
                    return None, error
                raise

        done, failure = persistent(self._options, attempt)
        if failure is not None:
            raise failure
        return done

    def _disconnect(self) -> None:
        if self._open is not None:
            self._open.rollback()
            self._open.close()
            self._open = self._kept = None
        # A commit whose answer was lost may have set some aside.
        self._looked_for.clear()

    def _stages(self, session: Session) -> SessionStages:
        """Return the staging tables of the connection."""
        if self._kept is None:
            self._kept = SessionStages(self._dialect, session)
        return self._kept

    def _write(self, batch: int, found: Mapping[str, Rows]) -> None:
        session = self.session()
        errors: Errors = {}
        parts = self._parts(found, errors)
        marks = {table: mark_of(part.extent for part in some) for table, some in parts.items()}
        place = str(self._options.connection_url)
        missing = unwritten(batch, marks, *self._books.offset(session), place)
        if missing is None:
            return
        prepared = self._prepared(session, {table: parts[table] for table in missing}, errors)
        try:
            done, known = self._begun(session)
            if unwritten(batch, marks, done, known, place) != missing:
                # Another process of the query has written since.
                session.rollback()
                self._write(batch, found)
                return
            stages = self._stages(session)
            merge = Merge(self._dialect, session, stages, self._tell)
            self._shadows.begin(session)
            for table, target in prepared.items():
                self._shadows.write(batch, session, merge, stages, target, self.registered(table))
                session.execute("SAVEPOINT floodmark")
                try:
                    if target.empties:
                        merge.empty(target, self._books, self.registered(table))
                    merge.apply(target)
                    session.execute("RELEASE SAVEPOINT floodmark")
                except TargetUnfitError as error:
                    session.execute("ROLLBACK TO SAVEPOINT floodmark")
                    stages.forget()
                    errors[table] = error
            self._prove_left(found, errors)
            for table, failure in errors.items():
                self._mark(session, self._aside_of(batch, table, found[table], failure))
                self._shadows.fail(session, self.registered(table), "The target was set aside.")
            self._shadows.end(session, batch)
            kept = {table: mark for table, mark in marks.items() if table not in errors}
            kept |= known if done == batch else {}
            self._books.keep_offset(session, batch, kept)
            session.commit()
            stages.committed()
        except BaseException:
            session.rollback()
            raise
        if stages.count > _MOST_STAGES:
            # They end with their session.
            self._disconnect()
        for table, failure in errors.items():
            self._remember(batch, table, found[table], failure)

    def _begun(self, session: Session) -> tuple[int, Mapping[str, int]]:
        """Begin a transaction, and return the query's offset, which no other process changes until it ends."""
        while True:
            session.begin()
            try:
                return self._books.offset(session, lock=True)
            except TargetBusyError as error:
                session.rollback()
                # Giving a target the rows of its shadow can take longer than locks are waited for.
                if not self._shadows.exist(session):
                    raise
                log.info("the_target_is_waited_for", why=error.what)

    def _parts(self, found: Mapping[str, Rows], errors: Errors) -> dict[str, list[Part]]:
        """Return the parts of the tables that aren't set aside."""
        parts: dict[str, list[Part]] = {}
        for table, rows in found.items():
            if self._is_aside(table):
                continue
            try:
                parts[table] = [Part.from_message(row) for row in rows]
            except TargetUnfitError as error:
                errors[table] = error
        for table, some in parts.items():
            for column in {column for part in some for column in part.unrepresentable}:
                self._tell(table, column)
        return parts

    def _is_aside(self, table: str) -> bool:
        """Return whether a table is set aside, which the database knows even if ``state.dir`` was lost."""
        if table not in self._looked_for:
            self._aside.finds(table)
            self._looked_for.add(table)
        return table in self._aside.tables

    def _prepared(self, session: Session, parts: Mapping[str, list[Part]], errors: Errors) -> dict[str, Prepared]:
        prepared = {}
        for table, some in parts.items():
            try:
                if table not in self._proved:
                    self._loops(session, self._preparation.target_of(table))
                    self._proved.add(table)
                prepared[table] = self._preparation.prepare(session, table, some)
            except TargetUnfitError as error:
                errors[table] = error
        return prepared

    def _prove_left(self, found: Mapping[str, Rows], errors: Errors) -> None:
        """Raise an error if tables can't be set aside, or none would be left."""
        if errors and (not self._isolates or not ({*self._made.names(), *found} - self._aside.tables - errors.keys())):
            raise next(iter(errors.values()))

    def _remember(self, batch: int, table: str, rows: Rows, error: TargetUnfitError) -> None:
        self._aside.add(self._aside_of(batch, table, rows, error))
        log.error(
            "target_is_set_aside",
            table=table,
            batch=batch,
            error=error.what,
            resume=f"Mend the target table, or drop it, and delete its row from {self.marks_table}; the "
            "table is read again with the next micro-batch.",
        )

    def _aside_of(self, batch: int, table: str, rows: Rows, error: TargetUnfitError) -> TargetAside:
        return TargetAside(self.query, table, any(row["key"] for row in rows), batch, error.what)

    def _mark(self, session: Session, target: TargetAside) -> None:
        name, content = self.registered(target.table), target.to_bytes().decode()
        self._books.mark(session, name, target.table, target.error, content)

    def mark(self, target: TargetAside) -> None:
        """Mark a target as one that is set aside."""
        self._mark(self.session(), target)

    def _tell(self, table: str, column: str) -> None:
        if (table, column) not in self._told:
            self._told.add((table, column))
            log.warning("values_are_null_in_the_target", table=table, column=column, why="its type has no such value")


class _Marks:
    """The marks of targets that are set aside, in the database itself (``Marks``)."""

    def __init__(self, targets: RelationalTargets) -> None:
        self._targets = targets

    def put(self, table: str, content: bytes) -> None:  # noqa: ARG002
        """Mark a table, which ``content`` names."""
        self._targets.mark(TargetAside.from_bytes(content))

    def get(self, table: str) -> bytes | None:
        """Return what a table was marked with; None: it isn't marked."""
        content = self._targets.books.marked(self._targets.session(), self._targets.registered(table))
        return None if content is None else content.encode()

    def is_removed(self, table: str) -> bool:
        """Return whether the mark is gone: the target is emptied then, and read again."""
        return self.get(table) is None

    def place(self, table: str) -> str:
        """Return the row that a user deletes to take a table back."""
        return f"the row of '{table}' in {self._targets.marks_table}"
