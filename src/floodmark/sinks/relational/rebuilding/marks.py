"""Which targets of a query are rebuilt, as a table of the target database says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from floodmark.errors import TargetDamagedError
from floodmark.logger import get_logger
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.relational.bookkeeping import REBUILDS
from floodmark.sinks.relational.dialect import Dialect, Session

log = get_logger(__name__)

_PREFIX = "floodmark_shadow_"
_READING, _WRITING = "reading which targets are rebuilt", "writing which targets are rebuilt"


@dataclass(frozen=True)
class RebuiltTarget:
    """A target that is rebuilt.

    Attributes:
        target: its name in Floodmark's own tables.
        mark: the table's.
        written: the last micro-batch that the shadow has, too.
        columns: those that the query writes, in the order of their names; None: it hasn't written the shadow yet.
        replaced: whether the target has the shadow's rows.
    """

    target: str
    mark: RebuildMark
    written: int
    columns: Sequence[str] | None
    replaced: bool


class RebuiltTargets:
    """The targets of a query that are rebuilt.

    Args:
        dialect: the database's.
        query: the query's id.
    """

    def __init__(self, dialect: Dialect, query: str) -> None:
        self._dialect = dialect
        self._query = query

    def shadows(self, target: str) -> str:
        """Return the beginning of the names of a target's shadows."""
        return f"{_PREFIX}{blake2b(f'{self._query} {target}'.encode(), digest_size=6).hexdigest()}_"

    def shadow(self, target: str, mark: RebuildMark) -> str:
        """Return the name of the table that is a target's shadow."""
        return f"{self.shadows(target)}{blake2b(mark.id.encode(), digest_size=4).hexdigest()}"

    def all(self, session: Session) -> list[RebuiltTarget]:
        """Return those whose marks aren't damaged: ``get`` raises the error for whoever rebuilds the others."""
        found = []
        for row in self._rows(session, "query = %s", (self._query,)):
            try:
                found.append(_of_row(row))
            except TargetDamagedError as error:
                log.error("a_rebuilding_is_given_up", error=str(error))
        return found

    def get(self, session: Session, target: str) -> RebuiltTarget | None:
        """Return what is known of a target; None: it isn't rebuilt.

        Raises:
            TargetDamagedError: that is damaged.
        """
        rows = self._rows(session, "query = %s AND target = %s", (self._query, target))
        return _of_row(rows[0]) if rows else None

    def add(self, session: Session, target: str, mark: RebuildMark, written: int) -> None:
        """Mark a target.

        Args:
            written: the last micro-batch that the query has written.
        """
        session.execute(
            f"INSERT INTO {self._name} (query, target, mark, written, replaced) VALUES (%s, %s, %s, %s, %s)",
            (self._query, target, mark.to_bytes().decode(), written, self._dialect.flag(False)),
            _WRITING,
        )

    def fail(self, session: Session, found: RebuiltTarget, error: str) -> None:
        """Note that a shadow isn't complete."""
        self._set(session, found.target, "mark", replace(found.mark, error=error).to_bytes().decode())

    def keep_columns(self, session: Session, target: str, columns: Sequence[str]) -> None:
        """Note which columns the query writes."""
        self._set(session, target, "columns_written", json.dumps([*columns]))

    def keep_replaced(self, session: Session, target: str) -> None:
        """Note that a target has its shadow's rows, in the transaction that gives it them."""
        self._set(session, target, "replaced", self._dialect.flag(True))

    def keep_written(self, session: Session, target: str, batch: int) -> None:
        """Note which micro-batch a shadow has, in its transaction."""
        self._set(session, target, "written", batch)

    def remove(self, session: Session, target: str) -> None:
        """Remove the mark of a target."""
        statement = f"DELETE FROM {self._name} WHERE query = %s AND target = %s"
        session.execute(statement, (self._query, target), _WRITING)

    def _rows(self, session: Session, condition: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        columns = "target, mark, written, columns_written, replaced"
        return session.query(f"SELECT {columns} FROM {self._name} WHERE {condition}", values, _READING)

    def _set(self, session: Session, target: str, column: str, value: Any) -> None:
        statement = f"UPDATE {self._name} SET {column} = %s WHERE query = %s AND target = %s"
        session.execute(statement, (value, self._query, target), _WRITING)

    @property
    def _name(self) -> str:
        # Every statement here has values, so a percent sign in the schema's name must be doubled.
        return self._dialect.full_name(REBUILDS).replace("%", "%%")


def _of_row(row: tuple[Any, ...]) -> RebuiltTarget:
    target, mark, written, names, replaced = row
    known = RebuildMark.from_bytes(mark.encode(), f"the row of '{target}' in {REBUILDS}")
    return RebuiltTarget(target, known, int(written), None if names is None else json.loads(names), bool(replaced))
