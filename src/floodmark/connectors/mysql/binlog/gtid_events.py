"""Parses many GTID events at once: the GTIDs, and when the transactions were committed on their original server.

Source: MySQL, ``libs/mysql/binlog/event/control_events.h``, ``Gtid_event`` and ``Gtid_event::tagged``; MariaDB's
documentation, "GTID_EVENT".
"""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import text_of
from floodmark.codecs.numbering import number_bytes
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.little_endian import numbers
from floodmark.connectors.mysql.binlog.transactions import parse_gtid

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_UUID, _UUID_BYTES = 1, 16
_NUMBER = 17
_TIMES, _TIME_BYTES = 42, 7
"""Where the times begin: after flags, UUID, number, and 17 bytes of logical clocks."""
_BOTH = np.int64(1) << (8 * _TIME_BYTES - 1)
"""Flag of the first time: the original server's follows, since it differs."""
_MARIADB_NUMBER, _MARIADB_DOMAIN = 0, 8


def gtids(buf: Bytes, kind: NDArray[np.uint8], at: Numbers, end: Numbers) -> tuple[pa.StringArray, Numbers]:
    """Return the GTIDs and commit times of GTID events.

    Args:
        buf: shape (bytes,).
        kind: their event types, shape (events,).
        at: where their bodies begin, shape (events,).
        end: where they end, shape (events,).

    Returns:
        The GTIDs, null for anonymous transactions; the commit times in microseconds since the epoch, -1 if unknown.
    """
    rows = len(at)
    text = pa.nulls(rows, pa.string())
    times = np.full(rows, -1, np.int64)
    plain = kind == kinds.GTID
    if plain.any():
        index = np.flatnonzero(plain)
        text = _placed(text, index, _numbered(_sources(buf, at[index]), ":", numbers(buf, at[index] + _NUMBER, 8)))
        times[index] = _commit_times(buf, at[index], end[index])
    own = np.flatnonzero(kind == kinds.MARIADB_GTID)
    if len(own):
        domain = numbers(buf, at[own] + _MARIADB_DOMAIN, 4)
        server = numbers(buf, at[own] - kinds.HEADER_BYTES + kinds.SERVER_ID, 4)
        first = pc.binary_join_element_wise(text_of(domain), text_of(server), "-")
        text = _placed(text, own, _numbered(first, "-", numbers(buf, at[own] + _MARIADB_NUMBER, 8)))
    tagged = np.flatnonzero(kind == kinds.TAGGED_GTID)
    if len(tagged):
        begins = at - kinds.HEADER_BYTES
        parsed = [parse_gtid(buf[int(begins[i]) : int(end[i])].tobytes()) for i in tagged.tolist()]
        text = _placed(text, tagged, pa.array([one.gtid for one in parsed], pa.string()))
        times[tagged] = [one.commit_us or -1 for one in parsed]
    return text, times


def _placed(into: pa.StringArray, index: Numbers, values: pa.StringArray) -> pa.StringArray:
    if len(values) == len(into):
        return values
    source = np.arange(len(into))
    source[index] = len(into) + np.arange(len(values))
    return pa.concat_arrays([into, values]).take(pa.array(source))


def _numbered(source: pa.StringArray, between: str, number: Numbers) -> pa.StringArray:
    return pc.binary_join_element_wise(source, text_of(number), between)


def _sources(buf: Bytes, at: Numbers) -> pa.StringArray:
    """Return the UUIDs of the servers on which the transactions were committed first."""
    matrix = buf[(at + _UUID)[:, None] + np.arange(_UUID_BYTES)]
    found = number_bytes(matrix)
    names = [str(uuid.UUID(bytes=matrix[one].tobytes())) for one in found.first.tolist()]
    return pa.array(names, pa.string()).take(pa.array(found.owner))


def _commit_times(buf: Bytes, at: Numbers, end: Numbers) -> Numbers:
    times = np.full(len(at), -1, np.int64)
    there = np.flatnonzero(end - at >= _TIMES + _TIME_BYTES)
    first = numbers(buf, at[there] + _TIMES, _TIME_BYTES)
    times[there] = first
    both = there[(first & _BOTH) != 0]
    times[both] = numbers(buf, at[both] + _TIMES + _TIME_BYTES, _TIME_BYTES) & ~_BOTH
    return times
