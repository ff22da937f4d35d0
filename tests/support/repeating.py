"""Does something again and again beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def repeated(act: Callable[[], T], pause_s: float) -> Iterator[list[T]]:
    """Call a function all the time, and yield what it has returned so far; fail if it failed.

    Args:
        pause_s: how long to rest in between, in seconds.
    """
    stop, found = threading.Event(), list[T]()

    def work() -> None:
        while not stop.is_set():
            found.append(act())
            stop.wait(pause_s)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield found
        finally:
            stop.set()
        done.result()
