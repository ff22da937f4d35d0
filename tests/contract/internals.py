"""The only places where the suite reaches into Floodmark's modules: waits that are shortened, and what is logged."""

from __future__ import annotations

import pytest

from floodmark.snapshots import control
from floodmark.spark.stream.planning import new_tables
from tests.support.recording import Recorder


def look_for_new_tables_at_once(patch: pytest.MonkeyPatch) -> None:
    """Look for new tables before each micro-batch."""
    patch.setattr(new_tables, "EVERY_S", 0.0)


def record_signals(patch: pytest.MonkeyPatch) -> Recorder:
    """Return what is logged about signals from here on."""
    recorder = Recorder()
    recorder.listen(patch, control.__name__)
    return recorder
