"""Makes target tables ones that can take the rows of a micro-batch, before its transaction begins.

What is done here can be done again: a micro-batch that fails afterwards finds it done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetBusyError, TargetChangedError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.relational.bookkeeping import Bookkeeping, Ownership
from floodmark.sinks.relational.dialect import Dialect, Session, TargetTable
from floodmark.sinks.relational.names import registered_name, target_of
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import OPERATION, POSITION, Part
from floodmark.sinks.table_policies import TablePolicies

log = get_logger(__name__)

_REMOVE = "Remove the target table, and start the query with the sink's option missing.tables=read."


@dataclass(frozen=True)
class Prepared:
    """A target that can take its rows.

    Attributes:
        table: the source's name of the table.
        name: the target's.
        key: the columns of the key; empty without one.
        parts: what tasks have made of the rows.
        casts: the types that values of its columns are cast to (``TargetColumn.cast``).
        empties: whether the rows that it has are to be removed.
        is_shadow: whether it is the shadow of a target, which gets the same rows afterwards.
    """

    table: str
    name: str
    key: Sequence[str]
    parts: Sequence[Part]
    casts: Mapping[str, str]
    empties: bool
    is_shadow: bool = False


class Preparation:
    """Prepares the targets of a query.

    Args:
        dialect: the database's.
        books: what the database keeps of the query.
        source: the source's options.
        options: the sink's.
        policies: what the options say about tables that are missing, and new columns.
        query: the query's id.
    """

    def __init__(
        self,
        dialect: Dialect,
        books: Bookkeeping,
        source: CommonOptions,
        options: JdbcOptions,
        policies: TablePolicies,
        query: str,
    ) -> None:
        self._dialect = dialect
        self._books = books
        self._source = source
        self._options = options
        self._policies = policies
        self._query = query
        self._emptying: set[str] = set()

    def is_taken_back(self, table: str) -> None:
        """Called when a target is to be emptied and its table read again, as others have seen to."""
        self._emptying.add(table)

    def target_of(self, table: str) -> str:
        """Return the name of a table's target."""
        return target_of(self._options.collection_name_format, table, self._source)

    def registered(self, name: str) -> str:
        """Return a name in the form in which the database compares names, and by which its own tables know it."""
        return registered_name(name, self._dialect.folds_names)

    def prepare(self, session: Session, table: str, parts: Sequence[Part]) -> Prepared:
        """Prepare a table's target.

        Raises:
            TargetUnfitError: it can't take the rows.
            TargetChangedError: others have changed it so that the query can't go on.
        """
        name = self.target_of(table)
        self._dialect.prove_name(name, "name of the table")
        found = self._dialect.table(session, name)
        chosen, columns = self._agreeing(table, parts, found is not None)
        key = chosen[0].key
        self._prove_columns(columns)
        owners = self._books.owners(session, self.registered(name))
        mine = next((one for one in owners if one.query == self._query), None)
        self._prove_own(name, table, mine, owners)
        if mine is not None and mine.stale and table not in self._emptying:
            # The mark was removed, and state.dir, which would know of it, is lost. Or the process that was to empty
            # the target was killed; then the table is read twice.
            self._policies.is_taken_back(table, bool(key))
            self._emptying.add(table)
        empties, is_changed = False, True
        if found is None:
            self._create(session, table, name, columns, key, mine)
        else:
            empties = self._admitted(session, table, name, key, found, mine)
            is_changed = self._fit(session, table, name, columns, key, found, empties)
        self._policies.exists(table)
        known = self._dialect.table(session, name) if is_changed else found
        if known is None:
            raise TargetBusyError(f"The target table '{name}' was dropped while it was prepared.", _REMOVE)
        named = {self.registered(one): column.cast for one, column in known.columns.items()}
        casts = {one: named[self.registered(one)] for one in (*columns.names, POSITION)}
        casts |= {} if key else {OPERATION: named[OPERATION]}
        return Prepared(table, name, key, chosen, casts, empties)

    def _agreeing(self, table: str, parts: Sequence[Part], exists: bool) -> tuple[list[Part], pa.Schema]:
        """Return the parts that go with the newest one, and the columns of all of them.

        The others are left out only where the target is to be made, and then the table is read again.
        """
        newest, *older = sorted(parts, key=lambda part: part.end, reverse=True)
        chosen, columns, torn = [newest], newest.columns, False
        for part in older:
            try:
                both = pa.unify_schemas([columns, part.columns], promote_options="permissive")
            except pa.ArrowException:
                both = None
            if both is not None and part.key == newest.key:
                chosen.append(part)
                columns = both
            elif exists:
                raise TargetUnfitError(
                    f"The {'types' if part.key == newest.key else 'key'} of the table '{table}' changed within a "
                    "micro-batch: its rows in the target can't be told apart any more, or have no type in common.",
                    _REMOVE,
                )
            else:
                torn = True
        if torn:
            self._policies.is_missing(table, bool(newest.key), torn=True)
        return chosen, columns

    def _prove_columns(self, columns: pa.Schema) -> None:
        """Check the names of columns."""
        seen: dict[str, str] = {}
        for name in columns.names:
            self._dialect.prove_name(name, "name of the column")
            other = seen.setdefault(self.registered(name), name)
            if other != name or (self._dialect.folds_names and name.casefold() in (POSITION, OPERATION)):
                raise TargetUnfitError(
                    f"The columns '{other}' and '{name}' can't be in one target: names that differ only in case are "
                    f"the same in {self._dialect.title}.",
                    "Leave one of them out with column.exclude.list.",
                )

    def _prove_own(self, name: str, table: str, mine: Ownership | None, owners: Sequence[Ownership]) -> None:
        """Check that the target is this table's, and no other query's by now."""
        if mine is None:
            return
        if mine.source != table:
            raise TargetUnfitError(
                f"The tables '{mine.source}' and '{table}' would have the same target, '{name}'.",
                "Tell them apart with collection.name.format, or leave one of them out.",
            )
        if not mine.owned and any(one.owned for one in owners):
            raise TargetChangedError(
                f"Another query has emptied the target table '{name}' and writes it now.",
                "Give each query targets of its own (collection.name.format). To take the table over, end the other "
                "one, and start this one with a new checkpoint and the sink's option existing.tables=empty.",
            )

    def _create(
        self, session: Session, table: str, name: str, columns: pa.Schema, key: Sequence[str], mine: Ownership | None
    ) -> None:
        if mine is not None and not mine.stale:
            # The database remembers it even if state.dir was lost.
            self._policies.exists(table)
        self._policies.is_missing(table, bool(key))
        if self._options.schema_evolution == "none":
            raise TargetUnfitError(
                f"The target table '{name}' doesn't exist, and schema.evolution is none.",
                "Make it, or set schema.evolution to basic.",
            )
        position = self._dialect.position_type()
        wanted = [(one.name, self._type(one, key)) for one in columns]
        wanted += [] if key else [(OPERATION, position)]
        wanted += [(POSITION, f"{position} NOT NULL")]
        session.execute(self._dialect.create(name, wanted, key), doing=f"making the table '{name}'")
        self._books.own(session, self.registered(name), table, key)
        log.info("a_target_is_made", table=table, target=name)

    def _type(self, column: pa.Field, key: Sequence[str]) -> str:
        return self._dialect.column_type(column.type, len(key) if column.name in key else 0)

    def _admitted(
        self,
        session: Session,
        table: str,
        name: str,
        key: Sequence[str],
        found: TargetTable,
        mine: Ownership | None,
    ) -> bool:
        """Return whether a target that exists is to be emptied first.

        Raises:
            TargetChangedError: it has rows that the query hasn't written, and they may not be removed.
            TargetUnfitError: it was made for another key.
        """
        if mine is not None and not mine.stale and frozenset(mine.key) != frozenset(key):
            raise TargetUnfitError(
                f"The target table '{name}' was made for the key ({', '.join(mine.key)}), but the source's is "
                f"({', '.join(key)}).",
                _REMOVE,
            )
        if key and frozenset(key) not in found.unique:
            raise TargetUnfitError(
                f"The target table '{name}' has no primary key and no unique index with the columns of the source's "
                f"key, ({', '.join(key)}).",
                "Add one, or remove the table and let it be made.",
            )
        if mine is not None and mine.owned:
            return mine.stale
        rows = self._has_rows(session, name)
        if rows and self._options.existing_tables == "fail":
            raise TargetChangedError(
                f"The target table '{name}' has rows that this query has not written; its checkpoint is new, or "
                "another one's. Rows that the source deleted in between would stay.",
                "Set the sink's option existing.tables to 'empty', remove the table, give the query other targets "
                "(collection.name.format), or start it with the checkpoint that belongs to the target.",
            )
        self._books.own(session, self.registered(name), table, key, stale=rows)
        self._emptying.add(table)
        return rows

    def _fit(
        self,
        session: Session,
        table: str,
        name: str,
        columns: pa.Schema,
        key: Sequence[str],
        found: TargetTable,
        empties: bool,
    ) -> bool:
        """Add the columns that a target lacks, and widen those that are too narrow; return whether there were any.

        Raises:
            TargetUnfitError: a column has another type, or the target may not be altered.
        """
        position = self._dialect.position_type()
        own = [(POSITION, position)] if key else [(OPERATION, position), (POSITION, position)]
        named = {self.registered(one): one for one in found.columns}
        added = [(one, kind) for one, kind in own if one not in found.columns]
        new, wider = [], []
        for field in columns:
            at = named.get(self.registered(field.name))
            if at is None:
                new.append(field.name)
                added.append((field.name, self._type(field, key)))
            elif not self._dialect.accepts(found.columns[at].kind, field.type):
                wanted = self._type(field, key)
                if not self._dialect.widens(found.columns[at].kind, field.type):
                    raise TargetUnfitError(
                        f"The column '{field.name}' of the target table '{name}' is {found.columns[at].kind}, but the "
                        f"source's would be {wanted}.",
                        "Alter the column, or remove the table and let it be made.",
                    )
                wider.append((field.name, wanted))
        if (added or wider) and self._options.schema_evolution == "none":
            shown = ", ".join(one for one, _ in (*added, *wider))
            raise TargetUnfitError(
                f"The target table '{name}' lacks columns, or has them with narrower types: {shown}; and "
                "schema.evolution is none.",
                "Alter it, or set schema.evolution to basic.",
            )
        if new and key and not empties and self._has_rows(session, name):
            # Before they are added, so that a query that is killed in between asks twice rather than not at all.
            self._policies.gets_columns(table, new)
        if added:
            session.execute(self._dialect.add_columns(name, added), doing=f"adding columns to the table '{name}'")
        if wider:
            log.warning("columns_get_other_types", table=table, target=name, columns=dict(wider))
            session.execute(self._dialect.change_types(name, wider), doing=f"widening columns of the table '{name}'")
        return bool(added or wider)

    def _has_rows(self, session: Session, name: str) -> bool:
        statement = f"SELECT 1 FROM {self._dialect.full_name(name)} LIMIT 1"
        return bool(session.query(statement, doing=f"reading the table '{name}'"))
