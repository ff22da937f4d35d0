"""``floodmark status`` against real servers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import floodmark
from floodmark.demo.embedded import free_port
from tests.conftest import Source
from tests.support.cli import CLI
from tests.support.inprocess import InProcess
from tests.support.patience import within


class Pipeline:
    """A pipeline file, and a query in this process whose offsets go to its checkpoint."""

    def __init__(self, source: Source, directory: Path) -> None:
        self.options = {
            **source.options,
            "max.batch.rows": "1000",
            "incremental.snapshot.chunk.size": "100",
            "snapshot.max.threads": "1",
            "signal.poll.interval.ms": "1",
        }
        self.file = directory / "pipeline.yaml"
        self.checkpoint = directory / "checkpoint"
        self.write({})
        self.query = InProcess(self.options)
        self._written = time.time() - 1000

    def write(self, changes: dict[str, str]) -> None:
        """Write the pipeline file with changed options."""
        content = {
            "source": {**self.options, **changes},
            "sink": {"type": "noop"},
            "checkpoint": str(self.checkpoint),
        }
        self.file.write_text(yaml.safe_dump(content), encoding="utf-8")

    def step(self) -> None:
        """Run a micro-batch, and keep its offset as Spark does; each seems to take ten seconds."""
        self.query.step()
        number = len(list((self.checkpoint / "offsets").glob("*")))
        for folder, text in (
            ("offsets", f"v1\n{{}}\n{json.dumps(self.query.offset)}"),
            ("commits", "v1\n{}"),
        ):
            file = self.checkpoint / folder / str(number)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            os.utime(file, (self._written, self._written))
        self._written += 10

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Run micro-batches until the status is as wanted; return the status."""
        deadline = time.monotonic() + within(40)
        while True:
            self.step()
            found = self.status()
            if reached(found):
                return found
            assert time.monotonic() < deadline, found

    def until_phase(self, phase: str) -> dict[str, Any]:
        """Run micro-batches until the status has a phase; return the status."""
        return self.until(lambda found: bool(found["phase"] == phase))

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*CLI, "status", str(self.file), *arguments], capture_output=True, text=True, check=False)

    def status(self) -> dict[str, Any]:
        done = self.call("--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def pipeline(source: Source, tmp_path: Path) -> Iterator[Pipeline]:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, v text)",
        "INSERT INTO t SELECT g, repeat('v', 500) FROM generate_series(1, 5000) g",
        "ANALYZE t",
    )
    made = Pipeline(source, tmp_path)
    yield made
    made.query.stop()


def test_status_of_a_pipeline_through_its_life(pipeline: Pipeline, source: Source) -> None:
    done = pipeline.call()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: There is no checkpoint in {pipeline.checkpoint} yet.")
    assert done.stderr.count("\n") == 1

    found = pipeline.until_phase("initial snapshot")
    (table,) = found["tables"]
    assert (table["name"], table["kind"], table["estimate"]) == ("public.t", "initial", 5000)
    assert 0 < table["units_done"] <= table["units"]

    found = pipeline.until(lambda found: bool(found["phase"] == "streaming" and found["log"]["active"]))
    assert (found["tables"], found["snapshot"], found["log"]["problem"]) == ([], None, None)
    assert found["log"]["reader"] == source.options["slot.name"]
    assert found["committed_batch"] == found["batch"]

    before = found["log"]["lag_bytes"]
    source.execute("INSERT INTO t SELECT g, repeat('w', 500) FROM generate_series(5001, 6000) g")
    assert pipeline.status()["log"]["lag_bytes"] > before + 500_000

    floodmark.signal(pipeline.options, "execute-snapshot", {"data-collections": ["public.t"]})
    pipeline.until_phase("streaming + incremental snapshot")
    pipeline.step()
    (table,) = pipeline.status()["tables"]
    assert (table["name"], table["kind"], table["state"]) == ("public.t", "incremental", "reading")
    assert 0 < table["share"] < 1
    assert table["chunks"] > 0
    assert table["rows_per_second"] > 0
    assert table["remaining_s"] > 0

    floodmark.signal(pipeline.options, "pause-snapshot", {})
    (table,) = pipeline.until_phase("paused")["tables"]
    assert (table["state"], table["remaining_s"]) == ("paused", None)
    assert "paused" in pipeline.call().stdout

    position = pipeline.status()["position"]
    pipeline.write({"database.port": str(free_port())})
    found = pipeline.status()
    assert found["log"]["problem"].startswith("Cannot connect to PostgreSQL")
    assert (found["position"], found["phase"], found["log"]["lag_bytes"]) == (position, "paused", None)
    text = pipeline.call().stdout
    assert "Cannot connect to PostgreSQL" in text
    assert position in text


def test_a_slot_that_is_gone_is_told(pipeline: Pipeline, source: Source) -> None:
    pipeline.until_phase("streaming")
    pipeline.query.stop()
    deadline = time.monotonic() + within(20)
    while pipeline.status()["log"]["active"]:
        assert time.monotonic() < deadline
    source.execute(f"SELECT pg_drop_replication_slot('{source.options['slot.name']}')")
    found = pipeline.status()
    assert "does not exist any more" in found["log"]["problem"]
    assert found["log"]["active"] is None
    assert "does not exist" in pipeline.call().stdout
