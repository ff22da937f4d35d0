"""The notifications of a micro-batch that is being planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from floodmark.notifications.records import Notification


class Notices:
    """Collects notifications until the plan is kept. Planning may be repeated, so a failed attempt leaves none."""

    def __init__(self) -> None:
        self._collected: list[Notification] = []

    def __bool__(self) -> bool:
        return bool(self._collected)

    def add(self, notification: Notification) -> None:
        """Add a notification."""
        self._collected.append(notification)

    def clear(self) -> None:
        """Begin a plan without any."""
        self._collected.clear()

    def all(self) -> tuple[Notification, ...]:
        """Return them in their order."""
        return tuple(self._collected)

    def read(self) -> dict[str, int]:
        """Return how many tables have been read to the end of those that signals asked for, by the signals' ids."""
        return Counter(signal for one in self._collected if one.succeeded for signal in one.asked_by)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Take back what is added inside if an exception is raised there."""
        before = len(self._collected)
        try:
            yield
        except BaseException:
            del self._collected[before:]
            raise
