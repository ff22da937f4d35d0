"""pgoutput messages made by hand, and a strict reader of them: slow, and independent of the decoder.

Source: PostgreSQL documentation, "Logical Replication Message Formats" and "Streaming Replication Protocol".
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KEEP = object()
"""A value that the log lacks because it did not change."""

Value = str | None | object
Row = Sequence[Value]

FIRST_LSN = 0x1000_0000_0000_0001
"""So large that a double does not hold it."""
TEXT_OID = 25
PLACEHOLDER = "__debezium_unavailable_value"


class BrokenError(Exception):
    """The bytes are not what the protocol says."""


@dataclass
class Log:
    """Frames as they come from the server.

    Attributes:
        frames: whole CopyData frames, keepalives too.
        fields: the structural fields of each frame, from its start: offset and size.
    """

    frames: list[bytes] = field(default_factory=list)
    fields: list[list[tuple[int, int]]] = field(default_factory=list)

    def wal(self, message: bytes, inside: Sequence[tuple[int, int]] = ()) -> None:
        """Add a message; ``inside`` are its structural fields."""
        lsn = FIRST_LSN + 16 * len(self.frames)
        body = b"w" + struct.pack(">QQQ", lsn, lsn, 0) + message
        self.frames.append(b"d" + struct.pack(">I", len(body) + 4) + body)
        self.fields.append([(0, 1), (1, 4), (5, 1), (30, 1), *((30 + at, size) for at, size in inside)])

    def keepalive(self, lsn: int = FIRST_LSN, reply: bool = False) -> None:
        body = b"k" + struct.pack(">QQB", lsn, 0, reply)
        self.frames.append(b"d" + struct.pack(">I", len(body) + 4) + body)
        self.fields.append([(0, 1), (1, 4), (5, 1)])

    def other(self, kind: bytes, body: bytes = b"") -> None:
        """Add a message that isn't CopyData."""
        self.frames.append(kind + struct.pack(">I", len(body) + 4) + body)
        self.fields.append([(0, 1), (1, 4)])

    def begin(self, lsn: int, xid: int = 700) -> None:
        self.wal(b"B" + struct.pack(">QQI", lsn, 1_000_000, xid), [(1, 8)])

    def commit(self, lsn: int) -> None:
        self.wal(b"C" + struct.pack(">BQQQ", 0, lsn, lsn + 8, 1_000_000), [(2, 8)])

    def relation(self, raw: bytes) -> None:
        self.wal(raw, [(at, 1) for at in range(1, len(raw))])

    def change(self, kind: str, oid: int, *tuples: tuple[str, Row]) -> None:
        """Add an insert, update or delete: I, U, D; tuples are new, old or key ones: N, O, K."""
        message, inside = bytearray(kind.encode() + struct.pack(">I", oid)), [(1, 4)]
        for letter, row in tuples:
            inside += [(len(message), 1), (len(message) + 1, 2)]
            message += letter.encode() + struct.pack(">H", len(row))
            for value in row:
                inside.append((len(message), 1))
                if value is None or value is KEEP:
                    message += b"n" if value is None else b"u"
                else:
                    inside.append((len(message) + 1, 4))
                    text = str(value).encode()
                    message += b"t" + struct.pack(">I", len(text)) + text
        self.wal(bytes(message), inside)

    def message(self, prefix: bytes, content: bytes, inside: bool, lsn: int = FIRST_LSN + 50) -> None:
        head = b"M" + struct.pack(">BQ", inside, lsn) + prefix + b"\0"
        fields = [(1, 1), (10 + len(prefix), 1), (len(head), 4)]
        self.wal(head + struct.pack(">I", len(content)) + content, fields)

    def origin(self, name: bytes) -> None:
        self.wal(b"O" + struct.pack(">Q", 77) + name + b"\0", [(9 + len(name), 1)])

    def truncate(self, *oids: int) -> None:
        message = b"T" + struct.pack(">IB", len(oids), 0) + b"".join(struct.pack(">I", oid) for oid in oids)
        self.wal(message, [(1, 4), *((6 + 4 * i, 4) for i in range(len(oids)))])


def relation_message(
    oid: int, name: str, columns: Sequence[str], identity: str = "d", key: int = 1, types: Sequence[int] = ()
) -> bytes:
    """Return a Relation message, the first ``key`` of whose columns are the key.

    The columns have the given types; those beyond them are text.
    """
    body = b"".join(
        bytes([number < key]) + column.encode() + b"\0" + struct.pack(">Ii", (*types[number:], TEXT_OID)[0], -1)
        for number, column in enumerate(columns)
    )
    head = b"R" + struct.pack(">I", oid) + b"public\0" + name.encode() + b"\0" + identity.encode()
    return head + struct.pack(">H", len(columns)) + body


