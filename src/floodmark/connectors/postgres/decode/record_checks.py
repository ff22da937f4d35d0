"""Verifies that a segment's records are whole: their frames, their kinds, and their order; all vectorised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.postgres.wire.frames import COPY_DATA, be_view, frame_ends
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    BEGIN_LSN,
    COMMIT,
    COMMIT_LSN,
    FIXED,
    FRAME_KIND,
    KEEPALIVE,
    KEEPALIVE_BYTES,
    LEAST_BYTES,
    MESSAGE_LSN,
    PAYLOAD,
    WAL_DATA,
)
from floodmark.errors import DecodeError

_LEAST = np.full(256, -1, np.int64)
_LEAST[list(LEAST_BYTES)] = list(LEAST_BYTES.values())
_FIXED = np.zeros(256, bool)
_FIXED[list(FIXED)] = True


def record_kinds(payload: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the records' type bytes, shape (records,); verify that only keepalives lie between records.

    Args:
        payload: shape (bytes,).
        starts: where the records' frames start, shape (records,).

    Raises:
        DecodeError: a record has a wrong size or an unknown kind, or something else lies between records.
    """
    if len(starts) and int(starts.max()) + PAYLOAD >= len(payload):
        raise DecodeError("A log record goes past its segment.")
    ends = frame_ends(payload, starts)
    edges = np.append(starts, len(payload))
    gaps = edges - np.concatenate([[0], ends])
    whole = (payload[starts] == COPY_DATA) & (payload[starts + FRAME_KIND] == WAL_DATA) & (gaps[1:] >= 0)
    kinds = payload[starts + PAYLOAD]
    least, size = _LEAST[kinds], ends - starts - PAYLOAD
    whole &= (least >= 0) & np.where(_FIXED[kinds], size == least, size >= least)
    if not whole.all():
        raise DecodeError(f"The log record at byte {int(starts[~whole][0])} of a segment is not what it should be.")
    between = np.flatnonzero(gaps)
    if len(between):
        _check_keepalives(payload, edges[between] - gaps[between], gaps[between])
    return kinds


def _check_keepalives(payload: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Raise an error if any of the areas holds anything but keepalives."""
    counts, rest = np.divmod(sizes, KEEPALIVE_BYTES)
    if (sizes < 0).any() or rest.any():
        raise DecodeError("A segment holds more than its log records.")
    # The number of each keepalive within its area.
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    frames = np.repeat(starts, counts) + number * KEEPALIVE_BYTES
    alive = (payload[frames] == COPY_DATA) & (payload[frames + FRAME_KIND] == KEEPALIVE)
    if not alive.all() or (frame_ends(payload, frames) != frames + KEEPALIVE_BYTES).any():
        raise DecodeError("A segment holds more than its log records.")


def check_order(
    payload: NDArray[np.uint8],
    starts: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    alone: NDArray[np.bool_],
    carried: int | None,
) -> None:
    """Verify that each record is where it may be, and that transactions end with their own commit.

    Args:
        payload: shape (bytes,).
        starts: where the records' frames start, shape (records,).
        kinds: the records' type bytes.
        alone: which of them are outside of transactions.
        carried: the commit LSN of the transaction that began before the segment; None if there is none.

    Raises:
        DecodeError: a record is in the wrong place, or a transaction ends with another one's commit.
    """
    begin, commit = kinds == BEGIN, kinds == COMMIT
    opened = np.cumsum(begin) + int(carried is not None)
    # 1 within a transaction, including its begin and its commit; 0 outside.
    inside = opened - np.cumsum(commit) + commit
    if (inside != ~alone).any():
        raise DecodeError("A log record stands outside of its transaction.")
    int64 = be_view(payload, ">i8")
    before = np.array([] if carried is None else [carried], np.int64)
    lsn = np.concatenate([before, int64[starts[begin] + PAYLOAD + BEGIN_LSN].astype(np.int64)])
    if (lsn < 0).any() or (int64[starts[alone] + PAYLOAD + MESSAGE_LSN].astype(np.int64) <= 0).any():
        raise DecodeError("A transaction has no place in the log.")
    if (int64[starts[commit] + PAYLOAD + COMMIT_LSN] != lsn[opened[commit] - 1]).any():
        raise DecodeError("A transaction ends with the commit of another one.")
