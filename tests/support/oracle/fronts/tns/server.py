"""Serves a database to clients that speak the protocol."""

from __future__ import annotations

import socket
import socketserver
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.fronts.front import Front, Served
from tests.support.oracle.fronts.tns.login import Login
from tests.support.oracle.fronts.tns.messages import Reader, number, with_length
from tests.support.oracle.fronts.tns.results import described, row
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.failing import CONNECTING, LOGGING_IN
from tests.support.oracle.model.raw_values import number_of
from tests.support.oracle.sql.result import Result
from tests.support.oracle.sql.session import Session

CONNECT, ACCEPT, REFUSE, DATA, MARKER = 1, 2, 4, 6, 12
END_OF_FILE = 0x40
SDU = 8000
CLIENT_PACKET = 8192
"""Bytes of a packet that is full, as ``ACCEPTED`` says."""
NO_DATA = 1403
COMMIT, COMMIT_AGAIN = 0x100, 1
"""Flags of a statement that is committed at once, and of one that is executed again."""
# Version 318, no checksum, 2 MiB units: the answer of a server of version 19.
ACCEPTED = bytes.fromhex("013e00010000000001000000002dc500000000000000000000002000000020000000000000")
CAPABILITIES = bytes.fromhex("060101016f07010c010101010101017fff030e03030101ff01ffff010b0101ff01060be2017f050f0f0d07")
RUNTIME_CAPABILITIES = bytes.fromhex("0201000118007700000000")
# The banner, the character set, and a block of which only the national character set is read.
_BLOCK = bytes(9) + struct.pack(">H", 2000) + bytes(25)
PROTOCOL = (
    b"\x06\0x86_64/Linux 2.4.xx\0" + struct.pack("<H", 873) + b"\x01\0\0" + struct.pack(">H", len(_BLOCK)) + _BLOCK
)
VERSION = b"Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - stand-in\nVersion 19.22.0.0.0"
VERSION_NUMBER = 0x13160000


class _Server(Served):
    tls: ssl.SSLContext | None = None
    thread = 1

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self.open: set[_Handler] = set()
        super().__init__(address, handler)


class TnsServer(Front[_Server]):
    """Serves a database; use it as a context manager.

    Args:
        database: what is served.
        tls: serves with TLS.
        port: where to listen; 0: wherever there is room.
        thread: the redo thread of the instance that is served.
        sessions: makes a client's session.
    """

    def __init__(
        self,
        database: OracleDatabase,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        thread: int = 1,
        sessions: type[Session] = Session,
    ) -> None:
        super().__init__(_Server(("127.0.0.1", port), _Handler), database, sessions)
        self._server.thread = thread
        self._server.tls = tls

    def cut_connections(self) -> None:
        """Cut all connections, as a server that crashes does."""
        for one in list(self._server.open):
            one.cut()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._server.open)


