"""Which server, and which process of it, a connection leads to."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.mysql.server.connection import Connection, run

_UPTIMES = {
    "mysql": "performance_schema.global_status",
    "mariadb": "information_schema.GLOBAL_STATUS",
}


@dataclass(frozen=True)
class ServerIdentity:
    """What tells servers apart.

    Attributes:
        server: MySQL's ``server_uuid``, MariaDB's ``server_id``: which server's GTIDs and files these are, as it says.
        host: its host name and port.
        started: when its process was started, in seconds since the epoch; empty if it doesn't say.
    """

    server: str
    host: str
    started: str


def server_identity(conn: Connection, flavor: str) -> ServerIdentity:
    """Return what tells a server's process from all others."""
    name = "server_id" if flavor == "mariadb" else "server_uuid"
    started = f"SELECT UNIX_TIMESTAMP() - VARIABLE_VALUE FROM {_UPTIMES[flavor]} WHERE VARIABLE_NAME = 'UPTIME'"
    query = f"SELECT @@GLOBAL.{name}, @@GLOBAL.hostname, @@GLOBAL.port, ({started})"
    server, host, port, seconds = run(conn, query, "asking for the server's identity")[0]
    return ServerIdentity(str(server), f"{host}:{port}", "" if seconds is None else str(int(seconds)))
