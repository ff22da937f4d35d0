"""Run a Floodmark query in a fresh process and measure it from the outside."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tests.conformance.debezium.usage import TreeSampler, Usage

from benchmarks.common import LEG_TIMEOUT_S, Connection, Leg, wait_until
from benchmarks.query import Spec
from benchmarks.workload import PUBLICATION, Backlog, copy_slot, drop_slot, slot_active
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.sinks.mirrors import OBSERVED, ROWS

ROOT = Path(__file__).parents[1]
START_TIMEOUT_S = 600.0
INTERPRETERS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
"""Without these Spark looks for data sources with the first ``python3`` of the path."""
_ROWS = {"format": "arrow", "skipped.operations": "none"}
SINKS = {"mirror": _ROWS, "jdbc": _ROWS}
"""What sinks need the source's options to be."""
WARM_UP = {"max.batch.rows": "60000"}
Mark = tuple[float, float]


@dataclass(frozen=True)
class Amount:
    """What a leg has to get through.

    Args:
        unit: the name of its rate, such as ``rows/s``.
        counted: how many of them there are.
        events: how many events they make, tombstones included if the sink gets them.
    """

    unit: str
    counted: int
    events: int


class Runs(Protocol):
    """What a process runs."""

    def dumps(self) -> str:
        """Return the process's argument."""


class QueryProcess:
    """Queries in a process of their own; use it as a context manager.

    Args:
        specs: the queries, which run one after the other.
        log: where the process's own messages go.
        module: what the process runs.
        environment: the process's own variables.
    """

    def __init__(
        self,
        specs: Sequence[Runs],
        log: Path,
        module: str = "benchmarks.query",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", module, *(spec.dumps() for spec in specs)]
        self._environment = {**os.environ, **dict.fromkeys(INTERPRETERS, sys.executable), **(environment or {})}
        self._log = log
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def __enter__(self) -> QueryProcess:
        self.launched_at = time.time()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=self._environment,
                text=True,
            )
        threading.Thread(target=self._read, daemon=True).start()
        self.sampler = TreeSampler(self.process.pid)
        self.sampler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sampler.__exit__(None, None, None)
        if value is not None:
            value.add_note(f"The query's log:\n{self._messages_of_log()}")
        self.end_input()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def wait(self, event: str, timeout_s: float) -> dict[str, Any]:
        """Wait for the process's next report, which must be of this event."""
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            message = None
        if message is None or message["event"] != event:
            raise RuntimeError(f"the query did not reach {event!r}")
        return message

    def check(self) -> None:
        """Raise an error if the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError("the query has ended")

    def start_next(self) -> dict[str, Any]:
        """Let the next query start; return its report, ``at`` which time it did."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.wait("start", START_TIMEOUT_S)

    def end_input(self) -> None:
        """Let a query that runs on stop."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _messages_of_log(self) -> str:
        """Return the end of the log, without the JVM's stack frames."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if not line.startswith("\tat ")][-60:])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)


def source_options(
    server: EmbeddedPostgres, include_list: str, slot: str, state: Path, snapshot_mode: str = "no_data"
) -> dict[str, str]:
    """Return the options of a Floodmark source."""
    return {
        **server.options("postgres"),
        "topic.prefix": "bench",
        "slot.name": slot,
        "publication.name": PUBLICATION,
        "table.include.list": include_list,
        "state.dir": str(state),
        "snapshot.mode": snapshot_mode,
    }


def drain(
    server: EmbeddedPostgres,
    connection: Connection,
    backlog: Backlog,
    scratch: Path,
    sink: str = "noop",
    options: dict[str, str] | None = None,
    warm_up: bool = False,
) -> Leg:
    """Drain a copy of the backlog's slot with an ``availableNow`` query.

    With ``warm_up`` another query of the same Spark session has read the beginning of a second copy before.

    The start-up ends when the server sees the slot in use; planning and the start of the first tasks count as
    drain.
    """
    with _copied_slot(connection, backlog.slot) as slot, _copied_slot(connection, backlog.slot, "warm") as second:
        warm = source_options(server, backlog.include_list, second, scratch / "warm") | WARM_UP
        spec = Spec(
            source_options(server, backlog.include_list, slot, scratch / "state")
            | SINKS.get(sink, {})
            | (options or {}),
            str(scratch / "checkpoint"),
            sink,
            str(scratch / "output"),
            warm_up=warm if warm_up else None,
        )
        return run_through(
            spec,
            scratch / "query.log",
            lambda: slot_active(connection, slot),
            Amount("changes/s", backlog.changes, backlog.changes if sink == "mirror" else backlog.events),
        )


def run_through(spec: Spec, log: Path, begun: Callable[[], bool], amount: Amount) -> Leg:
    """Run an ``availableNow`` query to its end and measure it.

    Args:
        spec: the query.
        log: where the process's own messages go.
        begun: whether the server sees that the query reads; what comes before is start-up.
        amount: what the query must deliver.
    """
    with QueryProcess([spec], log) as query:
        return measure(query, f"Floodmark, {spec.sink}", begun, amount)


