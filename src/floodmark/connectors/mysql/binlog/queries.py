"""Parses Query events: statements in the log, and the session that they ran in.

Source: MySQL's documentation, "QUERY_EVENT" and "EXECUTE_LOAD_QUERY_EVENT"; MariaDB's, "QUERY_EVENT".
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.compressed import decompressed
from floodmark.connectors.mysql.binlog.event_types import (
    AT_BODY,
    AT_SIZE,
    EXECUTE_LOAD_QUERY,
    HEADER_BYTES,
    PACKET,
    QUERY_COMPRESSED,
    TYPE,
)
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.errors import DecodeError

POST_HEADER_BYTES = 13
LOAD_HEADER_BYTES = 13
"""Further post-header bytes of an Execute_load_query event: the file's number, and where the statement names it."""
_POST_HEADER = struct.Struct("<IIBHH")

BEGIN, COMMIT, OTHER = 0, 1, 2
"""Kinds of queries; ``COMMIT`` includes ROLLBACK."""

_CONTROL = re.compile(
    r"\s*(?:(?P<start>BEGIN|START\s+TRANSACTION|XA\s+(?:START|BEGIN))\b"
    r"|(?P<end>COMMIT\b|ROLLBACK\s*$|XA\s+(?:COMMIT|ROLLBACK)\b)"
    r"|(?P<within>SAVEPOINT\b|ROLLBACK\s+(?:WORK\s+)?TO\b|RELEASE\s+SAVEPOINT\b|XA\s+(?:END|PREPARE)\b))",
    re.IGNORECASE,
)

_DECIDES = re.compile(r"\s*XA\s+(?:COMMIT|ROLLBACK)\b", re.IGNORECASE)

_FLAGS2, _SQL_MODE, _CATALOG, _INCREMENT, _CHARSET, _TIME_ZONE, _CATALOG_NZ = 0, 1, 2, 3, 4, 5, 6
_LC_TIME, _CHARSET_DATABASE, _TABLE_MAP, _MASTER_DATA, _INVOKER, _UPDATED_DBS, _MICROSECONDS = 7, 8, 9, 10, 11, 12, 13
_COMMIT_TS, _COMMIT_TS2, _EXPLICIT_TS, _DDL_XID, _UTF8MB4, _REQUIRE_KEY, _ENCRYPTION = 14, 15, 16, 17, 18, 19, 20
_HRNOW, _XID, _ALTER_PHASE = 128, 129, 130

_SIZES = {_FLAGS2: 4, _SQL_MODE: 8, _INCREMENT: 4, _CHARSET: 6, _LC_TIME: 2, _CHARSET_DATABASE: 2, _TABLE_MAP: 8}
_SIZES |= {_MASTER_DATA: 4, _MICROSECONDS: 3, _EXPLICIT_TS: 1, _DDL_XID: 8, _UTF8MB4: 2, _REQUIRE_KEY: 1}
_SIZES |= {_ENCRYPTION: 1, _HRNOW: 3, _XID: 8}
_MANY_DATABASES = 254

ANSI_QUOTES, NO_BACKSLASH_ESCAPES, REAL_AS_FLOAT, ORACLE, MSSQL, MAXDB = 4, 1 << 20, 1, 1 << 9, 1 << 10, 1 << 12
"""Bits of ``sql_mode``."""
EXPLICIT_TIMESTAMPS = 1 << 24
"""The bit of MariaDB's ``flags2`` for ``explicit_defaults_for_timestamp``."""
_ALTER_STARTS, _ALTER_COMMITS, _ALTER_FAILS = 2, 4, 8
"""Phases of MariaDB's ALTER TABLE, if both its start and its end are logged (``binlog_alter_two_phase``)."""


@dataclass(frozen=True)
class Query:
    """A statement in the log.

    Attributes:
        sql: its text, decoded as UTF-8.
        raw: its bytes, in the client's character set.
        database: the session's default database; empty if it had none.
        thread: the session's thread id.
        seconds: when it began, since the epoch.
        sql_mode: the session's, as a number; None if it isn't logged.
        client_charset: number of the collation of ``character_set_client``.
        server_collation: number of ``collation_server``.
        utf8mb4_collation: number of ``default_collation_for_utf8mb4`` (MySQL).
        explicit_timestamps: ``explicit_defaults_for_timestamp`` (MySQL, where it is logged).
        flags: the session's ``flags2``; None if they aren't logged.
        failed: whether the server ended it with an error. It is in the log because of what it had done by then.
        tentative: whether it only reports that an ALTER TABLE begins, or failed (MariaDB).
        databases: databases with tables that it may change; None if they aren't logged (MariaDB, or too many).
        time_zone: the session's, as ``SET time_zone`` takes it; None if the statement doesn't depend on it.
    """

    sql: str
    raw: bytes
    database: str
    thread: int
    seconds: int
    sql_mode: int | None = None
    client_charset: int | None = None
    server_collation: int | None = None
    utf8mb4_collation: int | None = None
    explicit_timestamps: bool | None = None
    flags: int | None = None
    failed: bool = False
    tentative: bool = False
    databases: frozenset[str] | None = None
    time_zone: str | None = None

    @property
    def starts(self) -> bool:
        """Whether it begins a transaction."""
        return self._is("start")

    @property
    def ends(self) -> bool:
        """Whether it ends a transaction, whatever came before."""
        return self._is("end")

    @property
    def decides(self) -> bool:
        """Whether it ends a prepared XA transaction."""
        return _DECIDES.match(self.sql) is not None

    @property
    def controls(self) -> bool:
        """Whether it is transaction control, and so changes neither tables nor rows."""
        return _CONTROL.match(self.sql) is not None

    def _is(self, group: str) -> bool:
        found = _CONTROL.match(self.sql)
        return found is not None and found[group] is not None


