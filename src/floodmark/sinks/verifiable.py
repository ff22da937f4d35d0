"""The protocols of targets whose rows can be compared with the source's, whatever they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from floodmark.sinks.options import Mode

T = TypeVar("T")


class TargetPart(Protocol):
    """A part of a target, which a task reads. It is pickled."""

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that equal the source's, as far as the target is right.

        Args:
            columns: names and types of the wanted columns.
        """


@runtime_checkable
class DividedRows(Protocol):
    """All rows of a target, where whoever reads them divides them."""

    def each(self, work: Callable[[TargetPart], T]) -> Iterator[T]:
        """Yield what is made of each part.

        Args:
            work: can be pickled, and so can what it returns.

        Raises:
            TargetError: the target can't be read.
        """


class TargetView(Protocol):
    """A target as it was at one moment."""

    @property
    def version(self) -> str:
        """What names the moment."""

    @property
    def key(self) -> Sequence[str]:
        """The columns of the key; empty if the target has none."""

    @property
    def mode(self) -> Mode:
        """What becomes of rows that are changed or deleted."""

    @property
    def query(self) -> str | None:
        """The id of the query that writes it; None if that isn't known."""

    @property
    def row_estimate(self) -> int:
        """How many rows it has, roughly."""

    @property
    def shape(self) -> Callable[[pa.Table], pa.Table]:
        """What makes of the source's rows what the target can hold; it can be pickled, and changes no rows twice."""

    def fitted(self, source: pa.Schema) -> pa.Schema:
        """Return the columns that both have, with a type that holds the values of both.

        Args:
            source: the source's columns.

        Raises:
            TargetUnfitError: there is no such type.
        """

    def names(self) -> Sequence[str]:
        """Return the names of its columns, besides those that a target has for itself."""

    def parts(self) -> Sequence[TargetPart] | Sequence[DividedRows]:
        """Return its parts, or all rows."""

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, as ``TargetPart.rows`` does, and their positions (``_position``).

        Args:
            keys: the columns of the key, with the types that ``columns`` has.
            columns: names and types of the wanted columns.
        """


def as_they_are(rows: pa.Table) -> pa.Table:
    """Return rows: a target that has the types of typed rows holds all their values."""
    return rows


class VerifiableTarget(Protocol):
    """A target table."""

    @property
    def replaces_doubled(self) -> bool:
        """Whether a row that is read again takes the place of all rows with its key; otherwise each becomes like it."""

    def exists(self) -> bool:
        """Return whether it is there."""

    def view(self) -> TargetView:
        """Return it as it is now.

        Raises:
            TargetError: it isn't there, or can't be read.
        """

    def delete(self, rows: pa.Table, for_good: bool = False) -> int:
        """Delete rows that the source hasn't in a change of its own, or mark them, and return how many those were.

        Only a row that is as it was found is deleted: one that was written meanwhile stays.

        Args:
            rows: the columns of the key, and the positions (``_position``) with which the rows were found.
            for_good: whether they are deleted even if the target only marks deleted rows; asked for only of a target
                that hasn't ``replaces_doubled``.

        Raises:
            TargetError: rows of this target can't be deleted so.
        """
