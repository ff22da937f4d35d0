"""The outbound server: one client at a time, which it tells of lines of text."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import threading
import time
from bisect import bisect_right
from pathlib import Path
from types import TracebackType

from tests.conformance.debezium.debezium import compiled
from tests.support.maven import jar
from tests.support.oracle.model.database import OracleDatabase, OutboundState
from tests.support.oracle.outbound.records import Record, RecordMaker, before_all_of

JAVA = Path(__file__).with_name("java").resolve()
JARS = {
    "com/oracle/database/jdbc/ojdbc11/23.26.1.0.0/ojdbc11-23.26.1.0.0.jar": (
        "94ff71df1cb409bf355b61f2e485994231cda233f918594f63b605a4da92c792"
    ),
    "com/fasterxml/jackson/core/jackson-core/2.21.2/jackson-core-2.21.2.jar": (
        "12e8655b100267b44d0f14d01b1f5082a5105e616174dc4307be1a761e92407b"
    ),
    "com/fasterxml/jackson/core/jackson-databind/2.21.2/jackson-databind-2.21.2.jar": (
        "8c982f01f148d805f0aaac2339011244757e0df7c6ff8951f2fa3f433b8ed849"
    ),
    "com/fasterxml/jackson/core/jackson-annotations/2.21/jackson-annotations-2.21.jar": (
        "53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b"
    ),
}
"""Oracle's driver, and what the stand-in's classes read JSON with."""
AT_ONCE = 500
IDLE_S = 0.02
BUSY = "26812 ORA-26812: An active session currently attached to XStream server"


class OutboundError(Exception):
    """What Java's side raises."""


def class_path() -> str:
    """Return the class path of the stand-in's Java classes, and of the classes of Oracle's driver."""
    jars = [jar(path, digest, "ojdbc") for path, digest in JARS.items()]
    return os.pathsep.join(map(str, [compiled(JAVA, jars), *jars]))


class OutboundServer:
    """Serves the redo of a database; use it as a context manager.

    Args:
        database: whose redo it is.

    Attributes:
        name: its name, by which Java's side finds its port.
        refusals: errors that the next requests to attach are answered with: a number and a text.
        attached: the positions from which clients have attached.
        processed: the positions that clients have said are processed.
        again: how many records before the position of a client are sent again.
        database_name: what records name as their database; empty: the right one.
    """

    def __init__(self, database: OracleDatabase) -> None:
        self.database = database
        self.maker = RecordMaker(database)
        self.refusals: list[str] = []
        self.attached: list[bytes] = []
        self.processed: list[bytes] = []
        self.again = 0
        self.database_name = ""
        self._records: list[Record] = []
        self._low = b""
        self._lock = threading.RLock()
        self._client: socket.socket | None = None
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.name = f"OUT{self.port}"
        self.state = OutboundState()
        database.outbound_servers[self.name] = self.state
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> OutboundServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self.cut_connection()
        self._server.server_close()
        self._thread.join()

    def options(self) -> dict[str, str]:
        """Return the options that lead to it."""
        return {
            "database.connection.adapter": "xstream",
            "xstream.out.server.name": self.name,
            "xstream.class.path": class_path(),
        }

    @property
    def connections(self) -> int:
        """How many clients are attached."""
        return int(self._client is not None)

    def cut_connection(self) -> None:
        """End the connection to the client."""
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def forget_all(self) -> None:
        """Let another client say that all is processed."""
        with self._lock, self.database.lock:
            self._make()
            last = self._records[-1]
            self.state.low, self.state.low_scn = last.position, last.commit_scn

    def attach(self, client: socket.socket, user: str, position: bytes) -> int:
        """Attach a client; return the place of the first record that it gets."""
        with self._lock:
            if self.refusals:
                raise OutboundError(self.refusals.pop(0))
            if self._client is not None:
                raise OutboundError(BUSY)
            if self.state.user not in ("", user):
                raise OutboundError(f"26701 ORA-26701: STREAMS process {self.name} does not exist")
            self.attached.append(position)
            self._client = client
            with self.database.lock:
                self._make()
            # What was processed is forgotten, whatever a client asks for.
            begin = bisect_right([one.position for one in self._records], max(position, self.state.low))
            return max(begin - self.again, 0)

    def detach(self, client: socket.socket) -> None:
        """End a client's session."""
        with self._lock:
            if self._client is client:
                self._client = None

    def receive(self, place: int) -> tuple[bytes, list[Record]]:
        """Return records from a place on, and the position below which all has been sent with them."""
        deadline = time.monotonic() + IDLE_S
        while True:
            with self._lock:
                with self.database.lock:
                    self._make()
                found = self._records[place : place + AT_ONCE]
                if found or time.monotonic() > deadline:
                    return self._low, found
            time.sleep(0.002)

    def set_processed(self, position: bytes) -> None:
        """Forget what was processed."""
        with self._lock:
            if position < self.state.low:
                raise OutboundError(f"26876 ORA-26876: invalid processed low-watermark ({position.hex()})")
            self.processed.append(position)
            self.state.low, self.state.low_scn = position, int.from_bytes(position[:8])

    def _make(self) -> None:
        self._records += self.maker.records()
        self._low = before_all_of(self.database.clock.scn + 1)

    def text_of(self, record: Record) -> str:
        """Return a record as Java's side takes it."""
        named = {"database": self.database_name} if self.database_name else {}
        return json.dumps({**record.fields, **named})


def _handler(server: OutboundServer) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            place = 0
            try:
                for line in self.rfile:
                    verb, *arguments = line.decode().split()
                    try:
                        answer = "ok"
                        if verb == "attach":
                            place = server.attach(self.connection, arguments[0], bytes.fromhex(arguments[1]))
                        elif verb == "receive":
                            low, found = server.receive(place)
                            place += len(found)
                            answer = "\t".join([low.hex(), *map(server.text_of, found)])
                        elif verb == "processed":
                            server.set_processed(bytes.fromhex(arguments[0]))
                        else:
                            server.detach(self.connection)
                    except OutboundError as exc:
                        answer = f"!{exc}"
                    self.wfile.write(f"{answer}\n".encode())
            except OSError:
                return
            finally:
                server.detach(self.connection)

    return Handler
