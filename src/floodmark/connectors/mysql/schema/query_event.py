"""Query events of the binlog: statements with the state of the session that ran them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from floodmark.connectors.mysql.schema.charsets import python_codec
from floodmark.connectors.mysql.schema.session import Session
from floodmark.errors import DecodeError

_POST_HEADER = struct.Struct("<IIBHH")
_REAL_AS_FLOAT = 1 << 0
_ANSI_QUOTES = 1 << 2
_ORACLE = 1 << 9
_NO_BACKSLASH_ESCAPES = 1 << 20
_EXPLICIT_TIMESTAMPS_OF_MARIADB = 1 << 24
_FLAGS, _SQL_MODE, _CATALOG, _AUTO_INCREMENT, _CHARSET, _TIME_ZONE, _CATALOG_NEW = range(7)
_LC_TIME, _CHARSET_DATABASE, _TABLE_MAP, _MASTER, _INVOKER, _DATABASES = range(7, 13)
_MICROSECONDS, _COMMIT_OLD, _COMMIT, _EXPLICIT, _DDL_XID, _UTF8MB4, _REQUIRE_KEY, _ENCRYPTION = range(13, 21)
_TOO_MANY = 254
"""Stands for the number of databases if they are not listed."""
_WIDTHS = {
    _FLAGS: 4,
    _SQL_MODE: 8,
    _AUTO_INCREMENT: 4,
    _CHARSET: 6,
    _LC_TIME: 2,
    _CHARSET_DATABASE: 2,
    _TABLE_MAP: 8,
    _MASTER: 4,
    _MICROSECONDS: 3,
    _COMMIT_OLD: 0,
    _EXPLICIT: 1,
    _DDL_XID: 8,
    _UTF8MB4: 2,
    _REQUIRE_KEY: 1,
    _ENCRYPTION: 1,
}


@dataclass(frozen=True)
class Query:
    """A statement of the log.

    Attributes:
        thread: number of the connection that ran it.
        error: code of the error that it ended with; 0 if it didn't.
    """

    text: str
    session: Session
    thread: int
    error: int


def parse_query(body: bytes, collations: Mapping[int, str], mariadb: bool) -> Query:
    """Return the statement of a Query event.

    Args:
        body: the event behind its header, without its checksum.
        collations: the server's collations by their numbers.
        mariadb: whether the server is MariaDB.

    Raises:
        DecodeError: the event is cut off.
    """
    try:
        thread, _, database_length, error, status_length = _POST_HEADER.unpack_from(body)
    except struct.error:
        raise DecodeError("A Query event is too short for its header.") from None
    begin = _POST_HEADER.size + status_length
    statement = begin + database_length + 1
    if statement > len(body):
        raise DecodeError("A Query event is shorter than its lengths say.")
    database = body[begin : begin + database_length].decode("utf-8", "replace")
    status = _status(body[_POST_HEADER.size : begin])
    flags = _number(status.get(_FLAGS))
    mode = _number(status.get(_SQL_MODE))
    charsets = struct.unpack("<3H", status[_CHARSET]) if _CHARSET in status else (0, 0, 0)
    explicit = status.get(_EXPLICIT, b"\1") != b"\0"
    if mariadb and _FLAGS in status:
        explicit = bool(flags & _EXPLICIT_TIMESTAMPS_OF_MARIADB)
    session = Session(
        database=database,
        ansi_quotes=bool(mode & _ANSI_QUOTES),
        no_backslash_escapes=bool(mode & _NO_BACKSLASH_ESCAPES),
        real_as_float=bool(mode & _REAL_AS_FLOAT),
        oracle=mariadb and bool(mode & _ORACLE),
        collation=collations.get(charsets[2]),
        utf8mb4_collation=collations.get(_number(status.get(_UTF8MB4))),
        explicit_timestamps=explicit,
    )
    codec = python_codec(collations.get(charsets[0], "utf8mb4"))
    return Query(body[statement:].decode(codec, "replace"), session, thread, error)


def _number(data: bytes | None) -> int:
    return int.from_bytes(data or b"", "little")


def _status(data: bytes) -> dict[int, bytes]:
    """Return the variables by their codes, up to the first that isn't known: nothing tells its length."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in (_TIME_ZONE, _CATALOG_NEW):
            width = 1 + data[at] if at < len(data) else 0
        elif code == _CATALOG:
            width = 2 + data[at] if at < len(data) else 0
        elif code == _INVOKER:
            user = data[at] if at < len(data) else 0
            host = data[at + 1 + user] if at + 1 + user < len(data) else 0
            width = 2 + user + host
        elif code == _DATABASES:
            width = _databases_width(data, at)
        elif code in _WIDTHS:
            width = _WIDTHS[code]
        else:
            break
        found[code] = data[at : at + width]
        at += width
    return found


def _databases_width(data: bytes, at: int) -> int:
    count = data[at] if at < len(data) else 0
    end = at + 1
    for _ in range(0 if count == _TOO_MANY else count):
        end = data.find(b"\0", end) + 1
        if end == 0:
            return len(data) - at
    return end - at
