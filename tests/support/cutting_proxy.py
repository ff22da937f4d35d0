"""A forwarder in front of a server that cuts its connections at a chosen message."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
    """Passes bytes on, and counts the pieces that it passes, of all connections and both ways.

    With the chosen piece it cuts all connections: before the piece is passed on, so that a statement was not run, or
    its answer did not come back.

    Args:
        port: the server's port on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut_at = self._refuse_then = 0
        self.refused_left = 0
        self.passed = 0
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, number: int, refuse: int = 0) -> None:
        """Cut everything at a piece, counted from now on; then refuse some connections."""
        with self._lock:
            self.passed, self.cuts = 0, 0
            self._cut_at, self._refuse_then = number, refuse

    def refuse(self, number: int) -> None:
        """Close the next connections as soon as they are opened."""
        self.refused_left = number

    def cut_now(self) -> None:
        """Cut all connections that are open."""
        with self._lock:
            self._cut()

    def close(self) -> None:
        """Accept no more connections, and cut those that are open."""
        self._listener.close()
        with self._lock:
            self._cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refused_left:
                    self.refused_left -= 1
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._server_port))
                with self._lock:
                    self._open |= {client, server}
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _cut(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                with self._lock:
                    self.passed += 1
                    if self.passed == self._cut_at:
                        self.cuts += 1
                        self.refused_left = self._refuse_then
                        self._cut()
                        return
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {one, other}
