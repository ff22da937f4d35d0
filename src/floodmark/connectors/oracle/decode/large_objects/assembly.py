"""Puts the changes of all tables together that LogMiner shows in several rows.

Tables without large values are left alone: only the order of their changes, and their numbers, depend on the others'.
A change is delivered when Debezium's ``TransactionCommitConsumer`` delivers it: at once where the table has no large
values; or else before another change of the same row, or with the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.decode.large_objects.columns import TableColumns, columns_of
from floodmark.connectors.oracle.decode.large_objects.content import UNKNOWN
from floodmark.connectors.oracle.decode.large_objects.merging import RowMerger
from floodmark.connectors.oracle.decode.large_objects.pending import Merged
from floodmark.connectors.oracle.decode.large_objects.pieces import PIECES, pieces_of
from floodmark.connectors.oracle.decode.large_objects.statements import (
    has_statement_of_row,
    table_rows,
)
from floodmark.connectors.oracle.decode.row_changes import CommittedRows
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.operations import ROW_CHANGES, Operation
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.errors import DecodeError
from floodmark.logger import get_logger

log = get_logger(__name__)

Numbers = NDArray[np.int64]
Readers = Callable[[TableStructure], StatementReader]
Failing = Callable[[TableStructure, Exception], None]

_COMMIT = np.iinfo(np.int64).max
_OPERATION = "OPERATION_CODE"


@dataclass(frozen=True)
class Assembled:
    """Changes, each of which makes one event or what belongs to it.

    Attributes:
        shown: as the view has them, one row for each: the first one that belongs to it.
        rows: the same, as events need them.
        columns: by ``schema.table``, the values of those tables' changes whose statements don't have them all.
    """

    shown: pa.Table
    rows: CommittedRows
    columns: Mapping[str, TableColumns]


@dataclass(frozen=True)
class _Changes:
    """Changes that were put together; places are those among all rows of the view.

    Attributes:
        first: shape (changes,): the place of the first row of each.
        last: the same: that of the last one.
        ended: the same: that of the row before which it was complete.
        operations: the same: what they are.
    """

    first: Numbers
    last: Numbers
    ended: Numbers
    operations: Numbers

    @classmethod
    def of(cls, changes: Sequence[Merged], places: Numbers) -> _Changes:
        """Return the changes of a table.

        Args:
            changes: at least one.
            places: those of the rows that they are made of.
        """
        first, last = (places[[getattr(one, name) for one in changes]] for name in ("first", "last"))
        ended = [_COMMIT if one.ended is None else one.ended for one in changes]
        return cls(first, last, np.array(ended, np.int64), np.array([int(one.operation) for one in changes]))

    @classmethod
    def joined(cls, parts: Sequence[_Changes]) -> _Changes:
        """Return the changes of all tables."""
        return cls(*(np.concatenate([getattr(one, field.name) for one in parts]) for field in fields(cls)))

    def order(self, transactions: Numbers) -> Numbers:
        """Return the order in which they are delivered.

        Args:
            transactions: the number of each row's transaction.
        """
        return np.lexsort((self.first, self.ended, transactions[self.first]))


def assembled(
    shown: pa.Table,
    rows: CommittedRows,
    structures: Mapping[str, TableStructure],
    reader_of: Readers,
    fail: Failing | None = None,
) -> Assembled:
    """Return changes, put together of what LogMiner shows.

    Args:
        shown: the rows of whole transactions, as the view has them.
        rows: the same, as events need them.
        structures: of the captured tables, by ``schema.table``.
        reader_of: returns the reader of a table's statements.
        fail: called with a table that can't be read, whose changes are then left out; None: that is an error.

    Raises:
        DecodeError: a statement can't be read.
    """
    coded = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".").combine_chunks()
    coded = coded.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy()
    operations, transactions = shown[_OPERATION].to_numpy(), rows.transactions
    alone = np.isin(operations, (*ROW_CHANGES, Operation.DDL))
    parts: list[_Changes] = []
    columns: dict[str, TableColumns] = {}
    for number, name in enumerate(coded.dictionary.to_pylist()):
        structure = structures.get(name)
        if structure is None or not any(column.comes_apart for column in structure.columns):
            continue
        # A statement that empties the table stays alone.
        places = np.flatnonzero((codes == number) & (operations != Operation.DDL))
        alone[places] = False
        try:
            table = _Table(shown, rows, places, structure, reader_of(structure))
            found = list(table.merged(transactions))
            if found:
                changes = _Changes.of(found, table.rows.places)
                columns[name] = table.columns([found[place] for place in changes.order(transactions)])
                parts.append(changes)
        except DecodeError as exc:
            if fail is None:
                raise
            fail(structure, exc)
    places = np.flatnonzero(alone)
    parts.append(_Changes(places, places, places, operations[places]))
    return _in_order(shown, rows, _Changes.joined(parts), columns)


def _in_order(
    shown: pa.Table, rows: CommittedRows, changes: _Changes, columns: Mapping[str, TableColumns]
) -> Assembled:
    order = changes.order(rows.transactions)
    first = changes.first[order]
    chosen = shown.take(pa.array(first))
    kinds = pa.array(changes.operations[order], pa.int64())
    chosen = chosen.set_column(chosen.schema.get_field_index(_OPERATION), _OPERATION, kinds)
    return Assembled(chosen, rows.of_events(first, changes.last[order]), columns)


class _Table:
    """The rows of one table.

    Args:
        shown: all rows of the view.
        committed: the same, as events need them.
        places: which of them are the table's.
        structure: the table.
        reader: of its statements.

    Attributes:
        rows: those that name rows of the table.
    """

    def __init__(
        self,
        shown: pa.Table,
        committed: CommittedRows,
        places: Numbers,
        structure: TableStructure,
        reader: StatementReader,
    ) -> None:
        self._structure = structure
        self._committed = committed
        operations = shown[_OPERATION].to_numpy()
        named = places[has_statement_of_row(operations[places])]
        self.rows = table_rows(named, operations[named], committed.statement.take(pa.array(named)), structure, reader)
        row_ids = committed.row_id.take(pa.array(named)).to_pylist()
        self._merger = RowMerger(structure, self.rows, row_ids)
        pieces = places[np.isin(operations[places], PIECES)]
        # Where a row or a piece comes, by its number.
        self._steps = np.sort(np.concatenate([named, pieces]))
        self._named = {place: number for number, place in enumerate(named.tolist())}
        found = pieces_of(operations[pieces], shown.take(pa.array(pieces)))
        self._pieces = dict(zip(pieces.tolist(), found, strict=True))

    def merged(self, transactions: Numbers) -> Iterator[Merged]:
        """Yield its changes, put together.

        Args:
            transactions: the number of each row's transaction.
        """
        merger, before = self._merger, -1
        for place, transaction in zip(self._steps.tolist(), transactions[self._steps].tolist(), strict=True):
            if transaction != before:
                yield from self._reported(merger.commit())
            before = transaction
            if place in self._named:
                yield from self._reported(merger.change(self._named[place]))
            elif not merger.piece(self._pieces[place]):
                self._warn("piece_of_no_large_value", place)
        yield from self._reported(merger.commit())

    def columns(self, changes: Sequence[Merged]) -> TableColumns:
        """Return the columns of changes."""
        return columns_of(changes, self.rows, self._structure.columns)

    def _reported(self, changes: Iterator[Merged]) -> Iterator[Merged]:
        """Log which values aren't known."""
        for change in changes:
            for number, value in change.values.items():
                if value is UNKNOWN:
                    place = int(self.rows.places[change.first])
                    self._warn("large_value_is_not_known", place, column=self._structure.columns[number].name)
            yield change

    def _warn(self, event: str, place: int, **fields: object) -> None:
        """Log what is wrong with a row."""
        scn, transaction = int(self._committed.scn[place]), self._committed.xid[place].as_py()
        log.warning(event, table=self._structure.full_name, scn=scn, transaction=transaction, **fields)
