from __future__ import annotations

import struct

import pytest

from floodmark.connectors.mysql.schema.query_event import parse_query
from floodmark.errors import DecodeError

COLLATIONS = {8: "latin1_swedish_ci", 45: "utf8mb4_general_ci", 255: "utf8mb4_0900_ai_ci"}


def body(status: bytes, database: bytes, text: bytes) -> bytes:
    return struct.pack("<IIBHH", 7, 0, len(database), 0, len(status)) + status + database + b"\0" + text


def test_the_status_makes_the_session() -> None:
    status = b"\x00\0\0\0\0" + b"\x01" + (1 << 2 | 1 << 20).to_bytes(8, "little") + b"\x06\x03std"
    status += b"\x04" + struct.pack("<3H", 8, 8, 255) + b"\x05\x06SYSTEM" + b"\x0c\x01db\0"
    status += b"\x10\0" + b"\x11" + bytes(8) + b"\x12" + struct.pack("<H", 45)
    query = parse_query(body(status, b"db", "ALTER TABLE \xe9".encode("latin-1")), COLLATIONS, False)
    assert query.text == "ALTER TABLE é"
    assert query.thread == 7
    session = query.session
    assert (session.database, session.ansi_quotes, session.no_backslash_escapes) == ("db", True, True)
    assert (session.collation, session.utf8mb4_collation) == ("utf8mb4_0900_ai_ci", "utf8mb4_general_ci")
    assert not session.explicit_timestamps


def test_what_stands_behind_an_unknown_variable_is_left() -> None:
    status = b"\x80\1\2\3\xff" + b"\x10\0"
    query = parse_query(body(status, b"", b"BEGIN"), COLLATIONS, True)
    assert query.text == "BEGIN"
    assert query.session.explicit_timestamps


@pytest.mark.parametrize("length", [0, 5, 14])
def test_a_short_event_is_an_error(length: int) -> None:
    with pytest.raises(DecodeError, match="Query event"):
        parse_query(body(b"", b"database", b"BEGIN")[:length], COLLATIONS, False)
