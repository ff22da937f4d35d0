"""Identifies the server, and its process, that a connection leads to."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.mysql.server.connection import Connection, run

_UPTIMES = {
    "mysql": "performance_schema.global_status",
    "mariadb": "information_schema.GLOBAL_STATUS",
}


@dataclass(frozen=True)
class ServerIdentity:
    """The identity of a server and its process.

    Attributes:
        server: MySQL's ``server_uuid`` or MariaDB's ``server_id``, to which its GTIDs and files belong.
        host: its host name and port.
        started: when its process was started, in seconds since the epoch; empty if the server doesn't report it.
    """

    server: str
    host: str
    started: str


def server_identity(conn: Connection, flavor: str) -> ServerIdentity:
    """Return the identity of the server's process that a connection leads to."""
    name = "server_id" if flavor == "mariadb" else "server_uuid"
    started = f"SELECT UNIX_TIMESTAMP() - VARIABLE_VALUE FROM {_UPTIMES[flavor]} WHERE VARIABLE_NAME = 'UPTIME'"
    query = f"SELECT @@GLOBAL.{name}, @@GLOBAL.hostname, @@GLOBAL.port, ({started})"
    server, host, port, seconds = run(conn, query, "asking for the server's identity")[0]
    return ServerIdentity(str(server), f"{host}:{port}", "" if seconds is None else str(int(seconds)))
