"""``floodmark verify`` of tables of another database."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

import floodmark
from floodmark.spark.pipelines.model import Pipeline
from floodmark.verification.results import TableResult, Verification
from tests.conftest import Source
from tests.integration.test_verify import changes, kinds, one, running
from tests.support.cli import CLI
from tests.support.jdbc import MysqlTarget, Target, pipeline_of, run
from tests.support.mysql import MysqlServer
from tests.support.patience import within

pytestmark = pytest.mark.slow
WAIT_S = within(20.0)
_LONG = {name: pytest.param(name, marks=pytest.mark.long) for name in ("mysql", "mariadb")}
SERVERS = ["pg16", "pg18", _LONG["mysql"], "mariadb"]


def verify(pipeline: Pipeline, **wanted: Any) -> Verification:
    return floodmark.verify(pipeline.source, pipeline.sink.options, pipeline.checkpoint, **{"wait_s": WAIT_S, **wanted})


@pytest.mark.parametrize("target", ["pg16", "pg18", *_LONG.values()], indirect=True)
def test_differences_are_found_and_repaired_while_the_stream_goes_on(
    spark: SparkSession, source: Source, target: Target, tmp_path: Path
) -> None:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, n numeric(10,2))",
        "INSERT INTO a SELECT g, 'v' || g, g / 4.0 FROM generate_series(1, 20000) g",
    )
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    moving = "UPDATE a SET v = v || '.' WHERE id BETWEEN 10000 AND 20000 AND id % 97 = <n>"
    with running(spark, pipeline), changes(source, moving):
        assert one(verify(pipeline)).status == "equal"
        target.execute(
            "DELETE FROM public_a WHERE id = 7",
            "UPDATE public_a SET v = 'other' WHERE id = 8",
            "INSERT INTO public_a SELECT 20001, v, n, _position FROM public_a WHERE id = 10",
        )
        found = one(verify(pipeline, values=True))
        assert (found.status, found.unconfirmed, found.more) == ("different", 0, False), found.reason
        assert kinds(found) == {7: "missing", 8: "differs", 20001: "surplus"}
        (spoiled,) = [difference for difference in found.differences if difference.kind == "differs"]
        assert list(spoiled.columns) == ["v"]
        assert spoiled.source is not None
        assert spoiled.target is not None
        assert (spoiled.source["v"], spoiled.target["v"]) == ("v8", "other")
        repaired = one(verify(pipeline, repair=True))
        assert (repaired.status, repaired.repaired, repaired.count) == ("equal", 3, 0), repaired
        assert one(verify(pipeline)).status == "equal"


TYPES = {
    "k": ("bigint", "9000000000000000000", "1"),
    "txt": ('text COLLATE "C"', "it''s \\ \"x\", \n%s", ""),
    "b": ("bytea", "\\x00ff27", "\\x"),
    "u": ("uuid", "c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002"),
    "n": ("numeric(12,3)", "-1.500", "2"),
    "d": ("date", "1999-12-31", "0044-03-15"),
    "ts": ("timestamp", "2026-01-01 00:00:00.123456", "1900-01-01"),
    "tz": ("timestamptz", "2026-01-01 00:00:00.5+02", "1900-01-01 00:00Z"),
    "bl": ("boolean", "true", "false"),
}
"""Types of keys with two values."""
VALUES = (
    "v text, n numeric(6,2), f real, g double precision, i smallint, big numeric(38,10), d date, t timestamptz, "
    "s timestamp, b bytea, l boolean, j jsonb, a int[]"
)
ROW = (
    "e'x\\t\"ü\\n,', 'NaN', 0.1, {g}, -32768, 123456789012345678.5, '0044-03-15 BC', '294276-01-01 00:00Z', "
    "'2026-02-03 04:05:06.000007', '\\x0022', true, '{{\"a\": [1, 2.50]}}', '{{1,NULL}}'"
)


@pytest.mark.parametrize("target", SERVERS, indirect=True)
def test_values_of_all_types(spark: SparkSession, source: Source, target: Target, tmp_path: Path) -> None:
    """What the target can't hold is null there, which is no difference."""
    special = ["'NaN'", "'Infinity'", "-0.0", "1e300"]
    for number, (name, (kind, first, second)) in enumerate(TYPES.items()):
        row = ROW.format(g=special[number % len(special)])
        source.execute(
            f"CREATE TABLE {name} (id {kind} PRIMARY KEY, {VALUES})",
            f"INSERT INTO {name} VALUES ('{first}', {row})",
            f"INSERT INTO {name} (id) VALUES ('{second}')",
        )
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    found = verify(pipeline, at_rest=True)
    assert found.equal, [table for table in found.tables if table.status != "equal"]
    assert {table.source_rows for table in found.tables} == {2}
    assert {tuple(table.left_out) for table in found.tables} == {("a",)}
    for name, (_, first, second) in TYPES.items():
        source.execute(f"UPDATE {name} SET v = 'z' WHERE id = '{first}'", f"DELETE FROM {name} WHERE id = '{second}'")
    for table in verify(pipeline, at_rest=True).tables:
        assert table.counted() == {"surplus": 1, "differs": 1}, table
    for name in TYPES:
        target.execute(f"UPDATE public_{name} SET f = 0.25, i = 3 WHERE v IS NOT NULL")
    for table in verify(pipeline, at_rest=True).tables:
        columns = {tuple(sorted(found.columns)) for found in table.differences if found.kind == "differs"}
        assert columns == {("f", "i", "v")}, table


