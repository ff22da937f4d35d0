"""What ``floodmark status`` makes of a checkpoint."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from floodmark.capture.gaps import Gap
from floodmark.cli.output import human_time
from floodmark.cli.status.command import read_progress
from floodmark.cli.status.progress_from_offsets import PipelineProgress, SnapshotSpeed, TimedOffset, pipeline_progress
from floodmark.cli.status.view import as_json_data, render
from floodmark.connectors.contract.log_status import LogStatus
from floodmark.errors import CheckpointError
from floodmark.snapshots.incremental.state import IncrementalState, TableRun
from floodmark.snapshots.state import ALL, SnapshotState, TableState
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.stream.offsets import Offset

LOG = "0000000001E25730-00000000"


def offset(**fields: Any) -> dict[str, Any]:
    return Offset({"system": "1"}, LOG, **fields).to_json()


def snapshot(*tables: tuple[str, int, int, int], blocking: bool = False) -> SnapshotState:
    """Return a snapshot of tables: name, units, units done, rows."""
    states = [
        TableState(name, 1, "f", units, rows, [(done, units, ALL)] if done < units else [])
        for name, units, done, rows in tables
    ]
    return SnapshotState(LOG, {}, ["v"], states, blocking=blocking)


def run(name: str, rows: int, estimate: int, **fields: Any) -> TableRun:
    begun: dict[str, Any] = {"begun": True, "after": ["5"], "top": ["9"], "chunks": rows // 100} if rows else {}
    return TableRun(name, 1, "f", None, None, rows=rows, **{"condition": "", "estimate": estimate, **begun, **fields})


def stand(*data: dict[str, Any], every: float = 10.0) -> PipelineProgress:
    offsets = [TimedOffset(n, item, n * every) for n, item in enumerate(data)]
    return pipeline_progress(offsets, len(data) - 2, 100.0, 130.0)


@pytest.mark.parametrize(
    ("data", "phase"),
    [
        (Offset({}, "").to_json(), "new"),
        (offset(snapshot=snapshot(("public.a", 10, 4, 100))), "initial snapshot"),
        (offset(snapshot=snapshot(("public.a", 10, 4, 100), blocking=True)), "blocking snapshot"),
        (offset(), "streaming"),
        (offset(incremental=IncrementalState([run("public.a", 100, 500)])), "streaming + incremental snapshot"),
        (offset(incremental=IncrementalState([run("public.a", 100, 500)], paused=True)), "paused"),
        (offset(ended=True), "ended"),
    ],
)
def test_phase(data: dict[str, Any], phase: str) -> None:
    assert stand(data).phase == phase


def test_a_pipeline_without_offsets_is_new() -> None:
    found = pipeline_progress([], None, None, 5.0)
    assert (found.phase, found.position, found.planned, found.tables) == ("new", "", None, ())


def test_batches_and_ages() -> None:
    found = stand(offset(), offset(), offset())
    assert (found.planned, found.committed, found.committed_age_s, found.position) == (2, 1, 30.0, LOG)


def test_an_initial_snapshot_is_counted_in_units() -> None:
    tables = stand(offset(snapshot=snapshot(("a", 10, 10, 50), ("b", 200, 50, 1000), ("c", 7, 0, 0), ("d", 0, 0, 0))))
    found = [item.progress for item in tables.tables]
    assert [(t.state, t.rows, t.estimate, t.share) for t in found] == [
        ("read", 50, 50, 1.0),
        ("reading", 250, 1000, 0.25),
        ("waiting", None, None, 0.0),
        ("read", None, None, 1.0),
    ]
    assert (found[1].units_done, found[1].units, found[1].kind) == (50, 200, "initial")


def test_an_incremental_snapshot_is_counted_in_rows() -> None:
    runs = [
        run("a", 900, 900, after=["9"]),
        run("b", 300, 1200),
        run("c", 300, 1200, condition="id > 5"),
        run("d", 800, 700),
        run("e", 0, 10),
        run("f", 0, 10, outcome="NO_PRIMARY_KEY"),
    ]
    found = [item.progress for item in stand(offset(incremental=IncrementalState(runs))).tables]
    assert [(t.state, t.rows, t.share, t.outcome) for t in found] == [
        ("read", 900, 1.0, ""),
        ("reading", 300, 0.25, ""),
        ("reading", 300, None, ""),
        ("reading", 800, 0.99, ""),
        ("waiting", 0, 0.0, ""),
        ("set aside", 0, None, "NO_PRIMARY_KEY"),
    ]
    assert found[1].chunks == 3
    paused = stand(offset(incremental=IncrementalState(runs, paused=True))).tables
    assert [item.progress.state for item in paused[:3]] == ["read", "paused", "paused"]


def test_pace_of_an_incremental_snapshot() -> None:
    def at(rows: int) -> dict[str, Any]:
        return offset(incremental=IncrementalState([run("a", rows, 1000), run("b", 0, 500)]))

    found = stand(at(0), at(100), at(200), at(400))
    assert astuple(found.tables[0].speed) == pytest.approx((400 / 30, 600 * 30 / 400))
    assert found.tables[1].speed == SnapshotSpeed()
    assert found.speed.remaining_s == pytest.approx(1100 * 30 / 400)


def test_pace_of_an_initial_snapshot() -> None:
    def at(first: int, second: int) -> dict[str, Any]:
        return offset(snapshot=snapshot(("a", 10, first, 100), ("b", 100, second, 2000)))

    found = stand(at(5, 0), at(10, 0), at(10, 50))
    # The time in which the table waited doesn't count.
    assert astuple(found.tables[1].speed) == pytest.approx((100.0, 10.0))
    assert found.tables[0].speed == SnapshotSpeed()


@pytest.mark.parametrize(
    "earlier",
    [
        [offset()],
        [offset(incremental=IncrementalState([run("a", 900, 1000)]))],
        [offset(incremental=IncrementalState([run("a", 100, 600)]))],
        [],
    ],
)
def test_no_pace_without_an_earlier_state_of_the_same_snapshot(earlier: list[dict[str, Any]]) -> None:
    found = stand(*earlier, offset(incremental=IncrementalState([run("a", 300, 1000)])))
    assert (found.tables[0].speed, found.speed) == (SnapshotSpeed(), SnapshotSpeed())


def test_no_pace_without_times() -> None:
    data = [offset(incremental=IncrementalState([run("a", rows, 1000)])) for rows in (100, 200)]
    found = pipeline_progress([TimedOffset(n, item, None) for n, item in enumerate(data)], None, None, 5.0)
    assert (found.tables[0].speed, found.committed_age_s) == (SnapshotSpeed(), None)


def test_no_common_end_if_a_table_has_no_estimate() -> None:
    def at(rows: int) -> dict[str, Any]:
        return offset(incremental=IncrementalState([run("a", rows, 1000), run("b", 0, 0)]))

    assert stand(at(100), at(200)).speed == SnapshotSpeed(10.0)


def test_other_versions_are_refused() -> None:
    with pytest.raises(CheckpointError, match="format version 1"):
        stand({**offset(), "v": 1})


def write(checkpoint: Path, *offsets: dict[str, Any], committed: int) -> None:
    """Write a checkpoint as Spark does, a micro-batch every ten seconds."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"x"}')
    for batch, data in enumerate(offsets):
        file = checkpoint / "offsets" / str(batch)
        file.write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(data)}')
        os.utime(file, (1000 + batch * 10, 1000 + batch * 10))
        (checkpoint / "offsets" / f".{batch}.crc").write_text("x")
        if batch <= committed:
            (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_checkpoint_is_read_in_the_order_of_the_batches(tmp_path: Path) -> None:
    runs = [offset(incremental=IncrementalState([run("a", 10 * n, 1000)])) for n in range(12)]
    write(tmp_path, *runs, committed=10)
    for uri in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        found = read_progress(uri)
        assert (found.planned, found.committed) == (11, 10)
        assert found.committed_age_s is not None
        assert found.committed_age_s < 60
        assert found.tables[0].speed.rows_per_second == pytest.approx(1.0)


def test_a_query_that_has_planned_nothing_is_new(tmp_path: Path) -> None:
    write(tmp_path, committed=-1)
    assert read_progress(str(tmp_path)).phase == "new"


def test_what_is_not_a_checkpoint(tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(CheckpointError) as info:
            read_progress(str(path))
        assert "\n" not in str(info.value)
        return str(info.value)

    assert "There is no checkpoint in" in refused(tmp_path / "missing")
    assert "There is no checkpoint in" in refused(tmp_path)
    (tmp_path / "part-0.json").write_text("{}")
    assert "is not the checkpoint of a query" in refused(tmp_path)
    assert "is not the checkpoint of a query" in refused(tmp_path / "part-0.json")
    write(tmp_path / "other", {"topic": {"0": 5}}, committed=0)
    assert "is not the checkpoint of a Floodmark query" in refused(tmp_path / "other")
    with pytest.raises(CheckpointError, match="cannot be opened"):
        Checkpoint("nosuch://x")


def printed(found: PipelineProgress, log: LogStatus, width: int = 120) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(render("shop", "shop.yaml", found, log))
    return console.export_text()


RUNNING = LogStatus("shop", True, "0/1E25730", "0/1E25F30", 2048)


def test_printed_for_people() -> None:
    runs = [[run("public.a", rows, 1000), run("public.b", 0, 9, outcome="NO_PRIMARY_KEY")] for rows in (100, 400)]
    text = printed(stand(*(offset(incremental=IncrementalState(item)) for item in runs)), RUNNING)
    assert "streaming + incremental snapshot" in text
    assert "2.0 KiB up to the end of the log at 0/1E25F30" in text
    assert "shop: active, confirmed up to 0/1E25730" in text
    assert "0 committed 30 s ago, 1 begun" in text
    assert "~400/1,000" in text
    assert "set aside: NO_PRIMARY_KEY" in text


def test_numbers_stay_whole_on_a_narrow_terminal() -> None:
    runs = [run("public.customers_of_the_shop", 400, 1_000_000), run("b", 0, 9, outcome="NO_PRIMARY_KEY")]
    text = printed(stand(offset(incremental=IncrementalState(runs))), RUNNING, width=80)
    assert "~400/1,000,000" in text
    assert max(map(len, text.splitlines())) <= 80


def test_units_are_shown_of_an_initial_snapshot() -> None:
    text = printed(stand(offset(snapshot=snapshot(("public.a", 100, 20, 10000)))), RUNNING)
    assert "20/100" in text
    assert "units" in text


def test_the_rest_is_shown_without_a_server() -> None:
    text = printed(stand(offset()), LogStatus("shop", problem="Cannot connect to PostgreSQL at x."))
    assert "Cannot connect to PostgreSQL at x." in text
    assert "shop: unknown, the server did not answer" in text
    assert LOG in text


def test_printed_for_programs() -> None:
    found = stand(*(offset(incremental=IncrementalState([run("public.a", rows, 1000)])) for rows in (100, 400)))
    data = json.loads(json.dumps(as_json_data("shop", "shop.yaml", found, RUNNING)))
    assert data["phase"] == "streaming + incremental snapshot"
    assert (data["batch"], data["committed_batch"], data["committed_age_s"]) == (1, 0, 30.0)
    said = {name: value for name, value in asdict(RUNNING).items() if name != "absent"}
    assert data["log"] == {**said, "problem": None}
    assert data["snapshot"] == {"rows_per_second": 30.0, "remaining_s": 20.0}
    assert data["tables"][0] | {"share": 0.4, "remaining_s": 20.0, "chunks": 4} == data["tables"][0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.7, "1 min 0 s"), (90, "1 min 30 s"), (3700, "1 h 1 min"), (200000, "2 d 7 h")],
)
def test_human_time(seconds: float, text: str) -> None:
    assert human_time(seconds) == text


def test_gaps_are_named_once() -> None:
    gap = Gap("0001", "0002", "The replication slot was dropped.", "snapshot.mode=when_needed")
    found = stand(offset(), offset(gaps=(gap,)), offset(gaps=(gap,)), offset())
    assert found.gaps == (gap,)
    log = LogStatus("slot")
    assert as_json_data("shop", "p.yaml", found, log)["gaps"] == [gap.to_json()]
    console = Console(width=200, record=True)
    console.print(render("shop", "p.yaml", found, log))
    text = console.export_text()
    assert text.count("Changes between 0001 and 0002 were left out (snapshot.mode=when_needed): The replication") == 1
