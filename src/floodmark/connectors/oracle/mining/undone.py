"""Which changes a transaction has undone itself: LogMiner shows the inverse of each, with ``ROLLBACK`` = 1.

An inverse row undoes the latest change before it of the row with the same ROWID that isn't undone yet. Read from the
end, that is the next one, so of a transaction of any size only the inverse rows must be remembered. All that a
transaction has done since a savepoint is undone together, so no change that remains is between a change and its
inverse row: where one is found, the changes that are still looked for aren't in the log, as it is with pieces of large
values that aren't read.

Where a table has large values, a change of a row may take several rows of the view. What isn't named by a ROWID
belongs to the inverse row that was read last:

* The inverse of an insert undoes all that was done to the row, up to the insert.
* The inverse of an update undoes one update, or one value that was written in pieces. If these rows have no ROWID, it
  undoes those of one statement, whose last row may have one. The first rows of a statement's parts have the same
  ``RS_ID``. Debezium's ``AbstractLogMinerTransactionCache`` has them from a real Oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.mining.operations import LARGE_OBJECTS, ROW_CHANGES, Operation
from floodmark.connectors.oracle.mining.row_ids import NO_ROW_ID, known_row_id

Mask = NDArray[np.bool_]

_BEGINS = (Operation.SELECT_LOB_LOCATOR, Operation.XML_BEGIN, Operation.BEGIN_32K)
_PIECES = tuple(one for one in LARGE_OBJECTS if one not in _BEGINS)
_CHANGES = pa.array([*map(int, ROW_CHANGES), *map(int, LARGE_OBJECTS)], pa.int64())
_COLUMNS = ("OPERATION_CODE", "SEG_OWNER", "TABLE_NAME", "ROW_ID", "RS_ID")


@dataclass(frozen=True)
class _Row:
    """A row of the view.

    Attributes:
        place: its number from the transaction's end.
        kept: the mask of its piece.
        index: its place in that.
        operation: what it is.
        table: its table.
        row_id: of the row that it changes; None: that isn't known.
        record: ``RS_ID``.
    """

    place: int
    kept: Mask
    index: int
    operation: int
    table: tuple[str | None, str | None]
    row_id: str | None
    record: str | None

    def drop(self) -> None:
        """Leave it out."""
        self.kept[self.index] = False


@dataclass
class _Inverse:
    """An inverse row whose change hasn't been found, or not all of it.

    Attributes:
        row: the row.
        waiting: rows that belong to it if the one does that is read next.
        last: the place of the row that was undone last; None: none was.
        record: ``RS_ID`` that the other parts of the statement have; None: any.
    """

    row: _Row
    waiting: list[_Row] = field(default_factory=list)
    last: int | None = None
    record: str | None = None

    @property
    def is_unmatched(self) -> bool:
        """Whether its change wasn't found."""
        return self.last is None or self.row.operation == Operation.DELETE

    def takes(self, row: _Row, waiting: Sequence[_Row]) -> bool:
        """Undo a row if it is one of those that this one undoes; return whether it is.

        Args:
            row: the row.
            waiting: pieces of a value that begins with it.
        """
        before = self.waiting
        self.waiting = [*before, *waiting]
        if self._takes(row):
            return True
        self.waiting = before
        return False

    def _takes(self, row: _Row) -> bool:
        if row.table != self.row.table or row.row_id not in (None, self.row.row_id):
            return False
        if self.row.operation == Operation.DELETE:
            return self._takes_of_insert(row)
        if self.row.operation == Operation.INSERT:
            return row.operation == Operation.DELETE and self._drop(row)
        return self._takes_of_update(row)

    def is_done(self, row: _Row) -> bool:
        """Return whether the row that it has taken was the first one that belongs to it."""
        if self.row.operation != Operation.UPDATE:
            return row.operation in (Operation.INSERT, Operation.DELETE)
        if row.operation == Operation.UPDATE:
            return row.row_id is None
        return row.operation in _BEGINS and row.row_id is not None

    def _takes_of_insert(self, row: _Row) -> bool:
        if row.row_id is None and row.operation != Operation.INSERT:
            self.waiting.append(row)
            return True
        return row.operation != Operation.DELETE and self._drop(row)

    def _takes_of_update(self, row: _Row) -> bool:
        if row.operation in _PIECES:
            # It is known with the row that they begin with.
            self.waiting.append(row)
            return True
        if row.operation in (Operation.INSERT, Operation.DELETE) or (self.last is not None and row.row_id is not None):
            return False
        if row.row_id is None:
            if self.last is not None and row.place != self.last + len(self.waiting) + 1:
                return False
            if row.operation == Operation.XML_BEGIN:
                # It comes behind the other parts.
                if self.record is not None:
                    return False
            elif self.record not in (None, row.record):
                return False
            else:
                self.record = row.record
        return self._drop(row)

    def _drop(self, row: _Row) -> bool:
        for one in (*self.waiting, row):
            one.drop()
        self.waiting.clear()
        self.last = row.place
        return True


