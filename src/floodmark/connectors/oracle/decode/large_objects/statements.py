"""The rows of a table with large values: which rows of the table they change, and what they say of large values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.operations import ROW_CHANGES, Operation
from floodmark.connectors.oracle.redo.calls import contents
from floodmark.connectors.oracle.redo.kinds import Kind
from floodmark.connectors.oracle.redo.large_values import large_objects, long_strings, xml_documents
from floodmark.connectors.oracle.redo.large_values.large_objects import Selections
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

BEGINS: dict[int, Callable[[pa.StringArray], Selections]] = {
    Operation.SELECT_LOB_LOCATOR: large_objects.selections,
    Operation.XML_BEGIN: xml_documents.documents,
    Operation.BEGIN_32K: long_strings.long_strings,
}
"""The operations that say which value the pieces behind them belong to, and what reads their statements."""
_EMPTY = (Kind.EMPTY_CLOB, Kind.EMPTY_BLOB)


@dataclass(frozen=True)
class TableRows:
    """Rows of the view that change rows of a table, or say which value the rows behind them belong to.

    Attributes:
        places: shape (rows,): where each is among all rows of the view.
        operations: the same: what it is.
        selected: the same: the number of the column of which pieces follow; -1: none do.
        old: the table's rows before, by column.
        new: the table's rows after, by column; they are the old ones where only pieces say what they become.
        emptied: by the number of a large column, which rows set it to an empty value.
    """

    places: Numbers
    operations: Sequence[int]
    selected: Sequence[int]
    old: Sequence[RawColumn]
    new: Sequence[RawColumn]
    emptied: dict[int, NDArray[np.bool_]]


def table_rows(
    places: Numbers, operations: Numbers, statements: pa.StringArray, structure: TableStructure, reader: StatementReader
) -> TableRows:
    """Read rows of a table.

    Args:
        places: where each is among all rows of the view.
        operations: what it is: an insert, update or delete, or one of ``BEGINS``.
        statements: ``SQL_REDO``.
        structure: the table.
        reader: of its statements.

    Raises:
        DecodeError: a statement can't be read.
    """
    columns = structure.columns
    selected = np.full(len(places), -1)
    for operation, select in BEGINS.items():
        chosen = operations == operation
        if chosen.any():
            found = select(statements.filter(pa.array(chosen)))
            selected[chosen] = _numbers_of(found.columns.to_pylist(), structure)
            statements = pc.replace_with_mask(statements, pa.array(chosen), found.rows)
    read = reader.read(statements)
    if read.problems:
        problem = next(iter(read.problems.values()))
        raise DecodeError(f"SQL_REDO of {structure.schema}.{structure.table} can't be read: {problem}")
    new = raw_columns(read, Side.NEW, columns, operations == Operation.INSERT)
    emptied = {
        number: np.isin(contents(read, Side.NEW, number).kinds, np.array(_EMPTY, np.uint8))
        for number, column in enumerate(columns)
        if column.is_large
    }
    old = raw_columns(read, Side.OLD, columns)
    return TableRows(places, operations.tolist(), selected.tolist(), old, new, emptied)


def has_statement_of_row(operations: Numbers) -> NDArray[np.bool_]:
    """Return which rows name a row of their table, shape (rows,)."""
    return np.isin(operations, [*ROW_CHANGES, *BEGINS])


def values_of(columns: Sequence[RawColumn], numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the values of some columns, row by row."""
    if not numbers:
        return [()] * len(columns[0].values)
    return list(zip(*(columns[number].values.to_pylist() for number in numbers), strict=True))


def _numbers_of(names: Sequence[str], structure: TableStructure) -> list[int]:
    numbers = {column.name: number for number, column in enumerate(structure.columns)}
    for name in names:
        if name not in numbers:
            raise DecodeError(
                f"The log has pieces of a value of '{name}', which isn't a column of {structure.full_name}.",
                "Take a new snapshot of the table, whose structure isn't the one that the log was written with.",
            )
    return [numbers[name] for name in names]
