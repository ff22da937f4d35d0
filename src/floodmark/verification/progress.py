"""How far a query has brought its targets, from its checkpoint."""

from __future__ import annotations

import time

from floodmark.errors import CheckpointError
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.stream.offsets import Offset

_POLL_S = 0.1


class QueryProgress:
    """The progress of a query whose targets are verified.

    Args:
        uri: its checkpoint.

    Raises:
        CheckpointError: there is none.
    """

    def __init__(self, uri: str) -> None:
        self._checkpoint = Checkpoint(uri)
        self._checkpoint.require()
        self.query = self._checkpoint.query()

    def committed(self) -> Offset | None:
        """Return where the last finished micro-batch ended; None before the first one.

        Raises:
            CheckpointError: the checkpoint can't be read.
        """
        for _ in range(3):
            commits = self._checkpoint.commits()
            if not commits:
                return None
            last = commits[-1].batch
            file = next((one for one in self._checkpoint.offsets() if one.batch == last), None)
            if file is not None:
                return Offset.from_json(self._checkpoint.read_offset(file))
            # Spark has removed the file meanwhile.
        raise CheckpointError(f"The checkpoint {self._checkpoint.uri} lacks the offset of its last micro-batch.")

    def wait(self, position: str, until: float) -> bool:
        """Wait until the targets have everything up to a position; return whether they do.

        Args:
            position: in the source's log.
            until: when to give up, by the monotonic clock.
        """
        while True:
            offset = self.committed()
            if offset is not None and offset.log >= position:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)


def reads(offset: Offset | None, table: str) -> str:
    """Return what makes a table incomplete at an offset: a snapshot that hasn't ended; empty if nothing does."""
    if offset is None:
        return "the query has finished no micro-batch yet"
    if offset.snapshot is not None or offset.blocking:
        return "a snapshot of the tables hasn't ended"
    if offset.catch_up is not None:
        return "a snapshot of new tables hasn't ended"
    state = offset.incremental
    if state is not None and any(run.name == table and not run.finished for run in state.runs):
        return "an incremental snapshot reads the table"
    if any(one.name == table for one in offset.excluded):
        return "the query has excluded the table"
    return ""
