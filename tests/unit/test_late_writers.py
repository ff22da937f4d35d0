"""When an executor that is cut off has ended, beside when the driver gives it up."""

from __future__ import annotations

import pytest

from floodmark.spark.sinks.late_writers import PROPERTIES, ends_after_ms

GIVEN_UP_MS = 120_000
"""Spark's default."""


@pytest.mark.parametrize(("failures", "in_time"), [(60, False), (10, False), (int(*PROPERTIES.values()), True)])
def test_what_lets_it_end_in_time(failures: int, in_time: bool) -> None:
    assert (ends_after_ms(failures, 10_000) < GIVEN_UP_MS) == in_time
