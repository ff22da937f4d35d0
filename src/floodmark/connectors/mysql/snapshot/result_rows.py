"""Reads the rows of a query in large pieces, as they arrive over the connection.

PyMySQL converts rows to Python objects, which costs far more than the server's work. So the query is sent over its
connection, but the answer is read from the socket itself; only the packets' lengths are parsed here.

Source: MySQL's documentation, "Text Resultset".
"""

from __future__ import annotations

import contextlib
import select
import ssl
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pymysql
from numpy.typing import NDArray
from pymysql.constants import COMMAND, ER

from floodmark.connectors.mysql.binlog.packets import HEADER_BYTES, find_packets, join
from floodmark.connectors.mysql.server.connection import Connection, close, statement_error
from floodmark.errors import ConnectError, DecodeError, SourceStateError

OK, END, ERROR = 0x00, 0xFE, 0xFF
_END_BYTES = HEADER_BYTES + 5
_FILE_WANTED, _TWO_BYTES = 0xFB, 0xFC
_ROOM = 1 << 20
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.02, 1.0

_CHANGED = (ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.TABLE_DEF_CHANGED, ER.KEY_DOES_NOT_EXITS)

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


class TableChangedError(SourceStateError):
    """The table is not what it was when the view was opened, so the view doesn't show it any more."""


def row_pieces(
    conn: Connection, statement: str, doing: str, size: int
) -> Generator[tuple[Bytes, Positions], None, None]:
    """Yield the rows of a query.

    The connection is closed if it is lost, or if not all rows are consumed.

    Args:
        conn: an idle connection.
        statement: one that returns rows.
        doing: what it is for, for errors.
        size: bytes of a piece, approximately; a larger row makes a larger one.

    Yields:
        A buffer that holds whole packets, each row in one, and where their payloads begin, shape (rows,).

    Raises:
        TableChangedError: a table is not what it was when the connection's view was opened.
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    answer = _Answer(conn, doing, size)
    try:
        conn._execute_command(COMMAND.COM_QUERY, statement)  # type: ignore[attr-defined]
    except (pymysql.err.Error, OSError) as exc:
        close(conn)
        raise statement_error(exc, doing) from None
    try:
        yield from answer.pieces()
    finally:
        if not answer.ended:
            close(conn)


def row_ends(size: int, starts: Positions) -> Positions:
    """Return where the rows of a piece end.

    Args:
        size: of the piece's buffer.
        starts: where they begin, shape (rows,).
    """
    # A row ends where the header of the next one begins.
    return np.append(starts[1:] - HEADER_BYTES, size)[: len(starts)]


class _Answer:
    """The server's answer to a query.

    Attributes:
        ended: whether it has been read to its end, so that the connection can be used again.
    """

    def __init__(self, conn: Connection, doing: str, size: int) -> None:
        self.ended = False
        self._socket: Any = conn._sock  # type: ignore[attr-defined]
        self._doing = doing
        self._piece = self._size = size
        self._buf = np.empty(size + _ROOM, np.uint8)
        self._filled = 0
        self._number = 1
        self._skip: int | None = None

    def pieces(self) -> Iterator[tuple[Bytes, Positions]]:
        timeout = self._socket.gettimeout()
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        self._socket.settimeout(0)
        wait_s = _FIRST_WAIT_S
        try:
            while not self.ended:
                if self._receive():
                    wait_s = _FIRST_WAIT_S
                if self._filled < self._size and not self._seems_ended():
                    if poll.poll(wait_s * 1000):
                        continue
                    # It may have ended with an error, which the last bytes don't show.
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
                found = self._take()
                if found is not None:
                    yield found
        finally:
            if self.ended:
                # The socket is closed already if the view was released.
                with contextlib.suppress(OSError):
                    self._socket.settimeout(timeout)

    def _receive(self) -> int:
        """Read what has arrived, up to a piece; return how many bytes that was."""
        before = self._filled
        missing = max(self._size, self._filled) + _ROOM - len(self._buf)
        if missing > 0:
            self._buf = np.concatenate([self._buf, np.empty(missing, np.uint8)])
        view = self._buf.data
        try:
            while self._filled < max(self._size, before + 1):
                count = self._socket.recv_into(view[self._filled :])
                if not count:
                    raise ConnectError(f"The server closed the connection while {self._doing}.")
                self._filled += count
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError as exc:
            raise ConnectError(f"Lost the connection to the server while {self._doing}: {exc}.") from None
        return self._filled - before

    def _seems_ended(self) -> bool:
        """Return whether the last bytes look like the packet that ends the rows."""
        # A row may end in the same bytes, so `_without_end` checks where the last packet begins.
        tail = self._buf[max(self._filled - _END_BYTES, 0) : self._filled].tobytes()
        return len(tail) == _END_BYTES and tail[:3] == b"\5\0\0" and tail[HEADER_BYTES] == END

    def _take(self) -> tuple[Bytes, Positions] | None:
        """Return the rows that have arrived completely, and keep the rest."""
        packets = find_packets(self._buf[: self._filled], self._number)
        if not len(packets.starts):
            if self._filled >= self._size:
                # A row that is larger than a piece.
                self._size = 2 * self._filled
            return None
        self._number, self._size = packets.number, self._piece
        if packets.continued:
            packets, self._filled = join(self._buf, packets, self._filled)
        area, rest = self._buf[: packets.end], self._buf[packets.end : self._filled]
        starts, end = self._without_end(area, self._without_head(area, packets.starts))
        # The rows are handed out as a view of this buffer, so the rest moves to a new one.
        self._buf = np.empty(max(self._size, len(rest)) + _ROOM, np.uint8)
        self._buf[: len(rest)] = rest
        self._filled = len(rest)
        if not len(starts):
            return None
        return area[starts[0] : end], starts - starts[0] + HEADER_BYTES

    def _without_head(self, area: Bytes, starts: Positions) -> Positions:
        """Leave out what precedes the rows: the number of columns, a packet for each column, and an end packet."""
        if self._skip is None:
            first = int(starts[0])
            kind = int(area[first + HEADER_BYTES])
            if kind == ERROR:
                self._refuse(area[first:])
            if kind in (OK, _FILE_WANTED):
                raise DecodeError(f"The server answered a query with something else than rows while {self._doing}.")
            if kind == _TWO_BYTES:
                kind = int.from_bytes(area[first + HEADER_BYTES + 1 : first + HEADER_BYTES + 3].tobytes(), "little")
            self._skip = kind + 2
        left = starts[self._skip :]
        self._skip = max(self._skip - len(starts), 0)
        return left

    def _without_end(self, area: Bytes, starts: Positions) -> tuple[Positions, int]:
        """Leave out the packet that ends the rows, if it is there; return the rows' starts, and where the rows end."""
        if not len(starts):
            return starts, len(area)
        last = int(starts[-1])
        kind = int(area[last + HEADER_BYTES])
        if kind == ERROR:
            self._refuse(area[last:])
        if kind != END or len(area) - last > _END_BYTES:
            return starts, len(area)
        self.ended = True
        return starts[:-1], last

    def _refuse(self, packet: Bytes) -> None:
        """Raise the server's error: its packet holds a number, a marker with the SQL state, and a text."""
        self.ended = True
        body = packet[HEADER_BYTES:].tobytes()
        text = body[3:].removeprefix(b"#")[5 if body[3:4] == b"#" else 0 :]
        code = int.from_bytes(body[1:3], "little")
        error = statement_error(pymysql.err.MySQLError(code, text.decode("utf-8", "replace")), self._doing)
        raise TableChangedError(error.what) if code in _CHANGED else error
