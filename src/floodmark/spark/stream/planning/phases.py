"""The phases of a query: what a micro-batch does follows from where the last one ended and from what was decided."""

from __future__ import annotations

from enum import Enum

from floodmark.spark.stream.offsets import Offset
from floodmark.spark.stream.planning.startup import Start


class Phase(Enum):
    """What a micro-batch of a query with a checkpoint does."""

    START_OVER = "take a snapshot and leave out the log before it"
    BEGIN_SNAPSHOT = "open the read point of a snapshot, up to which the log is delivered first"
    SNAPSHOT = "read tables at the read point that is held, after the log up to it"
    ENDED = "nothing: the query doesn't stream"
    BEGIN_BLOCKING = "deliver the log up to a new read point, and begin there the blocking snapshot that was requested"
    CATCH_UP = "stream the log, and begin, read or catch up with new tables beside it"
    STREAM = "stream the log, with chunks of incremental snapshots"


def phase_of(start: Offset, decision: Start, streams: bool, blocking_waits: bool) -> Phase:
    """Return the phase of the micro-batch that begins at an offset.

    Args:
        start: the offset, which is not that of a new query.
        decision: what the query does first; ``GO_ON`` in all later micro-batches. A snapshot that is given up has been
            removed from the offset.
        streams: whether the log is delivered after the snapshot.
        blocking_waits: whether the source has kept a blocking snapshot waiting for too long, so that it is postponed.
    """
    if decision is Start.START_OVER:
        return Phase.START_OVER
    if decision is Start.SNAPSHOT:
        return Phase.BEGIN_SNAPSHOT
    if start.snapshot is not None:
        return Phase.SNAPSHOT
    if not streams:
        return Phase.ENDED
    if start.catch_up is not None:
        return Phase.CATCH_UP
    if start.blocking and not blocking_waits:
        return Phase.BEGIN_BLOCKING
    return Phase.STREAM
