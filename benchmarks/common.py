"""What the benchmarks share: their scale, the server, waiting, results."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from floodmark.demo.embedded import EmbeddedPostgres

Connection = psycopg.Connection[tuple[Any, ...]]
SERVER_SETTINGS = {
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "32GB",
    "synchronous_commit": "off",
}
LEG_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Scale:
    """How much each benchmark does."""

    name: str
    drain_transactions: int
    snapshot_rows: int
    large_rows: int
    incremental_rows: int
    scale_rows: int
    latency_s: int
    latency_warm_up_s: int
    transaction_rows: int
    growth_transactions: int
    growth_tables: tuple[int, ...]
    growth_backlogs: tuple[int, ...]
    table_counts: tuple[int, ...]
    target_rows: int
    mirror_updates: int
    debezium: bool = True


FULL = Scale(
    "full",
    20_000,
    2_000_000,
    10_000_000,
    2_000_000,
    2_000_000,
    60,
    15,
    5_000_000,
    2_000,
    (1, 10, 100),
    (1, 10, 100),
    (100, 2_000, 10_000),
    5_000_000,
    2_000_000,
)
QUICK = Scale(
    "quick",
    2_000,
    200_000,
    400_000,
    200_000,
    100_000,
    10,
    10,
    300_000,
    500,
    (1, 10),
    (1, 10),
    (100, 1_000),
    1_000_000,
    300_000,
)


@dataclass
class Leg:
    """One measured run: a name, its figures in the order they are shown, and what only the file gets."""

    name: str
    figures: dict[str, float | int | str | None] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    batches: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Result:
    """One benchmark's legs."""

    benchmark: str
    scale: str
    server: str
    legs: list[Leg] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def add_ratio(self, figure: str, name: str, base: str) -> None:
        """Add to each leg the ratio of a figure to that of the leg called ``base``, if it was measured."""
        bases = [leg.figures[figure] for leg in self.legs if leg.name == base]
        for leg in self.legs:
            value = leg.figures.get(figure)
            if bases and isinstance(bases[0], float) and isinstance(value, float):
                leg.figures[name] = value / bases[0]

    def show(self) -> None:
        """Print the legs as a table, and what each kind of process needed at most."""
        columns = list(dict.fromkeys(name for leg in self.legs for name in leg.figures))
        table = Table(title=f"{self.benchmark} ({self.scale}, {self.server})", title_justify="left")
        table.add_column("")
        for column in columns:
            table.add_column(column, justify="right")
        for leg in self.legs:
            table.add_row(leg.name, *(_shown(leg.figures.get(column)) for column in columns))
        console = Console(width=None if Console().is_terminal else 200)
        console.print(table)
        for leg in self.legs:
            if leg.processes:
                peaks = ", ".join(f"{name} {size >> 20} MB" for name, size in leg.processes.items())
                console.print(f"{leg.name}, peak of each process: {peaks}", soft_wrap=True)
        for note in [*self.notes, f"load average before: {self.load:.1f} on {os.cpu_count()} CPUs"]:
            console.print(note, soft_wrap=True)

    def append_to(self, path: Path) -> None:
        """Append the result as one line of JSON."""
        document = {
            "benchmark": self.benchmark,
            "scale": self.scale,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "cpus": os.cpu_count(),
                "system": platform.platform(),
                "python": platform.python_version(),
                "load_before": self.load,
            },
            "versions": {name: version(name) for name in ("floodmark", "pyspark", "pyarrow", "numpy")},
            "server": self.server,
            "legs": [
                {"name": leg.name, **leg.figures, "processes": leg.processes, "batches": leg.batches}
                for leg in self.legs
            ],
            "notes": self.notes,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(document) + "\n")


@contextmanager
def database(major: int, **settings: str) -> Iterator[tuple[EmbeddedPostgres, Connection]]:
    """Start a private server, with more settings if wanted, and connect to it."""
    with (
        EmbeddedPostgres(major, SERVER_SETTINGS | settings) as server,
        psycopg.connect(server.conninfo(), autocommit=True) as connection,
    ):
        yield server, connection


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, interval_s: float = 0.02) -> float:
    """Poll a condition.

    Returns:
        The monotonic time at which it was first seen to hold.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(interval_s)
    return time.monotonic()


def _shown(value: float | int | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}"
