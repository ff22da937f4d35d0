"""A network between processes of this machine that stops passing on what one of them sends and is sent."""

from __future__ import annotations

import contextlib
import socket
import threading

import psutil

HOST = "127.0.0.2"
"""What clients connect to; the server listens on the same port of 127.0.0.1."""


class Network:
    """Passes TCP connections on, from ports of `HOST` to those of 127.0.0.1; use it as a context manager.

    Args:
        ports: of servers that may start later.
    """

    def __init__(self, *ports: int) -> None:
        self._lock = threading.Lock()
        self._frozen: set[int] = set()
        self._listeners = [socket.create_server((HOST, port)) for port in ports]
        for listener, port in zip(self._listeners, ports, strict=True):
            threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *exc: object) -> None:
        for listener in self._listeners:
            listener.close()

    def freeze(self, process: psutil.Process) -> None:
        """Pass nothing on any more of the connections that a process has; they stay open."""
        ports = {one.laddr.port for one in process.net_connections("tcp")}
        with self._lock:
            self._frozen |= ports

    def _accept(self, listener: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, (_, own) = listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    client.close()
                    continue
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other, own), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self._is_frozen(port):
                    # Nor is it told that the other side ends.
                    return
                target.sendall(data)
        if not self._is_frozen(port):
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _is_frozen(self, port: int) -> bool:
        with self._lock:
            return port in self._frozen
