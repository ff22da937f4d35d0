"""Row changes as a log decoder finds them in a segment, and what is needed to make their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.layout_groups import TableNames
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import TableVersion
from floodmark.events.json_text import Pieces, Text, of_rows

INSERT, UPDATE, DELETE, TRUNCATE = (ord(letter) for letter in "IUDT")
OPERATIONS = {INSERT: "c", UPDATE: "u", DELETE: "d", TRUNCATE: "t"}


class Changes(Protocol):
    """Changes of a segment that lie in a range of positions, in the log's order.

    Attributes:
        order: ascending numbers of the changes, shape (changes,).
        kind: ``INSERT`` …, or a kind that only the connector knows, shape (changes,).
        relation: index into ``relations``, shape (changes,).
        relations: the versions of tables.
    """

    @property
    def order(self) -> NDArray[np.int64]:
        """Ascending numbers of the changes."""

    kind: NDArray[np.uint8]
    relation: NDArray[np.int64]

    @property
    def relations(self) -> Sequence[Structure]:
        """The versions of tables."""

    def __len__(self) -> int:
        """Return how many there are."""

    def select(self, index: NDArray[np.int64] | slice) -> Self:
        """Return some of the changes."""

    def place(self, index: int) -> str:
        """Return the position of one change."""

    def raw(self, index: int) -> bytes:
        """Return the bytes of one change."""

    def columns(self, sub: int, names: TableNames) -> Mapping[str, Text]:
        """Return the columns of the changes' events that hold their position in the log, and their table.

        Args:
            sub: their position among the events of one change.
            names: of their tables.
        """


class TransactionBlocks(Protocol):
    """Makes the ``transaction`` blocks of events."""

    def pieces(self, order: NDArray[np.int64], table: int, later: int) -> Pieces:
        """Return the pieces of the blocks.

        Args:
            order: of the changes that the events are made of.
            table: which one of the change's tables; 0 unless it has more than one.
            later: how many events of the same change come before.
        """


C = TypeVar("C", bound=Changes)


@dataclass
class Rows(Generic[C]):
    """Changes of one kind, of tables with the same layout, and what is needed to make their events.

    Attributes:
        source: pieces of the source block's text.
        constants: output columns that are the same for all rows.
        blocks: makes the transaction blocks; None: there are none.
    """

    changes: C
    version: TableVersion
    names: TableNames
    source: Pieces
    constants: Mapping[str, str]
    blocks: TransactionBlocks | None = None

    def __len__(self) -> int:
        return len(self.changes)

    def select(self, index: NDArray[np.int64]) -> Rows[C]:
        """Return some of the rows."""
        at = pa.array(index)
        source = of_rows(self.source, at)
        return replace(self, changes=self.changes.select(index), names=self.names.take(at), source=source)
