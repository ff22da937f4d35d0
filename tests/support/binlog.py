"""Following a server's binlog in tests, with as little decoding as shows that everything arrives."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import SecretStr

from floodmark.capture.log_stream import Cut
from floodmark.connectors.mysql.binlog.compressed import payload_events
from floodmark.connectors.mysql.binlog.event_types import (
    DELETES,
    GTIDS,
    HEADER_BYTES,
    OF_THE_FILE,
    ROWS,
    ROWS_V1,
    TRANSACTION_PAYLOAD,
    TYPE,
    UPDATES,
)
from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.binlog.segments import event_at, places
from floodmark.connectors.mysql.capture.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.server.connection import connect
from tests.support.mysql import MysqlServer
from tests.support.patience import within

Row = tuple[str, int]
"""Operation and id."""


@dataclass(frozen=True)
class Login:
    """The options of a connection."""

    port: int
    hostname: str = "127.0.0.1"
    user: str = MysqlServer.user
    password: SecretStr | None = field(default_factory=lambda: SecretStr(MysqlServer.password))
    connect_timeout_ms: int = 5000
    ssl_mode: str = "preferred"
    ssl_keystore: str | None = None
    ssl_keystore_password: SecretStr | None = None
    ssl_truststore: str | None = None
    ssl_truststore_password: SecretStr | None = None
    statements: tuple[str, ...] = ()

    def session_statements(self) -> list[str]:
        return list(self.statements)


@dataclass(frozen=True)
class NamedTable:
    """A structure that says nothing but how often its tables were altered."""

    altered: int

    def to_json(self) -> dict[str, Any]:
        return {"altered": self.altered}


class CountingStructures:
    """Structures that remember the statements that they were given."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, str]] = []

    def rewind(self, position: str) -> None:
        self.statements = [one for one in self.statements if one[1] <= position]

    def apply(self, query: Query, position: str) -> None:
        self.statements.append((query.sql, position))

    def table(self, database: str, name: str) -> NamedTable:
        return NamedTable(sum(f"{database}.{name} " in sql for sql, _ in self.statements))


class Follower:
    """Follows a server's log by cutting segments, over as many connections as the test wants.

    Attributes:
        cuts: in order.
    """

    def __init__(self, server: MysqlServer, position: str | None = None, segment_bytes: int = 1 << 20) -> None:
        self.server = server
        self.settings = CaptureSettings(server.flavor, 1_000_000 + server.port, segment_bytes, heartbeat_s=0.2)
        self.structures = CountingStructures()
        self.cuts: list[Cut] = []
        self.upto = position or here(server)
        self.known: dict[str, ResumePoint] = {}
        self.login = Login(server.port)
        self._stream: MysqlStream | None = None

    def open(self) -> MysqlStream:
        """Return the stream, connected."""
        if self._stream is None:
            stream = MysqlStream(lambda: connect(self.login), self.settings, self.structures, self.known.get)
            try:
                stream.open(self.upto)
            except BaseException:
                stream.close()
                raise
            self._stream = stream
        return self._stream

    def close(self) -> None:
        """Close the connection; the next step opens another one after the last cut."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def step(self, force: bool = False) -> bool:
        """Read once and cut what there is; return whether anything came."""
        stream = self.open()
        got = stream.read(0.05)
        cut = stream.cut(force=True) if stream.full or force else stream.cut(force=False) if not got else None
        if cut is not None:
            self.cuts.append(cut)
            self.upto = cut.upto
            if stream.place is not None:
                self.known[cut.upto] = stream.place
        return got > 0 or cut is not None

    def until(self, done: Callable[[], bool], timeout: float = within(60.0)) -> None:
        """Go on until something is so."""
        deadline = time.monotonic() + timeout
        while not done():
            self.step()
            assert time.monotonic() < deadline, "The log did not arrive in time."

    def to_end(self) -> None:
        """Go on until everything that is in the log now has been cut."""
        end = here(self.server)
        self.until(lambda: max(self.upto, self.open().idle_position or "") >= end)

    def rows(self) -> list[Row]:
        """Return the row changes that were cut."""
        return [row for cut in self.cuts for row in rows_of(cut)]


def log_end(server: MysqlServer) -> tuple[str, int]:
    """Return the file in which a server's log ends, and the offset of the end."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS" if server.flavor == "mariadb" else "SHOW BINARY LOG STATUS")
        name, offset = cursor.fetchone()[:2]
    return str(name), int(offset)


def here(server: MysqlServer) -> str:
    """Return the position at the end of a server's log."""
    name, offset = log_end(server)
    return str(Position(0, int(name.rsplit(".", 1)[1]), int(offset)))


def gtids(server: MysqlServer) -> str:
    """Return the GTIDs of all transactions in a server's log."""
    name = "gtid_binlog_pos" if server.flavor == "mariadb" else "gtid_executed"
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SELECT @@global.{name}")
        return str(cursor.fetchone()[0]).replace("\n", "")


def identity(server: MysqlServer) -> str:
    """Return what tells a server from others."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT @@global." + ("server_id" if server.flavor == "mariadb" else "server_uuid"))
        return str(cursor.fetchone()[0])


def rows_of(cut: Cut) -> list[Row]:
    """Return the row changes of a segment, of tables ``(id INT NOT NULL, pad VARCHAR)``."""
    where = places(cut.data)
    found: list[Row] = []
    for start, checksum in zip(cut.data.starts.tolist(), where.checksum.tolist(), strict=True):
        event = event_at(cut.data.payload, start, checksum)
        if event[TYPE] == TRANSACTION_PAYLOAD:
            plain, inner = payload_events(event[HEADER_BYTES:])
            ends = [*inner[1:].tolist(), len(plain)]
            for begin, end in zip(inner.tolist(), ends, strict=True):
                found += _rows(bytes(plain[begin:end]))
        else:
            found += _rows(event)
    return found


def check_places(cuts: list[Cut]) -> None:
    """Check that segments join up, and that records lie where their events say."""
    for before, after in pairwise(cuts):
        assert before.upto == after.after
    last = ""
    begin = 0
    for cut in cuts:
        assert cut.after < cut.upto
        assert cut.rows == len(cut.data.starts) > 0
        where = places(cut.data)
        for start, file, offset in zip(cut.data.starts.tolist(), where.file, where.offset, strict=True):
            event = event_at(cut.data.payload, start, 0)
            size, log_pos = struct.unpack_from("<II", event, 9)
            # Newer versions of MariaDB don't say it inside of transactions.
            assert log_pos in (0, (int(offset) + size) & 0xFFFFFFFF)
            if event[TYPE] in (*GTIDS, *OF_THE_FILE):
                begin = int(offset)
            # What an XA transaction has changed gets offsets that only its commit has.
            place = str(Position(cut.data.header["epoch"], int(file), begin, int(offset)))
            assert place > last
            last = place


def _rows(event: bytes) -> list[Row]:
    kind = event[TYPE]
    if kind not in ROWS:
        return []
    body = event[HEADER_BYTES:]
    at = 8
    if kind not in ROWS_V1:
        at += struct.unpack_from("<H", body, at)[0]
    images = 2 if kind in UPDATES else 1
    assert body[at] == 2
    at += 1 + images
    operation = "u" if images == 2 else "d" if kind in DELETES else "c"
    found = []
    while at < len(body):
        for _ in range(images):
            (number,) = struct.unpack_from("<i", body, at + 1)
            nulls, at = body[at], at + 5
            if not nulls & 2:
                at += 2 + struct.unpack_from("<H", body, at)[0]
        found.append((operation, number))
    return found
