"""Writes the shadows of targets that are rebuilt, in the transaction of each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from floodmark.errors import TargetBusyError, TargetError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.relational.dialect import Dialect, Session
from floodmark.sinks.relational.merge import Merge, SessionStages
from floodmark.sinks.relational.preparation import Prepared
from floodmark.sinks.relational.rebuilding.marks import RebuiltTarget, RebuiltTargets

log = get_logger(__name__)


class Shadows:
    """The shadows of a query's targets.

    Args:
        dialect: the database's.
        query: the query's id.
    """

    def __init__(self, dialect: Dialect, query: str) -> None:
        self._dialect = dialect
        self._targets = RebuiltTargets(dialect, query)
        self._found: Mapping[str, RebuiltTarget] = {}
        self._told: set[str] = set()

    def exist(self, session: Session) -> bool:
        """Return whether any target is rebuilt."""
        return bool(self._unfinished(session))

    def begin(self, session: Session) -> None:
        """Look up which targets are rebuilt; called at the beginning of each transaction."""
        self._found = {one.target: one for one in self._unfinished(session)}

    def _unfinished(self, session: Session) -> list[RebuiltTarget]:
        return [one for one in self._targets.all(session) if not one.replaced and not one.mark.error]

    def write(
        self, batch: int, session: Session, merge: Merge, stages: SessionStages, target: Prepared, registered: str
    ) -> None:
        """Write the shadow of a target, if it is rebuilt, before the target is written.

        Where the shadow can't be written, the query goes on without it.

        Args:
            batch: the number of the micro-batch.
            session: within its transaction.
            merge: applies rows.
            stages: the staging tables of the session.
            target: the target, with the rows.
            registered: its name in Floodmark's own tables.

        Raises:
            TargetBusyError: the database can't be used now.
        """
        found = self._found.get(registered)
        if found is None:
            return
        if found.mark.id not in self._told:
            self._told.add(found.mark.id)
            log.info("a_table_is_rebuilt", table=target.table, id=found.mark.id, effect="a shadow gets its rows, too")
        session.execute("SAVEPOINT floodmark_shadow")
        try:
            self._write(session, merge, target, found)
            session.execute("RELEASE SAVEPOINT floodmark_shadow")
        except TargetBusyError:
            raise
        except TargetError as error:
            session.execute("ROLLBACK TO SAVEPOINT floodmark_shadow")
            stages.forget()
            self.fail(session, registered, f"Micro-batch {batch} couldn't be written: {error.what}")

    def _write(self, session: Session, merge: Merge, target: Prepared, found: RebuiltTarget) -> None:
        if target.empties:
            raise TargetUnfitError("The target is emptied, and the table is read again anyway.")
        names = sorted({name for part in target.parts for name in part.columns.names})
        if any(len(part.columns) != len(names) for part in target.parts) or (found.columns or names) != names:
            raise TargetUnfitError(f"The table '{target.table}' was altered while it was rebuilt.")
        shadow = self._targets.shadow(found.target, found.mark)
        if self._dialect.table(session, shadow) is None:
            raise TargetUnfitError(f"The table '{shadow}' is gone.")
        if found.columns is None:
            self._targets.keep_columns(session, found.target, names)
        merge.apply(replace(target, name=shadow, is_shadow=True))

    def fail(self, session: Session, registered: str, reason: str) -> None:
        """Note that a target's shadow, if it has one, gets no more rows."""
        found = self._found.get(registered)
        if found is None:
            return
        self._targets.fail(session, found, reason)
        self._found = {name: one for name, one in self._found.items() if name != registered}
        log.error("a_rebuilding_has_failed", table=found.mark.table, error=reason)

    def end(self, session: Session, batch: int) -> None:
        """Note which micro-batch the shadows have; called before the transaction is committed."""
        for target in self._found:
            self._targets.keep_written(session, target, batch)
