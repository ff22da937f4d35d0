"""Tables of a relational database as targets that can be rebuilt.

The shadow is a table of its own, which the query writes in the transaction of each micro-batch. In the end one
transaction makes the target's rows those of the shadow, so the target keeps its indexes, rights and other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetChangedError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced
from floodmark.sinks.relational.bookkeeping import REBUILDS, Bookkeeping
from floodmark.sinks.relational.connect import dialect_of, persistent
from floodmark.sinks.relational.dialect import Session
from floodmark.sinks.relational.failures import busy
from floodmark.sinks.relational.names import registered_name, target_of
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import POSITION
from floodmark.sinks.relational.reading.target import RelationalTarget, RelationalView
from floodmark.sinks.relational.rebuilding.marks import RebuiltTarget, RebuiltTargets

log = get_logger(__name__)

_AGAIN = "Rebuild the table again."
T = TypeVar("T")


def rebuilt_tables(options: JdbcOptions, query: str) -> list[RebuildMark]:
    """Return the marks of a query's tables that are rebuilt.

    Args:
        options: the sink's.
        query: the query's id.

    Raises:
        ConfigError: the driver is not installed.
        TargetError: the database can't be used, or a mark is damaged.
    """
    dialect = dialect_of(options)
    with closing(dialect.connect()) as session:
        known = dialect.table(session, REBUILDS) is not None
        found = RebuiltTargets(dialect, query).all(session) if known else []
        return [one.mark for one in found if not one.replaced]


class RebuildableRelation:
    """A ``RebuildableTarget``.

    Args:
        options: the sink's.
        source: the source's.
        table: the source's name of the table.
        query: the id of the query that writes it.

    Raises:
        ConfigError: the driver is not installed.
    """

    def __init__(self, options: JdbcOptions, source: CommonOptions, table: str, query: str) -> None:
        self._options = options
        self._table = table
        self._query = query
        self._dialect = dialect_of(options)
        self._name = target_of(options.collection_name_format, table, source)
        self._registered = registered_name(self._name, self._dialect.folds_names)
        self._target = RelationalTarget(options, source, table)
        self._books = Bookkeeping(self._dialect, query)
        self._rebuilt = RebuiltTargets(self._dialect, query)

    def view(self) -> RelationalView:
        """Return the table as it is now (``RebuildableTarget``)."""
        return persistent(self._options, self._target.view)

    def prove_written(self) -> None:
        """Check that the table gets rows (``RebuildableTarget``)."""
        self.view()

    def mark(self) -> RebuildMark | None:
        """Return the table's mark (``RebuildableTarget``)."""
        found = self._with_session(self._known)
        return None if found is None else found.mark

    def begin(self, mark: RebuildMark) -> bool:
        """Make the shadow, and mark the table (``RebuildableTarget``)."""
        return self._with_session(lambda session: self._begin(session, mark))

    def _begin(self, session: Session, mark: RebuildMark) -> bool:
        found = self._known(session)
        if found is not None:
            # Where the answer was lost that this one was marked.
            return found.mark.id == mark.id
        self._drop(session, self._dialect.stages(session, self._rebuilt.shadows(self._registered)))
        shadow = self._rebuilt.shadow(self._registered, mark)
        for statement in self._dialect.create_shadow(session, shadow, self._name, self._target.view().key):
            session.execute(statement, doing=f"making the table '{shadow}'")
        with self._locked(session) as batch:
            if self._known(session) is not None:
                return False
            self._rebuilt.add(session, self._registered, mark, batch)
        return True

    def is_replaced(self, mark: RebuildMark) -> bool:
        """Return whether the table has the shadow's rows already (``RebuildableTarget``)."""
        found = self._with_session(self._known)
        return found is not None and found.mark.id == mark.id and found.replaced

    def attempt(self, mark: RebuildMark, empty: bool) -> Replaced:  # noqa: ARG002
        """Give the table the shadow's rows, in one transaction (``RebuildableTarget``).

        The query waits meanwhile; both tables have the same micro-batches.
        """
        self._with_session(lambda session: self._replace(session, mark))
        return Replaced.DONE

    def _replace(self, session: Session, mark: RebuildMark) -> None:
        with self._locked(session) as batch:
            found = self._known(session)
            if found is None or found.mark.id != mark.id:
                raise TargetChangedError(f"The rebuilding of '{self._table}' was cancelled meanwhile.", _AGAIN)
            if found.replaced:
                return
            self._prove_complete(session, found, batch)
            key, doing = self._target.view().key, f"replacing the rows of the table '{self._name}'"
            shadow = self._dialect.full_name(self._rebuilt.shadow(self._registered, mark))
            target = self._dialect.full_name(self._name)
            session.execute(self._dialect.delete_others(target, shadow, key), doing=doing)
            if found.columns is not None:
                columns = [*found.columns, POSITION]
                session.execute(self._dialect.take_over(target, shadow, columns, key), doing=doing)
            self._rebuilt.keep_replaced(session, self._registered)

    def _prove_complete(self, session: Session, found: RebuiltTarget, batch: int) -> None:
        """Check that the table is the query's, and that the shadow has all that it has."""
        if found.mark.error:
            raise TargetChangedError(f"The table '{self._table}' can't be rebuilt. {found.mark.error}", _AGAIN)
        owners = self._books.owners(session, self._registered)
        if not any(one.query == self._query and one.owned and not one.stale for one in owners):
            raise TargetChangedError(f"Another query writes the target table '{self._name}' now, or none.", _AGAIN)
        if found.written != batch:
            raise TargetChangedError(
                f"The shadow of '{self._table}' has micro-batch {found.written}, but the target has {batch}: another "
                "Floodmark has written it meanwhile, or it was restored from a backup.",
                _AGAIN,
            )

    def finish(self, mark: RebuildMark) -> None:
        """Drop the shadow, and remove the mark (``RebuildableTarget``)."""
        self._with_session(lambda session: self._remove(session, mark))

    def give_up(self, mark: RebuildMark) -> None:
        """Drop the shadow, and remove the mark (``RebuildableTarget``)."""

        def act(session: Session) -> None:
            with self._locked(session):
                found = self._known(session)
                if found is None or found.mark.id != mark.id:
                    return
                # The query writes no shadow from now on.
                self._rebuilt.fail(session, found, "The rebuilding was cancelled.")
            self._remove(session, mark)

        self._with_session(act)

    def _remove(self, session: Session, mark: RebuildMark) -> None:
        # In this order, so that a process that is killed in between leaves what the next one finds.
        self._drop(session, [self._rebuilt.shadow(self._registered, mark)])
        with self._locked(session):
            found = self._known(session)
            if found is not None and found.mark.id == mark.id:
                self._rebuilt.remove(session, self._registered)

    def failure(self, error: Exception) -> TargetError:
        """Return the error for a connection that fails (``RebuildableTarget``)."""
        return busy(self._dialect.title, f"rebuilding '{self._table}'", str(error))

    def _known(self, session: Session) -> RebuiltTarget | None:
        return self._rebuilt.get(session, self._registered)

    def _drop(self, session: Session, names: list[str]) -> None:
        for name in names:
            session.execute(self._dialect.drop_stage(name, temporary=False), doing=f"dropping the table '{name}'")

    @contextmanager
    def _locked(self, session: Session) -> Iterator[int]:
        """Yield the last micro-batch of the query, which writes none until the transaction ends."""
        session.begin()
        try:
            yield self._books.offset(session, lock=True)[0]
            session.commit()
        except BaseException:
            session.rollback()
            raise

    def _with_session(self, act: Callable[[Session], T]) -> T:
        """Do something on a connection, and again after an error that may pass."""

        def once() -> T:
            with closing(self._dialect.connect()) as session:
                # An earlier Floodmark has made its tables without this one.
                self._books.create(session)
                return act(session)

        return persistent(self._options, once)
