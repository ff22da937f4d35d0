"""Renders the output of ``floodmark status``, for people and for programs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floodmark.cli.output import human_bytes, human_time, printable
from floodmark.cli.status.progress_from_offsets import PipelineProgress, SnapshotSpeed, TableSpeed
from floodmark.connectors.contract.log_status import LogStatus
from floodmark.json_data import Json
from floodmark.redact import shown_uri
from floodmark.sinks.folders import folder_name
from floodmark.sinks.state.targets_aside import TargetAside
from floodmark.snapshots.excluded_tables import NO_KEY, ExcludedTable

if TYPE_CHECKING:
    from floodmark.sinks.rebuilds.mark import RebuildMark

STATE_STYLES = {"reading": "cyan", "paused": "yellow", "read": "green", "set aside": "bold red"}


@dataclass(frozen=True)
class Lake:
    """The targets of a mirror, or of the sink jdbc.

    Attributes:
        path: where they are; empty for a sink without a path.
        aside: those that are set aside.
        rebuilt: those that are being rebuilt.
    """

    path: str
    aside: Sequence[TargetAside]
    rebuilt: Sequence[RebuildMark] = ()


OTHER = Lake("", ())
"""That of another sink."""


def as_json_data(
    name: str, file: str, found: PipelineProgress, log: LogStatus, lake: Lake = OTHER, sink: str = ""
) -> dict[str, Json]:
    """Return everything as one JSON object; ``sink`` is the sink's name among several."""
    return {
        "pipeline": name,
        "phase": found.phase,
        "position": found.position or None,
        "batch": found.planned,
        "committed_batch": found.committed,
        "committed_age_s": _rounded(found.committed_age_s),
        "log": {
            "reader": log.reader,
            "active": log.active,
            "confirmed": log.confirmed or None,
            "end": log.end or None,
            "lag_bytes": log.lag_bytes,
            "problem": log.problem or None,
        },
        "snapshot": _speed_data(found.speed) if found.tables else None,
        "tables": [
            {**asdict(item.progress), "share": _rounded(item.progress.share, 4), **_speed_data(item.speed)}
            for item in found.tables
        ],
        "gaps": [gap.to_json() for gap in found.gaps],
        "set_aside": [
            {"name": table.name, "part": table.what, "error": table.error, "resume": resume_command(file, table, sink)}
            for table in found.excluded
        ]
        + [
            {"name": target.table, "part": "target", "error": target.error, "resume": _take_back(lake.path, target)}
            for target in lake.aside
        ],
        "rebuilt": [{"name": mark.table, "error": mark.error or None} for mark in lake.rebuilt],
    }


