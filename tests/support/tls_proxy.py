"""TLS in front of a server that has none: the test servers are built without it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

SSL_REQUEST = b"\0\0\0\x08\x04\xd2\x16\x2f"


class TlsProxy:
    """Answers PostgreSQL's SSLRequest, ends TLS and passes the rest on.

    Args:
        context: with the proxy's certificate.
        port: the server's port on 127.0.0.1.
    """

    def __init__(self, context: ssl.SSLContext, port: int) -> None:
        self._context = context
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if client.recv(8, socket.MSG_WAITALL) != SSL_REQUEST:
                client.close()
                return
            client.sendall(b"S")
            secure = self._context.wrap_socket(client, server_side=True)
        except OSError:
            client.close()
            return
        self._pass_on(secure, socket.create_connection(("127.0.0.1", self._server_port)))

    def _pass_on(self, secure: ssl.SSLSocket, plain: socket.socket) -> None:
        """Pass bytes both ways; one thread, since a TLS socket is not to be read and written at once."""
        secure.setblocking(False)
        with contextlib.suppress(OSError), secure, plain:
            done = threading.Event()
            lock = threading.Lock()

            def down() -> None:
                with contextlib.suppress(OSError):
                    while data := plain.recv(65536):
                        view = memoryview(data)
                        while len(view):
                            with lock, contextlib.suppress(ssl.SSLWantWriteError):
                                view = view[secure.send(view) :]
                done.set()

            threading.Thread(target=down, daemon=True).start()
            while not done.wait(0.001):
                with contextlib.suppress(ssl.SSLWantReadError):
                    with lock:
                        data = secure.recv(65536)
                    if not data:
                        return
                    plain.sendall(data)
