"""Derives the progress of tables in running snapshots from the JSON data of an offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from floodmark.json_data import Json, JsonObject, stored_object
from floodmark.snapshots.incremental.state import TableRun, runs_of
from floodmark.snapshots.state import SnapshotState

Kind = Literal["initial", "blocking", "incremental", "parallel"]
State = Literal["waiting", "reading", "paused", "read", "set aside"]
# An estimate can be exceeded, so a table is shown as complete only when its end has been reached.
ALMOST = 0.99


@dataclass(frozen=True)
class TableProgress:
    """The progress of one table.

    Attributes:
        name: ``schema.table``.
        kind: the kind of the snapshot.
        state: what happens to the table.
        outcome: why it was excluded; empty if it wasn't.
        rows: how many rows have been read, roughly; None if unknown.
        estimate: how many rows there are to read, roughly; None if unknown.
        share: the fraction that has been read, from 0 to 1; None if unknown.
        chunks: in an incremental snapshot, how many chunks have been read.
        units_done: in other snapshots, how many units (PostgreSQL: pages) have been read.
        units: how many units there are.
    """

    name: str
    kind: Kind
    state: State
    outcome: str = ""
    rows: int | None = None
    estimate: int | None = None
    share: float | None = None
    chunks: int | None = None
    units_done: int | None = None
    units: int | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing more of the table is read."""
        return self.state in ("read", "set aside")


def table_progress(offset: Mapping[str, Json]) -> tuple[TableProgress, ...]:
    """Return the tables of an offset's snapshots, in the order in which they are read.

    What the offset's own micro-batch reads counts as read.

    Raises:
        CheckpointError: the offset is damaged.
    """
    stored = stored_object(offset, "The offset")
    snapshot, catch_up = stored.optional_member("snapshot"), stored.optional_member("lane")
    new = None if catch_up is None else catch_up.optional_member("snapshot")
    incremental = stored.optional_member("incremental")
    kind: Kind = "blocking" if snapshot is not None and snapshot.value("blocking") else "initial"
    return (
        *(_by_units(table, kind) for table in _progress(snapshot)),
        *(_by_units(table, "parallel") for table in _progress(new)),
        *(() if incremental is None else _runs(incremental)),
    )


def _progress(snapshot: JsonObject | None) -> list[JsonObject]:
    """Return what has been read of each table; the offset doesn't list it if there are many tables."""
    if snapshot is None:
        return []
    if "packed" in snapshot:
        tables = SnapshotState.from_json(snapshot.content()).progress()
        return [stored_object(table, "A table of the snapshot") for table in tables]
    return snapshot.members("progress") if snapshot.value("progress") else []


def _runs(incremental: JsonObject) -> Iterator[TableProgress]:
    paused = bool(incremental.value("paused"))
    return (_by_keys(run, paused) for run in runs_of(incremental))


def _by_units(table: JsonObject, kind: Kind) -> TableProgress:
    done, units = table.integer("done"), table.integer("units")
    outcome, estimate = table.optional_text("outcome") or "", _known(table.integer("rows"))
    failed = outcome in ("SQL_EXCEPTION", "SKIPPED")
    share = done / units if units else 1.0
    state: State = "set aside" if failed else "read" if done >= units else "reading" if done else "waiting"
    return TableProgress(
        table.text("name"),
        kind,
        state,
        outcome=outcome if failed else "",
        # Tasks report how many rows they have read only when they have ended.
        rows=table.integer("read", 0) if outcome else None if estimate is None else round(share * estimate),
        estimate=estimate,
        share=None if failed else share,
        units_done=done,
        units=units,
    )


def _by_keys(run: TableRun, paused: bool) -> TableProgress:
    # The estimate is of the whole table; how many of its rows fulfil a condition is unknown.
    estimate = None if run.condition else _known(run.estimate)
    if run.outcome:
        share = None
    elif run.finished:
        share = 1.0
    else:
        share = None if estimate is None else min(run.rows / estimate, ALMOST)
    return TableProgress(
        run.name, "incremental", _state(run, paused), run.outcome, run.rows, estimate, share, chunks=run.chunks
    )


def _state(run: TableRun, paused: bool) -> State:
    if run.outcome:
        return "set aside"
    if run.finished:
        return "read"
    if paused:
        return "paused"
    return "reading" if run.begun else "waiting"


def _known(rows: int) -> int | None:
    """Return an estimate; a table that was never analyzed has none."""
    return rows if rows > 0 else None
