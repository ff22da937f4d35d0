"""Positions of the MySQL connector.

A log position is ``EEFFFFFFFF-<transaction>-<event>-<row>`` in hexadecimal: epoch (2 digits) and number
(8) of the binlog file, the offset of the transaction's first event (16), the offset of the event (16),
and the row in the event from 1 (8). It sorts as commit order. The epoch grows when a query moves to a
server that numbers its files differently. Offsets are absolute 64-bit numbers: capture adds up the sizes of
events, since the offset in an event's header wraps at 4 GiB.

There are three kinds of positions:

- *before an offset*, ``…-P-0-0``: everything before offset P of the file is done and nothing from P on. P
  is where an event begins, or the end of the file.
- *inside a transaction*, ``…-T-E-FFFFFFFF``: the transaction began at T and its events up to the one at E
  are done.
- *a row's*, ``…-T-E-R``.

Rows of a compressed transaction have its offset as E, and as R their number plus the offset of their event in the
decompressed transaction. The bits of R beyond 32 are added to E (``within_payload``). No other event begins there: even
the best compression leaves far more bytes.

An event's position adds ``-<sub>``, two digits that order the events made from one row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import CheckpointError
from floodmark.events.json_text import fixed_width, hex_digits

ALL_ROWS = 0xFFFFFFFF
"""The row of a position after all rows of an event."""
ROW_BITS = 32

FILE_HEADER_BYTES = 4
"""Where the first event of a binlog file begins."""

_FORM = re.compile(r"([0-9A-F]{2})([0-9A-F]{8})-([0-9A-F]{16})-([0-9A-F]{16})-([0-9A-F]{8})(?:-[0-9A-F]{2})?")
_WIDTHS = (2, 8, 16, 16, 8, 2)


@dataclass(frozen=True, order=True)
class Position:
    """A position in the log.

    Attributes:
        epoch: numbering of the files, from 0.
        file: number of the binlog file (``binlog.000012`` is 12).
        transaction: offset of the transaction's first event, or the offset before which all is done.
        event: offset of the event; 0: nothing of this transaction.
        row: row in the event from 1; ``ALL_ROWS``: the whole event.
    """

    epoch: int
    file: int
    transaction: int
    event: int = 0
    row: int = 0

    def __str__(self) -> str:
        place = f"{self.epoch:02X}{self.file:08X}"
        return f"{place}-{self.transaction:016X}-{self.event:016X}-{self.row:08X}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a log position, or an event's position.

        Raises:
            CheckpointError: the text is not such a position.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise CheckpointError(f"'{text}' is not a position in a binlog.", "Use another checkpoint.")
        epoch, file, transaction, event, row = (int(part, 16) for part in found.groups())
        return cls(epoch, file, transaction, event, row)

    @property
    def inside(self) -> bool:
        """Whether it lies inside a transaction."""
        return self.event != 0


def within_payload(event: NDArray[np.int64], row: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the event and row of positions, with the bits of the row beyond 32 moved to the event.

    Args:
        event: offset of the event, shape (positions,).
        row: shape (positions,).
    """
    return event + (row >> ROW_BITS), row & ALL_ROWS


def event_places(
    epoch: int, file: NDArray[np.int64], transaction: NDArray[np.int64], event: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the beginning of the positions of each event's rows, as characters, shape (events, bytes).

    Args:
        epoch: epoch of all files.
        file: number of the file, shape (events,).
        transaction: offset of the transaction's first event, shape (events,).
        event: offset of the binlog event, shape (events,).
    """
    parts = (np.full(len(file), epoch), file, transaction, event)
    matrix = np.full((len(file), sum(_WIDTHS[:4]) + 3), ord("-"), np.uint8)
    at = 0
    for width, part in zip(_WIDTHS[:4], parts, strict=True):
        matrix[:, at : at + width] = hex_digits(part.astype(np.uint64), width)
        # Nothing separates the epoch from the file.
        at += width + (at > 0)
    return matrix


def positions(places: NDArray[np.uint8], row: NDArray[np.int64], sub: int) -> pa.StringArray:
    """Return the positions of events.

    Args:
        places: the beginning of each, as returned by ``event_places``, shape (events, bytes).
        row: row in the binlog event, shape (events,).
        sub: number of the event among those of one row.
    """
    rows, width = places.shape
    row_width, sub_width = _WIDTHS[4:]
    matrix = np.full((rows, width + row_width + sub_width + 1), ord("-"), np.uint8)
    matrix[:, :width] = places
    matrix[:, width : width + row_width] = hex_digits(row.astype(np.uint64), row_width)
    matrix[:, -sub_width:] = np.frombuffer(f"{sub:02X}".encode(), np.uint8)
    return fixed_width(matrix)
