"""Decides what a query does first when it is restarted, and verifies its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from floodmark.errors import CheckpointError, LogGoneError
from floodmark.extensions.snapshotter import Snapshotter
from floodmark.spark.stream.offsets import Offset


class Start(Enum):
    """What a query with a checkpoint does first."""

    GO_ON = "go on where the checkpoint says"
    GIVE_UP_SNAPSHOT = "leave the snapshot unfinished and stream"
    SNAPSHOT = "take a snapshot once the log before it is delivered"
    START_OVER = "take a snapshot and leave out the log before it"


def decide(snapshotter: Snapshotter, offset: Offset, log_is_gone: bool) -> Start:
    """Decide what a query does first at its offset.

    Args:
        snapshotter: called once per start.
        offset: the offset of a query that is not new.
        log_is_gone: whether the source has lost the log that the offset needs.
    """
    if log_is_gone:
        return Start.START_OVER
    if offset.snapshot is not None and offset.snapshot.blocking:
        return Start.GO_ON
    in_progress = offset.snapshot is not None
    wanted = snapshotter.should_snapshot_data(True, in_progress)
    if in_progress:
        return Start.GO_ON if wanted else Start.GIVE_UP_SNAPSHOT
    if not wanted:
        return Start.GO_ON
    return Start.SNAPSHOT if snapshotter.should_stream() else Start.START_OVER


def refuse_another_source(checkpoint: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Verify that a checkpoint was written for this source.

    Args:
        checkpoint: the identity of the checkpoint's source.
        identity: the identity of this source.

    Raises:
        CheckpointError: it was written for another one.
    """
    different = [name for name in identity if identity[name] != checkpoint.get(name)]
    if different:
        was = ", ".join(f"{name} {checkpoint.get(name)}" for name in different)
        now = ", ".join(f"{name} {identity[name]}" for name in different)
        raise CheckpointError(
            f"The checkpoint was written for another source: {was}; this is {now}.",
            "Use a new checkpoint location, or the options that the checkpoint was written with.",
        )


def refuse_to_go_back(checkpoint: str, current: str) -> None:
    """Verify that a new snapshot's events will sort after those that were delivered.

    Raises:
        LogGoneError: the source's log ends before the checkpoint.
    """
    if current < checkpoint:
        raise LogGoneError(
            f"The source's log ends at {current}, before the checkpoint's {checkpoint}: the server was restored from a "
            "backup, or replaced by a standby that lacked the last changes. The positions of a new snapshot would go "
            "back.",
            "Start with a new checkpoint and write to a new target.",
        )