@dataclass
class _Variables:
    values: dict[int, bytes] = field(default_factory=dict)

    def number(self, key: int, at: int = 0, size: int | None = None) -> int | None:
        value = self.values.get(key)
        return None if value is None else int.from_bytes(value[at : None if size is None else at + size], "little")

    def text(self, key: int) -> str | None:
        """Return a value that is a length byte followed by a text."""
        value = self.values.get(key)
        return None if value is None else value[1:].decode("latin-1")


def parse_query(event: bytes) -> Query:
    """Parse a Query event, compressed or not.

    Args:
        event: from its header, without checksum.

    Raises:
        DecodeError: the event is malformed.
    """
    try:
        thread, _, database_size, error, variables_size = _POST_HEADER.unpack_from(event, HEADER_BYTES)
        at = HEADER_BYTES + POST_HEADER_BYTES + LOAD_HEADER_BYTES * (event[TYPE] == EXECUTE_LOAD_QUERY)
        variables = _variables(event[at : at + variables_size])
        at += variables_size
        database = event[at : at + database_size].decode("utf-8", "replace")
        text = event[at + database_size + 1 :]
        if event[TYPE] == QUERY_COMPRESSED:
            text = decompressed(text)
    except (struct.error, IndexError) as exc:
        raise DecodeError(f"A Query event in the binlog cannot be read: {exc}.") from None
    explicit = variables.number(_EXPLICIT_TS)
    return Query(
        text.decode("utf-8", "replace"),
        text,
        database,
        thread,
        int.from_bytes(event[:4], "little"),
        variables.number(_SQL_MODE),
        variables.number(_CHARSET, 0, 2),
        variables.number(_CHARSET, 4, 2),
        variables.number(_UTF8MB4),
        None if explicit is None else bool(explicit),
        variables.number(_FLAGS2),
        error != 0,
        bool((variables.number(_ALTER_PHASE, 0, 1) or 0) & (_ALTER_STARTS | _ALTER_FAILS)),
        _updated_databases(variables.values.get(_UPDATED_DBS)),
        variables.text(_TIME_ZONE),
    )


def _updated_databases(data: bytes | None) -> frozenset[str] | None:
    if not data or data[0] >= _MANY_DATABASES:
        return None
    return frozenset(name.decode("utf-8", "replace") for name in data[1:].split(b"\0")[: data[0]])


def query_kinds(buf: NDArray[np.uint8], starts: NDArray[np.int64], checksum: int) -> NDArray[np.int64]:
    """Return the kinds of many uncompressed Query events.

    Args:
        buf: the records.
        starts: where the records of the Query events start, shape (events,).
        checksum: size of the checksums.

    Returns:
        ``BEGIN``, ``COMMIT`` or ``OTHER``, shape (events,).

    Raises:
        DecodeError: an event is truncated.
    """
    # In the post-header, the length of the database's name is at 8, that of the session variables at 11.
    variables = le_view(buf, "<u2")[starts + AT_BODY + 11].astype(np.int64)
    text = starts + AT_BODY + POST_HEADER_BYTES + variables + buf[starts + AT_BODY + 8] + 1
    size = starts + PACKET + le_view(buf, "<u4")[starts + AT_SIZE] - checksum - text
    if (size < 0).any():
        raise DecodeError("A Query event in the binlog is cut off.")
    kinds = np.full(len(starts), OTHER, np.int64)
    for word, kind in ((b"BEGIN", BEGIN), (b"COMMIT", COMMIT), (b"ROLLBACK", COMMIT)):
        like = np.flatnonzero(size == len(word))
        letters = buf[text[like, None] + np.arange(len(word))]
        kinds[like[(letters == np.frombuffer(word, np.uint8)).all(axis=1)]] = kind
    return kinds


def _variables(data: bytes) -> _Variables:
    """Parse the session variables up to the first unknown one, whose size isn't in the data."""
    found = _Variables()
    at = 0
    while at < len(data):
        key = data[at]
        at += 1
        if key in (_CATALOG_NZ, _TIME_ZONE):
            size = 1 + data[at]
        elif key == _CATALOG:
            size = 2 + data[at]
        elif key == _INVOKER:
            user = 1 + data[at]
            size = user + 1 + data[at + user]
        elif key == _UPDATED_DBS:
            size = 1
            for _ in range(data[at] if data[at] < _MANY_DATABASES else 0):
                size = data.index(0, at + size) + 1 - at
        elif key == _ALTER_PHASE:
            size = 9 if data[at] & (_ALTER_COMMITS | _ALTER_FAILS) else 1
        elif key in _SIZES:
            size = _SIZES[key]
        else:
            break
        found.values[key] = data[at : at + size]
        at += size
    return found
