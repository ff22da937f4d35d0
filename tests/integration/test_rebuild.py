"""``floodmark rebuild``: a table is read again while the stream goes on, and its target replaced at once."""

from __future__ import annotations

import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import floodmark
from floodmark.errors import ConfigError, FloodmarkError, SourceStateError, TargetError
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.replacing import Replacement
from floodmark.spark.pipelines.model import Pipeline
from floodmark.verification.progress import QueryProgress, reads
from tests.conftest import Source
from tests.integration.test_mirror import pipeline_of, rows_of, run
from tests.integration.test_verify import changes, one, running, streaming, verify
from tests.support.cli import CLI
from tests.support.mysql import MysqlServer
from tests.support.patience import within
from tests.support.planting import Planter
from tests.support.repeating import repeated

pytestmark = pytest.mark.slow
TABLE, WAIT_S = "public.a", within(60.0)


def fill(source: Source, rows: int = 5000) -> None:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO a SELECT g, 'v' || g, repeat('b' || g, 900) FROM generate_series(1, {rows}) g",
    )


def rebuild(pipeline: Pipeline, table: str = TABLE, **wanted: Any) -> floodmark.Rebuilt:
    assert pipeline.sink.path is not None
    return floodmark.rebuild(
        pipeline.source, pipeline.sink.path, pipeline.checkpoint, table, **{"wait_s": WAIT_S, **wanted}
    )


def spoil(folder: Path) -> None:
    """Make a table wrong in a way that no change mends."""
    planter = Planter(folder)
    planter.lose([1, 2])
    planter.spoil(3, v="other")
    planter.double(4)
    planter.add(5, id=-1)


def readers(folder: Path) -> AbstractContextManager[list[tuple[int, bool, bool]]]:
    """Read a table all the time: its version, and whether it has the row that only the old and only the new one has."""

    def read() -> tuple[int, bool, bool]:
        table = DeltaTable(str(folder))
        ids = {row["id"] for row in rows_of(folder, "id")}
        return table.version(), -1 in ids, 1 in ids

    return repeated(read, 0)


