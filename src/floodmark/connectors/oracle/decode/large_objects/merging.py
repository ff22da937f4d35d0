"""Puts the changes of a table's rows together that LogMiner shows in several rows.

Which rows become one event is what Debezium's ``TransactionCommitConsumer`` decides, except that rows of tables without
a key, which it mixes up, are told apart by their ROWID, or else by their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from floodmark.connectors.oracle.decode.large_objects.content import UNKNOWN, Document, LargeObject
from floodmark.connectors.oracle.decode.large_objects.pending import Merged, Pending
from floodmark.connectors.oracle.decode.large_objects.pieces import (
    OF_LARGE_OBJECTS,
    Piece,
    Stray,
    Target,
)
from floodmark.connectors.oracle.decode.large_objects.statements import BEGINS, TableRows, values_of
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.row_ids import known_row_id

_MERGED_ALONE = ("CLOB", "BLOB")
"""An update is added to another one only if it sets a column of these types, as in Debezium."""
_INTO = (Operation.INSERT, Operation.UPDATE, *BEGINS)

_OF: dict[int, Sequence[int]] = {
    Operation.SELECT_LOB_LOCATOR: OF_LARGE_OBJECTS,
    Operation.XML_BEGIN: (Operation.XML_WRITE,),
    Operation.BEGIN_32K: (Operation.WRITE_32K,),
}
"""The pieces that may follow."""

Key = tuple[Any, ...]
AnyTarget = Target[LargeObject] | Target[Document]


class RowMerger:
    """Merges the rows of one table in one transaction after the other.

    Args:
        structure: the table.
        rows: its rows.
        row_ids: their ``ROW_ID``.
    """

    def __init__(self, structure: TableStructure, rows: TableRows, row_ids: list[str | None]) -> None:
        columns = structure.columns
        self._rows = rows
        self._row_ids = [known_row_id(one) for one in row_ids]
        self._types = [column.type for column in columns]
        self._apart = [number for number, column in enumerate(columns) if column.comes_apart]
        self._lacks = {
            number: one.unchanged for number in self._apart if (one := rows.new[number]).unchanged is not None
        }
        names = [column.name for column in columns]
        key = [names.index(name) for name in structure.key]
        compared = key or [number for number in range(len(columns)) if number not in self._apart]
        self._has_key = bool(key)
        self._old, self._new = values_of(rows.old, compared), values_of(rows.new, compared)
        self._pending: dict[Key, Pending] = {}
        self._targets: dict[int, AnyTarget] = {}
        self._strays: list[Stray] = []

    def change(self, row: int) -> Iterator[Merged]:
        """Add a row; yield what is complete before it."""
        operation = self._rows.operations[row]
        key: Key = ()
        if self._has_key:
            key = (self._old if operation == Operation.DELETE else self._new)[row]
        pending = self._pending.get(key)
        if pending is None or not self._merges(pending, row):
            if pending is not None:
                yield from self._complete(pending, int(self._rows.places[row]))
            sources = [row] * len(self._types)
            pending = self._pending[key] = Pending(row, operation, self._row_ids[row], sources, row)
        else:
            pending.last = row
            pending.row_id = pending.row_id or self._row_ids[row]
        column = self._rows.selected[row]
        if column >= 0:
            self._select(pending, column, operation)

    def piece(self, piece: Piece) -> bool:
        """Add a piece of a large value; return whether it is known which value that is."""
        target = self._targets.get(piece.operation)
        if target is None or target.pending.is_complete:
            if piece.operation in OF_LARGE_OBJECTS:
                self._strays.append(piece.stray)
            return False
        target.pending.contents[target.column] = target.content
        piece.put_into(target.content)
        return True

    def commit(self) -> Iterator[Merged]:
        """Yield what is complete at the end of a transaction."""
        for pending in list(self._pending.values()):
            yield from self._complete(pending, None)
        self._pending.clear()
        self._targets.clear()
        self._strays.clear()

    def _complete(self, pending: Pending, ended: int | None) -> Iterator[Merged]:
        pending.is_complete = True
        if pending.is_noop:
            return
        merged = pending.merged(ended)
        for column, emptied in self._rows.emptied.items():
            if column not in merged.values and emptied[pending.sources[column]] and self._has_stray(pending, column):
                merged.values[column] = UNKNOWN
        yield merged

    def _has_stray(self, pending: Pending, column: int) -> bool:
        """Return whether a column's value may have pieces that came before its row."""
        is_binary = self._types[column] == "BLOB"
        return any(
            stray.is_binary in (None, is_binary)
            and (None in (stray.row_id, pending.row_id) or stray.row_id == pending.row_id)
            for stray in self._strays
        )

    def _merges(self, pending: Pending, row: int) -> bool:
        """Add a row to the change before it of the same row of the table; return whether that was possible."""
        operation = self._rows.operations[row]
        if pending.operation not in _INTO or operation in (Operation.INSERT, Operation.DELETE):
            return False
        if not self._has_key and not self._same_row(pending, row):
            return False
        if operation in BEGINS:
            return True
        if pending.operation == Operation.UPDATE and not self._belongs_to_update(pending, row):
            return False
        for column in range(len(self._types)):
            if not self._lacks_value(row, column):
                pending.sources[column] = row
                # Pieces that follow belong to the value that was set, which isn't the one that they were announced for.
                replaced = pending.contents.pop(column, None)
                if replaced is not None:
                    replaced.fail()
        return True

    def _same_row(self, pending: Pending, row: int) -> bool:
        row_id = self._row_ids[row]
        if pending.row_id is not None and row_id is not None:
            return pending.row_id == row_id
        # All that is compared comes from the last statement that sets columns.
        compared = next((column for column in range(len(self._types)) if column not in self._apart), None)
        return compared is None or bool(self._new[pending.sources[compared]] == self._old[row])

    def _belongs_to_update(self, pending: Pending, row: int) -> bool:
        row_id = self._row_ids[row]
        if None not in (pending.row_id, row_id) and pending.row_id != row_id:
            return False
        return any(
            self._types[column] in _MERGED_ALONE and not self._lacks_value(row, column) for column in self._apart
        )

    def _lacks_value(self, row: int, column: int) -> bool:
        lacks = self._lacks.get(column)
        return lacks is not None and bool(lacks[row])

    def _select(self, pending: Pending, column: int, operation: int) -> None:
        """Take note of what the pieces that follow belong to."""
        target: AnyTarget
        if operation == Operation.SELECT_LOB_LOCATOR:
            known = pending.contents.get(column)
            content = known if isinstance(known, LargeObject) else self._before(pending, column)
            target = Target(pending, column, content)
        else:
            document = pending.contents[column] = Document()
            target = Target(pending, column, document)
        self._targets.update(dict.fromkeys(_OF[operation], target))

    def _before(self, pending: Pending, column: int) -> LargeObject:
        """Return a large object as a statement has set it."""
        source, is_binary = pending.sources[column], self._types[column] == "BLOB"
        if self._lacks_value(source, column):
            return LargeObject(None, is_binary)
        value = self._rows.new[column].values[source].as_py()
        return LargeObject(value or (b"" if is_binary else ""), is_binary)
