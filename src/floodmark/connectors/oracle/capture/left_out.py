"""Stops at what can't be delivered, or leaves it out and tells of that."""

from __future__ import annotations

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import behind
from floodmark.errors import SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)


def leave_out(options: OracleOptions, gaps: AcceptedGaps, scn: int, what: str, ways_out: str) -> None:
    """Leave a change out and tell of the gap, if ``event.processing.failure.handling.mode`` says so.

    Args:
        options: the source's options.
        gaps: collects the changes that are left out.
        scn: where it is.
        what: what is missing; a sentence.
        ways_out: what the user can do.

    Raises:
        SourceStateError: the mode is ``fail``.
    """
    mode = options.event_processing_failure_handling_mode
    if mode == "fail":
        raise SourceStateError(f"{what} (change number {scn})", ways_out)
    option = f"event.processing.failure.handling.mode={mode}"
    gaps.add(Gap(behind(scn - 1), behind(scn), what, option))
    log.warning("change_is_left_out", scn=scn, reason=what)
