"""How much longer than usual things may take, on a machine that has other work to do.

Limits in tests, those of ``pytest.mark.timeout`` too, are for a machine of its own. ``FLOODMARK_TEST_PATIENCE``
multiplies them; :mod:`.overload` sets it.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "FLOODMARK_TEST_PATIENCE"
FACTOR = float(os.environ.get(VARIABLE, "1"))


def within(seconds: float) -> float:
    """Return how long something may take here that takes less than ``seconds`` on a machine of its own."""
    return seconds * FACTOR


def stretch(item: pytest.Item) -> None:
    """Let a test that has a limit of its own take longer."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and FACTOR != 1:
        item.add_marker(pytest.mark.timeout(within(marker.args[0])), append=False)
