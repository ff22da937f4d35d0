"""Runs statements at the source in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from floodmark.errors import FloodmarkError
from floodmark.logger import get_logger
from floodmark.redact import shown_statement

log = get_logger(__name__)

CANCEL_WAIT_S = 1.0


class SideSession(Protocol):
    """A connection for background statements."""

    def usable(self) -> bool:
        """Return whether statements can still be run on it."""

    def run(self, statement: str) -> None:
        """Run a statement.

        Raises:
            FloodmarkError: the statement fails, or the connection is lost.
        """

    def cancel(self) -> None:
        """Cancel the statement that another thread runs."""

    def close(self) -> None:
        """Close the connection."""


class SideStatements:
    """Runs statements one at a time, in a thread and on a connection of its own.

    Args:
        connect: opens the connection.
    """

    def __init__(self, connect: Callable[[], SideSession]) -> None:
        self._connect = connect
        self._session: SideSession | None = None
        self._thread: threading.Thread | None = None

    def run(self, statement: str) -> None:
        """Start to run a statement; skip it if the previous one still runs."""
        if self._thread is not None and self._thread.is_alive():
            log.warning("heartbeat_action_is_slow", statement=shown_statement(statement), next="left out")
            return
        self._thread = threading.Thread(target=self._execute, args=(statement,), name="floodmark-aside", daemon=True)
        self._thread.start()

    def _execute(self, statement: str) -> None:
        try:
            if self._session is None or not self._session.usable():
                self._session = self._connect()
            self._session.run(statement)
        except FloodmarkError as exc:
            log.warning("heartbeat_action_failed", statement=shown_statement(statement), error=str(exc))

    def stop(self) -> None:
        """Cancel the running statement, and close the connection."""
        if self._session is not None:
            if self._thread is not None and self._thread.is_alive():
                self._session.cancel()
                self._thread.join(CANCEL_WAIT_S)
            self._session.close()
            self._session = None