def test_a_table_is_rebuilt_while_the_stream_goes_on(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """Readers see the old table or the new one, and large values that no change tells are there."""
    fill(source)
    source.options["snapshot.chunk.bytes"] = "65536"
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    spoil(folder)
    lines: list[str] = []
    moving = "UPDATE a SET v = v || '.' WHERE id > 10 AND id % 97 = <n>"
    with running(spark, pipeline), changes(source, moving), readers(folder) as seen:
        done = rebuild(pipeline, tell=lines.append)
        assert (done.table, done.replaced) == (TABLE, True)
        deadline = time.monotonic() + within(30)
        # The row that was missing may come to the old table, too.
        while not seen or seen[-1][1] or not seen[-1][2]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    # The incremental snapshot brings rows that were missing, but removes none before the new table is there.
    assert {surplus for _, surplus, _ in seen} == {True, False}
    first = next(number for number, row in enumerate(seen) if not row[1])
    assert not any(surplus for _, surplus, _ in seen[first:])
    assert any("rows are read" in line for line in lines)
    with running(spark, pipeline):
        assert one(verify(pipeline)).status == "equal"
    assert RebuildMarks(str(tmp_path / "lake")).all() == {}
    assert not list(folder.glob("_floodmark/rebuild-*"))


@pytest.mark.long
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_mysql_and_mariadb(spark: SparkSession, flavor: Any, tmp_path: Path) -> None:
    with MysqlServer(flavor) as server:
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.a (id int PRIMARY KEY, v varchar(50))")
        server.execute("INSERT INTO shop.a VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (5, 'five')")
        options = {
            **server.options(),
            "topic.prefix": "test",
            "state.dir": str(tmp_path / "state"),
            "database.include.list": "shop",
            "signal.poll.interval.ms": "200",
        }
        pipeline = pipeline_of(Source(None, "shop", options), tmp_path)  # type: ignore[arg-type]
        run(spark, pipeline)
        spoil(tmp_path / "lake" / "shop.a")
        with running(spark, pipeline):
            server.execute("DELETE FROM shop.a WHERE id = 5")
            assert rebuild(pipeline, "shop.a").replaced
            assert one(verify(pipeline)).status == "equal"


def test_a_table_that_became_empty(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    fill(source, 3)
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    source.execute("DELETE FROM a")
    run(spark, pipeline)
    with running(spark, pipeline):
        assert rebuild(pipeline).replaced
    assert rows_of(folder, "id") == []


def test_it_is_cancelled(spark: SparkSession, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(source, 500)
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    spoil(folder)
    with pytest.raises(ConfigError, match=r"The table 'public\.a' is not being rebuilt"):
        rebuild(pipeline, cancel=True)
    with pytest.raises(SourceStateError, match="The query hasn't gone on for 1 s"):
        rebuild(pipeline, wait_s=1.0)
    # Rows that are read where the log stands as before are no newer than those that are there.
    source.execute("UPDATE a SET v = 'later' WHERE id = 100")
    run(spark, pipeline)
    assert list(folder.glob("_floodmark/rebuild-*"))
    done = rebuild(pipeline, cancel=True)
    assert (done.replaced, done.version) == (False, None)
    assert not list(folder.glob("_floodmark/rebuild-*"))
    # The snapshot that was asked for has brought rows; only what is surplus stays.
    found = verify(pipeline, at_rest=True)
    assert one(found).counted() == {"surplus": 1}


@pytest.mark.long
def test_a_snapshot_that_is_stopped(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """What was read until then never takes the table's place; the next call lets all be read again."""
    fill(source, 10_000)
    source.options |= {"incremental.snapshot.chunk.size": "50", "max.batch.rows": "200"}
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    spoil(folder)

    def stop(line: str) -> None:
        if "rows are read" in line:
            floodmark.signal(pipeline.source, "stop-snapshot")

    with running(spark, pipeline):
        with pytest.raises(SourceStateError, match="was stopped before all rows were read"):
            rebuild(pipeline, tell=stop)
        assert -1 in {row["id"] for row in rows_of(folder, "id")}
        assert rebuild(pipeline).replaced
        assert one(verify(pipeline)).status == "equal"


def test_a_column_that_comes_meanwhile(
    spark: SparkSession, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log doesn't tell its values in rows that the shadow has, so that begins anew."""
    fill(source, 500)
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    spoil(folder)
    attempt = Replacement.attempt

    def altered(replacement: Replacement, empty: bool) -> Any:
        source.execute("ALTER TABLE a ADD c integer DEFAULT 5", "UPDATE a SET v = 'new' WHERE id = 9")
        deadline = time.monotonic() + within(60)
        while "c" not in {field.name for field in DeltaTable(str(folder)).schema().fields}:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return attempt(replacement, empty)

    with running(spark, pipeline):
        with monkeypatch.context() as patch:
            patch.setattr(Replacement, "attempt", altered)
            with pytest.raises(TargetError, match=r"was altered while it was rebuilt.* Rebuild the table again"):
                rebuild(pipeline)
        # The table is just read because of the column.
        progress, deadline = QueryProgress(pipeline.checkpoint), time.monotonic() + within(60)
        while reads(progress.committed(), TABLE):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert rebuild(pipeline).replaced
        assert one(verify(pipeline)).status == "equal"
    assert {row["c"] for row in rows_of(folder, "id, c")} == {5}


@pytest.mark.parametrize(
    ("options", "statement", "table", "error", "says"),
    [
        ({}, "", "public.b", ConfigError, r"The query captures no table 'public\.b'\. Did you mean 'public\.a'\?"),
        ({"deletes": "soft"}, "", TABLE, TargetError, "has rows that the source has deleted, which would be gone"),
        ({"history": "on"}, "", TABLE, TargetError, "has versions that the source hasn't any more"),
        ({}, "CREATE TABLE k (v int); INSERT INTO k VALUES (1)", "public.k", TargetError, "'public.k' has no key"),
        ({}, "CREATE TABLE e (id int PRIMARY KEY)", "public.e", TargetError, "There is no Delta table for 'public.e'"),
    ],
)
def test_what_cannot_be_rebuilt(
    spark: SparkSession,
    source: Source,
    tmp_path: Path,
    options: dict[str, str],
    statement: str,
    table: str,
    error: type[FloodmarkError],
    says: str,
) -> None:
    fill(source, 3)
    if statement:
        source.execute(*statement.split(";"))
    pipeline = pipeline_of(source, tmp_path, **options)
    run(spark, pipeline)
    with pytest.raises(error, match=says):
        rebuild(pipeline, table)
    assert RebuildMarks(str(tmp_path / "lake")).all() == {}


def test_the_command(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    fill(source, 200)
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    spoil(tmp_path / "lake" / TABLE)
    file = tmp_path / "shop.yaml"
    content = {
        "source": source.options,
        "sink": {"type": "mirror", "path": pipeline.sink.path},
        "checkpoint": pipeline.checkpoint,
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")

    def call(*arguments: str) -> tuple[int, str]:
        command = [*CLI, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(120))
        return done.returncode, " ".join(f"{done.stdout}{done.stderr}".split())

    code, shown = call("rebuild", str(file), "--table", TABLE, "--wait", "1")
    assert code == 1
    assert "error: The query hasn't gone on for 1 s" in shown
    code, shown = call("status", str(file))
    assert (code, "public.a is being rebuilt" in shown) == (0, True), shown
    assert f"floodmark rebuild {file} --table public.a" in shown
    with running(spark, streaming(pipeline)):
        code, shown = call("rebuild", str(file), "--table", TABLE)
        assert (code, "public.a: is rebuilt, as of version" in shown) == (0, True), shown
        assert one(verify(pipeline)).status == "equal"
    code, shown = call("rebuild", str(file), "--table", TABLE, "--cancel")
    assert (code, "The table 'public.a' is not being rebuilt" in shown) == (1, True), shown


def test_a_target_that_is_set_aside_meanwhile(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """Nobody waits for rows that it doesn't get any more."""
    fill(source, 500)
    source.execute("CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    pipeline, folder = pipeline_of(source, tmp_path), tmp_path / "lake" / TABLE
    run(spark, pipeline)
    spoil(folder)
    source.execute(
        "ALTER TABLE a ALTER v TYPE bytea USING v::bytea", "INSERT INTO other VALUES (2)", "UPDATE a SET v = 'x'"
    )
    with running(spark, pipeline), pytest.raises(TargetError, match=r"The target 'public\.a' is set aside"):
        rebuild(pipeline)
