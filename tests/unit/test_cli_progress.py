"""What the command line shows of a running query."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from floodmark.cli.logs import configure_logs, readable
from floodmark.cli.output import human_bytes
from floodmark.cli.running.following import RunningRows
from floodmark.cli.running.progress import QueryProgress, SparkReport
from floodmark.cli.running.views import LogView, render
from floodmark.errors import FloodmarkError
from floodmark.snapshots.incremental.state import IncrementalState, TableRun


def report(batch: int, rows: int, end: dict[str, Any], latest: dict[str, Any] | None = None) -> SparkReport:
    """Return a progress report as Spark writes it."""
    source = {"endOffset": end, "latestOffset": latest, "numInputRows": rows}
    return SparkReport.from_json(
        {
            "batchId": batch,
            "numInputRows": rows,
            "timestamp": f"2026-01-01T00:00:{batch:02}.000Z",
            "sources": [source],
        }
    )


def snapshot(*tables: tuple[str, int, int, int]) -> dict[str, Any]:
    progress = [{"name": n, "units": units, "done": done, "rows": rows} for n, units, done, rows in tables]
    return {"v": 1, "log": "00-00", "snapshot": {"progress": progress}, "ended": False}


STREAMING = {"v": 1, "log": "0000000001E25730-00000000", "snapshot": None, "ended": False}
LATEST = {"log": "0000000001E25740-00000000", "lag_bytes": 5 << 20, "lag_seconds": 1.25, "phase": "streaming"}


def shown(progress: QueryProgress) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render("shop", progress))
    return console.export_text()


def test_snapshot_phase_has_a_bar_per_unfinished_table() -> None:
    progress = QueryProgress()
    end = snapshot(("public.a", 10, 10, 500), ("public.b", 200, 50, 12345), ("public.c", 7, 0, 0))
    progress.update(report(0, 1000, end, {"lag_bytes": 0, "lag_seconds": 0.0, "phase": "snapshot"}), now=1.0)
    text = shown(progress)
    assert "shop  initial snapshot  1,000 events" in text
    assert "public.b" in text
    assert "25% of ~12,345 rows" in text
    assert "public.a" not in text
    assert "1 of 3 tables done" in text


def incremental(*runs: TableRun, paused: bool = False) -> dict[str, Any]:
    return {**STREAMING, "incremental": IncrementalState(list(runs), paused=paused).to_json()}


def test_incremental_snapshot_has_a_bar_per_unfinished_table() -> None:
    begun: dict[str, Any] = {"begun": True, "after": ["5"], "top": ["9"], "rows": 250}
    runs = [
        TableRun("public.a", 1, "f", None, None, "", 1000, **begun),
        TableRun("public.b", 2, "f", None, None, "id > 7", 1000, **begun),
        TableRun("public.c", 3, "f", None, None, "", 1000, outcome="NO_PRIMARY_KEY"),
    ]
    progress = QueryProgress()
    progress.update(report(0, 1000, incremental(*runs), LATEST), now=1.0)
    text = shown(progress)
    assert "25% of ~1,000 rows" in text
    assert "~250 rows read" in text
    assert "public.c" not in text
    progress.update(report(1, 0, incremental(*runs, paused=True), LATEST), now=2.0)
    assert "25% of ~1,000 rows, paused" in shown(progress)


def test_a_table_that_is_read_again_is_reported_again(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    view = LogView("shop")
    progress = QueryProgress()
    done: dict[str, Any] = {"begun": True, "after": ["9"], "top": ["9"]}
    steps = [
        incremental(TableRun("public.a", 1, "f", None, None, "", 10, **done)),
        incremental(TableRun("public.a", 1, "f", None, None, "", 10)),
        incremental(TableRun("public.a", 1, "f", None, None, "", 10, **done)),
        incremental(TableRun("public.b", 2, "f", None, None, "", 10, outcome="NO_PRIMARY_KEY")),
    ]
    for number, end in enumerate(steps):
        progress.update(report(number, 0, end, LATEST))
        view.show(progress)
        view.show(progress)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    told = [(line["event"], line["table"], line.get("outcome")) for line in lines if "table" in line]
    assert told == [
        ("table snapshot finished", "public.a", None),
        ("table snapshot finished", "public.a", None),
        ("table snapshot set aside", "public.b", "NO_PRIMARY_KEY"),
    ]


def test_many_tables_stay_few_lines() -> None:
    progress = QueryProgress()
    progress.update(report(0, 1, snapshot(*((f"public.t{n}", 5, 0, 9) for n in range(50)))), now=1.0)
    assert len(shown(progress).splitlines()) < 15
    assert "42 more waiting" in shown(progress)


def test_streaming_phase_shows_rate_and_lag() -> None:
    progress = QueryProgress()
    progress.update(report(0, 100, STREAMING, LATEST), now=10.0)
    progress.update(report(1, 300, STREAMING, LATEST), now=11.0)
    progress.update(report(2, 100, STREAMING, LATEST), now=12.0)
    assert progress.rate(now=12.0) == pytest.approx(200.0)
    assert (progress.events, progress.batches) == (500, 3)
    assert "streaming" in shown(progress)
    assert "lag 5.0 MiB, 1.2 s" in shown(progress)


def test_rows_are_shown_while_the_first_micro_batch_reads_them() -> None:
    progress = QueryProgress()
    for second, rows in enumerate((0, 0, 400, 1000)):
        progress.update_running(rows, now=float(second))
    assert progress.rate(now=3.0) == pytest.approx(1000 / 3)
    assert (progress.seen, progress.phase) == (1000, "first micro-batch")
    progress.update(report(0, 1500, snapshot(("public.a", 10, 4, 1000))), now=4.0)
    assert (progress.seen, progress.events, progress.running) == (1500, 1500, 0)
    assert progress.rate(now=4.0) == pytest.approx(1500 / 4)
    progress.update_running(0, now=5.0)
    progress.update_running(300, now=6.0)
    assert (progress.seen, progress.phase) == (1800, "initial snapshot")
    assert "shop  initial snapshot  1,800 events" in shown(progress)


def test_a_snapshot_that_lets_the_log_wait_shows_the_rows_that_are_left() -> None:
    progress = QueryProgress()
    waiting = {"lag_bytes": None, "lag_seconds": None, "phase": "snapshot"}
    progress.update(report(0, 5, snapshot(("public.a", 10, 4, 1000), ("public.b", 7, 0, 50)), waiting), now=1.0)
    left = [progress.rows_left]
    text = shown(progress)
    assert "~650 rows to read" in text
    assert "lag" not in text
    progress.lag_bytes = 2048
    assert "~650 rows to read  log behind 2.0 KiB" in shown(progress)
    # Without statistics nobody knows; later there is nothing left.
    for end, latest in ((snapshot(("public.a", 10, 4, 0)), waiting), (STREAMING, LATEST)):
        progress.update(report(1, 5, end, latest), now=2.0)
        left.append(progress.rows_left)
    assert left == [650, None, None]


class Stages:
    """What Spark's status store says, as a query of PySpark leads to it."""

    def __init__(self) -> None:
        self.stages: list[tuple[int, int]] = []
        self.broken = False
        self.runId = ""
        self.descriptions: dict[int, str] = {}
        self._jsq = self
        self.sparkSession = self.sparkContext = self.statusStore = lambda: self

    def activeStages(self) -> Stages:
        if self.broken:
            raise Py4JError("no such method")
        return self

    def size(self) -> int:
        return len(self.stages)

    def apply(self, index: int) -> SimpleNamespace:
        number, rows = self.stages[index]
        text = self.descriptions.get(number, "None")
        return SimpleNamespace(stageId=lambda: number, inputRecords=lambda: rows, description=lambda: text)


