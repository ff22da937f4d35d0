"""Reads and writes the byte stream of a COPY command.

Without TLS the frames are read from the socket itself, in large pieces: libpq reads 16 KiB a call and
returns one message at a time. For that the command is sent on the socket too, so that libpq never
reads ahead. Under TLS libpq does the reading, and the frames are reassembled.

Source: PostgreSQL documentation, "Message Flow" (COPY operations) and "Message Formats".
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from typing import Protocol

import psycopg
from psycopg import pq
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.server.connection import POLICY_CHECK, POLICY_CURE
from floodmark.connectors.postgres.server.slots import WAYS_OUT
from floodmark.errors import (
    ConnectError,
    LockTimeoutError,
    LogGoneError,
    SlotBusyError,
    SourceStateError,
    StatementTimeoutError,
)

_HEADER = struct.Struct(">cI")
_LENGTH = struct.Struct(">I")
COPY_STARTED = {b"W", b"H"}
READY = b"Z"
RETRIABLE = ("08", "57P", "53", "XX")
TIMEOUTS = {"57014": StatementTimeoutError, "55P03": LockTimeoutError}
OBJECT_IN_USE = "55006"
LOG_REMOVED = {"WalSndSegmentOpen", "CheckXLogRemoved"}
"""The server's functions that raise "requested WAL segment … has already been removed" (its text may be translated)."""


class CopyChannel(Protocol):
    """A connection inside a COPY."""

    def start(self, command: str) -> None:
        """Send the command and wait until the server has begun to copy."""

    def read_into(self, view: memoryview, timeout: float) -> int:
        """Read what has arrived, waiting up to ``timeout`` seconds for the first byte.

        Returns:
            How many bytes were written to ``view``: messages as on the wire, cut anywhere.
        """

    def room(self) -> int:
        """Return about how many bytes can arrive while nothing is read, before the server must wait."""

    def send(self, data: bytes) -> None:
        """Send one CopyData message."""

    def detach(self) -> None:
        """Give the connection back, after everything that the command sends has been read, including its error."""

    def close(self) -> None:
        """Close the connection."""


def open_channel(conn: psycopg.Connection[TupleRow]) -> CopyChannel:
    """Take over a connection for COPY commands.

    Args:
        conn: an idle connection, which belongs to the channel from now on.
    """
    if conn.pgconn.ssl_in_use:
        return _LibpqChannel(conn)
    return _SocketChannel(conn)


def server_error(fields: dict[str, str]) -> ConnectError | SourceStateError:
    """Return the exception for an ErrorResponse with these fields."""
    code, text = fields.get("C", ""), fields.get("M", "unknown error")
    if code == OBJECT_IN_USE:
        return SlotBusyError(
            f"PostgreSQL says: {text}.",
            "Only one query can read a slot: stop the other one, or set slot.name.",
        )
    if fields.get("R") in LOG_REMOVED:
        return LogGoneError(f"PostgreSQL says: {text} (SQLSTATE {code}).", WAYS_OUT)
    if fields.get("R") == POLICY_CHECK:
        return SourceStateError(f"PostgreSQL says: {text}.", POLICY_CURE)
    if code.startswith(RETRIABLE):
        return ConnectError(f"PostgreSQL ended the connection: {text}.")
    if code in TIMEOUTS:
        return TIMEOUTS[code](f"PostgreSQL says: {text} (SQLSTATE {code}).")
    return SourceStateError(f"PostgreSQL says: {text} (SQLSTATE {code}).")


def messages(channel: CopyChannel, seconds: float) -> Iterator[bytes]:
    """Yield the messages that arrive within some seconds, each whole, with its type and length.

    Raises:
        SourceStateError: the server ended the command with an error.
        ConnectError: the server ended the connection.
    """
    deadline = time.monotonic() + seconds
    waiting = bytearray()
    buffer = bytearray(1 << 18)
    while time.monotonic() < deadline:
        waiting += buffer[: channel.read_into(memoryview(buffer), 0.1)]
        while len(waiting) >= _HEADER.size:
            size = 1 + _HEADER.unpack_from(waiting)[1]
            if len(waiting) < size:
                break
            message, waiting = bytes(waiting[:size]), waiting[size:]
            if message[:1] == b"E":
                raise server_error(parse_error(message[_HEADER.size :]))
            yield message


def parse_error(body: bytes) -> dict[str, str]:
    """Return the fields of an ErrorResponse or NoticeResponse by their type letter."""
    parts = (part.decode("utf-8", "replace") for part in body.split(b"\0") if part)
    return {part[0]: part[1:] for part in parts}


