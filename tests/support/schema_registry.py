"""A schema registry: Apicurio Registry with its memory, by the interface that it has in common with Confluent's."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryFile
from typing import Any

from tests.support.maven import unpacked
from tests.support.patience import within

_VERSION = "3.0.9"
_ARCHIVE = f"io/apicurio/apicurio-registry-app/{_VERSION}/apicurio-registry-app-{_VERSION}-all.tar.gz"
_DIGEST = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_INTERFACE = "apis/ccompat/v7"
_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class RunningRegistry:
    """A registry that runs.

    Attributes:
        port: where it listens.
    """

    port: int

    @property
    def url(self) -> str:
        """The address of Confluent's interface."""
        return f"http://127.0.0.1:{self.port}/{_INTERFACE}"

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Return what it answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": _TYPE}, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read())

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Say which changes of schemas it accepts, of all subjects or of one."""
        self.ask("config" if subject is None else f"config/{subject}", {"compatibility": level}, "PUT")

    def schemas(self, subject: str) -> list[str]:
        """Return the versions of a subject's schema."""
        versions = self.ask(f"subjects/{subject}/versions")
        return [self.ask(f"subjects/{subject}/versions/{one}")["schema"] for one in versions]


@contextmanager
def guarded(registry: RunningRegistry, authorization: str, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield an address of a registry's interface that asks for a login, which the registry itself doesn't.

    Args:
        registry: the registry.
        authorization: what requests must have in their header ``Authorization``.
        context: with a certificate, if connections are secure.
    """

    class Guard(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if self.headers.get("Authorization") != authorization:
                self._answer(401, b'{"error_code":40101,"message":"Unauthorized"}')
                return
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            place = f"http://127.0.0.1:{registry.port}{self.path}"
            request = urllib.request.Request(place, content, {"Content-Type": _TYPE}, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    self._answer(response.status, response.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.read())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", _TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Be silent."""

        do_GET = do_POST = do_PUT = _pass_on  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Guard)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}/{_INTERFACE}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running_registry(port: int = 0) -> Iterator[RunningRegistry]:
    """Yield a registry without schemas; it ends with the block.

    Args:
        port: where it listens; 0: anywhere.

    Raises:
        RuntimeError: it doesn't start.
    """
    folder = unpacked(_ARCHIVE, _DIGEST, "registry")
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    options = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    jar = folder / f"apicurio-registry-app-{_VERSION}-runner.jar"
    command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", *options, "-jar", str(jar)]
    found = RunningRegistry(port)
    with (
        TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as server,
    ):
        try:
            until = time.monotonic() + within(90)
            while not _answers(found):
                if server.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise RuntimeError(log.read().decode(errors="replace")[-4000:])
                time.sleep(0.1)
            yield found
        finally:
            server.kill()


def _answers(registry: RunningRegistry) -> bool:
    try:
        return "AVRO" in registry.ask("schemas/types")
    except OSError:
        return False
