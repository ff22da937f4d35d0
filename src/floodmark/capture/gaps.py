"""Gaps: changes that were left out of the log because an option accepts that."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Self

from floodmark.json_data import Json, stored_object


@dataclass(frozen=True)
class Gap:
    """Changes of the log that are not delivered, with the user's consent.

    Attributes:
        after: the last log position that was delivered before the gap.
        upto: the log position from which on changes are delivered again.
        reason: what changed at the source; a sentence.
        option: the option and value that accept the gap, such as ``offset.mismatch.strategy=trust_slot``.
    """

    after: str
    upto: str
    reason: str
    option: str

    def to_json(self) -> dict[str, str]:
        """Return the gap as JSON data, for the offset."""
        return {"after": self.after, "upto": self.upto, "reason": self.reason, "option": self.option}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the gap that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        gap = stored_object(data, "A gap")
        return cls(gap.text("after"), gap.text("upto"), gap.text("reason"), gap.text("option"))


class AcceptedGaps:
    """The gaps that a connector has found; capture adds them, the planner reads them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gaps: list[Gap] = []

    def add(self, gap: Gap) -> None:
        """Record a gap; one that is known already is ignored."""
        with self._lock:
            if gap not in self._gaps:
                self._gaps.append(gap)

    def all(self) -> tuple[Gap, ...]:
        """Return the gaps in the order in which they were found."""
        with self._lock:
            return tuple(self._gaps)