@dataclass
class _Cursor:
    """A statement that a client has parsed.

    Attributes:
        sql: its text.
        types: of its binds.
        result: what it has returned last.
        sent: how many rows the client has.
    """

    sql: str
    types: list[int] = field(default_factory=list)
    result: Result = field(default_factory=Result)
    sent: int = 0


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def setup(self) -> None:
        self._socket: socket.socket = self.request
        self._wide = False
        self._sequence = 0
        self._user = ""
        self._login: Login | None = None
        self._session: Session | None = None
        self._cursors: dict[int, _Cursor] = {}
        self.server.open.add(self)

    def finish(self) -> None:
        self.server.open.discard(self)
        if self._session is not None:
            self._session.close()

    def cut(self) -> None:
        """Close the connection."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # It was closed already.

    def handle(self) -> None:
        try:
            if self.server.tls is not None:
                self._socket = self.server.tls.wrap_socket(self._socket, server_side=True)
            self._connect()
            while True:
                kind, body = self._receive()
                if kind != DATA:
                    continue
                if struct.unpack(">H", body[:2])[0] & END_OF_FILE:
                    return
                answer = self._answer(Reader(self._request(body)))
                if answer is not None:
                    self._send_data(answer)
        except (EOFError, OSError):
            return  # The client has gone.

    def _connect(self) -> None:
        _, body = self._receive()
        length = struct.unpack(">H", body[16:18])[0]
        if len(body) + 8 < 74 + length or length > 230:
            self._receive()  # Long connect data come in a packet of their own.
        try:
            self.server.database.meet(CONNECTING)
        except OracleError as exc:
            reason = f"(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={exc.code}))".encode()
            self._send(REFUSE, b"\x04\0" + struct.pack(">H", len(reason)) + reason)
            raise EOFError from None
        self._send(ACCEPT, ACCEPTED)
        self._wide = True

    def _receive(self) -> tuple[int, bytes]:
        head = self._exactly(8)
        length = struct.unpack(">I", head[:4])[0] if self._wide else struct.unpack(">H", head[:2])[0]
        return head[4], self._exactly(length - 8)

    def _request(self, body: bytes) -> bytes:
        """Return a request: the data of a packet, and of those that follow full ones."""
        size, found = len(body), body[2:]
        while size + 8 == CLIENT_PACKET:
            _, body = self._receive()
            size, found = len(body), found + body[2:]
        return found

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def _send_data(self, body: bytes) -> None:
        for at in range(0, max(1, len(body)), SDU):
            self._send(DATA, b"\0\0" + body[at : at + SDU])

    def _send(self, kind: int, body: bytes) -> None:
        size = len(body) + 8
        head = struct.pack(">I", size) if self._wide else struct.pack(">HH", size, 0)
        self._socket.sendall(head + bytes([kind, 0, 0, 0]) + body)

    def _answer(self, message: Reader) -> bytes | None:
        kind = message.byte()
        if kind == 1:
            return b"\x01" + PROTOCOL + with_length(CAPABILITIES) + with_length(RUNTIME_CAPABILITIES)
        if kind == 2:
            return b"\x02\0\0"
        while kind == 0x11:
            self._piggyback(message)
            kind = message.byte()
        function = message.byte()
        self._sequence = message.byte()
        functions: dict[int, Callable[[Reader], bytes]] = {
            0x76: self._begin_login,
            0x73: self._end_login,
            0x3B: self._version,
            0x5E: self._execute,
            0x4E: self._again,
            0x04: self._again,
            0x05: self._fetch,
            0x0E: lambda _: self._end_transaction(commit=True),
            0x0F: lambda _: self._end_transaction(commit=False),
            0x09: lambda _: _done(),
            0x93: lambda _: _done(),
        }
        if function not in functions:
            raise EOFError(f"The function {function:#x} isn't known to the stand-in.")
        return functions[function](message)

    def _piggyback(self, message: Reader) -> None:
        """Read what a client sends before a message, to save a round trip: closed cursors and settings."""
        function = message.byte()
        message.byte()
        if function == 0x69:
            message.byte()
            for _ in range(message.number()):
                self._cursors.pop(message.number(), None)
        else:
            message.skip_to(b"\x03\x5e")

    def _begin_login(self, message: Reader) -> bytes:
        user, _ = self._credentials(message)
        self._user = user.decode().upper()
        account = self.server.database.accounts.get(self._user)
        # Whoever isn't known fails later, as with a wrong password.
        self._login = Login("\0" if account is None else account.password)
        return self._login.challenge() + self._status()

    def _end_login(self, message: Reader) -> bytes:
        _, given = self._credentials(message)
        assert self._login is not None
        answer = self._login.answer(given, self.server.database.settings.name)
        if answer is None:
            return self._status(OracleError(1017))
        try:
            self.server.database.meet(LOGGING_IN)
        except OracleError as exc:
            return self._status(exc)
        self._session = self.server.sessions(
            self.server.database,
            self._user,
            thread=self.server.thread,
            program=given.get("AUTH_PROGRAM_NM", b"").decode(),
            cut=self.cut,
        )
        return answer + self._status()

    def _credentials(self, message: Reader) -> tuple[bytes, dict[str, bytes]]:
        has_user = message.byte()
        message.number()
        message.number()
        message.byte()
        count = message.number()
        message.raw(2)
        user = (message.value() or b"") if has_user else b""
        return user, message.pairs(count)

    def _version(self, message: Reader) -> bytes:
        del message
        return b"\x08" + number(len(VERSION)) + VERSION + number(VERSION_NUMBER) + _done()

    def _execute(self, message: Reader) -> bytes:
        commits = bool(message.number() & COMMIT)
        place = message.number()
        has_sql = message.byte()
        message.number()
        message.byte()
        message.number()
        message.raw(2)
        message.number()
        rows = message.number()
        message.number()
        message.byte()
        bind_count = message.number()
        message.raw(5)
        defines = message.byte()
        define_count = message.number()
        message.number()
        message.raw(3)
        message.number()
        message.byte()
        message.number()
        message.number()
        message.byte()
        message.number()
        message.raw(2)
        message.number()
        message.byte()
        message.number()
        message.raw(2)
        message.number()
        sql = (message.value() or b"").decode() if has_sql else ""
        for _ in range(13):
            message.number()
        binds: list[Any] = []
        types: list[int] = []
        if defines:
            _types(message, define_count)
        elif bind_count:
            types = _types(message, bind_count)
            binds = _binds(message, types)
        if place == 0:
            place = max(self._cursors, default=0) + 1
            self._cursors[place] = _Cursor(sql)
        cursor = self._cursors[place]
        if types:
            cursor.types = types
        return self._run(place, cursor, binds, rows, commits, describe=True)

    def _again(self, message: Reader) -> bytes:
        place, rows = message.number(), message.number()
        message.number()
        commits = bool(message.number() & COMMIT_AGAIN)
        cursor = self._cursors[place]
        binds = _binds(message, cursor.types) if cursor.types and message.rest else []
        return self._run(place, cursor, binds, rows, commits, describe=False)

    def _run(self, place: int, cursor: _Cursor, binds: list[Any], rows: int, commits: bool, describe: bool) -> bytes:
        assert self._session is not None
        try:
            cursor.result = self._session.execute(cursor.sql, binds)
            if commits:
                self._session.commit()
        except OracleError as exc:
            return self._status(exc, place)
        cursor.sent = 0
        columns = cursor.result.columns
        if columns is None:
            return self._status(cursor=place, rows=cursor.result.changed)
        return (described(columns) if describe else b"") + self._rows(place, cursor, rows)

    def _fetch(self, message: Reader) -> bytes:
        place, rows = message.number(), message.number()
        return self._rows(place, self._cursors[place], rows)

    def _rows(self, place: int, cursor: _Cursor, count: int) -> bytes:
        chosen = cursor.result.encoded(row, cursor.sent, cursor.sent + count)
        found = b""
        if chosen:
            found = b"\x06\0" + number(1) + number(0) + number(len(chosen)) + number(0) * 3
        found += b"".join(chosen)
        cursor.sent += len(chosen)
        whole = cursor.sent >= len(cursor.result.rows)
        end = OracleError(NO_DATA, text="no data found") if whole else None
        return found + self._status(end, place, cursor.sent)

    def _end_transaction(self, commit: bool) -> bytes:
        assert self._session is not None
        if commit:
            self._session.commit()
        else:
            self._session.rollback()
        return _done()

    def _status(self, error: OracleError | None = None, cursor: int = 0, rows: int = 0) -> bytes:
        """Return the end of an answer, as version 19 writes it."""
        code = 0 if error is None else error.code
        found = b"\x04" + number(1) + number(1) + number(0) + number(code & 0xFFFF) + number(0) * 2 + number(cursor)
        found += number(0) + bytes(4) + bytes(2)
        found += number(0) * 2 + b"\0" + number(0) * 2
        found += number(0) + b"\0" + bytes([self._sequence]) + number(0) * 6 + number(code) + number(rows)
        if error is not None:
            found += with_length((error.message + "\n").encode())
        return found


def _done() -> bytes:
    return b"\x09" + number(1) + number(0)


def _types(message: Reader, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(message.byte())
        message.raw(3)
        for _ in range(3):
            message.number()
        if message.number():
            message.value()
        message.number()
        message.number()
        message.byte()
        message.number()
        message.number()
    return found


def _binds(message: Reader, types: list[int]) -> list[Any]:
    if message.byte() != 7:
        raise EOFError("A row of binds was expected.")
    found: list[Any] = []
    for type_ in types:
        raw = message.value()
        if raw is None:
            found.append(None)
        elif type_ == 2:
            found.append(number_of(raw))
        elif type_ in (1, 8, 96):
            found.append(raw.decode())
        else:
            found.append(raw)
    return found