class UndoneChanges:
    """Finds what is undone in the pieces of a transaction, which are given from the last one to the first."""

    def __init__(self) -> None:
        self._inverses: list[_Inverse] = []
        self._unmatched: list[_Inverse] = []
        self._read = 0
        self._last = -1

    def kept(self, rows: pa.Table) -> Mask:
        """Return which changes of a piece remain, shape (changes,): neither inverse rows nor what they undo.

        It changes with the pieces that are given later: only these may say what the first rows of this one belong to.

        Args:
            rows: of the view, in its order.
        """
        inverse: Mask = rows["ROLLBACK"].to_numpy() != 0
        kept = ~inverse
        if inverse.any() or self._inverses:
            for row in self._concerned(rows, inverse, kept):
                if row.place != self._last + 1:
                    self._give_up()
                self._last = row.place
                if inverse[row.index]:
                    self._inverses.append(_Inverse(row))
                else:
                    self._undo(row)
        self._read += len(rows)
        return kept

    @property
    def unmatched(self) -> list[str]:
        """The ROWIDs of inverse rows for which no change was found."""
        return sorted(one.row.row_id or NO_ROW_ID for one in (*self._unmatched, *self._inverses) if one.is_unmatched)

    def _concerned(self, rows: pa.Table, inverse: Mask, kept: Mask) -> Sequence[_Row]:
        """Return the rows that must be looked at one by one, the last one first."""
        row_ids = rows["ROW_ID"].combine_chunks()
        wanted = {one.row.row_id for one in self._inverses} | set(row_ids.filter(pa.array(inverse)).to_pylist())
        known = pa.array([*(wanted - {None}), NO_ROW_ID], pa.string())
        chosen = pc.or_(pc.is_in(row_ids, known), pc.is_null(row_ids))
        chosen = pc.and_(chosen, pc.is_in(rows["OPERATION_CODE"].combine_chunks(), _CHANGES))
        places = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))[::-1]
        found = rows.take(pa.array(places))
        last = self._read + len(rows) - 1
        return [
            _Row(last - place, kept, place, operation, (owner, table), known_row_id(row_id), record)
            for place, operation, owner, table, row_id, record in zip(
                places.tolist(), *(_values(found, name) for name in _COLUMNS), strict=True
            )
        ]

    def _undo(self, row: _Row) -> None:
        """Undo a row if it belongs to what an inverse row undoes."""
        waiting: list[_Row] = []
        while self._inverses:
            inverse = self._inverses[-1]
            if self._taken(inverse, row, waiting):
                return
            if inverse.last is None:
                break
            # All of its change was found.
            waiting += inverse.waiting
            self._inverses.pop()
        if row.row_id is not None:
            for inverse in reversed(self._inverses):
                if inverse.row.row_id == row.row_id and self._taken(inverse, row, waiting):
                    return
        self._give_up()

    def _give_up(self) -> None:
        """Look for no change any more: one that remains was read."""
        self._unmatched += [one for one in self._inverses if one.is_unmatched]
        self._inverses.clear()

    def _taken(self, inverse: _Inverse, row: _Row, waiting: Sequence[_Row]) -> bool:
        if not inverse.takes(row, waiting):
            return False
        if inverse.is_done(row):
            self._inverses.remove(inverse)
        return True


def _values(rows: pa.Table, name: str) -> list[Any]:
    """Return a column's values; options may leave it out."""
    return rows[name].to_pylist() if name in rows.column_names else [None] * len(rows)
