"""Follows an incremental snapshot, which a signal has asked for, through the offsets in the query's checkpoint."""

from __future__ import annotations

from floodmark.errors import SourceStateError
from floodmark.snapshots.incremental.state import TableRun
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.stream.offsets import Offset


class FollowedSnapshot:
    """A snapshot of one table, all of whose rows are read.

    What counts as read is only what the query says has succeeded: a snapshot that was stopped, or that failed, vanishes
    from the offsets as well.

    Args:
        checkpoint: the query's.
        table: the table's name, ``schema.table``.
        signal: the signal's id.
        after: the micro-batch after which the snapshot begins.
    """

    def __init__(self, checkpoint: Checkpoint, table: str, signal: str, after: int) -> None:
        self._checkpoint = checkpoint
        self._table = table
        self._signal = signal
        self._last = after
        self._runs: list[TableRun] = []
        self._begun = False
        self._seen_rows = False

    @property
    def batch(self) -> int:
        """The newest micro-batch that was looked at."""
        return self._last

    @property
    def begun(self) -> bool:
        """Whether the query has taken the signal."""
        return self._begun

    @property
    def done(self) -> bool:
        """Whether all rows have been read, and delivered."""
        return self._begun and not self._runs

    @property
    def empty(self) -> bool:
        """Whether the table had no rows."""
        return self.done and not self._seen_rows

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows have been read, and how many there are, both roughly; of what isn't read to the end."""
        return sum(run.rows for run in self._runs), sum(max(run.estimate, 0) for run in self._runs)

    def look(self) -> None:
        """Look at the micro-batches that were planned since.

        Raises:
            CheckpointError: the checkpoint can't be read.
            SourceStateError: the snapshot has failed, or was stopped, or it isn't known how it went on.
        """
        files = [file for file in self._checkpoint.offsets() if file.batch > self._last]
        if files and files[0].batch > self._last + 1 and self._last >= 0:
            raise SourceStateError(
                f"The checkpoint has forgotten what followed micro-batch {self._last}, so it isn't known whether all "
                f"rows of {self._table} were read."
            )
        for file in files:
            self._take(Offset.from_json(self._checkpoint.read_offset(file)))
            self._last = file.batch

    def _take(self, offset: Offset) -> None:
        state = offset.incremental
        known = [] if state is None else state.runs
        runs = [run for run in known if run.name == self._table and self._signal in run.signals]
        failed = [run for run in runs if run.outcome]
        if failed:
            reason = failed[0].error or failed[0].outcome
            raise SourceStateError(f"The rows of {self._table} can't be read: {reason}")
        ended = len(self._runs) - len(runs)
        if ended > offset.read.get(self._signal, 0):
            raise SourceStateError(f"The snapshot of {self._table} was stopped before all rows were read.")
        self._runs = runs
        self._begun = self._begun or bool(runs)
        self._seen_rows = self._seen_rows or any(run.chunks or run.top is not None for run in runs)