def render(name: str, file: str, found: PipelineProgress, log: LogStatus, lake: Lake = OTHER, sink: str = "") -> Group:
    """Return what is printed for people; ``sink`` is the sink's name among several."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(no_wrap=True, style="bold")
    lines.add_column(overflow="fold")
    lines.add_row("pipeline", Text(name))
    lines.add_row("phase", Text(found.phase, style="cyan"))
    if found.position:
        lines.add_row("position", Text(found.position))
    lines.add_row("lag", _lag(log))
    lines.add_row("log reader", _reader(log))
    if log.problem:
        lines.add_row("problem", Text(log.problem, style="bold red"))
    lines.add_row("micro-batch", _batch(found))
    if found.speed.remaining_s is not None:
        lines.add_row("remaining", Text(f"about {human_time(found.speed.remaining_s)}"))
    parts: list[RenderableType] = [lines]
    if found.tables:
        parts += [Text(), _tables(found.tables)]
    for gap in found.gaps:
        parts.append(
            Text(f"\nChanges between {gap.after} and {gap.upto} were left out ({gap.option}): {gap.reason}", "bold red")
        )
    for table in found.excluded:
        left_out = "changes" if table.what == "log" else f"{table.what} snapshot"
        parts += [
            Text(f"\n{table.name} is set aside ({left_out}): {table.error}", style="bold red"),
            Text(f"When that is mended: {resume_command(file, table, sink)}"),
        ]
    for target in lake.aside:
        parts += [
            Text(
                f"\n{target.table} is set aside (target, since micro-batch {target.batch}): {target.error}", "bold red"
            ),
            Text(f"When that is mended: {_take_back(lake.path, target)}"),
        ]
    for mark in lake.rebuilt:
        command = f"floodmark rebuild {shlex.quote(file)} --table {shlex.quote(mark.table)}{_of(sink)}"
        parts += [
            Text(f"\n{mark.table} can't be rebuilt: {mark.error}", style="bold red")
            if mark.error
            else Text(f"\n{mark.table} is being rebuilt"),
            Text(f"To {'try again' if mark.error else 'go on if that was interrupted'}: {command}"),
        ]
    return Group(*parts)


def _take_back(path: str, target: TargetAside) -> str:
    if not path:
        return (
            f"delete the row of '{target.table}' from floodmark_set_aside in the target database; the table is read "
            "again with the next micro-batch"
        )
    folder = f"{shown_uri(path)}/{folder_name(target.table)}"
    return f"remove the folder {folder}; the table is read again with the next micro-batch"


def resume_command(file: str, table: ExcludedTable, sink: str = "") -> str:
    """Return the command that includes a table again, by reading it.

    Args:
        file: the pipeline file.
        table: an excluded table.
        sink: the sink's name among several.
    """
    command = f"floodmark signal {shlex.quote(file)} execute-snapshot --table {shlex.quote(re.escape(table.name))}"
    return f"{command}{_of(sink)}{' --blocking' if table.error == NO_KEY else ''}"


def _of(sink: str) -> str:
    return f" --sink {sink}" if sink else ""


def _lag(log: LogStatus) -> Text:
    if log.lag_bytes is None:
        return Text("unknown")
    return Text(f"{human_bytes(log.lag_bytes)} up to the end of the log at {log.end}")


def _reader(log: LogStatus) -> Text:
    if log.active is None:
        return Text(f"{log.reader}: " + ("unknown, the server did not answer" if not log.end else log.absent))
    return Text(f"{log.reader}: {'active' if log.active else 'not active'}, confirmed up to {log.confirmed}")


def _batch(found: PipelineProgress) -> Text:
    parts = []
    if found.committed is not None:
        age = "" if found.committed_age_s is None else f" {human_time(found.committed_age_s)} ago"
        parts.append(f"{found.committed} committed{age}")
    if found.planned is not None and found.planned != found.committed:
        parts.append(f"{found.planned} begun")
    return Text(", ".join(parts) or "none yet")


def _tables(tables: tuple[TableSpeed, ...]) -> Table:
    grid = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    counted = "units" if all(item.progress.chunks is None for item in tables) else "chunks"
    for name in ("table", "state", "done", "rows", counted, "rows/s", "remaining"):
        # On a narrow terminal only texts are wrapped: a number on two lines would look like two numbers.
        is_text = name in ("table", "state")
        grid.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for item in tables:
        table, speed = item.progress, item.speed
        state = f"{table.state}: {table.outcome}" if table.outcome else table.state
        grid.add_row(
            Text(printable(table.name)),
            Text(state, style=STATE_STYLES.get(table.state, "")),
            "" if table.share is None else f"{table.share:.0%}",
            _rows(table.rows, table.estimate),
            f"{table.units_done:,}/{table.units:,}" if table.chunks is None else f"{table.chunks:,}",
            "" if speed.rows_per_second is None else f"{speed.rows_per_second:,.0f}",
            "" if speed.remaining_s is None else human_time(speed.remaining_s),
        )
    return grid


def _rows(rows: int | None, estimate: int | None) -> str:
    if rows is None:
        return ""
    return f"~{rows:,}" if estimate is None else f"~{rows:,}/{estimate:,}"


def _speed_data(speed: SnapshotSpeed) -> dict[str, float | None]:
    return {"rows_per_second": _rounded(speed.rows_per_second), "remaining_s": _rounded(speed.remaining_s)}


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
