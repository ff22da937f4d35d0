"""An address that can lead to another server, as a virtual address or a proxy does."""

from __future__ import annotations

import contextlib
import socket
import threading


class Forwarder:
    """Passes TCP connections on to a port of this machine.

    Args:
        target: the port.

    Attributes:
        port: its own.
        refused: how many connections it has refused.
    """

    def __init__(self, target: int) -> None:
        self._target: int | None = target
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, target: int | None) -> None:
        """Close all connections, and pass new ones on to another port; None: refuse them."""
        with self._lock:
            self._target = target
        self.cut()

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            _end(end)

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    target = self._target
                try:
                    if target is None:
                        raise ConnectionRefusedError
                    server = socket.create_connection(("127.0.0.1", target))
                except OSError:
                    client.close()
                    self.refused += 1
                    continue
                with self._lock:
                    moved = target != self._target
                    if not moved:
                        self._open |= {client, server}
                if moved:
                    _end(client)
                    _end(server)
                    continue
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    _end(source)
    _end(target)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