def test_rows_of_the_micro_batch_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    query = Stages()
    running = RunningRows(cast(StreamingQuery, query))
    query.stages = [(1, 50)]
    assert running.read(ended=False) == 0  # it has only begun
    now[0] = 2.0
    assert running.read(ended=False) == 50
    query.stages = [(1, 70), (2, 0)]
    assert running.read(ended=False) == 70
    # The stage has ended, but not the micro-batch.
    query.stages = [(2, 0)]
    assert running.read(ended=False) == 70
    query.stages = []
    assert running.read(ended=True) == 0
    now[0] = 4.0
    query.stages = [(3, 9)]
    assert running.read(ended=False) == 9
    query.broken = True
    assert running.read(ended=False) == 0


def test_rate_falls_to_zero_when_nothing_comes() -> None:
    progress = QueryProgress()
    for second in range(5):
        progress.update(report(second, 100, STREAMING), now=float(second))
    assert progress.rate(now=100.0) == 0.0


def test_offsets_may_be_text() -> None:
    progress = QueryProgress()
    written: dict[str, Any] = {"batchId": 0, "numInputRows": 1, "sources": [{"endOffset": json.dumps(STREAMING)}]}
    progress.update(SparkReport.from_json(written))
    assert progress.position == STREAMING["log"]


