"""Formats and parses positions of the PostgreSQL connector.

A log position is ``<LSN>-<ordinal>``: 16 and 8 hexadecimal digits. It sorts as commit order. The LSN is
that of a transaction's commit record and the ordinal counts the transaction's changes from 1; ordinal 0
means that everything before that LSN is done and nothing at or after it. The server re-sends every
transaction whose commit record lies at or after the LSN that was confirmed to it, so the LSN part alone is what is
confirmed.

An event's position adds ``-<sub>``, two digits that order the events made from one change.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import CheckpointError
from floodmark.events.json_text import fixed_width, hex_digits


def position(lsn: int, ordinal: int = 0) -> str:
    """Return the log position of a change, or of the point just before an LSN."""
    return f"{lsn:016X}-{ordinal:08X}"


def parse_position(text: str) -> tuple[int, int]:
    """Return LSN and ordinal of a log position.

    Raises:
        CheckpointError: the text is not a log position.
    """
    try:
        lsn, ordinal = text.split("-")
        return int(lsn, 16), int(ordinal, 16)
    except ValueError:
        raise CheckpointError(f"'{text}' is not a PostgreSQL log position.", "Use another checkpoint.") from None


def parse_lsn(text: str) -> int:
    """Return the number of an LSN in PostgreSQL's notation (``16/B374D848``)."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    """Return an LSN in PostgreSQL's notation."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def positions(lsn: NDArray[np.int64], ordinal: NDArray[np.int64], sub: int) -> pa.StringArray:
    """Return the events' positions: ``<LSN>-<ordinal>-<sub>`` in hexadecimal."""
    matrix = np.full((len(lsn), 28), ord("-"), np.uint8)
    matrix[:, :16] = hex_digits(lsn.astype(np.uint64), 16)
    matrix[:, 17:25] = hex_digits(ordinal.astype(np.uint64), 8)
    matrix[:, 26:] = np.frombuffer(f"{sub:02X}".encode(), np.uint8)
    return fixed_width(matrix)