class _SocketChannel:
    def __init__(self, conn: psycopg.Connection[TupleRow]) -> None:
        self._conn = conn
        self._socket = socket.socket(fileno=os.dup(conn.pgconn.socket))
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def start(self, command: str) -> None:
        text = command.encode() + b"\0"
        self._send_all(b"Q" + _LENGTH.pack(len(text) + 4) + text)
        while True:
            kind, body = self._read_message()
            if kind == b"E":
                self._skip_to_end()
                raise server_error(parse_error(body))
            if kind in COPY_STARTED:
                return

    def read_into(self, view: memoryview, timeout: float) -> int:
        count = 0
        while count < len(view):
            try:
                got = self._socket.recv_into(view[count:])
            except BlockingIOError:
                if count or not self._poll.poll(timeout * 1000):
                    break
                continue
            except OSError as exc:
                raise ConnectError(f"Lost the connection to PostgreSQL: {exc}.") from None
            if got == 0:
                if count:
                    break
                raise ConnectError("PostgreSQL closed the connection.")
            count += got
            if count < len(view):
                # That was all. To ask again at once would find a few bytes, as often as the server sends some.
                break
        return count

    def room(self) -> int:
        return _room(self._socket)

    def send(self, data: bytes) -> None:
        self._send_all(b"d" + _LENGTH.pack(len(data) + 4) + data)

    def detach(self) -> None:
        self._socket.close()

    def close(self) -> None:
        self._socket.close()
        self._conn.close()

    def _skip_to_end(self) -> None:
        """Read the messages that follow an error."""
        try:
            while self._read_message()[0] != READY:
                pass
        except ConnectError:
            return  # a fatal error: nothing follows

    def _read_message(self) -> tuple[bytes, bytes]:
        kind, length = _HEADER.unpack(self._read_exactly(5))
        return kind, self._read_exactly(length - 4)

    def _send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                select.select([], [self._socket], [], 1.0)
            except OSError as exc:
                raise ConnectError(f"Lost the connection to PostgreSQL: {exc}.") from None

    def _read_exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        count = 0
        while count < size:
            count += self.read_into(view[count:], 1.0)
        return bytes(data)


def _room(connection: socket.socket) -> int:
    """Return what a connection's buffer holds. Linux lets a buffer grow, and counts its own needs, too: about half."""
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2


class _LibpqChannel:
    def __init__(self, conn: psycopg.Connection[TupleRow]) -> None:
        self._conn = conn
        self._pgconn = conn.pgconn
        self._pending = bytearray()
        self._done = False
        conn.add_notice_handler(self._take_notice)

    def start(self, command: str) -> None:
        result = self._pgconn.exec_(command.encode())
        if result.status in (pq.ExecStatus.COPY_BOTH, pq.ExecStatus.COPY_OUT):
            return
        code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode().strip()
        function = (result.error_field(pq.DiagnosticField.SOURCE_FUNCTION) or b"").decode()
        raise server_error({"C": code or "08006", "M": text, "R": function})

    def read_into(self, view: memoryview, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while len(self._pending) < len(view):
            if self._done:
                break
            size, data = self._next()
            if size > 0:
                self._pending += b"d" + _LENGTH.pack(size + 4) + bytes(data)
            elif size < 0:
                self._finish()
            elif self._pending or not self._wait(deadline - time.monotonic()):
                break
        count = min(len(self._pending), len(view))
        view[:count] = self._pending[:count]
        del self._pending[:count]
        return count

    def room(self) -> int:
        with socket.socket(fileno=os.dup(self._pgconn.socket)) as same:
            return _room(same)

    def send(self, data: bytes) -> None:
        try:
            self._pgconn.put_copy_data(data)
            self._pgconn.flush()
        except psycopg.OperationalError as exc:
            raise ConnectError(f"Lost the connection to PostgreSQL: {exc}.") from None

    def detach(self) -> None:
        self._conn.remove_notice_handler(self._take_notice)

    def close(self) -> None:
        self._conn.close()

    def _take_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        """Put a notice where it was between the frames: libpq handles it before it returns the next one."""
        body = f"C{notice.sqlstate}\0M{notice.message_primary}\0R{notice.source_function}\0\0".encode()
        self._pending += b"N" + _LENGTH.pack(len(body) + 4) + body

    def _next(self) -> tuple[int, memoryview]:
        try:
            return self._pgconn.get_copy_data(1)
        except psycopg.OperationalError as exc:
            raise ConnectError(f"Lost the connection to PostgreSQL: {exc}.") from None

    def _wait(self, timeout: float) -> bool:
        if not select.select([self._pgconn.socket], [], [], max(timeout, 0))[0]:
            return False
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as exc:
            raise ConnectError(f"Lost the connection to PostgreSQL: {exc}.") from None
        return True

    def _finish(self) -> None:
        """Append the end of the copy as the messages that the socket would have returned."""
        result = self._pgconn.get_result()
        failed = result is not None and result.status == pq.ExecStatus.FATAL_ERROR
        while self._pgconn.get_result() is not None:
            pass
        if result is not None and failed:
            code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"08006").decode()
            text = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
            function = (result.error_field(pq.DiagnosticField.SOURCE_FUNCTION) or b"").decode()
            body = f"C{code}\0M{text}\0R{function}\0\0".encode()
            self._pending += b"E" + _LENGTH.pack(len(body) + 4) + body
        else:
            self._pending += b"c" + _LENGTH.pack(4)
        self._pending += READY + _LENGTH.pack(5) + b"I"
        self._done = True