@pytest.mark.parametrize("target", ["pg18", "mariadb"], indirect=True)
def test_rows_of_others_without_a_position(spark: SparkSession, source: Source, target: Target, tmp_path: Path) -> None:
    """They count as older than any change, and are deleted where the source hasn't them."""
    position = "varchar(64)" if isinstance(target, MysqlTarget) else "text"
    target.execute(f"CREATE TABLE public_a (id int PRIMARY KEY, v varchar(9), _position {position})")
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'x')")
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    target.execute("INSERT INTO public_a VALUES (2, 'own', NULL), (3, 'own', NULL), (4, 'own', NULL), (5, 'o', NULL)")
    target.execute("UPDATE public_a SET _position = NULL WHERE id = 1")
    source.execute("INSERT INTO a VALUES (2, 'y'), (3, 'z')", "DELETE FROM a WHERE id = 3", "UPDATE a SET v = 'x2'")
    run(spark, pipeline)
    found = one(verify(pipeline, at_rest=True))
    assert kinds(found) == {4: "surplus", 5: "surplus"}
    assert one(verify(pipeline, at_rest=True, repair=True)).repaired == 2
    source.execute("TRUNCATE a", "INSERT INTO a VALUES (9, 'w')")
    target.execute("INSERT INTO public_a VALUES (6, 'own', NULL)")
    run(spark, pipeline)
    assert list(target.rows("SELECT id FROM public_a")) == [(9,)]


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=pytest.mark.long), "mariadb"])
@pytest.mark.parametrize("target", ["pg18", pytest.param("mysql", marks=pytest.mark.long)], indirect=True)
def test_from_mysql_and_mariadb(spark: SparkSession, flavor: Any, target: Target, tmp_path: Path) -> None:
    with MysqlServer(flavor) as server:
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.a (id bigint unsigned PRIMARY KEY, v varchar(50), u int unsigned, f float, "
            "d decimal(30,5), t datetime(6), z timestamp NULL, b blob, j json, e enum('x','y'), bt bit(3))",
            "INSERT INTO shop.a VALUES (18446744073709551615, CONCAT('nul', CHAR(0), 'x'), 4294967295, 0.1, 1.5, "
            "'1000-01-01 00:00:00.000001', '2026-01-01 00:00:00', x'00ff', '{\"b\": 1}', 'y', b'101')",
            "INSERT INTO shop.a (id) VALUES (1)",
        )
        options = {
            **server.options(),
            "topic.prefix": "test",
            "state.dir": str(tmp_path / "state"),
            "database.include.list": "shop",
        }
        pipeline = pipeline_of(Source(None, "shop", options), target, tmp_path)  # type: ignore[arg-type]
        run(spark, pipeline)
        found = one(verify(pipeline, at_rest=True))
        assert (found.status, found.source_rows, found.target_rows) == ("equal", 2, 2), found
        target.execute("UPDATE shop_a SET u = 7 WHERE id = 1")
        assert one(verify(pipeline, at_rest=True)).counted() == {"differs": 1}


@pytest.mark.parametrize("target", ["pg18", _LONG["mysql"]], indirect=True)
def test_what_is_not_compared(spark: SparkSession, source: Source, target: Target, tmp_path: Path) -> None:
    source.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text)",
        "INSERT INTO a VALUES (1, 'x')",
        "CREATE TABLE k (v int)",
        "INSERT INTO k VALUES (1)",
        "CREATE TABLE e (id int PRIMARY KEY)",
        "CREATE TABLE own (id int PRIMARY KEY, v text, j jsonb)",
    )
    kind = "json" if isinstance(target, MysqlTarget) else "jsonb"
    position = "varchar(64)" if isinstance(target, MysqlTarget) else "text"
    target.execute(
        f"CREATE TABLE public_own (id int PRIMARY KEY, v varchar(9), j {kind}, mine int, _position {position})"
    )
    source.execute("INSERT INTO own VALUES (1, 'x', '{}')")
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    source.execute("UPDATE own SET v = 'y'")
    run(spark, pipeline)
    found = {table.table: table for table in verify(pipeline, at_rest=True).tables}
    assert {name: table.status for name, table in found.items()} == {
        "public.a": "equal",
        "public.k": "not compared",
        "public.e": "equal",
        "public.own": "equal",
    }
    assert "has no key" in found["public.k"].reason
    assert found["public.own"].left_out == ["j", "mine"]
    target.execute("DROP TABLE public_a")
    assert "there is no target" in reason(verify(pipeline, at_rest=True, tables=[r"public\.a"]))
    target.execute("CREATE TABLE public_e (id int PRIMARY KEY)")
    assert "No query writes the table 'public_e'" in reason(verify(pipeline, at_rest=True, tables=[r"public\.e"]))
    target.execute("UPDATE floodmark_tables SET stale = true WHERE source = 'public.own'")
    assert "is set aside" in reason(verify(pipeline, at_rest=True, tables=[r"public\.own"]))


def reason(found: Verification) -> str:
    table: TableResult = one(found)
    assert table.status == "not compared", table
    return table.reason


@pytest.mark.parametrize("target", ["pg18"], indirect=True)
def test_the_command(spark: SparkSession, source: Source, target: Target, tmp_path: Path) -> None:
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'x'), (2, 'y')")
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    target.execute("DELETE FROM public_a WHERE id = 2")
    file = tmp_path / "shop.yaml"
    content = {
        "source": source.options,
        "sink": {"type": "jdbc", "options": pipeline.sink.options},
        "checkpoint": pipeline.checkpoint,
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    command = [*CLI, "verify", str(file), "--at-rest"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(120))
    assert done.returncode == 1, done.stderr
    assert "public.a: missing id=2" in " ".join(done.stdout.split())
