"""Keeps what was read of data files, as far as memory may be used for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What has a size in memory."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""


Item = TypeVar("Item", bound=Sized)


class Kept(Generic[Item]):
    """Items by name, without those that were not used for longest.

    Args:
        limit: bytes that all of them may take.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, name: Hashable, load: Callable[[], Item]) -> Item:
        """Return an item, which is loaded if it isn't kept; several threads may ask."""
        with self._lock:
            if name in self._items:
                self._items.move_to_end(name)
                return self._items[name]
        item = load()
        with self._lock:
            if name not in self._items and item.nbytes <= self._limit:
                self._items[name] = item
                self._bytes += item.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._items.popitem(last=False)[1].nbytes
        return item