def header_entry(raw: bytes, record: int) -> dict[str, Any]:
    """Return a relation's entry in a segment's header."""
    return {"raw": base64.b64encode(raw).decode(), "structure": {"key": [], "required": []}, "record": record}


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise BrokenError("cut off")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def string(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise BrokenError("no end of a string")
        text = self.take(end - self.at)
        self.at += 1
        return decoded(text)

    def end(self) -> None:
        if self.at != len(self.data):
            raise BrokenError("more than expected")


def decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BrokenError("not UTF-8") from None


Table = tuple[str, list[tuple[str, bool]]]
"""Replica identity, and the columns, each with whether it is part of the identity."""


def read_relation(raw: bytes) -> tuple[int, Table]:
    """Return the OID and the table of a Relation message."""
    cursor = _Cursor(raw)
    if cursor.take(1) != b"R":
        raise BrokenError("no Relation message")
    oid = cursor.number(4)
    cursor.string()
    cursor.string()
    identity = cursor.take(1).decode("latin-1")
    if identity not in ("d", "n", "f", "i"):
        raise BrokenError("unknown identity")
    columns = []
    for _ in range(cursor.number(2)):
        marked = bool(cursor.number(1) & 1)
        columns.append((cursor.string(), marked))
        cursor.take(8)
    cursor.end()
    return oid, (identity, columns)


Event = tuple[str, dict[str, Any] | None, dict[str, Any] | None]
"""Operation, before, after; truncates, tombstones and messages are left out."""


def read_frames(data: bytes) -> list[tuple[int, bytes]]:
    """Return the start of each WAL frame and its message."""
    cursor, found = _Cursor(data), []
    while cursor.at < len(data):
        start = cursor.at
        if cursor.take(1) != b"d":
            raise BrokenError("no CopyData")
        body = _Cursor(cursor.take(cursor.number(4) - 4))
        kind = body.take(1)
        if kind == b"k":
            body.take(17)
            body.end()
        elif kind == b"w":
            body.take(24)
            found.append((start, body.take(len(body.data) - body.at)))
        else:
            raise BrokenError("neither data nor keepalive")
    return found


def read_events(data: bytes, relations: dict[int, Table]) -> list[Event]:
    """Return the events of frames that hold whole transactions.

    Args:
        data: the frames.
        relations: the tables that were announced before.
    """
    known = dict(relations)
    events: list[Event] = []
    lsn: int | None = None
    for _, message in read_frames(data):
        cursor = _Cursor(message)
        kind = cursor.take(1).decode("latin-1")
        if kind == "B":
            if lsn is not None:
                raise BrokenError("a transaction in a transaction")
            lsn = cursor.number(8)
            if lsn >= 1 << 63:
                raise BrokenError("no LSN")
            cursor.take(12)
        elif kind == "M":
            if bool(cursor.number(1) & 1) != (lsn is not None):
                raise BrokenError("a message outside of its transaction, or inside of another one")
            place = cursor.number(8)
            if lsn is None and not 0 < place < 1 << 63:
                raise BrokenError("no LSN")
            cursor.string()
            cursor.take(cursor.number(4))
        elif lsn is None:
            raise BrokenError("outside of a transaction")
        elif kind == "C":
            cursor.take(1)
            if cursor.number(8) != lsn:
                raise BrokenError("another transaction's commit")
            cursor.take(16)
            lsn = None
        elif kind == "R":
            oid, table = read_relation(message)
            known[oid] = table
            continue
        elif kind in "IUD":
            events += _row_events(kind, cursor, known)
        elif kind == "T":
            count = cursor.number(4)
            cursor.take(1)
            for _ in range(count):
                if cursor.number(4) not in known:
                    raise BrokenError("unknown relation")
        elif kind == "O":
            cursor.take(8)
            cursor.string()
        elif kind == "Y":
            # What it says is not used.
            cursor.take(max(len(message) - 1, 6))
        else:
            raise BrokenError("unknown message")
        cursor.end()
    return events


def _row_events(kind: str, cursor: _Cursor, known: dict[int, Table]) -> list[Event]:
    oid = cursor.number(4)
    if oid not in known:
        raise BrokenError("unknown relation")
    identity, columns = known[oid]
    names = [name for name, _ in columns]
    key = [i for i, (_, marked) in enumerate(columns) if marked and identity in "di"]
    tuples = []
    while cursor.at < len(cursor.data):
        letter = cursor.take(1).decode("latin-1")
        row = _row(cursor, len(names))
        # A key's tuple holds nothing but the key.
        tuples.append((letter, [None if value is KEEP else value for value in row] if letter == "K" else row))
    letters = "".join(letter for letter, _ in tuples)
    if letters not in {"I": ("N",), "U": ("N", "ON", "KN"), "D": ("O", "K")}[kind]:
        raise BrokenError("wrong tuples")
    old = tuples[0][1] if letters[0] in "OK" else None
    new = tuples[-1][1] if letters[-1] == "N" else None
    if kind == "I":
        return [("c", None, _named(names, new))]
    if kind == "D":
        return [("d", _named(names, old), None)]
    assert new is not None
    if old is not None:
        new = [a if a is not KEEP or b in (None, KEEP) else b for a, b in zip(new, old, strict=True)]
    if old is not None and key:
        both = [tuple(None if row[i] is KEEP else row[i] for row in (old, new)) for i in key]
        if any(a != b for a, b in both) and (letters == "ON" or all(None not in pair for pair in both)):
            return [("d", _named(names, old), None), ("c", None, _named(names, new))]
    return [("u", _named(names, old), _named(names, new))]


def _row(cursor: _Cursor, columns: int) -> list[Value]:
    if cursor.number(2) != columns:
        raise BrokenError("another number of columns")
    row: list[Value] = []
    for _ in range(columns):
        letter = cursor.take(1)
        if letter == b"t":
            row.append(decoded(cursor.take(cursor.number(4))))
        elif letter in (b"n", b"u"):
            row.append(None if letter == b"n" else KEEP)
        else:
            raise BrokenError("unknown kind of value")
    return row


def _named(names: list[str], row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: PLACEHOLDER if value is KEEP else value for name, value in zip(names, row, strict=True)}
