"""What a kind of target database must be able to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from floodmark.sinks.relational.url import Kind


@dataclass(frozen=True)
class TargetColumn:
    """A column of a target table.

    Attributes:
        name: its name.
        kind: its type, as the database writes it.
        cast: the type that values are cast to before they are written; empty where a cast would cut them silently, so
            that the database refuses them instead.
    """

    name: str
    kind: str
    cast: str


@dataclass(frozen=True)
class TargetTable:
    """A target table that exists.

    Attributes:
        columns: by their names.
        unique: the sets of columns that are unique, the primary key's first.
    """

    columns: Mapping[str, TargetColumn]
    unique: Sequence[frozenset[str]]


class Session(Protocol):
    """A connection to the target. Every statement is committed at once, except between ``begin`` and its end.

    All methods raise a ``TargetBusyError`` if trying again may help, a ``TargetUnfitError`` if the target refuses a
    value or a structure, and another ``TargetError`` for what someone has to mend.
    """

    @property
    def version(self) -> str:
        """The server's version, for messages."""

    def execute(self, statement: str, values: Sequence[Any] = (), doing: str = "") -> int:
        """Run a statement, and return how many rows it has changed.

        Args:
            statement: with ``%s`` for each value; without values a percent sign means itself.
            values: bound to it.
            doing: what it does, for errors.
        """

    def query(self, statement: str, values: Sequence[Any] = (), doing: str = "") -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""

    def load(self, table: str, rows: pa.Table) -> list[str]:
        """Append rows to a staging table; return the columns with values that the database can't hold, null instead.

        Args:
            table: its name, quoted.
            rows: with the columns of the table.
        """

    def read(self, statement: str, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a query that the dialect's ``select`` has made.

        Args:
            columns: names and types of what is selected.

        Raises:
            TargetUnfitError: a value isn't one of the type.
        """

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """Commit it. After an error it may or may not be committed."""

    def rollback(self) -> None:
        """Undo it; without errors, even if the connection is lost."""

    def close(self) -> None:
        """Close the connection; without errors."""


class Dialect(Protocol):
    """A kind of database: its names, types and statements. Whole statements return as text, names quoted.

    Columns are given as their number in a staging table, their name, and what values are cast to (``TargetColumn``).
    """

    @property
    def kind(self) -> Kind:
        """What kind of database it is."""

    @property
    def title(self) -> str:
        """Its name, for messages."""

    @property
    def folds_names(self) -> bool:
        """Whether names that differ only in case are the same."""

    @property
    def keeps_stages(self) -> bool:
        """Whether staging tables of a session stay for later micro-batches; a commit empties them."""

    def schema(self) -> str:
        """Return the schema of the targets, or the database where that is the same; known after ``connect``."""

    def identity(self, session: Session) -> tuple[str, ...]:
        """Return what no other database has, whatever name it is reached by."""

    def connect(self) -> Session:
        """Open a connection.

        Raises:
            TargetBusyError: the database can't be reached now.
            TargetError: it refuses the login, or its version is too old.
        """

    def quote(self, name: str) -> str:
        """Return a name as statements have it."""

    def full_name(self, name: str) -> str:
        """Return the name of a table with that of its schema or database, quoted."""

    def prove_name(self, name: str, what: str) -> None:
        """Check a name.

        Args:
            what: what it is the name of, for errors.

        Raises:
            TargetUnfitError: the database would cut it, or refuse it.
        """

    def column_type(self, kind: pa.DataType, keys: int = 0) -> str:
        """Return the type of a column.

        Args:
            kind: the type of its values.
            keys: of how many columns the key is that it belongs to; 0: it belongs to none.

        Raises:
            TargetUnfitError: there is none.
        """

    def position_type(self) -> str:
        """Return the type of positions, which must compare as bytes."""

    def position_order(self) -> str:
        """Return what follows a position in a comparison, so that it compares as bytes."""

    def text_types(self) -> tuple[str, str, str]:
        """Return the types of Floodmark's own tables: texts of any length, names that can be keys, and flags."""

    def flag(self, value: bool) -> bool | int:
        """Return a value for a flag."""

    def accepts(self, found: str, kind: pa.DataType) -> bool:
        """Return whether a column of a target takes all values of a type, or none that it would change.

        Args:
            found: the column's type, as the database writes it.
            kind: the values' type.
        """

    def widens(self, found: str, kind: pa.DataType) -> bool:
        """Return whether ``column_type`` of a type holds all that a column of the target has."""

    def table(self, session: Session, name: str) -> TargetTable | None:
        """Return what a target table is like; None: there is none."""

    def create(self, name: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> str:
        """Return the statement that makes a table unless there is one.

        Args:
            columns: names and types.
            key: the columns of the primary key.
        """

    def create_shadow(self, session: Session, name: str, target: str, key: Sequence[str]) -> Sequence[str]:
        """Return the statements that make a table for the rows of a target with a key.

        Its columns have the target's types, and none but the key's is without nulls.

        Args:
            session: a connection.
            name: the table's.
            target: the target's name.
            key: the columns of the key.
        """

    def add_columns(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that adds columns."""

    def change_types(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that gives columns other types."""

    def create_stage(self, name: str, columns: pa.Schema, temporary: bool) -> str:
        """Return the statement that makes a staging table.

        Args:
            columns: of the staging table.
            temporary: whether only this session needs it.
        """

    def stage_name(self, name: str, temporary: bool) -> str:
        """Return the name of a staging table, quoted."""

    def drop_stage(self, name: str, temporary: bool) -> str:
        """Return the statement that drops a staging table if it exists."""

    def drop_own(self, stage: str) -> str:
        """Return the statement that drops a staging table of the session.

        Args:
            stage: its name, quoted.
        """

    def stages(self, session: Session, prefix: str) -> list[str]:
        """Return the names of staging tables that begin with a text, without those of sessions."""

    def fill(
        self, target: str, stage: str, values: Sequence[tuple[int, str, str]], key: Sequence[tuple[int, str, str]]
    ) -> str:
        """Return the statement that gives rows of a staging table the values that only the target has.

        Args:
            target: the target's name, quoted.
            stage: the staging table's, quoted.
            values: number, name and staged type of each column that lacks some.
            key: place, name and cast of each column of the key.
        """

    def delete(self, target: str, stage: str, key: Sequence[tuple[int, str, str]]) -> str:
        """Return the statement that deletes the rows that a staging table marks so.

        Args:
            key: number, name and cast of each column of the key.
        """

    def upsert(self, target: str, stage: str, columns: Sequence[tuple[int, str, str]], key: Sequence[str]) -> str:
        """Return the statement that inserts rows of a staging table, or updates older ones.

        Args:
            columns: number, name and cast of each column that the staging table has.
            key: the columns of the key.
        """

    def append(self, target: str, stage: str, columns: Sequence[tuple[int, str, str]]) -> str:
        """Return the statement that appends all rows of a staging table without a key."""

    def defer(
        self, reads: str, later: str, log: str, columns: Sequence[str], key: Sequence[int], held: Sequence[int]
    ) -> Sequence[str]:
        """Return the statements that move rows from a staging table to another one like it.

        Those are moved that a snapshot has read after a change in the log that needs a value which they replace.

        Args:
            reads: the staging table of rows that were read.
            later: the one that gets them.
            log: the staging table with the changes.
            columns: those of ``reads``.
            key: the numbers of the key's columns in ``reads``.
            held: the numbers of the columns of ``log`` that say where the target has the value.
        """

    def drop_superseded(self, reads: str, log: str, pairs: Sequence[tuple[int, int]]) -> str:
        """Return the statement that deletes those rows that were read and that the log has later changes of.

        Args:
            reads: the staging table of rows that were read.
            log: the staging table with the changes.
            pairs: the numbers of each column of the key in both.
        """

    def compared_as(self, found: str, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as which a column is compared with values that it was written with; None: it can't be.

        Args:
            found: the column's type, as the database writes it.
            kind: the values' type.
        """

    def representable(self, values: pa.Array) -> pa.Array:
        """Return values as the database holds them: null for those that it can't hold."""

    def select(self, name: str, columns: Sequence[tuple[str, pa.DataType]], condition: str = "") -> str:
        """Return the query for rows of a table, for ``Session.read``.

        Args:
            columns: names, and types as which they are compared.
            condition: one of ``spans``.
        """

    def spans(self, session: Session, name: str) -> Sequence[str]:
        """Return conditions that divide a table into parts, each with one part's rows; at least one."""

    def select_keys(
        self,
        name: str,
        stage: str,
        columns: Sequence[tuple[str, pa.DataType]],
        key: Sequence[tuple[int, str, str]],
    ) -> str:
        """Return the query for the rows whose keys are in a staging table, for ``Session.read``.

        Args:
            stage: the staging table's name, quoted.
            columns: names, and types as which they are compared.
            key: number, name and cast of each column of the key.
        """

    def delete_unchanged(self, name: str, stage: str, key: Sequence[tuple[int, str, str]]) -> str:
        """Return the statement that deletes the rows of a table that have the key and the position of staged ones.

        Args:
            stage: the staging table's name, quoted.
            key: number, name and cast of each column of the key.
        """

    def delete_others(self, target: str, shadow: str, key: Sequence[str]) -> str:
        """Return the statement that deletes the rows of a target that its shadow hasn't.

        Args:
            target: the target's name, quoted.
            shadow: the shadow's, quoted.
            key: the columns of the key.
        """

    def take_over(self, target: str, shadow: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """Return the statement that gives a target all rows of its shadow, with the arguments of ``delete_others``.

        Args:
            columns: those that are written; others keep their values.
        """

    def keep_offset(self) -> str:
        """Return the statement that inserts or updates a query's offset: query, batch, marks."""
