"""What Spark's Python workers hold for good."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from floodmark.spark import worker_memory


@pytest.fixture(autouse=True)
def _thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_memory, "_known_modules", 0)
    yield
    gc.unfreeze()


def test_a_collection_looks_at_nothing_that_was_imported() -> None:
    worker_memory.keep_modules()
    assert len(gc.get_objects()) < gc.get_freeze_count() / 100


def test_garbage_of_later_tasks_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_memory.keep_modules()
    kept = gc.get_freeze_count()
    garbage: list[object] = []
    garbage.append(garbage)
    worker_memory.keep_modules()
    assert gc.get_freeze_count() == kept
    del garbage
    assert gc.collect() > 0
    monkeypatch.setitem(sys.modules, "imported_later", ModuleType("imported_later"))
    worker_memory.keep_modules()
    assert gc.get_freeze_count() > kept
