"""Tables of a relational database as targets that can be compared with the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.options import Mode
from floodmark.sinks.relational.bookkeeping import TABLES, Bookkeeping, Ownership
from floodmark.sinks.relational.connect import dialect_of
from floodmark.sinks.relational.dialect import Dialect, Session, TargetColumn
from floodmark.sinks.relational.names import registered_name, target_of
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import OPERATION, POSITION, stage_schema

_POSITIONS = pa.schema([(POSITION, pa.string())])


class RelationalTarget:
    """A ``VerifiableTarget``.

    Args:
        options: the sink's.
        source: the source's.
        table: the source's name of the table.
    """

    # Its key is unique.
    replaces_doubled = True

    def __init__(self, options: JdbcOptions, source: CommonOptions, table: str) -> None:
        self._options = options
        self._table = table
        self._dialect = dialect_of(options)
        self._name = target_of(options.collection_name_format, table, source)

    def exists(self) -> bool:
        """Return whether there is a table."""
        with closing(self._dialect.connect()) as session:
            return self._dialect.table(session, self._name) is not None

    def view(self) -> RelationalView:
        """Return the table as it is now.

        Raises:
            TargetError: there is none, no query writes it, or it is set aside.
        """
        with closing(self._dialect.connect()) as session:
            found = self._dialect.table(session, self._name)
            if found is None:
                raise TargetError(
                    f"There is no table '{self._name}' in the target {self._options.connection_url}.",
                    "The sink makes it with the first micro-batch that has rows of the table.",
                )
            owner, batch = self._owner(session)
        return RelationalView(self._options, self._name, found.columns, owner, batch)

    def delete(self, rows: pa.Table, for_good: bool = False) -> int:  # noqa: ARG002
        """Delete rows that are as they were found (``VerifiableTarget.delete``)."""
        return self.view().delete(rows)

    def _owner(self, session: Session) -> tuple[Ownership, int]:
        """Return whose the table is, and the last micro-batch of that query."""
        known = registered_name(self._name, self._dialect.folds_names)
        books = Bookkeeping(self._dialect, "")
        owners = books.owners(session, known) if self._dialect.table(session, TABLES) is not None else []
        owner = next((one for one in owners if one.owned and one.source == self._table), None)
        if owner is None:
            raise TargetError(
                f"No query writes the table '{self._name}' in the target {self._options.connection_url} from "
                f"'{self._table}'.",
                "Give the options of the pipeline that does.",
            )
        books = Bookkeeping(self._dialect, owner.query)
        if owner.stale or books.marked(session, known) is not None:
            raise TargetError(
                f"The target '{self._name}' is set aside: it gets no rows.",
                "Mend the cause, which floodmark status shows, and delete its row of floodmark_set_aside.",
            )
        return owner, books.offset(session)[0]


class RelationalView:
    """A ``TargetView``: a table with the columns that it had at one moment. Its rows are those of when they are read.

    Args:
        options: the sink's.
        name: the table's in the target.
        columns: the table's, by name.
        owner: whose it is.
        batch: the last micro-batch of that query.
    """

    mode: Mode = "hard"
    row_estimate = 0

    def __init__(
        self, options: JdbcOptions, name: str, columns: Mapping[str, TargetColumn], owner: Ownership, batch: int
    ) -> None:
        self._options = options
        self._name = name
        self._columns = columns
        self._owner = owner
        self.version = f"micro-batch {batch}"
        self._dialect = dialect_of(options)

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key; empty if it has none."""
        return self._owner.key

    @property
    def query(self) -> str:
        """The id of the query that writes it."""
        return self._owner.query

    @property
    def shape(self) -> Callable[[pa.Table], pa.Table]:
        """What makes of the source's rows what the target can hold (``TargetView``)."""
        return Representable(self._options)

    def names(self) -> Sequence[str]:
        """Return the names of its columns, besides those that a target has for itself."""
        return [name for name in self._columns if name not in (POSITION, OPERATION)]

    def fitted(self, source: pa.Schema) -> pa.Schema:
        """Return the columns that both have and that can be compared, with a type that holds the values of both."""
        with closing(self._dialect.connect()):
            # Only then it is known which server it is.
            found = [(field, self._found(field.name)) for field in source]
        kinds = [
            (field.name, self._dialect.compared_as(column.kind, field.type))
            for field, column in found
            if column is not None
        ]
        return pa.schema([(name, kind) for name, kind in kinds if kind is not None])

    def parts(self) -> Sequence[RelationalPart]:
        """Return its parts."""
        with closing(self._dialect.connect()) as session:
            spans = self._dialect.spans(session, self._name)
        names = tuple(self._columns)
        return [RelationalPart(self._options, self._name, names, span) for span in spans]

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions."""
        wanted = pa.schema([*columns, *_POSITIONS])
        with self._staged(keys) as (session, stage):
            chosen, key = self._actual(wanted), self._key_columns(keys)
            statement = self._dialect.select_keys(self._name, stage, chosen, key)
            return pa.concat_tables([wanted.empty_table(), *session.read(statement, wanted)])

    def delete(self, rows: pa.Table) -> int:
        """Delete the rows that have the key and the position of some.

        Args:
            rows: the columns of the key, and positions.

        Raises:
            TargetError: they can't be deleted.
        """
        with self._staged(rows) as (session, stage):
            statement = self._dialect.delete_unchanged(self._name, stage, self._key_columns(rows))
            count = session.execute(statement, doing=f"deleting rows of the table '{self._name}'")
            session.commit()
            return count

    @contextmanager
    def _staged(self, rows: pa.Table) -> Iterator[tuple[Session, str]]:
        """Yield a connection within a transaction, and a staging table with the columns of the key, and positions."""
        self._key_columns(rows)
        columns = pa.schema([rows.schema.field(one) for one in self.key])
        schema = stage_schema(columns, self.key, [])
        count = rows.num_rows
        positions = rows[POSITION] if POSITION in rows.column_names else pa.nulls(count, pa.string())
        staged = pa.table([*(rows[one] for one in self.key), positions, pa.repeat(False, count)], schema=schema)
        name = f"floodmark_keys_{uuid4().hex[:12]}"
        with closing(self._dialect.connect()) as session:
            session.begin()
            try:
                stage = self._dialect.stage_name(name, temporary=True)
                session.execute(self._dialect.create_stage(name, schema, temporary=True), doing="staging keys")
                session.load(stage, staged)
                yield session, stage
            finally:
                session.rollback()

    def _key_columns(self, rows: pa.Table) -> list[tuple[int, str, str]]:
        """Return number, name and cast of each column of the key.

        Raises:
            TargetUnfitError: the target has lost one.
        """
        found = []
        for number, one in enumerate(self.key):
            column = self._found(one)
            if column is None or one not in rows.column_names:
                raise TargetUnfitError(
                    f"The target table '{self._name}' has no column '{one}' any more, which is in its key.",
                    "Remove the table, and start the query with missing.tables=read.",
                )
            found.append((number, column.name, column.cast))
        return found

    def _found(self, name: str) -> TargetColumn | None:
        return self._columns.get(_actual(name, self._columns, self._dialect.folds_names))

    def _actual(self, columns: pa.Schema) -> list[tuple[str, pa.DataType]]:
        """Return the names that columns have in the target, and the types as which they are compared."""
        found = [(self._found(one.name), one.type) for one in columns]
        return [(column.name, kind) for column, kind in found if column is not None]


def _actual(name: str, columns: Iterable[str], folds: bool) -> str:
    """Return the name that a column has in the target, which may differ in case; its own if there is none."""
    if not folds:
        return name
    return next((one for one in columns if one.casefold() == name.casefold()), name)


@dataclass(frozen=True)
class RelationalPart:
    """A ``TargetPart``: some of a table's rows.

    Attributes:
        options: the sink's.
        name: the table's in the target.
        columns: the names that its columns have there.
        span: the condition on its rows; empty: all.
    """

    options: JdbcOptions
    name: str
    columns: tuple[str, ...]
    span: str

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows."""
        dialect: Dialect = dialect_of(self.options)
        with closing(dialect.connect()) as session:
            chosen = [(_actual(one.name, self.columns, dialect.folds_names), one.type) for one in columns]
            yield from session.read(dialect.select(self.name, chosen, self.span), columns)


@dataclass(frozen=True)
class Representable:
    """Makes of rows what a target can hold: null where its types have no such value.

    Attributes:
        options: the sink's.
    """

    options: JdbcOptions

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the rows."""
        dialect = dialect_of(self.options)
        made = [dialect.representable(column.combine_chunks()) for column in rows.columns]
        return pa.table(made, schema=rows.schema)
