"""Selects the accepted gaps that an offset announces."""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.capture.gaps import Gap
from floodmark.spark.stream.offsets import Offset


def with_gaps(start: Offset, end: Offset, met: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return the gaps of the offset that ends a micro-batch: those to announce, and those that may be met again.

    A gap is announced once all log before it is delivered. It stays in the offsets until the log behind it is
    delivered, since a restart before that meets it again.

    Args:
        start: where the micro-batch begins.
        end: where it ends.
        met: the gaps that the connector has met, read after ``end`` was planned: capture records a gap before it hands
            out any log behind it.
    """
    kept = [gap for gap in start.gaps if gap.upto >= start.log]
    new = [gap for gap in met if gap not in kept and gap.upto >= start.log and gap.after <= end.log]
    return (*kept, *new)
