"""Remembers what belongs to positions of the log that capture has reached."""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import Generic, TypeVar

T = TypeVar("T")


class Places(Generic[T]):
    """What belongs to positions; used by capture's thread and by the planner's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: list[str] = []
        self._places: list[T] = []

    def add(self, position: str, place: T) -> None:
        """Remember a position; it comes after all others, unless the log is read again."""
        with self._lock:
            # When the log is read again, the later positions may be of another server.
            keep = bisect_right(self._positions, position)
            del self._positions[keep:], self._places[keep:]
            self._positions.append(position)
            self._places.append(place)

    def at(self, position: str) -> T | None:
        """Return the entry of a position, or of the last one before it: between two entries nothing was committed."""
        with self._lock:
            found = bisect_right(self._positions, position)
            return self._places[found - 1] if found else None

    def newest(self) -> tuple[str, T] | None:
        """Return the last position and its entry; None if there is none."""
        with self._lock:
            return (self._positions[-1], self._places[-1]) if self._positions else None

    def all(self) -> list[T]:
        """Return all entries, in the order of their positions."""
        with self._lock:
            return list(self._places)

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
