"""Reads many statements of SQL_REDO at once: their values by column, as they stand in the text.

Machine code (`kernels`) goes through the statements, from gap to gap, by what scanning these has found (`steps`). It
stops at a gap that isn't known, which is scanned, and goes on from there; the statements of a table have few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from floodmark.connectors.oracle.redo.reading import Reading

from floodmark.connectors.oracle.redo.scanner import Scanner
from floodmark.connectors.oracle.redo.steps import Steps
from floodmark.connectors.oracle.redo.values import Statements

_ROOM = 16
"""How many bytes a value is expected to have, as long as nothing is known of a table."""
_MORE = 1.125


class StatementReader:
    """Reads statements of one table.

    Args:
        columns: the names of the table's columns, in their order.
        numbered: whether statements may have numbers instead; see ``Scanner``.
    """

    def __init__(self, columns: Sequence[str], numbered: bool = False) -> None:
        self._columns = len(columns)
        scanner = Scanner(columns, numbered)
        self._with_names = Steps(scanner, len(columns), with_names=True)
        # A quote in a column's name isn't one of a literal; one in another name is met when a statement can't be read.
        plain = not any("'" in name for name in columns)
        self._usual = Steps(scanner, len(columns)) if plain else self._with_names
        self._room = np.full(2 * len(columns), float(_ROOM))
        """By slot: how many bytes a statement has for it, at most in any block."""

    def read(self, statements: pa.StringArray) -> Statements:
        """Return the values of statements, none of which is null."""
        rows = len(statements)
        if not rows:
            forms = np.zeros((2, self._columns, 0), np.uint8)
            return Statements(
                forms, np.zeros((2 * self._columns, 0), np.int32), [np.zeros(0, np.uint8)] * 2 * self._columns
            )
        # Not before: importing what is compiled takes a moment.
        from floodmark.connectors.oracle.redo.reading import Reading

        reading = Reading(statements, (self._room * rows).astype(np.int64))
        problems = self._read(reading, rows)
        self._room = np.maximum(self._room, reading.buffers.sizes / rows * _MORE)
        forms = reading.forms.reshape(2, self._columns, -1)[:, :, :rows]
        return Statements(forms, reading.lengths[:, :rows], reading.buffers.data(), problems)

    def _read(self, reading: Reading, rows: int) -> dict[int, str]:
        """Read all statements; return why some can't be read."""
        from floodmark.connectors.oracle.redo import kernels

        problems: dict[int, str] = {}
        steps, stop = self._usual, rows
        while True:
            status = reading.go_on(steps, stop)
            row = reading.row
            if status == kernels.READ and row == rows:
                return problems
            if status == kernels.READ:
                steps, stop = self._usual, rows
            elif status == kernels.UNKNOWN_GAP:
                if steps.add(*reading.gap(steps.with_names)):
                    reading.begin_again()
            elif status == kernels.FULL:
                reading.grow()
            elif not steps.with_names:
                # Perhaps a name has a quote.
                reading.begin_again()
                steps, stop = self._with_names, row + 1
            else:
                problems[row] = reading.error(steps)
                reading.skip()
                steps, stop = self._usual, rows
