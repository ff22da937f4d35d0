"""Remembers the resume state of prepared XA transactions, for each position at which capture has cut."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from floodmark.capture.spool import Undecided
from floodmark.json_data import Json, stored_object


@dataclass(frozen=True)
class _At:
    """The state at a position.

    Attributes:
        undecided: the transactions that are prepared there.
        gtids: all transactions before it.
        stepped: whether the log between the previous position and this one holds XA transactions.
    """

    undecided: Undecided | None
    gtids: str
    stepped: bool


class UndecidedPlaces:
    """Remembers the prepared transactions at positions; used by capture's thread and by the planner's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: list[str] = []
        self._known: list[_At] = []

    def add(self, position: str, undecided: Undecided | None, gtids: str = "", stepped: bool = False) -> None:
        """Remember a position; later ones may be known already, if the log is read again after a lost connection."""
        with self._lock:
            at = bisect_left(self._positions, position)
            after = at + (at < len(self._positions) and self._positions[at] == position)
            self._positions[at:after] = [position]
            self._known[at:after] = [_At(undecided, gtids, stepped)]

    def at(self, position: str) -> Undecided | None:
        """Return the state that is needed to resume from a position; None: nothing is prepared there."""
        with self._lock:
            found = bisect_right(self._positions, position)
            if not found:
                return None
            cut, known = self._positions[found - 1], self._known[found - 1]
            if cut == position or found == len(self._known) or not self._known[found].stepped:
                undecided = known.undecided
                if undecided is None or undecided.at != cut:
                    return undecided
                return replace(undecided, at=position)
            # Between two cuts: the log from the first one on must be read again.
            return known.undecided or Undecided(cut, known.gtids, cut)

    def forget(self, position: str) -> None:
        """Forget the entries that are only needed before a position."""
        with self._lock:
            first = max(bisect_right(self._positions, position) - 1, 0)
            del self._positions[:first], self._known[:first]

    def clear(self) -> None:
        """Forget all positions."""
        with self._lock:
            self._positions.clear()
            self._known.clear()


def undecided_json(undecided: Undecided | None) -> dict[str, Json]:
    """Return the entry for an offset's bookmark; empty if nothing is prepared."""
    return {} if undecided is None else {"undecided": asdict(undecided)}


def undecided_of(bookmark: Mapping[str, Json] | None) -> Undecided | None:
    """Return the state that ``undecided_json`` put into a bookmark; bookmarks of earlier versions have none.

    Raises:
        CheckpointError: the bookmark holds something else.
    """
    found = None if bookmark is None else bookmark.get("undecided")
    if found is None:
        return None
    state = stored_object(found, "the state of prepared transactions")
    return Undecided(
        state.text("begin"),
        state.text("token"),
        *(state.optional_text(name) or "" for name in ("at", "index", "oldest")),
    )
