"""Parses GTID events, each of which begins and identifies a transaction.

Source: MySQL's documentation, "Gtid_event" and "Gtid_log_event" (tagged ones are written by its serialization
library: fields by number, integers of variable length); MariaDB's, "GTID_EVENT".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.event_types import (
    AT_BODY,
    AT_SERVER_ID,
    AT_TYPE,
    DDL_FLAG,
    GTID,
    HEADER_BYTES,
    MARIADB_GTID,
    PREPARED_XA,
    SERVER_ID,
    STANDALONE,
    TAGGED_GTID,
    TYPE,
)
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.gtid import Gtids, MariadbGtids, MysqlGtids, uuid_text
from floodmark.errors import DecodeError

_FLAG_BYTES = 1
_UUID_BYTES = 16
_TIME_BYTES = 7
_HAS_ORIGINAL_TIME = 1 << 55
MARIADB_FLAGS = 12
"""Offset of the flags in the body of MariaDB's GTID event."""

# Field numbers of a tagged GTID event.
_FLAGS, _UUID, _NUMBER, _TAG, _LAST_COMMITTED, _SEQUENCE, _TIME, _ORIGINAL_TIME = range(8)
_TRANSACTION_LENGTH = 8


@dataclass(frozen=True)
class Transaction:
    """The contents of a GTID event.

    Attributes:
        gtid: None if the server assigned none.
        commit_us: when it was committed here, microseconds since the epoch; 0 if not logged.
        standalone: whether it consists of the one event that follows (MariaDB).
        ddl: whether it is DDL (MariaDB).
        prepared: whether it is an XA transaction that is prepared (MariaDB).
    """

    gtid: str | None
    commit_us: int = 0
    standalone: bool = False
    ddl: bool = False
    prepared: bool = False


def parse_gtid(event: bytes) -> Transaction:
    """Parse a GTID event of any kind.

    Args:
        event: from its header, without checksum.

    Raises:
        DecodeError: the event is malformed.
    """
    body = event[HEADER_BYTES:]
    try:
        if event[TYPE] == MARIADB_GTID:
            number, domain, flags = struct.unpack_from("<QIB", body)
            (server,) = struct.unpack_from("<I", event, SERVER_ID)
            gtid = f"{domain}-{server}-{number}"
            return Transaction(gtid, 0, bool(flags & STANDALONE), bool(flags & DDL_FLAG), bool(flags & PREPARED_XA))
        if event[TYPE] == TAGGED_GTID:
            return _tagged(body)
        at = _FLAG_BYTES + _UUID_BYTES
        (number,) = struct.unpack_from("<Q", body, at)
        at += 8 + 1 + 16
        commit_us = int.from_bytes(body[at : at + _TIME_BYTES], "little") & ~_HAS_ORIGINAL_TIME
        uuid = uuid_text(body[_FLAG_BYTES : _FLAG_BYTES + _UUID_BYTES])
        return Transaction(f"{uuid}:{number}" if event[TYPE] == GTID else None, commit_us)
    except (struct.error, IndexError, ValueError) as exc:
        raise _unreadable(exc) from None


