"""Remembers the server, GTIDs and mark of positions, so that the stream can be resumed from them."""

from __future__ import annotations

import threading
from bisect import bisect_right

from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.json_data import Json


class ResumePoints:
    """Remembers the positions that capture has reached; used by its thread and by the planner's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: list[str] = []
        self._places: list[ResumePoint] = []
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

    def add(self, position: str, place: ResumePoint) -> None:
        """Remember a position; it comes after all others, unless the log is read again."""
        with self._lock:
            # When the log is read again, the later positions may be of another server.
            keep = bisect_right(self._positions, position)
            del self._positions[keep:], self._places[keep:]
            self._positions.append(position)
            self._places.append(place)

    def at(self, position: str) -> ResumePoint | None:
        """Return the entry of a position, or of the last one before it: between two entries nothing was committed."""
        with self._lock:
            found = bisect_right(self._positions, position)
            return self._places[found - 1] if found else None

    def newest(self) -> tuple[str, ResumePoint] | None:
        """Return the last position and its entry; None if there is none."""
        with self._lock:
            return (self._positions[-1], self._places[-1]) if self._positions else None

    def forget(self, position: str) -> None:
        """Forget the entries that are only needed before a position."""
        with self._lock:
            first = max(bisect_right(self._positions, position) - 1, 0)
            del self._positions[:first], self._places[:first]

    def clear(self) -> None:
        """Forget all positions."""
        with self._lock:
            self._positions.clear()
            self._places.clear()

    def to_json(self, position: str) -> dict[str, Json] | None:
        """Return the entry of a position as JSON data, for the offset."""
        place = self.at(position)
        return None if place is None else place.to_json()
