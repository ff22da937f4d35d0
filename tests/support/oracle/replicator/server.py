"""The server: one client at a time, and what it keeps of its own."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from dataclasses import dataclass

from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.replicator.documents import NONE, Builder, Format, Message, Pieces
from tests.support.oracle.replicator.messages import Request, response, send
from tests.support.oracle.replicator.messages import request as request_of

SOURCE = "SOURCE"
POLL_S = 0.005
INFO, START, CONTINUE, CONFIRM = range(4)
READY, FAILED_START, STARTING, ALREADY_STARTED, REPLICATE, PAYLOAD, INVALID_DATABASE, INVALID_COMMAND = range(8)


@dataclass
class Checkpoint:
    """What the server keeps in a file: it is all that it knows after it was started again.

    Attributes:
        scn: up to where all was confirmed; None: it was never started.
        is_written: whether confirmations are written there at once, rather than some time later.
    """

    scn: int | None = None
    is_written: bool = True


class ReplicatorServer:
    """Serves the redo of a database; use it as a context manager.

    Args:
        database: whose redo it is.
        format_: the options of its documents.
        source: the name of its source.
        queue_size: how many messages that aren't confirmed it keeps.
        buffer_bytes: the size of a buffer; after a connection is lost, only the newest one is sent again.

    Attributes:
        requests: the codes and keys of the requests that came.
        answers: what it answers instead, by the code of the request; None: nothing.
        garbage: what is sent as a message before the next one.
        connections: how many clients are connected.
    """

    def __init__(
        self,
        database: OracleDatabase,
        format_: Format | None = None,
        source: str = SOURCE,
        queue_size: int = 65_536,
        buffer_bytes: int = 1 << 20,
    ) -> None:
        self.database = database
        self.format = format_ or Format()
        self.checkpoint = Checkpoint()
        self.requests: list[tuple[int, tuple[int, int] | None]] = []
        self.answers: dict[int, int | None] = {}
        self.garbage: list[bytes] = []
        self.connections = 0
        self._source = source
        self._queue_size = queue_size
        self._buffer_bytes = buffer_bytes
        self._lock = threading.RLock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._stopping = False
        self._pieces = Pieces()
        self._client: socket.socket | None = None
        self._forget()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> ReplicatorServer:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping = True
        self.cut_connection()
        self._thread.join(10)
        self._listener.close()

    def options(self) -> dict[str, str]:
        """Return the options that lead to it."""
        return {
            "database.connection.adapter": "olr",
            "openlogreplicator.source": self._source,
            "openlogreplicator.host": "127.0.0.1",
            "openlogreplicator.port": str(self.port),
        }

    def restart(self) -> None:
        """End it, and start it again: it knows what is in its checkpoint file."""
        with self._lock:
            self.cut_connection()
            self._forget()
            if self.checkpoint.scn is not None:
                self._begin(self.checkpoint.scn)

    def cut_connection(self) -> None:
        """End the connection to the client."""
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def confirm_all(self) -> None:
        """Confirm all that was made, as another client does."""
        with self._lock:
            self._make()
            while self._queue or self._waiting:
                self._queue += self._waiting[:1]
                del self._waiting[:1]
                self._pop()

    def kept(self) -> list[Message]:
        """Return the messages that it still has."""
        with self._lock:
            return [*self._queue, *self._waiting]

    def _forget(self) -> None:
        self._builder: Builder | None = None
        self._first = NONE
        self._queue: list[Message] = []
        self._waiting: list[Message] = []
        self._confirmed = (NONE, 0)
        self._from = (0, 0)
        self._streaming = False
        self._made_bytes = 0

    def _begin(self, scn: int) -> bool:
        """Start the source behind a number; return whether its redo is there."""
        with self.database.lock:
            logs = [log for thread in self.database.threads.values() for log in thread.logs]
            having = [log for log in logs if log.first <= scn < log.next]
            if any(log.deleted for log in having) or not having:
                return False
            begin = self._resume_begin(scn, min(log.first for log in having))
            # It reads on behind the piece of the log with the number, if it knows one; the next has a higher number.
            first = max([scn, *(last - 1 for number, last in self._pieces.ends.items() if number <= scn)])
            self._builder = Builder(self.database, self.format, first, begin, self._pieces)
        self._first = scn
        return True

    def _resume_begin(self, scn: int, begin: int) -> int:
        """Return where the redo is read from: a server that goes on knows where its open transactions began."""
        return 0 if self.checkpoint.scn == scn else begin

    def _serve(self) -> None:
        while not self._stopping:
            if not select.select([self._listener], [], [], POLL_S)[0]:
                continue
            client, _ = self._listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._client, self._streaming, self._input = client, False, b""
                self.connections = 1
            with contextlib.suppress(OSError, EOFError):
                while not self._stopping:
                    self._requests(client)
                    self._stream(client)
            with self._lock:
                self._client, self.connections = None, 0
            client.close()

    def _requests(self, client: socket.socket) -> None:
        if not select.select([client], [], [], POLL_S)[0]:
            return
        data = client.recv(65_536)
        if not data:
            raise EOFError
        self._input += data
        while len(self._input) >= 4:
            (size,) = struct.unpack_from("<I", self._input)
            if len(self._input) < 4 + size:
                return
            message, self._input = self._input[4 : 4 + size], self._input[4 + size :]
            with self._lock:
                self._answer(client, request_of(message))

    def _answer(self, client: socket.socket, request: Request) -> None:
        code = request.numbers.get(1, 0)
        key = (request.numbers[8], request.numbers.get(9, 0)) if 8 in request.numbers else None
        self.requests.append((code, key))
        if code in self.answers:
            other = self.answers[code]
            if other is not None:
                send(client, response(other))
            return
        if code == CONFIRM:
            self._confirm(key)
            return
        if request.source != self._source:
            send(client, response(INVALID_DATABASE))
        elif code == INFO:
            send(client, self._state() if self._builder is not None else response(READY))
            self._streaming = False
        elif code == START:
            self._start(client, request.numbers.get(3, 0))
        elif code == CONTINUE and not self._streaming:
            confirmed = self._confirmed if self._confirmed[0] != NONE else (0, 0)
            self._from = confirmed if key is None or not key[0] else key
            # What is in the newest buffer is looked at again; what was sent of earlier ones isn't.
            newest = self._queue[-1].begins // self._buffer_bytes if self._queue else 0
            again = [one for one in self._queue if one.begins // self._buffer_bytes == newest]
            self._waiting, self._queue = [*again, *self._waiting], []
            send(client, response(REPLICATE))
            self._streaming = True
        else:
            send(client, response(INVALID_COMMAND))

    def _start(self, client: socket.socket, scn: int) -> None:
        if self._builder is not None:
            send(client, response(ALREADY_STARTED))
            return
        # Without a checkpoint it knows no pieces.
        self._pieces = Pieces()
        if not self._begin(scn):
            send(client, response(FAILED_START))
        else:
            self.checkpoint.scn = scn
            self._from = (0, 0)
            send(client, self._state())
            self._streaming = True

    def _state(self) -> bytes:
        return response(REPLICATE, self._first, self._confirmed)

    def _confirm(self, key: tuple[int, int] | None) -> None:
        while key is not None and self._queue and (self._queue[0].scn, self._queue[0].index) <= key:
            self._pop()

    def _pop(self) -> None:
        message = self._queue.pop(0)
        key = (message.scn, message.index)
        if self._confirmed[0] == NONE or key > self._confirmed:
            self._confirmed = key
            if self.checkpoint.is_written:
                self.checkpoint.scn = key[0]

    def _make(self) -> None:
        if self._builder is not None:
            with self.database.lock:
                for message in self._builder.messages():
                    message.begins = self._made_bytes
                    self._made_bytes += len(message.content)
                    self._waiting.append(message)

    def _stream(self, client: socket.socket) -> None:
        with self._lock:
            if not self._streaming or self._client is not client:
                return
            self._make()
            while self._waiting and len(self._queue) < self._queue_size:
                message = self._waiting.pop(0)
                self._queue.append(message)
                if message.content and (message.scn, message.index) > self._from:
                    while self.garbage:
                        client.sendall(self.garbage.pop(0))
                    send(client, message.content)
                else:
                    self._skip(message)

    def _skip(self, message: Message) -> None:
        """Confirm what isn't sent, once all before it is."""
        if self._queue == [message]:
            self._pop()
