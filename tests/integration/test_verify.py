"""``floodmark verify``: mirrors are compared with their source, and repaired, while the stream goes on."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import yaml
from pyspark.sql import SparkSession

import floodmark
from floodmark.errors import ConfigError
from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from floodmark.spark.pipelines.query import start_query
from floodmark.verification.results import TableResult, Verification
from tests.conftest import Source
from tests.integration.test_mirror import pipeline_of, rows_of, run
from tests.support.batch import wait_for
from tests.support.cli import CLI
from tests.support.mysql import MysqlServer
from tests.support.patience import within
from tests.support.planting import Planter

pytestmark = pytest.mark.slow

WAIT_S = within(20.0)
FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))
ROWS = 10_000_000 if FULL else 20_000
LOAD_S = 60 if FULL else 5
"""How long tables are compared while rows change."""


def streaming(pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"trigger": type(pipeline.trigger).model_validate({})})


@contextmanager
def running(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    query = start_query(spark, streaming(pipeline))
    try:
        yield
        assert query.exception() is None
    except Exception as error:
        error.add_note(f"The query: {query.exception() or 'runs'}")
        raise
    finally:
        query.stop()


def verify(pipeline: Pipeline, **wanted: Any) -> Verification:
    assert pipeline.sink.path is not None
    return floodmark.verify(pipeline.source, pipeline.sink.path, pipeline.checkpoint, **{"wait_s": WAIT_S, **wanted})


def one(found: Verification) -> TableResult:
    (table,) = found.tables
    return table


def kinds(table: TableResult) -> dict[Any, str]:
    return {next(iter(found.key.values())): found.kind for found in table.differences}


@pytest.mark.timeout(1800)
def test_planted_differences_are_found_and_repaired_while_the_stream_goes_on(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, n numeric(10,2))",
        f"INSERT INTO a SELECT g, 'v' || g, g / 4.0 FROM generate_series(1, {ROWS}) g",
    )
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    folder = tmp_path / "lake" / "public.a"
    with (
        running(spark, pipeline),
        changes(source, "UPDATE a SET v = v || '.' WHERE id BETWEEN 10000 AND 20000 AND id % 97 = <n>"),
    ):
        planter = Planter(folder)
        planter.lose([7])
        planter.spoil(8, v="other")
        planter.double(9)
        planter.add(10, id=ROWS + 1)
        planter.add(10, id=ROWS + 2, _position=None)
        found = one(verify(pipeline, values=True))
        assert (found.status, found.unconfirmed, found.more) == ("different", 0, False), found.reason
        assert kinds(found) == {
            7: "missing",
            8: "differs",
            9: "doubled",
            ROWS + 1: "surplus",
            ROWS + 2: "surplus",
        }
        (spoiled,) = [difference for difference in found.differences if difference.kind == "differs"]
        assert list(spoiled.columns) == ["v"]
        assert spoiled.source is not None
        assert spoiled.target is not None
        assert (spoiled.source["v"], spoiled.target["v"]) == ("v8", "other")
        repaired = one(verify(pipeline, repair=True))
        assert (repaired.status, repaired.repaired, repaired.count) == ("equal", 5, 0), repaired
        assert one(verify(pipeline)).status == "equal"
    run(spark, pipeline)
    if ROWS > 100_000:
        return
    with source.database.session() as session:
        expected = [
            dict(zip(("id", "v"), row, strict=True)) for row in session.execute("SELECT id, v FROM a ORDER BY id")
        ]
    assert rows_of(folder, "id, v") == expected


@contextmanager
def changes(source: Source, statement: str, rows: int = 97, pause_s: float = 0.1) -> Iterator[None]:
    """Run a statement again and again, with a number below ``rows`` in place of ``<n>``; fail if that failed.

    Args:
        pause_s: how long to rest in between: the query must be able to follow.
    """
    stop = threading.Event()

    def work() -> int:
        number = 0
        with psycopg.connect(source.conninfo, autocommit=True) as conn:
            while not stop.is_set():
                conn.execute(statement.replace("<n>", str(number % rows)).encode())
                number += 1
                stop.wait(pause_s)
        return number

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield
        finally:
            stop.set()
        assert done.result() > 10, "there was no load"


def test_no_false_alarm_under_load(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """Rows that are updated, deleted, inserted, moved and truncated all the time never count as different."""
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text)",
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "INSERT INTO a SELECT g, 'v' || g FROM generate_series(1, 2000) g",
    )
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    moving = (
        "WITH gone AS (DELETE FROM a WHERE id % 97 = <n> RETURNING id), "
        "more AS (UPDATE a SET v = clock_timestamp()::text WHERE id % 5 = 3 AND id % 97 <> 1) "
        "INSERT INTO a SELECT id + 5000, 'new' FROM gone WHERE id < 20000 "
        "UNION ALL SELECT id - 20000, 'old' FROM gone WHERE id >= 20000"
    )
    emptied = "WITH n AS (SELECT <n> AS k) INSERT INTO t SELECT k FROM n ON CONFLICT DO NOTHING"
    before, begun = written(source), time.monotonic()
    with running(spark, pipeline), changes(source, moving, 7, 0.3), changes(source, emptied):
        results: list[Verification] = []
        while len(results) < 2 or time.monotonic() < begun + LOAD_S:
            source.execute("TRUNCATE t")
            results.append(verify(pipeline, wait_s=within(2.0)))
        rate = (written(source) - before) / (time.monotonic() - begun)
    print(f"{len(results)} times compared with {rate:,.0f} changes/s")
    for table in [table for found in results for table in found.tables]:
        # A table that was empty may have rows that the query has not come to yet, and so no target.
        assert (table.status in ("equal", "unconfirmed", "not compared"), table.count) == (True, 0), table
    # Once the changes end, nothing differs.
    with running(spark, pipeline):
        last = verify(pipeline)
    assert last.equal, last


def written(source: Source) -> int:
    """Return how many rows the source's tables have got, or lost, as its statistics tell after a moment."""
    ((rows,),) = query(source, "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables")
    return int(rows)


