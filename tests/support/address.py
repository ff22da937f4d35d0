"""An address that leads to one server and later to another, as a virtual address or a name does."""

from __future__ import annotations

import contextlib
import socket
import threading


class Address:
    """Passes connections on to a server on 127.0.0.1; use it as a context manager.

    Args:
        port: the server's.

    Attributes:
        port: what clients connect to.
    """

    def __init__(self, port: int) -> None:
        self._server_port: int | None = port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Address:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.close()
        self.cut()

    def lead_to(self, port: int) -> None:
        """Let new connections lead to a server."""
        with self._lock:
            self._server_port = port

    def cut(self) -> None:
        """End all connections, and lead nowhere until told to."""
        with self._lock:
            self._server_port = None
            pairs, self._open = self._open, set()
        for end in pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            port = self._server_port
        with client, contextlib.suppress(OSError):
            if port is None:
                return
            with socket.create_connection(("127.0.0.1", port)) as server:
                with self._lock:
                    if self._server_port != port:
                        return
                    self._open |= {client, server}
                other = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
                other.start()
                _pass_on(client, server)
                other.join()
        with self._lock:
            self._open.discard(client)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
