"""Positions of the Oracle connector.

A change's position is ``<scn>-<thread>-<transaction>-<number>`` in hexadecimal: the change number of its transaction's
commit (16 digits) and the redo thread of that (4), the transaction's identifier as LogMiner shows it (16), and the
change's number in the transaction, from 1 (8). It sorts as commit order; of two commits with the same number, which
only several instances make, that of the lower thread comes first. An event's position adds ``-<sub>``, two digits that
order the events made from one change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import CheckpointError
from floodmark.events.json_text import fixed_width, hex_digits, value_bytes

_FORM = re.compile(r"([0-9A-F]{16})-([0-9A-F]{4})-([0-9A-F]{16})-([0-9A-F]{8})(?:-[0-9A-F]{2})?")
_SCN, _THREAD, _TRANSACTION, _NUMBER, _SUB = 16, 4, 16, 8, 2
_BEHIND = (1 << 4 * _NUMBER) - 1


@dataclass(frozen=True, order=True)
class Position:
    """A position in the log.

    Attributes:
        scn: the commit's change number.
        thread: its redo thread.
        transaction: the transaction's identifier, in capitals.
        number: the change in the transaction, from 1.
    """

    scn: int
    thread: int = 0
    transaction: str = "0" * _TRANSACTION
    number: int = 0

    def __str__(self) -> str:
        return f"{self.scn:016X}-{self.thread:04X}-{self.transaction}-{self.number:08X}"

    @property
    def commit(self) -> tuple[int, int, str]:
        """The commit that it belongs to; commits sort by it."""
        return self.scn, self.thread, self.transaction

    def at(self, number: int) -> Position:
        """Return the position of a change of the same transaction; 0: before the first one."""
        return replace(self, number=number)

    def end(self) -> Position:
        """Return the position behind all changes of the transaction."""
        return replace(self, number=_BEHIND)

    @property
    def is_inside(self) -> bool:
        """Whether it lies behind some of a transaction's changes, but maybe not behind all."""
        return 0 < self.number < _BEHIND

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a log position, or an event's position.

        Raises:
            CheckpointError: the text is not such a position.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise CheckpointError(f"'{text}' is not a position in a log of Oracle's.", "Use another checkpoint.")
        scn, thread, transaction, number = found.groups()
        return cls(int(scn, 16), int(thread, 16), transaction, int(number, 16))


def behind(scn: int) -> str:
    """Return the position behind all commits up to a change number, and before all later ones."""
    return str(Position(scn + 1))


def positions(
    scn: NDArray[np.int64],
    thread: NDArray[np.int64],
    transaction: pa.StringArray,
    number: NDArray[np.int64],
    sub: int,
) -> pa.StringArray:
    """Return the positions of events.

    Args:
        scn: of the commits, shape (rows,).
        thread: their redo threads, shape (rows,).
        transaction: the transactions' identifiers, shape (rows,).
        number: the changes in their transactions, from 1, shape (rows,).
        sub: the events' place among those of their change.
    """
    rows = len(scn)
    widths = (_SCN, _THREAD, _TRANSACTION, _NUMBER, _SUB)
    matrix = np.full((rows, sum(widths) + len(widths) - 1), ord("-"), np.uint8)
    ends = np.cumsum(np.array(widths) + 1) - 1
    for values, width, end in ((scn, _SCN, ends[0]), (thread, _THREAD, ends[1]), (number, _NUMBER, ends[3])):
        matrix[:, end - width : end] = hex_digits(values.astype(np.uint64), width)
    letters = value_bytes(transaction).reshape(rows, _TRANSACTION)
    lower = letters >= ord("a")
    matrix[:, ends[2] - _TRANSACTION : ends[2]] = np.where(lower, letters - (ord("a") - ord("A")), letters)
    matrix[:, -_SUB:] = np.frombuffer(f"{sub:02X}".encode(), np.uint8)
    return fixed_width(matrix)