TYPES = {
    "k": ("bigint", "9000000000000000000", "1"),
    "txt": ('text COLLATE "C"', "it''s \\ x", "b"),
    "b": ("bytea", "\\x00ff27", "\\x"),
    "u": ("uuid", "c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002"),
    "n": ("numeric(12,3)", "-1.500", "2"),
    "big": ("numeric", "123456789012345678901234567890.5", "7"),
    "d": ("date", "1999-12-31", "0044-03-15 BC"),
    "ts": ("timestamp", "2026-01-01 00:00:00.123456", "1900-01-01"),
    "tz": ("timestamptz", "2026-01-01 00:00:00.5+02", "1900-01-01 00:00Z"),
    "c": ("char(4)", "a", "bc"),
    "f": ("float8", "NaN", "-0.25"),
    "t": ("time", "12:00:01.5", "00:00"),
    "bl": ("boolean", "true", "false"),
}
"""Types of keys with two values."""


@pytest.mark.long
def test_keys_of_all_types(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """Each is found whatever its type is, together with values that Spark's types can't hold."""
    for name, (kind, first, second) in TYPES.items():
        source.execute(
            f"CREATE TABLE {name} (id {kind} PRIMARY KEY, v text, n numeric(6,2), a int[], d date)",
            f"INSERT INTO {name} VALUES ('{first}', 'x', 'NaN', '{{{{1}}}}', 'infinity')",
            f"INSERT INTO {name} VALUES ('{second}', 'y', 1, NULL, NULL)",
        )
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    found = verify(pipeline, at_rest=True)
    assert found.equal, found
    assert len(found.tables) == len(TYPES)
    for name, (_, first, second) in TYPES.items():
        source.execute(f"UPDATE {name} SET v = 'z' WHERE id = '{first}'", f"DELETE FROM {name} WHERE id = '{second}'")
    found = verify(pipeline, at_rest=True)
    for table in found.tables:
        assert table.counted() == {"surplus": 1, "differs": 1}, table


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"deletes": "soft"}, marks=pytest.mark.long),
        {"history": "on"},
        pytest.param({"partition.by": "public\\.a:part"}, marks=pytest.mark.long),
    ],
)
def test_kinds_of_targets(spark: SparkSession, source: Source, tmp_path: Path, options: dict[str, str]) -> None:
    source.execute(
        "CREATE TABLE a (id int PRIMARY KEY, part int, v text)",
        "INSERT INTO a SELECT g, g % 3, 'x' FROM generate_series(1, 100) g",
    )
    pipeline = pipeline_of(source, tmp_path, **options)
    run(spark, pipeline)
    source.execute("DELETE FROM a WHERE id < 10", "UPDATE a SET v = 'y', part = 1 WHERE id > 95")
    run(spark, pipeline)
    assert one(verify(pipeline, at_rest=True)).status == "equal"
    source.execute("UPDATE a SET v = 'z' WHERE id = 50", "INSERT INTO a VALUES (5, 0, 'again')")
    partition = pa.schema([("part", pa.int32())] if "partition.by" in options else [])
    Planter(tmp_path / "lake" / "public.a", "id", partition).add(51, id=500)
    table = one(verify(pipeline, at_rest=True))
    assert kinds(table) == {5: "missing", 50: "differs", 500: "surplus"}
    with running(spark, pipeline):
        repaired = one(verify(pipeline, repair=True))
    if "history" in options:
        assert (repaired.status, repaired.counted()) == ("different", {"surplus": 1})
        assert "history" in repaired.reason
    else:
        assert (repaired.status, repaired.count) == ("equal", 0), repaired


