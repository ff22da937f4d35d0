"""``floodmark run`` with a real server and Spark, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa
import pytest
import yaml

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.demo.event_tail import EventTail
from tests.support.cli import CLI
from tests.support.patience import within

PATIENCE_S = within(90.0)

pytestmark = pytest.mark.slow


@pytest.fixture
def server(pg18: EmbeddedPostgres) -> EmbeddedPostgres:
    return pg18


@pytest.fixture
def conn(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection to a database of the test's own, with a small table."""
    name = f"run_{abs(hash(request.node.name))}"
    with psycopg.connect(server.conninfo(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("INSERT INTO orders SELECT n, 'first' FROM generate_series(1, 100) n")
        yield connection


class Pipeline:
    """A pipeline file in a directory, and the processes that run it."""

    def __init__(self, server: EmbeddedPostgres, dbname: str, directory: Path) -> None:
        self.directory = directory
        self.content: dict[str, Any] = {
            "source": {
                **server.options(dbname),
                "topic.prefix": "t",
                "state.dir": str(directory / "state"),
                "slot.name": dbname,
                "slot.max.retries": 0,
            },
            "sink": {"type": "json", "path": str(directory / "events")},
            "checkpoint": str(directory / "checkpoint"),
            "spark": {"spark.master": "local[1]"},
        }

    @contextmanager
    def started(self, **changes: Any) -> Iterator[subprocess.Popen[str]]:
        file = self.directory / "pipeline.yaml"
        file.write_text(yaml.safe_dump({**self.content, **changes}), encoding="utf-8")
        errors = self.directory / "stderr"
        with errors.open("w") as stderr:
            process = subprocess.Popen(
                [*CLI, "run", str(file)], stdout=subprocess.PIPE, stderr=stderr, text=True, env=dict(os.environ)
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def finish(self, **changes: Any) -> tuple[int, str]:
        """Run until the process ends; return its exit code and standard output."""
        with self.started(**changes) as process:
            output, _ = process.communicate(timeout=PATIENCE_S)
            return process.returncode, output

    @property
    def stderr(self) -> str:
        return (self.directory / "stderr").read_text(encoding="utf-8")

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stderr.splitlines()]

    def keys(self) -> list[int]:
        """Return the keys of all finished events, in the order of their positions."""
        events = [json.loads(line) for line in EventTail(self.directory / "events").new()]
        return [json.loads(event["key"])["id"] for event in sorted(events, key=lambda event: str(event["position"]))]

    def streams(self) -> bool:
        """Return whether the snapshot is over."""
        return streams(self.directory / "checkpoint")


def streams(checkpoint: Path) -> bool:
    """Return whether a query's snapshot is over, by the newest micro-batch that has been committed."""
    batches = sorted((entry.name for entry in (checkpoint / "commits").glob("[0-9]*")), key=int)
    if not batches:
        return False
    lines = (checkpoint / "offsets" / batches[-1]).read_text(encoding="utf-8").splitlines()
    return json.loads(lines[-1])["snapshot"] is None


@pytest.fixture
def pipeline(server: EmbeddedPostgres, conn: psycopg.Connection[Any], tmp_path: Path) -> Pipeline:
    return Pipeline(server, conn.info.dbname, tmp_path)


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, "the process ended early"
        assert time.monotonic() < deadline
        time.sleep(0.1)


AVAILABLE_NOW = {"availableNow": True}


def test_available_now_ends_by_itself_and_resumes(pipeline: Pipeline, conn: psycopg.Connection[Any]) -> None:
    code, output = pipeline.finish(trigger=AVAILABLE_NOW)
    assert (code, output) == (0, ""), pipeline.stderr
    assert sorted(pipeline.keys()) == list(range(1, 101))
    events = [entry["event"] for entry in pipeline.log()]
    assert (events[0], events[-1]) == ("starting", "finished")
    assert pipeline.log()[-1]["events"] == 100
    conn.execute("INSERT INTO orders SELECT n, 'second' FROM generate_series(101, 110) n")
    assert pipeline.finish(trigger=AVAILABLE_NOW)[0] == 0, pipeline.stderr
    assert sorted(pipeline.keys()) == list(range(1, 111))


def test_a_signal_stops_after_the_current_batch(pipeline: Pipeline, conn: psycopg.Connection[Any]) -> None:
    """Nothing is lost and nothing comes twice when the query goes on."""
    with pipeline.started() as process:
        wait_for(pipeline.streams, process)
        conn.execute("INSERT INTO orders SELECT n, 'second' FROM generate_series(101, 200) n")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0, pipeline.stderr
    assert pipeline.log()[-1]["event"] == "stopped"
    with pipeline.started() as process:
        wait_for(lambda: len(pipeline.keys()) == 200, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, pipeline.stderr
    assert pipeline.log()[-1]["event"] == "stopped"
    assert sorted(pipeline.keys()) == list(range(1, 201))


def test_the_second_signal_stops_at_once(pipeline: Pipeline) -> None:
    # While Spark starts, nothing can be stopped cleanly: the first signal waits.
    with pipeline.started(trigger={"processingTime": "1 hour"}) as process:
        wait_for(lambda: '"starting"' in pipeline.stderr, process)
        query = psutil.Process(process.pid)
        wait_for(query.children, process)
        children = query.children(recursive=True)
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        started = time.monotonic()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert time.monotonic() - started < 5
    assert not psutil.wait_procs(children, PATIENCE_S)[1]


@pytest.mark.long
def test_initial_only_ends_by_itself(pipeline: Pipeline) -> None:
    source = {**pipeline.content["source"], "snapshot.mode": "initial_only"}
    assert pipeline.finish(source=source)[0] == 0, pipeline.stderr
    assert len(pipeline.keys()) == 100


@pytest.mark.long
def test_console_sink_prints_events(pipeline: Pipeline) -> None:
    code, output = pipeline.finish(sink={"type": "console", "options": {"numRows": 3}}, trigger={"once": True})
    assert code == 0, pipeline.stderr
    assert "t.public.orders" in output
    assert "only showing top 3 rows" in output


def test_parquet_sink(pipeline: Pipeline) -> None:
    import pyarrow.parquet as pq

    path = pipeline.directory / "events"
    sink = {"type": "parquet", "path": str(path), "options": {"compression": "zstd"}}
    assert pipeline.finish(sink=sink, trigger=AVAILABLE_NOW)[0] == 0, pipeline.stderr
    rows = [row for file in path.glob("part-*.parquet") for row in pq.read_table(file).to_pylist()]
    assert len(rows) == 100
    assert {row["topic"] for row in rows} == {"t.public.orders"}


@pytest.mark.long
def test_mirror_sink(pipeline: Pipeline, conn: psycopg.Connection[Any]) -> None:
    from deltalake import DeltaTable, QueryBuilder

    path = pipeline.directory / "lake"
    sink = {"type": "mirror", "path": str(path)}
    assert pipeline.finish(sink=sink, trigger=AVAILABLE_NOW)[0] == 0, pipeline.stderr
    # The rows of the table count, not the blocks that Spark sees.
    assert pipeline.log()[-1]["events"] == 100
    conn.execute("DELETE FROM orders WHERE id > 10")
    assert pipeline.finish(sink=sink, trigger=AVAILABLE_NOW)[0] == 0, pipeline.stderr
    assert pipeline.log()[-1]["events"] == 90
    query = QueryBuilder().register("t", DeltaTable(str(path / "public.orders"))).execute("SELECT id FROM t")
    assert sorted(row["id"] for row in pa.table(query.read_all()).to_pylist()) == list(range(1, 11))


def test_a_mistake_that_the_source_process_finds_is_one_line(pipeline: Pipeline) -> None:
    code, output = pipeline.finish(source={**pipeline.content["source"], "table.include.list": r"public\.order"})
    assert (code, output) == (1, "")
    starting, error = pipeline.stderr.splitlines()
    assert json.loads(starting)["event"] == "starting"
    assert error.startswith("error: No table of the database")


def test_two_queries_on_one_slot(pipeline: Pipeline, server: EmbeddedPostgres, conn: psycopg.Connection[Any]) -> None:
    second = Pipeline(server, conn.info.dbname, pipeline.directory / "second")
    second.directory.mkdir()
    with pipeline.started() as process:
        wait_for(lambda: conn.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone(), process)
        assert second.finish()[0] == 1
        assert second.stderr.splitlines()[-1].startswith("error: The replication slot")
        assert "in use" in second.stderr
        assert process.poll() is None
