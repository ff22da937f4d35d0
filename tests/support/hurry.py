"""Micro-batches that don't wait for more to come."""

from __future__ import annotations

import pytest

from floodmark.signals import files
from floodmark.spark.stream import captured_log


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Shorten the waits that fill micro-batches: they are most of the time of such small ones."""
    for name in ("IDLE_WAIT_S", "BACKLOG_WAIT_S", "POINT_WAIT_S", "PING_S"):
        patch.setattr(captured_log, name, 0.01)
    patch.setattr(files, "GRACE_S", 0.05)
