"""An HTTP proxy that loses commits of tables, or the answers to them."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal

Loss = Literal["request", "answer"]
_NOT_PASSED = ("host", "connection", "content-length", "transfer-encoding", "accept-encoding")


class LosingProxy:
    """A proxy in front of a server.

    Args:
        server: the server's URI.

    Attributes:
        losses: what is lost of the next commits, the next one first; None: nothing.
        uri: where the proxy is.
    """

    def __init__(self, server: str) -> None:
        self.losses: list[Loss | None] = []
        self._server = server
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

            def _pass(self) -> None:
                proxy.answer(self)

            do_GET = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815

        self.listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.listener.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Pass a request on, and its answer back, unless it is to be lost."""
        length = int(request.headers.get("content-length") or 0)
        body = request.rfile.read(length) if length else None
        commits = request.command == "POST" and "/tables/" in request.path and not request.path.endswith("/metrics")
        loss = self.losses.pop(0) if commits and self.losses else None
        status, headers, content = (504, {}, b"") if loss == "request" else self._passed(request, body)
        if loss == "answer":
            status, headers, content = 504, {}, b""
        request.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _NOT_PASSED:
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _passed(self, request: BaseHTTPRequestHandler, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED}
        sent = urllib.request.Request(f"{self._server}{request.path}", body, headers, method=request.command)
        try:
            with urllib.request.urlopen(sent, timeout=60) as response:
                return response.status, dict(response.headers), response.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()


@contextmanager
def losing_proxy(server: str) -> Iterator[LosingProxy]:
    """Yield a proxy in front of a server; it ends with the block.

    Args:
        server: the server's URI.
    """
    proxy = LosingProxy(server)
    thread = Thread(target=proxy.listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.listener.shutdown()
        proxy.listener.server_close()
