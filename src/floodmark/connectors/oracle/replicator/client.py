"""A connection to an OpenLogReplicator server."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from typing import NoReturn

from floodmark.connectors.oracle.replicator.messages import is_message
from floodmark.connectors.oracle.replicator.protocol import (
    LENGTH,
    LONG,
    LONG_LENGTH,
    NO_NUMBER,
    Request,
    RequestCode,
    Response,
    ResponseCode,
    framed,
)
from floodmark.errors import ConnectError, DecodeError, NotReadyError, SourceStateError

_RECEIVED_BYTES = 1 << 20
MOST_BYTES = 1 << 30
"""Bytes of the largest message; what announces more is no server of this protocol, or damaged."""
_JSON = b"{"


class ReplicatorClient:
    """A connection, over which requests are sent and messages received; only ``send`` may be called by other threads.

    Args:
        host: the server's host name or address.
        port: its port.
        source: the name of its source.
        timeout_s: how long the connection, and an answer, may take.
        start_timeout_s: how long a source may take to be started; None: without end.

    Raises:
        ConnectError: the server can't be reached.
    """

    def __init__(self, host: str, port: int, source: str, timeout_s: float, start_timeout_s: float | None) -> None:
        self._place = f"OpenLogReplicator at {host}:{port}"
        self._source = source
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._buffer = bytearray()
        self._messages: deque[bytes] = deque()
        self._lock = threading.Lock()
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as exc:
            raise ConnectError(f"{self._place} can't be reached: {exc}.", _ADDRESS) from None

    def info(self) -> Response:
        """Return the state of the source: ``READY`` to be started, or ``REPLICATE``.

        Raises:
            SourceStateError: the server doesn't have the source.
            NotReadyError: the server doesn't answer, as while it serves another client, or still starts the source.
        """
        self.send(Request(RequestCode.INFO, self._source))
        found = self._answer(self._timeout_s)
        if found is None:
            raise NotReadyError(
                f"{self._place} has accepted the connection, but gives no answer: it serves one client at a time, and "
                "another one is connected to it, or it hangs.",
                "Stop the other client, or give this query a server of its own; restart the server if it hangs.",
            )
        starts = found.code == ResponseCode.STARTING
        if starts or (found.code == ResponseCode.REPLICATE and found.scn == NO_NUMBER):
            raise NotReadyError(f"{self._place} is still starting its source '{self._source}'.")
        if found.code not in (ResponseCode.READY, ResponseCode.REPLICATE):
            self._refused(found, "the state of its source")
        return found

    def start(self, scn: int) -> Response:
        """Let the server begin with what was committed behind a number; return where it begins.

        Raises:
            SourceStateError: it can't.
        """
        self.send(Request(RequestCode.START, self._source, scn=scn))
        found = self._answer(self._start_timeout_s)
        if found is None:
            raise ConnectError(f"{self._place} hasn't started its source '{self._source}' in time.")
        if found.code == ResponseCode.FAILED_START:
            raise SourceStateError(
                f"{self._place} can't start its source '{self._source}' at the change number {scn}.",
                "Its own log says why; most often the archived log is gone that has the number.",
            )
        if found.code != ResponseCode.REPLICATE:
            self._refused(found, f"the start at the change number {scn}")
        return found

    def resume(self, key: tuple[int, int]) -> None:
        """Let the server send the messages behind one, as far as they weren't confirmed.

        Raises:
            SourceStateError: it doesn't.
        """
        self.send(Request(RequestCode.CONTINUE, self._source, key=key))
        found = self._answer(self._timeout_s)
        if found is None:
            raise ConnectError(f"{self._place} doesn't answer the request to go on.")
        if found.code != ResponseCode.REPLICATE:
            self._refused(found, "the request to go on")

    def confirm(self, key: tuple[int, int]) -> None:
        """Let the server forget the messages up to a number and an index; it doesn't answer."""
        self.send(Request(RequestCode.CONFIRM, self._source, key=key))

    def send(self, request: Request) -> None:
        """Send a request.

        Raises:
            ConnectError: the connection is lost.
        """
        with self._lock:
            try:
                self._socket.sendall(framed(request.encode()))
            except OSError as exc:
                raise self._lost(exc) from None

    def receive(self, timeout: float) -> list[bytes]:
        """Return the documents that have arrived, after waiting for the first one if there is none.

        Args:
            timeout: seconds to wait at most.

        Raises:
            ConnectError: the connection is lost.
            SourceStateError: what the server sends is neither JSON nor a protocol buffer with changes.
        """
        if not self._messages:
            self._fill(timeout)
        found = list(self._messages)
        self._messages.clear()
        for message in found:
            if not message.startswith(_JSON) and not is_message(message):
                self._no_document(message)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _answer(self, timeout: float | None) -> Response | None:
        """Return the next message as a response; None: none came in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._messages:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            self._fill(left)
        try:
            return Response.decode(self._messages.popleft())
        except DecodeError as exc:
            raise SourceStateError(f"{self._place} isn't such a server: {exc.what}", _ADDRESS) from None

    def _fill(self, timeout: float | None) -> None:
        """Receive what has arrived."""
        try:
            if not select.select([self._socket], [], [], timeout)[0]:
                return
            data = self._socket.recv(_RECEIVED_BYTES)
        except (OSError, ValueError) as exc:
            raise self._lost(exc) from None
        if not data:
            raise self._lost("it has ended the connection")
        self._buffer += data
        self._split()

    def _split(self) -> None:
        """Take the messages that are complete."""
        place, view = 0, self._buffer
        while len(view) - place >= LENGTH.size:
            (size,), begin = LENGTH.unpack_from(view, place), place + LENGTH.size
            if size == LONG:
                if len(view) - begin < LONG_LENGTH.size:
                    break
                (size,), begin = LONG_LENGTH.unpack_from(view, begin), begin + LONG_LENGTH.size
            if size > MOST_BYTES:
                raise SourceStateError(
                    f"{self._place} announces a message of {size} bytes, and no more than {MOST_BYTES} are taken: it "
                    "isn't such a server, or a transaction is too large for one message.",
                    "Check openlogreplicator.host and openlogreplicator.port; without the bit 1 of format.message, "
                    "each change is a message.",
                )
            if len(view) - begin < size:
                break
            self._messages.append(bytes(view[begin : begin + size]))
            place = begin + size
        del self._buffer[:place]

    def _no_document(self, message: bytes) -> NoReturn:
        try:
            code = Response.decode(message).code
        except DecodeError:
            raise SourceStateError(f"{self._place} sends what is no document.", _FORMAT) from None
        self._refused(Response(code), "a request")

    def _refused(self, found: Response, what: str) -> NoReturn:
        if found.code == ResponseCode.INVALID_DATABASE:
            raise SourceStateError(
                f"{self._place} has no source '{self._source}'.",
                "openlogreplicator.source is the name of the source in the server's configuration (source.name).",
            )
        code = ResponseCode(found.code).name if found.code in set(ResponseCode) else str(found.code)
        raise SourceStateError(f"{self._place} has answered {code} to {what}.", "See the server's own log.")

    def _lost(self, cause: object) -> ConnectError:
        return ConnectError(f"The connection to {self._place} is lost: {cause}.")


_ADDRESS = "Check openlogreplicator.host and openlogreplicator.port, and that the server's writer has the type network."
_FORMAT = "Set the server's format.type to json, debezium or protobuf."
