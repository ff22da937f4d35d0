"""Micro-batches that don't wait for more to come."""

from __future__ import annotations

import pytest

from floodmark.snapshot import signal_files
from floodmark.spark import captured


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Shorten the waits that fill micro-batches: they are most of the time of such small ones."""
    for name in ("IDLE_WAIT_S", "BACKLOG_WAIT_S", "PING_S"):
        patch.setattr(captured, name, 0.01)
    patch.setattr(signal_files, "GRACE_S", 0.05)
