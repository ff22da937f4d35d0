"""A notebook's log, as the planner uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floodmark.capture.log_stream import LogStream
from floodmark.connectors.contract.read_points import ReadPoint
from tests.toy.notebook.capture.stream import NotebookStream
from tests.toy.notebook.continuity import Continuity
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.position import parse
from tests.toy.notebook.source.read_points import NotebookSnapshots

IDENTITY = "log"
"""The member of a bookmark that holds the log's identity."""


class NotebookLog:
    """A ``LogSource``."""

    def __init__(self, options: NotebookOptions, notebook: Notebook, snapshots: NotebookSnapshots) -> None:
        self._options = options
        self._notebook = notebook
        self._snapshots = snapshots
        self._continuity = Continuity(notebook)

    def create(self, with_read_point: bool) -> tuple[str, ReadPoint | None]:
        """Begin at the log's end, where the read point is."""
        point = self._snapshots.open()
        self._continuity.prove(point.position)
        if with_read_point:
            return point.position, point
        point.release()
        return point.position, None

    def resume(self, position: str, bookmark: dict[str, Any] | None = None, known: Sequence[str] = ()) -> None:
        """Verify that the notebook still has the log from a position on."""
        del known
        if bookmark is not None:
            self._continuity.known = bookmark[IDENTITY]
        self._continuity.prove(position)

    def locate(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Verify that the log reaches a position."""
        self.check_planned(position, bookmark)

    def check_planned(self, position: str, bookmark: dict[str, Any] | None) -> None:
        """Verify that the log reaches what an earlier process planned."""
        self.resume(position, bookmark)

    def bookmark(self, position: str) -> dict[str, Any] | None:
        """Return the log's identity."""
        del position
        return {IDENTITY: self._continuity.known}

    def discard_lost(self) -> None:
        """Do nothing: a lost log leaves nothing behind."""

    def delivered(self, position: str) -> None:
        """Do nothing: the log is kept however far it was delivered."""
        del position

    def end(self) -> str:
        """Return the position of the log's end."""
        with self._snapshots.open() as point:
            return point.position

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie behind a position; a transaction that it lies in counts as a whole."""
        log = self._notebook.log
        return log.size() - log.offset_of(parse(position)[0])

    def decode_context(self) -> int | None:
        """Return None: the log and the options are all that the decoder needs."""
        return None

    def open_stream(self) -> LogStream:
        """Return a new stream of the log."""
        return NotebookStream(self._options, self._notebook, self._continuity)