def test_worlds_in_which_nothing_can_be_compared(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'one')")
    pipeline = pipeline_of(source, tmp_path)
    assert pipeline.sink.path is not None
    with pytest.raises(floodmark.CheckpointError):
        verify(pipeline)
    run(spark, pipeline)
    # A query that doesn't run may still change the row.
    source.execute("UPDATE a SET v = 'two'", "CREATE TABLE b (id int PRIMARY KEY)", "CREATE TABLE nokey (id int)")
    found = {table.table: table for table in verify(pipeline, wait_s=0.5).tables}
    assert (found["public.a"].status, found["public.a"].unconfirmed) == ("unconfirmed", 1)
    assert "doesn't follow" in found["public.a"].reason
    assert (found["public.b"].status, found["public.b"].source_rows) == ("equal", 0)
    source.execute("INSERT INTO b VALUES (1)")
    assert one(verify(pipeline, tables=["public\\.b"], at_rest=True)).status == "not compared"
    assert not (tmp_path / "lake" / "public.b").exists()
    with pytest.raises(ConfigError, match="matches"):
        verify(pipeline, tables=["public.x"])
    with pytest.raises(ConfigError, match="checkpoint"):
        floodmark.verify(pipeline.source, pipeline.sink.path)
    # A column that only one side has is left out, and said.
    source.execute("ALTER TABLE a ADD w int", "ALTER TABLE a DROP v")
    table = one(verify(pipeline, tables=["public\\.a"], at_rest=True))
    assert (table.status, table.left_out) == ("equal", ["v", "w"])
    source.execute("ALTER TABLE a ALTER w TYPE text", "ALTER TABLE a ALTER id TYPE text")
    table = one(verify(pipeline, tables=["public\\.a"], at_rest=True))
    assert table.status == "not compared"
    assert "'id'" in table.reason
    source.execute("DROP TABLE a")
    assert "public.a" not in {table.table for table in verify(pipeline, wait_s=0.5).tables}


