"""Derives where a pipeline is from the offsets in its checkpoint and the times at which they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from floodmark.capture.gaps import Gap
from floodmark.cli.status.tables import TableProgress, table_progress
from floodmark.json_data import Json, stored_object
from floodmark.snapshots.excluded_tables import ExcludedTable
from floodmark.spark.stream.offsets import Offset

Phase = Literal[
    "new",
    "initial snapshot",
    "blocking snapshot",
    "streaming",
    "streaming + incremental snapshot",
    "streaming + parallel snapshot",
    "paused",
    "ended",
]


@dataclass(frozen=True)
class TimedOffset:
    """An offset of a checkpoint.

    Attributes:
        batch: the micro-batch that ends with it.
        data: the offset's JSON data.
        written: when, in seconds since 1970; None if unknown.
    """

    batch: int
    data: Mapping[str, Json]
    written: float | None


@dataclass(frozen=True)
class SnapshotSpeed:
    """How fast a snapshot progresses.

    Attributes:
        rows_per_second: None if unknown.
        remaining_s: how long the rest takes at that speed; None if unknown.
    """

    rows_per_second: float | None = None
    remaining_s: float | None = None


@dataclass(frozen=True)
class TableSpeed:
    """A table of a running snapshot, and how fast it is read."""

    progress: TableProgress
    speed: SnapshotSpeed


@dataclass(frozen=True)
class PipelineProgress:
    """Where a pipeline is.

    Attributes:
        phase: what it does.
        position: its log position; empty if it is new.
        planned: the newest micro-batch; None if there is none.
        committed: the newest micro-batch that has ended; None if there is none.
        committed_age_s: how long ago it ended; None if unknown.
        tables: the tables of running snapshots.
        speed: the speed of all these tables together.
        excluded: the excluded tables.
        gaps: the accepted gaps that the offsets of the newest micro-batches announced.
    """

    phase: Phase
    position: str = ""
    planned: int | None = None
    committed: int | None = None
    committed_age_s: float | None = None
    tables: tuple[TableSpeed, ...] = ()
    speed: SnapshotSpeed = SnapshotSpeed()
    excluded: tuple[ExcludedTable, ...] = ()
    gaps: tuple[Gap, ...] = ()


def pipeline_progress(
    offsets: Sequence[TimedOffset], committed: int | None, committed_at: float | None, now: float
) -> PipelineProgress:
    """Return where a pipeline is.

    Args:
        offsets: of the newest micro-batches, the newest last; speeds are measured over them.
        committed: the newest micro-batch that has ended.
        committed_at: when it ended, in seconds since 1970.
        now: the time now.

    Raises:
        CheckpointError: the newest offset has a format version that this Floodmark doesn't read.
    """
    age = None if committed_at is None else max(now - committed_at, 0.0)
    if not offsets:
        return PipelineProgress("new", committed=committed, committed_age_s=age)
    newest = offsets[-1]
    offset = Offset.from_json(dict(newest.data))
    history = [(item.written, _by_name(item)) for item in offsets]
    tables = tuple(_with_speed(table, history) for table in table_progress(newest.data))
    # A gap stays in several offsets.
    gaps = tuple(dict.fromkeys(gap for item in offsets for gap in _gaps(item)))
    return PipelineProgress(
        phase_of(newest.data),
        offset.log,
        newest.batch,
        committed,
        age,
        tables,
        _together(tables),
        offset.excluded,
        gaps,
    )


def _gaps(offset: TimedOffset) -> list[Gap]:
    stored = stored_object(offset.data, "The offset")
    # An earlier version wrote none.
    return [Gap.from_json(gap) for gap in stored.items("gaps")] if "gaps" in stored else []


def phase_of(offset: Mapping[str, Json]) -> Phase:
    """Return what a query does, from the JSON data of an offset.

    Raises:
        CheckpointError: the offset is damaged.
    """
    stored = stored_object(offset, "The offset")
    if not stored.value("log"):
        return "new"
    if stored.value("ended"):
        return "ended"
    snapshot, incremental = stored.optional_member("snapshot"), stored.optional_member("incremental")
    if snapshot is not None:
        return "blocking snapshot" if snapshot.value("blocking") else "initial snapshot"
    if stored.value("lane"):
        return "streaming + parallel snapshot"
    if incremental is None:
        return "streaming"
    if incremental.value("paused"):
        return "paused"
    return "streaming + incremental snapshot" if incremental.value("runs") or "packed" in incremental else "streaming"


_Named = dict[tuple[str, str], TableProgress]


def _by_name(offset: TimedOffset) -> _Named:
    return {(table.kind, table.name): table for table in table_progress(offset.data)}


def _with_speed(table: TableProgress, history: Sequence[tuple[float | None, _Named]]) -> TableSpeed:
    """Measure a table's speed between the newest offset and the oldest one of the same snapshot."""
    newest_at = history[-1][0]
    first, first_at, later = table, newest_at, table
    for written, tables in reversed(history[:-1]):
        earlier = tables.get((table.kind, table.name))
        if earlier is None or not _precedes(earlier, later):
            break
        first, first_at, later = earlier, written, earlier
        if earlier.state == "waiting":
            # Before that, the table only waited.
            break
    if table.state != "reading" or newest_at is None or first_at is None or newest_at <= first_at:
        return TableSpeed(table, SnapshotSpeed())
    seconds = newest_at - first_at
    speed = None
    if table.rows is not None and first.rows is not None and table.rows > first.rows:
        speed = (table.rows - first.rows) / seconds
    remaining = None
    if table.share is not None and first.share is not None and table.share > first.share:
        remaining = (1 - table.share) * seconds / (table.share - first.share)
    return TableSpeed(table, SnapshotSpeed(speed, remaining))


def _precedes(earlier: TableProgress, later: TableProgress) -> bool:
    """Return whether one state of a table can lead to another; a new snapshot of it starts from zero."""
    return (
        earlier.units == later.units
        and earlier.estimate == later.estimate
        and (earlier.rows or 0) <= (later.rows or 0)
        and (earlier.chunks or 0) <= (later.chunks or 0)
        and (earlier.units_done or 0) <= (later.units_done or 0)
    )


def _together(tables: Sequence[TableSpeed]) -> SnapshotSpeed:
    speeds = [table.speed.rows_per_second for table in tables if table.speed.rows_per_second is not None]
    if not speeds:
        return SnapshotSpeed()
    speed = sum(speeds)
    left = 0
    for item in tables:
        table = item.progress
        if table.finished:
            continue
        if table.rows is None or table.estimate is None:
            return SnapshotSpeed(speed)
        left += max(table.estimate - table.rows, 0)
    return SnapshotSpeed(speed, left / speed)
