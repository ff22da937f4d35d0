"""Derives the progress of tables in running snapshots from the JSON data of an offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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


def table_progress(offset: Mapping[str, Any]) -> tuple[TableProgress, ...]:
    """Return the tables of an offset's snapshots, in the order in which they are read.

    What the offset's own micro-batch reads counts as read.
    """
    snapshot = offset.get("snapshot") or {}
    incremental = offset.get("incremental") or {}
    lane = (offset.get("lane") or {}).get("snapshot") or {}
    kind: Kind = "blocking" if snapshot.get("blocking") else "initial"
    paused = bool(incremental.get("paused"))
    return (
        *(_by_units(table, kind) for table in _progress(snapshot)),
        *(_by_units(table, "parallel") for table in _progress(lane)),
        *(_by_keys(run, paused) for run in (runs_of(incremental) if incremental else ())),
    )


def _progress(snapshot: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what has been read of each table; the offset doesn't list it if there are many tables."""
    if "packed" in snapshot:
        return SnapshotState.from_json(dict(snapshot)).progress()
    return snapshot.get("progress") or []


def _by_units(table: Mapping[str, Any], kind: Kind) -> TableProgress:
    done, units = int(table["done"]), int(table["units"])
    outcome, estimate = table.get("outcome", ""), _known(int(table["rows"]))
    failed = outcome in ("SQL_EXCEPTION", "SKIPPED")
    share = done / units if units else 1.0
    state: State = "set aside" if failed else "read" if done >= units else "reading" if done else "waiting"
    return TableProgress(
        table["name"],
        kind,
        state,
        outcome=outcome if failed else "",
        # Tasks report how many rows they have read only when they have ended.
        rows=int(table["read"]) if outcome else None if estimate is None else round(share * estimate),
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