def test_the_slot_is_left_alone(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.options["slot.drop.on.stop"] = "true"
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    pipeline = pipeline_of(source, tmp_path)
    slots = "SELECT slot_name, restart_lsn FROM pg_replication_slots WHERE database = current_database()"
    with running(spark, pipeline):
        # Until the first micro-batch has ended, nothing is compared.
        wait_for(lambda: verify(pipeline).equal, "the mirror follows")
        assert query(source, slots)
    before = query(source, slots)
    assert verify(pipeline, at_rest=True).equal
    assert query(source, slots) == before


def query(source: Source, text: str) -> list[Any]:
    with psycopg.connect(source.conninfo) as conn:
        return conn.execute(text).fetchall()


def test_the_command(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'secret'), (2, 'two')")
    pipeline = pipeline_of(source, tmp_path)
    run(spark, pipeline)
    content = {
        "source": dict(pipeline.source),
        "sink": {"type": "mirror", "path": pipeline.sink.path},
        "checkpoint": pipeline.checkpoint,
        "spark": {"spark.master": "local[1]"},
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content))

    def command(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([*CLI, "verify", str(file), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    source.execute("UPDATE a SET v = 'other' WHERE id = 1")
    code, output = command("--at-rest", "--json")
    found = json.loads(output[output.index("{") :])
    assert (code, found["equal"], found["tables"][0]["kinds"]) == (1, False, {"differs": 1})
    assert found["tables"][0]["differences"][0]["key"] == {"id": 1}
    assert "secret" not in output
    code, output = command("--wait", "0")
    assert code == 2
    assert "doesn't follow" in " ".join(output.split())


def test_mysql_and_mariadb(spark: SparkSession, binlog_server: MysqlServer, tmp_path: Path) -> None:
    binlog_server.execute(
        "CREATE DATABASE verified",
        "CREATE TABLE verified.a (id INT PRIMARY KEY, v VARCHAR(40), n DECIMAL(10,2), t TIMESTAMP NULL, f FLOAT)",
        "INSERT INTO verified.a WITH RECURSIVE s AS (SELECT 1 AS g UNION ALL SELECT g + 1 FROM s WHERE g < 900) "
        "SELECT g, 'x', g / 4, '2026-01-01 00:00:00', g / 3 FROM s",
        "CREATE TABLE verified.b (k VARCHAR(20), d DATE, v TEXT, PRIMARY KEY (k, d))",
        "INSERT INTO verified.b VALUES ('it''s', '2026-01-01', 'x'), ('a\\\\b', '2026-01-02', 'y')",
        "CREATE TABLE verified.c (k VARBINARY(20) PRIMARY KEY, v INT)",
        "INSERT INTO verified.c VALUES (x'00ff27', 1), (x'', 2)",
    )
    try:
        pipeline = parse_pipeline(
            {
                "source": {
                    **binlog_server.options(),
                    "topic.prefix": "shop",
                    "table.include.list": "verified\\..*",
                    "state.dir": str(tmp_path / "state"),
                    "include.schema.changes": "false",
                    "signal.poll.interval.ms": "200",
                },
                "sink": {"type": "mirror", "path": str(tmp_path / "lake")},
                "checkpoint": str(tmp_path / "checkpoint"),
                "trigger": {"availableNow": "true"},
            }
        )
        run(spark, pipeline)
        assert verify(pipeline, at_rest=True).equal
        with running(spark, pipeline):
            planter = Planter(tmp_path / "lake" / "verified.a")
            planter.lose([7])
            planter.spoil(8, v="other")
            planter.add(10, id=5000)
            Planter(tmp_path / "lake" / "verified.b", "k").spoil("it's", v="other")
            Planter(tmp_path / "lake" / "verified.c", "k").spoil(b"\x00\xff'", v=7)
            binlog_server.execute("UPDATE verified.a SET v = 'y' WHERE id > 800")
            found = {table.table: table for table in verify(pipeline).tables}
            assert kinds(found["verified.a"]) == {7: "missing", 8: "differs", 5000: "surplus"}, found
            assert found["verified.b"].counted() == {"differs": 1}
            assert found["verified.c"].counted() == {"differs": 1}
            repaired = verify(pipeline, repair=True)
            assert repaired.equal, repaired
            assert [table.repaired for table in repaired.tables] == [3, 1, 1]
    finally:
        binlog_server.execute("DROP DATABASE verified")
