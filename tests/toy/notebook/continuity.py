"""Verifies that the log still is the one that was read, and has what follows a position."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from floodmark.errors import ConnectError, ForkedLogError, LogGoneError
from tests.toy.notebook.database.notebook import Notebook, log_state
from tests.toy.notebook.position import after_transaction, parse, position

CURE = "Ways out: set snapshot.mode=when_needed, which takes a new snapshot, or start with a new checkpoint."
ANOTHER = (
    "Give the directory of the notebook that the checkpoint was written for. snapshot.mode=when_needed doesn't help: "
    "start with a new checkpoint and write to a new target."
)


class Continuity:
    """Proves positions.

    Args:
        notebook: the notebook.

    Attributes:
        known: the identity of the log that the query reads; None: not known yet.
    """

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self.known: str | None = None

    def prove(self, place: str) -> None:
        """Verify that the log has what follows a position.

        Raises:
            LogGoneError: it hasn't.
            ForkedLogError: it is another log, or ends before the position.
        """
        try:
            with self._notebook.locked(), closing(self._notebook.connect()) as conn:
                identity, committed = log_state(conn)
                oldest = self._notebook.log.first()
        except (OSError, sqlite3.Error) as exc:
            raise ConnectError(
                f"The notebook cannot be read: {exc}.", "Correct notebook.path, or bring the directory back."
            ) from None
        if self.known not in (None, identity):
            what = f"The notebook's log is another one: {identity}, but the checkpoint's is {self.known}."
            raise ForkedLogError(what, ANOTHER)
        self.known = identity
        end = after_transaction(committed)
        if place > end:
            raise ForkedLogError(f"The notebook's log ends at {end}, before {place}, which it had reached.", ANOTHER)
        first = committed + 1 if oldest is None else oldest
        if parse(place)[0] < first:
            what = f"The notebook's log begins at {position(first)} by now, after {place}."
            raise LogGoneError(what, CURE)
