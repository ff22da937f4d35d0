"""Remembers the server, GTIDs and mark of positions, so that the stream can be resumed from them."""

from __future__ import annotations

from floodmark.capture.places import Places
from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.json_data import Json


class ResumePoints(Places[ResumePoint]):
    """Remembers the positions that capture has reached."""

    def __init__(self) -> None:
        super().__init__()
        self._captured = False
        self._reader: ServerIdentity | None = None

    def reads_from(self, server: ServerIdentity | None) -> None:
        """Record which server capture reads the log from; None: it has lost the connection."""
        with self._lock:
            self._captured, self._reader = True, server

    @property
    def reader(self) -> tuple[bool, ServerIdentity | None]:
        """Whether capture has run, and which server it reads the log from now, if any."""
        with self._lock:
            return self._captured, self._reader

    def to_json(self, position: str) -> dict[str, Json] | None:
        """Return the entry of a position as JSON data, for the offset."""
        place = self.at(position)
        return None if place is None else place.to_json()
