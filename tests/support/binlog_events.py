"""Binlog events made by hand, and a server that sends them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.reading.channel import DumpChannel, DumpStart

UUID = bytes(range(16))
INSIDE = (types.TABLE_MAP, types.WRITE_ROWS)


@dataclass
class Log:
    """Events of one binlog file, as a server sends them.

    Attributes:
        number: of the file.
        offset: where the next event begins.
        checksum: whether events have checksums.
        events: made so far; those that are not in the file too.
        told: whether events inside of transactions say where they end; MariaDB's don't from version 11.4 on.
    """

    number: int = 1
    offset: int = 4
    checksum: bool = True
    mariadb: bool = False
    events: list[bytes] = field(default_factory=list)
    gno: int = 0
    told: bool = True

    def add(self, kind: int, body: bytes = b"", flags: int = 0, real: bool = True) -> int:
        """Append an event and return its offset."""
        size = types.HEADER_BYTES + len(body) + (types.CHECKSUM_BYTES if self.checksum else 0)
        at = self.offset
        self.offset += size if real else 0
        log_pos = self.offset & 0xFFFFFFFF if real and (self.told or kind not in INSIDE) else 0
        event = struct.pack("<IBIIIH", 1_700_000_000, kind, 7, size, log_pos, flags) + body
        self.events.append(event + (struct.pack("<I", zlib.crc32(event)) if self.checksum else b""))
        return at

    def begin_file(self, real: bool = True, at: int | None = None) -> None:
        """Append what a server sends first of a file."""
        name = f"binlog.{self.number:06d}".encode()
        self.add(
            types.ROTATE, struct.pack("<Q", self.offset if at is None else at) + name, types.ARTIFICIAL, real=False
        )
        self.describe(real)

    def describe(self, real: bool = True) -> None:
        """Append a format description."""
        checksum, self.checksum = self.checksum, True
        version = b"10.11.18-MariaDB" if self.mariadb else b"9.7.4"
        body = struct.pack("<H50sIB", 4, version, 0, 19) + bytes(40) + bytes([checksum])
        self.add(types.FORMAT_DESCRIPTION, body, real=real)
        self.checksum = checksum

    def gtid(self, standalone: bool = False) -> int:
        """Append what begins a transaction, and return its offset."""
        self.gno += 1
        if self.mariadb:
            return self.add(types.MARIADB_GTID, struct.pack("<QIB6x", self.gno, 0, int(standalone)))
        body = b"\0" + UUID + struct.pack("<QBQQ", self.gno, 2, 0, 0) + (1_700_000_000_123_456).to_bytes(7, "little")
        return self.add(types.GTID, body)

    def query(self, text: str, database: str = "shop", variables: bytes = b"") -> int:
        """Append a statement."""
        head = struct.pack("<IIBHH", 9, 0, len(database), 0, len(variables))
        return self.add(types.QUERY, head + variables + database.encode() + b"\0" + text.encode())

    def table_map(self, table_id: int, table: str, database: str = "shop") -> int:
        """Append the map of a table ``(id INT NOT NULL)``."""
        names = b"".join(bytes([len(name)]) + name.encode() + b"\0" for name in (database, table))
        return self.add(types.TABLE_MAP, struct.pack("<IHH", table_id, 0, 1) + names + b"\x01\x03\x00\x00")

    def rows(self, table_id: int, ids: Sequence[int], last: bool = True) -> int:
        """Append inserted rows."""
        rows = b"".join(b"\0" + struct.pack("<i", one) for one in ids)
        head = struct.pack("<IHHH", table_id, 0, types.STATEMENT_END if last else 0, 2)
        return self.add(types.WRITE_ROWS, head + b"\x01\xff" + rows)

    def transaction(self, *ids: int, table: str = "items") -> int:
        """Append a transaction that inserts rows, and return its end."""
        self.gtid()
        if not self.mariadb:
            self.query("BEGIN")
        self.table_map(5, table)
        self.rows(5, ids)
        self.add(types.XID, bytes(8))
        return self.offset

    def payload(self, inner: Sequence[bytes], announced: int | None = None, damage: bytes | None = None) -> int:
        """Append a compressed transaction, without its GTID, and return its offset.

        Args:
            inner: its events, without checksums.
            announced: the size that it says it has; None: the right one.
            damage: what it holds in place of them, compressed.
        """
        plain = b"".join(inner)
        packed = pa.compress(plain, "zstd", asbytes=True) if damage is None else damage
        size = len(plain) if announced is None else announced
        return self.add(types.TRANSACTION_PAYLOAD, payload_body(packed, size))

    def next_file(self) -> None:
        """Begin another file."""
        self.number += 1
        self.offset = 4
        self.begin_file()


def payload_body(packed: bytes, announced: int, method: int = 0) -> bytes:
    """Return the body of a TRANSACTION_PAYLOAD event."""
    fields = [(1, len(packed)), (2, method), (3, announced)]
    head = b"".join(bytes([number, 9]) + b"\xfe" + struct.pack("<Q", value) for number, value in fields)
    return head + b"\0" + packed


def packets(events: Sequence[bytes], number: int = 1) -> bytes:
    """Return events as packets."""
    pieces = []
    for event in events:
        payload = b"\0" + event
        while True:
            part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
            pieces.append(len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part)
            number += 1
            if len(part) < 0xFFFFFF:
                break
    return b"".join(pieces)


class CannedChannel(DumpChannel):
    """Sends what it was given, in pieces of some size."""

    def __init__(self, data: bytes, piece: int = 1 << 30) -> None:
        self.data = data
        self.piece = piece

    def start(self, start: DumpStart) -> None:
        """Do nothing."""

    def read_into(self, view: memoryview, timeout: float) -> int:
        """Return the next piece."""
        part = self.data[: min(self.piece, len(view))]
        self.data = self.data[len(part) :]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Do nothing."""
