"""Columns of rows before and after changes, from what OpenLogReplicator or XStream shows of them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

SIDES = {Side.OLD: "before", Side.NEW: "after"}
OLR, XSTREAM = "olr", "xstream"
WITHOUT_STATEMENTS = frozenset((OLR, XSTREAM))
"""The adapters whose changes show rows, and aren't statements of LogMiner's."""
_ALL_COLUMNS = {
    OLR: "Set the server's format.column to 2, and log all columns of the table (ALTER TABLE … ADD SUPPLEMENTAL LOG "
    "DATA (ALL) COLUMNS).",
    XSTREAM: "Log all columns of the table (ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS).",
}
_NO_STATEMENTS = {
    OLR: "The server isn't set to send statements about tables (flags of the source need the bit 32), or its "
    "structure of the table is another one. Ways out: correct that, and read the table again (execute-snapshot).",
    XSTREAM: "The outbound server isn't set to send statements about tables (include_ddl of its rules). Ways out: "
    "correct that, and read the table again (execute-snapshot).",
}


class ShownRows(ABC):
    """Changes of one table, of which each shows a row before it, after it, or both.

    Args:
        table: the table.
        adapter: ``database.connection.adapter``: which server has sent them.
    """

    def __init__(self, table: Table, adapter: str = OLR) -> None:
        self._adapter = adapter
        self._columns, self._key = table.columns, frozenset(table.key)

    def columns(self, side: Side, updated: bool = False) -> list[RawColumn]:
        """Return the rows before or after the changes.

        Args:
            side: which rows.
            updated: whether the changes are updates, whose new rows have the old ones' values where they lack any.

        Raises:
            DecodeError: a row or a value is missing, or isn't what the column's type has.
        """
        if self._lacks_a_row(side):
            raise DecodeError(f"A change lacks the row {SIDES[side]} it.", _ALL_COLUMNS[self._adapter])
        partial = self._partial(side)
        return [self._column(side, number, column, partial, updated) for number, column in enumerate(self._columns)]

    def _column(self, side: Side, number: int, column: Column, partial: Numbers, updated: bool) -> RawColumn:
        found = self._values(side, number)
        lacking = self._lacking(side, number, partial)
        if column.comes_apart and not column.optional:
            # Of rows as a whole the server shows what the log doesn't have as null.
            lacking |= as_mask(pc.is_null(found))
        if not lacking.any():
            return RawColumn(found)
        unknown = lacking
        if updated and side is Side.NEW:
            unknown = lacking & self._lacking(Side.OLD, number, np.flatnonzero(lacking))
            found = pc.if_else(pa.array(lacking), self._values(Side.OLD, number), found)
        if column.comes_apart:
            # The log only has those that were written.
            return RawColumn(found, unknown if unknown.any() else None)
        for row in np.flatnonzero(unknown).tolist():
            if not (updated and self._is_complete(row)):
                raise DecodeError(f"A change lacks the column {column.name!r}.", _ALL_COLUMNS[self._adapter])
        return RawColumn(found)

    @abstractmethod
    def _lacks_a_row(self, side: Side) -> bool:
        """Return whether a change doesn't show a row at all."""

    @abstractmethod
    def _partial(self, side: Side) -> Numbers:
        """Return which rows may lack columns."""

    @abstractmethod
    def _values(self, side: Side, number: int) -> pa.Array:
        """Return the values of the column with a number in the form that its codec takes, shape (changes,)."""

    @abstractmethod
    def _lacking(self, side: Side, number: int, among: Numbers) -> NDArray[np.bool_]:
        """Return which of some rows don't have a column at all, shape (changes,)."""

    @abstractmethod
    def _is_complete(self, row: int) -> bool:
        """Return whether an update shows what it didn't change, so that what it lacks is null.

        A server that is told to leave out what wasn't changed leaves out all of that but the key.
        """


def another_column(name: str, adapter: str = OLR) -> DecodeError:
    """Return the error that a change has a column which the table doesn't have."""
    return DecodeError(
        f"A change has the column {name!r}, which the table doesn't have at its place in the log.",
        _NO_STATEMENTS[adapter],
    )
