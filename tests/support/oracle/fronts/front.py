"""A server of a database, in a thread."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Generic, Self, TypeVar

from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.sql.session import Session


class Served(socketserver.ThreadingTCPServer):
    """Listens for clients of a database.

    Attributes:
        database: what is served.
        sessions: makes a client's session.
    """

    allow_reuse_address = True
    daemon_threads = True
    database: OracleDatabase
    sessions: type[Session] = Session


S = TypeVar("S", bound=Served)


class Front(Generic[S]):
    """Serves a database; use it as a context manager.

    Args:
        server: listens.
        database: what is served.
        sessions: makes a client's session.
    """

    def __init__(self, server: S, database: OracleDatabase, sessions: type[Session] = Session) -> None:
        self._server = server
        self._server.database = database
        self._server.sessions = sessions
        self._thread = threading.Thread(target=server.serve_forever, name=type(self).__name__, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def cut_connections(self) -> None:
        """Cut all connections; clients of those that can't be cut must have gone."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self.cut_connections()
        self._server.server_close()
        self._thread.join()
