"""What Spark's Python workers hold for good."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType

import pytest

from floodmark.spark import worker_memory


@pytest.fixture(autouse=True)
def _thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_memory, "_known_modules", 0)
    yield
    gc.unfreeze()


class _Cycle:
    """Something that only the collector can remove."""

    def __init__(self) -> None:
        self.itself = self


def test_what_there_is_when_modules_have_been_imported_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_memory.keep_modules()
    cycle = _Cycle()
    seen = weakref.ref(cycle)
    monkeypatch.setitem(sys.modules, "imported_later", ModuleType("imported_later"))
    worker_memory.keep_modules()
    del cycle
    gc.collect()
    assert seen() is not None


def test_garbage_of_later_tasks_is_collected() -> None:
    worker_memory.keep_modules()
    cycle = _Cycle()
    seen = weakref.ref(cycle)
    worker_memory.keep_modules()
    del cycle
    gc.collect()
    assert seen() is None