def with_transactions(gtids: Gtids, buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> Gtids:
    """Return a GTID set with more transactions added.

    Args:
        gtids: the set before.
        buf: the records.
        starts: where the records of GTID events start, shape (transactions,).

    Raises:
        DecodeError: an event is malformed.
    """
    try:
        if isinstance(gtids, MariadbGtids):
            return _with_mariadb(gtids, buf, starts)
        return _with_mysql(gtids, buf, starts)
    except (IndexError, ValueError) as exc:
        raise _unreadable(exc) from None


def _with_mysql(gtids: MysqlGtids, buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> MysqlGtids:
    types = buf[starts + AT_TYPE]
    for start in starts[types == TAGGED_GTID].tolist():
        uuid, number, tag = _identity(_fields(bytes(buf[start + AT_BODY : start + AT_BODY + 256])))
        gtids = gtids.add((uuid, tag), [(number, number)])
    at = starts[types == GTID] + AT_BODY + _FLAG_BYTES
    # UUIDs are compared as pairs of words, and each server's transactions are added at once.
    words = le_view(buf, "<u8")
    sources = np.stack([words[at], words[at + 8]], axis=1)
    numbers = words[at + _UUID_BYTES].astype(np.int64)
    while len(numbers):
        same = (sources == sources[0]).all(axis=1)
        gtids = gtids.add((uuid_text(sources[0].tobytes()), ""), _runs(np.sort(numbers[same])))
        sources, numbers = sources[~same], numbers[~same]
    return gtids


def standalone_flags(buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of MariaDB's GTID events begin a transaction of one event, shape (transactions,)."""
    flags: NDArray[np.bool_] = (buf[starts + AT_BODY + MARIADB_FLAGS] & STANDALONE) != 0
    return flags


def _with_mariadb(gtids: MariadbGtids, buf: NDArray[np.uint8], starts: NDArray[np.int64]) -> MariadbGtids:
    numbers = le_view(buf, "<u8")[starts + AT_BODY].astype(np.int64)
    domains = le_view(buf, "<u4")[starts + AT_BODY + 8]
    servers = le_view(buf, "<u4")[starts + AT_SERVER_ID]
    while len(numbers):
        same = (domains == domains[0]) & (servers == servers[0])
        gtids = gtids.add(int(domains[0]), int(servers[0]), int(numbers[same].max()))
        domains, servers, numbers = domains[~same], servers[~same], numbers[~same]
    return gtids


def _runs(numbers: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.append(0, breaks + 1)].tolist()
    lasts = numbers[np.append(breaks, len(numbers) - 1)].tolist()
    return zip(firsts, lasts, strict=True)


def _tagged(body: bytes) -> Transaction:
    fields = _fields(body)
    uuid, number, tag = _identity(fields)
    commit_us = fields.get(_TIME, 0)
    assert isinstance(commit_us, int)
    return Transaction(f"{uuid}:{tag}:{number}" if tag else f"{uuid}:{number}", commit_us)


def _identity(fields: dict[int, int | bytes]) -> tuple[str, int, str]:
    uuid, number, tag = fields.get(_UUID), fields.get(_NUMBER), fields.get(_TAG, b"")
    if not isinstance(uuid, bytes) or not isinstance(number, int) or not isinstance(tag, bytes):
        raise DecodeError("A GTID event in the binlog lacks the GTID.")
    return uuid_text(uuid), number, tag.decode()


def _fields(body: bytes) -> dict[int, int | bytes]:
    """Return the fields of a tagged event by number; those after the commit time are omitted."""
    fields: dict[int, int | bytes] = {}
    # Skip the format's version, the size, and the number of the last field that must not be ignored.
    _, at = _variable(body, 0)
    _, at = _variable(body, at)
    _, at = _variable(body, at)
    while at < len(body):
        field, at = _variable(body, at)
        if field > _TIME:
            break
        if field == _UUID:
            uuid = []
            for _ in range(_UUID_BYTES):
                byte, at = _variable(body, at)
                uuid.append(byte)
            fields[field] = bytes(uuid)
        elif field == _TAG:
            size, at = _variable(body, at)
            fields[field] = body[at : at + size]
            at += size
        else:
            value, at = _variable(body, at)
            signed = field in (_NUMBER, _LAST_COMMITTED, _SEQUENCE)
            fields[field] = (value >> 1) ^ -(value & 1) if signed else value
    return fields


def _unreadable(exc: Exception) -> DecodeError:
    return DecodeError(f"A GTID event in the binlog cannot be read: {exc}.")


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of variable length and where it ends; its first byte's trailing ones count the bytes after."""
    first = data[at]
    more = (~first & 0xFF & -(~first & 0xFF)).bit_length() - 1 if first != 0xFF else 8
    word = int.from_bytes(data[at : at + more + 1], "little")
    return word >> (more + 1), at + more + 1