@pytest.mark.parametrize(
    "written",
    [
        [],
        {"numInputRows": 1},
        {"batchId": "0"},
        {"batchId": 0, "sources": [1]},
        {"batchId": 0, "sources": [{"latestOffset": {"lag_bytes": "much"}}]},
    ],
)
def test_reports_of_another_form_are_refused(written: Any) -> None:
    with pytest.raises(FloodmarkError, match=r"`floodmark check` shows which versions of Spark"):
        SparkReport.from_json(written)


def test_reports_before_the_source_has_begun() -> None:
    progress = QueryProgress()
    progress.update(SparkReport.from_json({"batchId": 0, "numInputRows": None, "sources": []}))
    assert (progress.phase, progress.lag_bytes) == ("starting", None)


def test_reports_without_a_batch_count_no_batch() -> None:
    progress = QueryProgress()
    progress.update(report(4, 10, STREAMING))
    progress.update(report(4, 0, STREAMING))
    assert progress.batches == 1


def test_log_lines_are_json_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    view = LogView("shop")
    progress = QueryProgress()
    progress.update(report(0, 10, snapshot(("public.a", 2, 2, 5)), {"phase": "snapshot"}))
    view.show(progress)
    progress.update(report(1, 10, STREAMING, LATEST))
    view.show(progress)
    view.line("a worker's line")
    view.line('{"event": "already structured"}')
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    events = [line["event"] for line in lines]
    assert events == ["table snapshot finished", "phase", "progress", "phase", "spark", "already structured"]
    assert lines[0]["table"] == "public.a"
    assert lines[3] | {"phase": "streaming", "pipeline": "shop", "level": "info"} == lines[3]


def test_log_lines_of_other_processes_are_readable_on_a_terminal() -> None:
    line = '{"slot": "a", "event": "capture_lost", "level": "warning", "timestamp": "2026-01-01T00:00:00Z"}'
    assert readable(line) == "warning capture_lost slot=a"
    assert readable("{not json") == "{not json"
    assert readable("plain") == "plain"


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")])
def test_human_bytes(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_what_is_shown_of_several_sinks_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    view = LogView("shop")
    lake, events = QueryProgress(), QueryProgress()
    for progress in (lake, events):
        progress.update(report(0, 10, STREAMING, LATEST))
    for _ in range(2):
        view.show(lake, "lake")
        view.show(events, "events")
    view.fail("events", FloodmarkError("The disk is full.", "Free some space."))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["sink"]) for line in lines] == [
        ("phase", "lake"),
        ("progress", "lake"),
        ("phase", "events"),
        ("progress", "events"),
        ("sink failed", "events"),
    ]
    assert lines[-1]["error"] == "The disk is full. Free some space."
    assert lines[-1]["level"] == "error"


def test_rows_of_other_queries_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's description of a stage names the run of its query."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    query = Stages()
    query.runId = "a-run"
    query.descriptions = {1: "Some(lake id = x runId = a-run batch = 3)", 2: "Some(events runId = another batch = 3)"}
    running = RunningRows(cast(StreamingQuery, query), among_others=True)
    query.stages = [(1, 50), (2, 70), (3, 90)]
    now[0] = 2.0
    assert running.read(ended=False) == 50
