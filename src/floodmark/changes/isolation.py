"""Isolates tables and records that can't be decoded from those that can."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from floodmark.changes.changes import OPERATIONS, C, Changes, Rows
from floodmark.changes.layout_groups import LayoutGroups
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.connectors.contract.decoding import DeadLetter, DecodeProblems, TableFailure
from floodmark.errors import ConfigError, ConnectError, DecodeError, RegistryError, SchemaChangeError, describe
from floodmark.events.columns import EventGroup


class Isolation:
    """Keeps track of a segment's excluded tables, including those that turn out to be undecodable.

    Args:
        relations: the segment's relations.
        excluded: numbers of the tables to exclude.
        only: the tables that are wanted; None: all.
        problems: receives what can't be decoded.

    Attributes:
        numbers: the excluded tables.
        excluded: whether a relation is of one of them, shape (relations,).
    """

    def __init__(
        self,
        relations: Sequence[Structure],
        excluded: Collection[int],
        only: Collection[int] | None,
        problems: DecodeProblems,
    ) -> None:
        self._relations = relations
        self._only = only
        self._failed = problems.tables
        self._dead = problems.records
        unwanted = {relation.number for relation in relations if only is not None and relation.number not in only}
        self.numbers = {*excluded, *unwanted}
        self.excluded = np.array([relation.number in self.numbers for relation in relations], np.bool_)

    def wants(self, number: int) -> bool:
        """Return whether the changes of a table are delivered; it may be none of the relations."""
        return number not in self.numbers and (self._only is None or number in self._only)

    def version(self, make: VersionMaker, groups: LayoutGroups, number: int) -> TableVersion | None:
        """Return the table version of a layout group; None if it can't be made, so that the group's tables fail."""
        try:
            return make(groups.first[number])
        except ConnectError:
            # A registry that is away isn't the fault of a table.
            raise
        except Exception as exc:
            # Whatever the error is, it must not stop the other tables.
            for index in np.flatnonzero(groups.shape == number).tolist():
                self._exclude(index, exc)
            return None

    def run(self, make: Callable[[Rows[C]], Iterator[EventGroup]], rows: Rows[C]) -> list[EventGroup]:
        """Return the events of rows, without those of tables or records that can't be decoded."""
        if self.numbers:
            rows = rows.select(np.flatnonzero(~self.excluded[rows.changes.relation]))
            if not len(rows):
                return []
        try:
            return list(make(rows))
        except (ConnectError, SchemaChangeError):
            # The table can be decoded, but a registry is away, or the query's columns are not the table's any more.
            raise
        except Exception as exc:
            tables = np.unique(rows.changes.relation)
            # A registry refuses all records of a version, so there are none to look for.
            of_all = isinstance(exc, ConfigError | RegistryError)
            if len(tables) == 1 and (self._dead is None or of_all):
                self._exclude(int(tables[0]), exc if of_all else _located(make, rows, exc))
                return []
            if len(rows) == 1 and self._dead is not None:
                self._dead.append(self._letter(rows.changes, exc))
                return []
        # Find what fails: first the table, then the record, by halves.
        if len(tables) == 1:
            parts = [rows.select(half) for half in np.array_split(np.arange(len(rows)), 2)]
        else:
            parts = [rows.select(np.flatnonzero(rows.changes.relation == table)) for table in tables]
        return [group for part in parts for group in self.run(make, part)]

    def fail(self, relation: NDArray[np.int64], error: Exception) -> None:
        """Exclude tables of which nothing can be decoded.

        Args:
            relation: indices of their relations.
            error: why.
        """
        for index in np.unique(relation).tolist():
            self._exclude(index, error)

    def fail_table(self, relation: Structure, error: Exception) -> None:
        """Exclude a table from here on; it may be none of the relations."""
        if self._failed is None:
            raise error
        number = relation.number
        if number not in self.numbers:
            self._failed.append(TableFailure(f"{relation.schema}.{relation.table}", number, describe(error)))
        self.numbers.add(number)
        self.excluded |= np.array([other.number in self.numbers for other in self._relations], np.bool_)

    def _letter(self, change: Changes, error: Exception) -> DeadLetter:
        relation = self._relations[int(change.relation[0])]
        return DeadLetter(
            f"{change.place(0)}-00",
            f"{relation.schema}.{relation.table}",
            OPERATIONS[int(change.kind[0])],
            describe(error),
            change.raw(0),
        )

    def _exclude(self, index: int, error: Exception) -> None:
        self.fail_table(self._relations[index], error)


def _located(make: Callable[[Rows[C]], Iterator[EventGroup]], rows: Rows[C], error: Exception) -> DecodeError:
    """Return the error of the first change that can't be decoded, with its position.

    Args:
        make: fails for the rows.
        rows: changes of one table.
        error: why.
    """
    # The first ``good`` changes can be decoded, the first ``bad`` can't.
    good, bad = 0, len(rows)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            list(make(rows.select(np.arange(middle))))
            good = middle
        except Exception as exc:
            bad, error = middle, exc
    changes = rows.changes
    relation = changes.relations[int(changes.relation[good])]
    name = f"{relation.schema}.{relation.table}"
    return DecodeError(f"The change of {name} at {changes.place(good)} cannot be decoded: {describe(error)}")
