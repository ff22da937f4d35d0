"""Shows a running query: a live display on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import structlog
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from floodmark.cli.logs import readable
from floodmark.cli.output import human_bytes, printable
from floodmark.cli.running.progress import LETS_THE_LOG_WAIT, QueryProgress
from floodmark.cli.status.tables import TableProgress

LOG_EVERY_S = 10.0
SHOWN_TABLES = 8
BAR_WIDTH = 30


class View(Protocol):
    """Shows the state of a pipeline's queries."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, progress: QueryProgress, sink: str = "") -> None:
        """Show the state of a query; called several times a second.

        Args:
            progress: the state.
            sink: the sink's name among several; empty if there is only one.
        """

    def say(self, event: str, **details: object) -> None:
        """Report a single event."""

    def fail(self, sink: str, error: Exception) -> None:
        """Report that one of several sinks has failed."""

    def line(self, text: str) -> None:
        """Pass on a line of another program. Safe to call from another thread."""


@dataclass
class _Logged:
    """What has been logged of a query: when the next line about its progress is due, its phase, tables and events."""

    due: float = 0.0
    phase: str = ""
    tables: set[tuple[str, str]] = field(default_factory=set)
    events: int = -1


class LogView:
    """Writes structured log lines: each event, and every few seconds the progress of each query."""

    def __init__(self, name: str) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(pipeline=name)
        self._logged: dict[str, _Logged] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, progress: QueryProgress, sink: str = "") -> None:
        """Log a change of phase, each table whose snapshot is finished, and the state now and then."""
        if progress.batch < 0 and not progress.running:
            return
        log = self._log.bind(sink=sink) if sink else self._log
        logged = self._logged.setdefault(sink, _Logged())
        for table in progress.tables:
            scan = (table.kind, table.name)
            if not table.finished:
                # The table is being read again.
                logged.tables.discard(scan)
            elif scan not in logged.tables:
                logged.tables.add(scan)
                if table.outcome:
                    log.warning("table snapshot set aside", table=table.name, outcome=table.outcome)
                else:
                    log.info("table snapshot finished", table=table.name)
        if progress.phase != logged.phase:
            logged.phase = progress.phase
            log.info("phase", phase=progress.phase, position=progress.position)
        if time.monotonic() >= logged.due and progress.seen != logged.events:
            logged.due = time.monotonic() + LOG_EVERY_S
            logged.events = progress.seen
            log.info(
                "progress",
                phase=progress.phase,
                batch=progress.batch,
                events=progress.seen,
                events_per_second=round(progress.rate()),
                lag_bytes=progress.lag_bytes,
                lag_seconds=progress.lag_seconds,
                rows_left=progress.rows_left,
                position=progress.position,
            )

    def say(self, event: str, **details: object) -> None:
        """Log an event."""
        self._log.info(event, **details)

    def fail(self, sink: str, error: Exception) -> None:
        """Log the error."""
        self._log.error("sink failed", sink=sink, error=str(error))

    def line(self, text: str) -> None:
        """Log the line as a warning, or pass it on unchanged if it is a structured log line itself."""
        if text.startswith("{"):
            print(text, file=sys.stderr, flush=True)
        else:
            self._log.warning("spark", text=text)


class LiveView:
    """Shows one line about each query, and below it a bar for each table that a snapshot still has to read."""

    def __init__(self, name: str, console: Console) -> None:
        self._name = name
        self._shown: dict[str, Group] = {}
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, progress: QueryProgress, sink: str = "") -> None:
        """Redraw."""
        self._shown[sink] = render(f"{self._name}.{sink}" if sink else self._name, progress)
        self._live.update(Group(*self._shown.values()), refresh=True)

    def say(self, event: str, **details: object) -> None:
        """Print a line above the display."""
        self._console.print(Text(printable(" ".join([event, *(f"{name}={value}" for name, value in details.items())]))))

    def fail(self, sink: str, error: Exception) -> None:
        """Print the error above the display."""
        self._console.print(Text(printable(f"sink failed sink={sink} error={error}"), style="bold red"))

    def line(self, text: str) -> None:
        """Print the line above the display."""
        self._console.print(Text(readable(text), style="dim"))


def render(name: str, progress: QueryProgress) -> Group:
    """Return what the live display shows."""
    parts = [
        (name, "bold"),
        (progress.phase, "cyan"),
        (f"{progress.seen:,} events", ""),
        (f"{progress.rate():,.0f}/s", ""),
    ]
    if progress.rows_left is not None:
        parts.append((f"~{progress.rows_left:,} rows to read", ""))
    if progress.lag_bytes is not None:
        seconds = "" if progress.lag_seconds is None else f", {progress.lag_seconds:,.1f} s"
        word = "log behind" if progress.phase in LETS_THE_LOG_WAIT else "lag"
        parts.append((f"{word} {human_bytes(progress.lag_bytes)}{seconds}", ""))
    head = Text("  ").join([Text(text, style=style) for text, style in parts])
    reading = [table for table in progress.tables if not table.finished]
    if not reading:
        return Group(head)
    grid = Table.grid(padding=(0, 1))
    for table in reading[:SHOWN_TABLES]:
        share = table.share or 0.0
        bar = ProgressBar(total=1.0, completed=share, width=BAR_WIDTH)
        grid.add_row(Text(printable(table.name)), bar, "" if table.share is None else f"{share:4.0%}", _amount(table))
    finished = len(progress.tables) - len(reading)
    counts = f"{finished} of {len(progress.tables)} tables done"
    waiting = len(reading) - SHOWN_TABLES
    return Group(head, grid, Text(counts + (f", {waiting} more waiting" if waiting > 0 else ""), style="dim"))


def _amount(table: TableProgress) -> str:
    paused = ", paused" if table.state == "paused" else ""
    if table.estimate is not None:
        return f"of ~{table.estimate:,} rows{paused}"
    return f"~{table.rows:,} rows read{paused}" if table.rows is not None else ""
