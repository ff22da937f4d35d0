"""Applies what tasks have made of a table's rows to its target, within the transaction of the micro-batch.

Parts of the log are applied one after the other in the order of the log, so that each finds in the target the values
that it lacks. Rows that a snapshot has read come before them, except those that were read after a change which needs
the value that they would replace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, pairwise

import pyarrow as pa

from floodmark.errors import TargetError
from floodmark.sinks.relational.bookkeeping import Bookkeeping
from floodmark.sinks.relational.dialect import Dialect, Session
from floodmark.sinks.relational.parts import OPERATION, POSITION, Part, stage_schema
from floodmark.sinks.relational.preparation import Prepared
from floodmark.sinks.relational.staging import prove_staged

_POSITION, _OPERATION = -1, -2
"""The numbers of the columns that every staging table has."""
_NUMBERS = count()
"""Numbers of staging tables, so that a session has no two with one name."""


class SessionStages:
    """The staging tables of a session, for rows that come through the driver.

    Args:
        dialect: the database's.
        session: the connection that they belong to.
    """

    def __init__(self, dialect: Dialect, session: Session) -> None:
        self._dialect = dialect
        self._session = session
        self._free: dict[pa.Schema, list[str]] = {}
        self._taken: list[tuple[pa.Schema, str]] = []

    def take(self, columns: pa.Schema) -> str:
        """Return the name, quoted, of an empty table with some columns."""
        free = self._free.get(columns)
        if free:
            stage = free.pop()
        else:
            name = f"floodmark_{next(_NUMBERS)}"
            statement = self._dialect.create_stage(name, columns, temporary=True)
            self._session.execute(statement, doing="making a staging table")
            stage = self._dialect.stage_name(name, temporary=True)
        self._taken.append((columns, stage))
        return stage

    def drop(self, stage: str) -> None:
        """Drop a table whose rows are applied, unless a commit empties it."""
        if not self._dialect.keeps_stages:
            self._session.execute(self._dialect.drop_own(stage), doing="dropping a staging table")

    def committed(self) -> None:
        """Called after a commit."""
        if self._dialect.keeps_stages:
            for columns, stage in self._taken:
                self._free.setdefault(columns, []).append(stage)
        self._taken = []

    def forget(self) -> None:
        """Called when a part of a transaction was undone, which may have made tables."""
        self._free, self._taken = {}, []

    @property
    def count(self) -> int:
        """How many tables it keeps."""
        return sum(map(len, self._free.values()))


class Merge:
    """Applies rows to targets, over one connection.

    Args:
        dialect: the database's.
        session: within a transaction.
        stages: the staging tables of the session.
        lost: called with a table's source name and a column whose values the database can't hold.
    """

    def __init__(
        self, dialect: Dialect, session: Session, stages: SessionStages, lost: Callable[[str, str], None]
    ) -> None:
        self._dialect = dialect
        self._session = session
        self._stages = stages
        self._lost = lost

    def empty(self, target: Prepared, books: Bookkeeping, registered: str) -> None:
        """Remove the rows that a target has.

        Args:
            target: the target.
            books: what the database keeps of the query.
            registered: the target's name there.
        """
        name = self._dialect.full_name(target.name)
        self._session.execute(f"DELETE FROM {name}", doing=f"emptying the table '{target.name}'")
        books.own(self._session, registered, target.table, target.key)

    def apply(self, target: Prepared) -> None:
        """Apply a micro-batch to a target, or to its shadow before that.

        Args:
            target: the target, with the rows.

        Raises:
            TargetUnfitError: the target can't take the rows.
        """
        logged = sorted((part for part in target.parts if not part.is_read), key=lambda part: part.first)
        read = sorted((part for part in target.parts if part.is_read), key=lambda part: part.end)
        if not target.key:
            for part in (*read, *logged):
                self._append(target, part)
            return
        _prove_in_order(target.table, logged)
        waiting = [(part, self._staged(target, part)) for part in read]
        lacking = any(part.lacking for part in logged)
        if not lacking:
            for part, stage in waiting:
                self._upsert(target, part, stage)
                self._drop(target, part, stage)
            waiting = []
        for part in logged:
            stage = self._staged(target, part)
            waiting = [kept for one in waiting if (kept := self._before(target, one, part, stage)) is not None]
            self._apply(target, part, stage)
            for reads, at in waiting:
                self._supersede(reads, at, part, stage)
            self._drop(target, part, stage)
        for part, stage in waiting:
            self._upsert(target, part, stage)
            self._drop(target, part, stage)

    def _apply(self, target: Prepared, part: Part, stage: str) -> None:
        """Apply a part of the log to a table with a key."""
        name = self._dialect.full_name(target.name)
        doing = f"writing the table '{target.name}'"
        if part.truncated:
            # Of rows that others have inserted it may be null.
            position = self._dialect.quote(POSITION)
            older = f"({position} IS NULL OR {position} < %s{self._dialect.position_order()})"
            statement = f"DELETE FROM {name.replace('%', '%%')} WHERE {older}"
            self._session.execute(statement, (part.truncated,), doing)
        if part.lacking:
            at = [(part.columns.get_field_index(one), one) for one in part.lacking]
            values = [(number, one, self._dialect.column_type(part.columns.field(one).type)) for number, one in at]
            key = [(number, one, target.casts[one]) for number, one in enumerate(part.key)]
            self._session.execute(self._dialect.fill(name, stage, values, key), doing=doing)
        self._session.execute(self._dialect.delete(name, stage, _columns(target, part, part.key)), doing=doing)
        self._upsert(target, part, stage)

    def _upsert(self, target: Prepared, part: Part, stage: str) -> None:
        statement = self._dialect.upsert(
            self._dialect.full_name(target.name), stage, _columns(target, part, part.columns.names), part.key
        )
        self._session.execute(statement, doing=f"writing the table '{target.name}'")

    def _append(self, target: Prepared, part: Part) -> None:
        stage = self._staged(target, part)
        own = [(_OPERATION, OPERATION, target.casts[OPERATION]), (_POSITION, POSITION, target.casts[POSITION])]
        columns = [*_columns(target, part, part.columns.names), *own]
        statement = self._dialect.append(self._dialect.full_name(target.name), stage, columns)
        self._session.execute(statement, doing=f"writing the table '{target.name}'")
        self._drop(target, part, stage)

    def _before(self, target: Prepared, waiting: tuple[Part, str], part: Part, stage: str) -> tuple[Part, str] | None:
        """Apply those rows that were read which come before a part of the log; return the others."""
        reads, at = waiting
        later = None
        if part.lacking:
            columns = stage_schema(reads.columns, reads.key, [])
            later = self._stages.take(columns)
            numbers = [reads.columns.get_field_index(name) for name in part.key]
            for statement in self._dialect.defer(at, later, stage, columns.names, numbers, range(len(part.key))):
                self._session.execute(statement, doing=f"sorting rows of the table '{target.name}'")
        self._upsert(target, reads, at)
        self._drop(target, reads, at)
        return None if later is None else (reads.in_stage(""), later)

    def _supersede(self, reads: Part, at: str, part: Part, stage: str) -> None:
        doing = "sorting rows that were read"
        pairs = [(reads.columns.get_field_index(name), part.columns.get_field_index(name)) for name in part.key]
        self._session.execute(self._dialect.drop_superseded(at, stage, pairs), doing=doing)
        if part.truncated:
            older = f"p < %s{self._dialect.position_order()}"
            self._session.execute(f"DELETE FROM {at.replace('%', '%%')} WHERE {older}", (part.truncated,), doing)

    def _staged(self, target: Prepared, part: Part) -> str:
        """Return the staging table of a part, quoted; rows that came through the driver are loaded into one."""
        if part.staged:
            prove_staged(self._dialect, self._session, part)
            staged = self._dialect.stage_name(part.staged, temporary=False)
            return self._copied(part, staged) if target.is_shadow else staged
        rows = part.rows
        assert rows is not None
        stage = self._stages.take(rows.schema)
        for name in self._session.load(stage, rows):
            if name[0] == "c":
                self._lost(target.table, part.columns.names[int(name[1:])])
        return stage

    def _copied(self, part: Part, staged: str) -> str:
        """Return a staging table of the session with the rows of a task's, which applying them changes."""
        columns = stage_schema(part.columns, part.key, part.lacking)
        stage, names = self._stages.take(columns), ", ".join(columns.names)
        statement = f"INSERT INTO {stage} ({names}) SELECT {names} FROM {staged}"
        self._session.execute(statement, doing="copying staged rows")
        return stage

    def _drop(self, target: Prepared, part: Part, stage: str) -> None:
        """Drop a staging table of the session; those of tasks are dropped after the commit."""
        if target.is_shadow or not part.staged:
            self._stages.drop(stage)


def _columns(target: Prepared, part: Part, names: Sequence[str]) -> list[tuple[int, str, str]]:
    return [(part.columns.get_field_index(name), name, target.casts[name]) for name in names]


def _prove_in_order(table: str, parts: Sequence[Part]) -> None:
    """Check that parts of the log don't overlap.

    Raises:
        TargetError: they do, so that no order of them would be right.
    """
    for one, other in pairwise(parts):
        if other.first <= one.last:
            raise TargetError(
                f"The changes of the table '{table}' come in tasks that overlap: the stream was repartitioned.",
                "Give the sink the stream as the source delivers it.",
            )
