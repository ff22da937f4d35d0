"""What a target in a catalogue offers to what writes it, whoever commits to the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from floodmark.errors import TargetError
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.iceberg.changes import Changes
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.iceberg.state import Snapshot, TableState


class Gone(Exception):  # noqa: N818
    """A table was dropped while it is written."""


@dataclass(frozen=True)
class Form:
    """How a table's files are made.

    Attributes:
        layout: its columns.
        version: of Iceberg's format.
        special: what it has that Floodmark's own engine doesn't write; empty if there is nothing.
    """

    layout: Layout
    version: int
    special: str


class CatalogTable(Protocol):
    """A target table. One thread uses it at a time, between the beginning and the end of ``opened``.

    Where nothing else is said, methods raise one of ``failures`` if the table or its catalogue can't be used, and
    ``Gone`` if it was dropped meanwhile.
    """

    @property
    def name(self) -> str:
        """Its name in the catalogue."""

    @property
    def renamed(self) -> Mapping[str, str]:
        """Columns of the mirror's own that the table has under other names."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What is raised where something can't be done, besides ``Gone``."""

    def is_conflict(self, error: Exception) -> bool:
        """Return whether the table may be another one now, so that it is to be looked at again."""

    def failure(self, error: Exception) -> TargetError:
        """Return the error that a user gets for one of ``failures``."""

    def opened(self) -> AbstractContextManager[None]:
        """Let this thread use the table."""

    def exists(self) -> bool:
        """Return whether the catalogue has a table of its name."""

    def state(self, since: str) -> TableState | None:
        """Return the newest state; None: there is no table.

        Args:
            since: the query for whose last micro-batch snapshots are looked at.
        """

    def create(self, rows: pa.Schema, properties: Mapping[str, str], replace: bool) -> None:
        """Make the table, without rows.

        Args:
            rows: the source's columns.
            properties: those of the table.
            replace: whether it takes the place of one with the same name.

        Raises:
            TargetUnfitError: it can't have columns with such names.
        """

    def begin(self) -> None:
        """Give the table a first snapshot, without rows, since a commit names the one before it."""

    def set(self, properties: Mapping[str, str]) -> None:
        """Give the table properties."""

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns, in which all rows have null."""

    def widen(self, wider: Mapping[str, pa.DataType]) -> None:
        """Give columns types that hold more.

        Args:
            wider: the types by the columns' names.
        """

    def form(self) -> Form:
        """Return how the table's files are made.

        Raises:
            TargetUnfitError: they can't be written here.
        """

    def files(self, snapshot: Snapshot) -> Iterable[Mapping[str, Any]]:
        """Return the files of a snapshot, with the columns ``FILES`` of the metadata table ``files``."""

    def commit(
        self,
        base: Snapshot,
        changes: Changes,
        files: IcebergFiles,
        application: str,
        batch: int,
        mark: int,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Change the table's files, and say in the same commit which micro-batch that is.

        Args:
            base: what readers must see before it.
            files: those of the table.
            application: the query.
            batch: the number of the micro-batch.
            mark: tells it from others with that number.
            properties: further ones that the table gets.

        Returns:
            What readers see after it; None: somebody else has changed the table.
        """

    def compact(self, least_files: int, below_bytes: int | None) -> None:
        """Write small files again as larger ones, and apply what is deleted in them.

        Args:
            least_files: how many files there must be.
            below_bytes: the size from which on files are left alone; None: as the table's properties say.
        """

    def expire(self, hours: int) -> None:
        """Remove snapshots of an age, and the files that only they need.

        Args:
            hours: how old they must be. The newest stays.
        """


@dataclass(frozen=True)
class Rows:
    """What a micro-batch has of a table.

    Attributes:
        parts: what its tasks have made; at least one.
        key: the columns of the key; empty without one.
        columns: those of the parts with the types that they have in the table.
        replaces: whether the table may have rows that these replace.
        application: the query.
        batch: the number of the micro-batch.
        mark: tells it from others with that number.
    """

    parts: Sequence[Part]
    key: Sequence[str]
    columns: pa.Schema
    replaces: bool
    application: str
    batch: int
    mark: int


class Applying(Protocol):
    """Brings rows into a table."""

    @property
    def files(self) -> DataFiles:
        """What writes the files of the table, or what is staged for it."""

    def properties(self) -> Mapping[str, str]:
        """Return properties that a table gets when it is made."""

    def apply(self, base: Snapshot, rows: Rows) -> bool:
        """Commit a micro-batch, unless readers don't see ``base`` any more; return whether it was done."""

    def leftovers(self, parts: Sequence[Part]) -> None:
        """Remove the files of parts that the table doesn't have; they are done with."""

    @property
    def has_offered(self) -> bool:
        """Whether files of parts may be in the table, though no commit is known to have succeeded."""