def measure(query: QueryProcess, name: str, begun: Callable[[], bool], amount: Amount) -> Leg:
    """Measure a query from the moment at which it reads, to its end.

    Args:
        query: the process; its next query is started.
        name: the leg's.
        begun: whether the server sees that the query reads; what comes before is start-up.
        amount: what the query must deliver.
    """
    start = query.start_next()
    before = query.sampler.now()

    def reading() -> bool:
        query.check()
        return begun()

    wait_until(reading, START_TIMEOUT_S, "the query reads", 0.005)
    begin, mark = time.time(), query.sampler.now()
    progress = query.wait("finished", LEG_TIMEOUT_S)["progress"]
    usage, with_start = query.sampler.usage(since=mark), query.sampler.usage(since=before)
    expect_events(progress, amount.events)
    end = batch_end(progress)
    figures = {
        amount.unit: amount.counted / (end - begin),
        "seconds": end - begin,
        "CPU s": usage.cpu_s,
        "peak MB": usage.peak_memory >> 20,
        "start-up s": begin - start["at"],
        "session s": start["session_at"] - query.launched_at,
        "load s": start["load_s"],
        "CPU s with start": with_start.cpu_s,
        "batches": len(batches(progress)),
        "steady /s": steady_rate(progress, amount.counted / amount.events),
    }
    return Leg(name, figures, process_peaks(usage), durations(progress))


def halves(server: EmbeddedPostgres, connection: Connection, backlog: Backlog, scratch: Path) -> list[Leg]:
    """Capture a copy of the backlog's slot without decoding, then decode without capturing, on one core."""
    with _copied_slot(connection, backlog.slot) as slot:
        options = source_options(server, backlog.include_list, slot, scratch / "state")
        return run_halves(options, Amount("changes/s", backlog.changes, backlog.events))


def run_halves(options: dict[str, str], amount: Amount, *position: str) -> list[Leg]:
    """Capture without decoding, then decode without capturing.

    Args:
        options: the source's.
        amount: what must be decoded.
        position: where to start, if that is not where the source is, and what its log says about it, if it needs that.
    """
    command = [sys.executable, "-m", "benchmarks.halves", json.dumps(options), *position]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"capture or decode alone failed:\n{done.stderr[-4000:]}")
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["decode"]["events"] != amount.events:
        raise RuntimeError(f"{measured['decode']['events']:,} events were decoded, not {amount.events:,}")
    return [
        Leg(
            f"Floodmark, {half} alone",
            {
                amount.unit: amount.counted / measured[half]["seconds"],
                "seconds": measured[half]["seconds"],
                "CPU s": measured[half]["cpu"],
            },
        )
        for half in ("capture", "decode")
    ]


def snapshot(
    server: EmbeddedPostgres, connection: Connection, table: str, rows: int, scratch: Path, sink: str = "noop"
) -> Leg:
    """Take an initial snapshot of a table; the start-up ends when the server sees the first COPY."""
    options = source_options(server, f"public.{table}", "floodmark_snapshot", scratch / "state", "initial_only")
    spec = Spec(options | SINKS.get(sink, {}), str(scratch / "checkpoint"), sink, str(scratch / "output"))
    return run_through(spec, scratch / "query.log", lambda: copies(connection), Amount("rows/s", rows, rows))


def copies(connection: Connection) -> bool:
    """Return whether the server sees a COPY."""
    return connection.execute("SELECT FROM pg_stat_progress_copy LIMIT 1").fetchone() is not None


def batches(progress: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the progress reports of the micro-batches that had input."""
    return [report for report in progress if report["numInputRows"] > 0]


def batch_end(progress: list[dict[str, Any]]) -> float:
    """Return when the last micro-batch with input was through."""
    return _end(batches(progress)[-1])


def steady_rate(progress: list[dict[str, Any]], share: float) -> float | None:
    """Return the rate after the first micro-batch, or None if there was only one.

    Args:
        progress: the query's progress reports.
        share: what an event counts for, less than 1 if there are tombstones that are not to be counted.
    """
    filled = batches(progress)
    if len(filled) < 2:
        return None
    rows = sum(map(delivered, filled[1:]))
    return float(rows * share / (_end(filled[-1]) - _end(filled[0])))


def durations(progress: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what each micro-batch with input spent its time on, in milliseconds."""
    return [{"rows": delivered(report), **report["durationMs"]} for report in batches(progress)]


def delivered(report: dict[str, Any]) -> int:
    """Return how many events a micro-batch had; a mirror counts them itself, since Spark counts blocks of them."""
    observed = report.get("observedMetrics", {}).get(OBSERVED)
    return int(report["numInputRows"] if observed is None else observed[ROWS] or 0)


def expect_events(progress: list[dict[str, Any]], events: int) -> None:
    """Raise an error unless the query delivered exactly so many events."""
    seen = sum(map(delivered, progress))
    if seen != events:
        raise RuntimeError(f"{seen:,} events were delivered, {events:,} were expected")


def process_peaks(usage: Usage) -> dict[str, int]:
    """Return the largest peak memory of each kind of process."""
    peaks: dict[str, int] = {}
    for process in usage.processes:
        peaks[process.label] = max(peaks.get(process.label, 0), process.peak_rss)
    return peaks


@contextmanager
def _copied_slot(connection: Connection, source: str, purpose: str = "floodmark") -> Iterator[str]:
    slot = f"{source}_{purpose}"
    copy_slot(connection, source, slot)
    try:
        yield slot
    finally:
        wait_until(lambda: not slot_active(connection, slot), 60, "the query's slot is free")
        drop_slot(connection, slot)


def _timestamp(report: dict[str, Any]) -> float:
    return datetime.fromisoformat(report["timestamp"]).timestamp()


def _end(report: dict[str, Any]) -> float:
    return _timestamp(report) + float(report["durationMs"]["triggerExecution"]) / 1000
