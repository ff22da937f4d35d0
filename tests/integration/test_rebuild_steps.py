"""The process that rebuilds a table dies at each of its steps: the same call goes on, whatever holds the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import floodmark
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.rebuilding import rebuilder
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.target import RebuildableDeltaTable
from floodmark.sinks.iceberg.rebuilding.target import RebuildableIcebergTable
from floodmark.sinks.relational.rebuilding.marks import RebuiltTargets
from floodmark.sinks.relational.rebuilding.target import RebuildableRelation
from floodmark.spark.pipelines.model import Pipeline
from tests.conftest import Source
from tests.integration.test_mirror import pipeline_of, rows_of, run
from tests.integration.test_verify import one, running
from tests.support.jdbc import PostgresTarget, Target, target_on
from tests.support.jdbc import pipeline_of as jdbc_pipeline_of
from tests.support.patience import within
from tests.support.planting import Planter

pytestmark = pytest.mark.slow
TABLE = "public.a"
Rows = list[tuple[int, str, str]]


@dataclass(frozen=True)
class Kept:
    """A table that a query keeps.

    Attributes:
        pipeline: the query.
        kind: what can be rebuilt.
        marks: where that is marked.
        rows: returns its rows.
        spoil: makes it wrong in a way that no change mends, with a row whose key is -1.
        marked: returns the tables that are being rebuilt.
    """

    pipeline: Pipeline
    kind: type
    marks: type
    rows: Callable[[], Rows]
    spoil: Callable[[], None]
    marked: Callable[[], list[str]]


def in_order(rows: list[dict[str, Any]]) -> Rows:
    return sorted((row["id"], row["v"], row["big"]) for row in rows)


def delta(source: Source, folder: Path) -> Kept:
    lake, table = folder / "lake", folder / "lake" / TABLE

    def spoil() -> None:
        planter = Planter(table)
        planter.lose([1, 2])
        planter.spoil(3, v="other")
        planter.double(4)
        planter.add(5, id=-1)

    return Kept(
        pipeline_of(source, folder),
        RebuildableDeltaTable,
        RebuildMarks,
        lambda: in_order(rows_of(table, "id, v, big")),
        spoil,
        lambda: list(RebuildMarks(str(lake)).all()),
    )


def iceberg(source: Source, folder: Path) -> Kept:
    catalogue = {"type": "sql", "uri": f"sqlite:///{folder}/catalogue.db", "warehouse": f"file://{folder}/warehouse"}
    lake = load_catalog("lake", **catalogue)
    lake.create_namespace("shop")

    def rows() -> pa.Table:
        return lake.load_table("shop.public_a").scan().to_arrow()

    def spoil() -> None:
        table = lake.load_table("shop.public_a")
        kept = table.scan(row_filter="id = 5").to_arrow()
        (row,) = kept.to_pylist()
        table.delete("id <= 3")
        table.append(pa.Table.from_pylist([{**row, "id": 3, "v": "other"}, {**row, "id": -1}], kept.schema))

    options = {"catalog.schema": "lake.shop", **{f"catalog.{name}": value for name, value in catalogue.items()}}
    pipeline = pipeline_of(source, folder)
    sink = pipeline.sink.model_copy(update={"format": "iceberg", "options": options})
    return Kept(
        pipeline.model_copy(update={"sink": sink}),
        RebuildableIcebergTable,
        RebuildMarks,
        lambda: in_order(rows().to_pylist()),
        spoil,
        lambda: list(RebuildMarks(str(folder / "lake")).all()),
    )


@pytest.fixture
def kept(request: pytest.FixtureRequest, source: Source, tmp_path: Path) -> Iterator[Kept]:
    if request.param in (delta, iceberg):
        yield request.param(source, tmp_path)
        return
    with target_on(request.getfixturevalue(request.param)) as target:
        yield relation(source, target, tmp_path)


def relation(source: Source, target: Target, folder: Path, **options: str) -> Kept:
    surplus = "INSERT INTO public_a (id, v, big, _position) SELECT -1, v, big, _position FROM public_a WHERE id = 5"
    return Kept(
        jdbc_pipeline_of(source, target, folder, **options),
        RebuildableRelation,
        RebuiltTargets,
        lambda: sorted((number, v, big) for number, v, big in target.rows("SELECT id, v, big FROM public_a")),
        lambda: target.execute(
            "DELETE FROM public_a WHERE id IN (1, 2)", "UPDATE public_a SET v = 'other' WHERE id = 3", surplus
        ),
        lambda: [name for (name,) in target.rows("SELECT target FROM floodmark_rebuilds")],
    )


MADE = (
    "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
    "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
    "INSERT INTO a SELECT g, 'v' || g, repeat('b' || g, 900) FROM generate_series(1, 500) g",
)
STEPS: dict[str, tuple[str, str, bool]] = {
    "before the mark": ("marks", "add", False),
    "the mark is written": ("marks", "add", True),
    "after the mark": ("kind", "begin", True),
    "after the signal": ("rebuilder", "_ask", True),
    "all rows are read": ("rebuilder", "_replace", False),
    "the table is replaced": ("rebuilder", "_replace", True),
    "the mark is removed": ("marks", "remove", True),
    "all is done": ("kind", "finish", True),
}
"""Whose methods, and whether the process dies after what they do."""
OFTEN = {
    *((delta, step) for step in ("all rows are read", "the table is replaced")),
    ("pg16", "all rows are read"),
}


class Death(BaseException):
    """The process that rebuilds dies."""


def arguments(pipeline: Pipeline) -> dict[str, Any]:
    """Return what ``floodmark.rebuild`` and ``floodmark.verify`` are both called with."""
    sink = pipeline.sink
    return {
        "options": pipeline.source,
        "target": sink.path or sink.options,
        "checkpoint": pipeline.checkpoint,
        "wait_s": within(60.0),
        "mirror": {"format": "iceberg", **sink.options} if sink.format == "iceberg" else {},
    }


def rebuild(pipeline: Pipeline) -> floodmark.Rebuilt:
    return floodmark.rebuild(table=TABLE, **arguments(pipeline))


@pytest.mark.parametrize(
    ("kept", "step"),
    [
        pytest.param(
            kind,
            step,
            marks=[] if (kind, step) in OFTEN else pytest.mark.long,
            id=f"{getattr(kind, '__name__', kind)}-{step}",
        )
        for kind in (delta, iceberg, "pg16", "mysql", "mariadb")
        for step in STEPS
    ],
    indirect=["kept"],
)
def test_a_process_that_dies_at_each_step(
    spark: SparkSession, source: Source, kept: Kept, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it has done, the same call goes on, and meanwhile the query keeps the old table or the new one."""
    source.execute(*MADE)
    run(spark, kept.pipeline)
    kept.spoil()
    whose, name, after = STEPS[step]
    owner = {"marks": kept.marks, "kind": kept.kind, "rebuilder": rebuilder._Rebuilding}[whose]
    method: Callable[..., Any] = getattr(owner, name)

    def dies(*args: Any) -> Any:
        if after:
            method(*args)
        raise Death

    with running(spark, kept.pipeline), monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Death):
            rebuild(kept.pipeline)
    replaced = step in ("the table is replaced", "the mark is removed", "all is done")
    source.execute("UPDATE a SET v = 'later' WHERE id % 7 = 0", "DELETE FROM a WHERE id % 11 = 0")
    run(spark, kept.pipeline)
    assert (-1 in {number for number, *_ in kept.rows()}) is not replaced
    with running(spark, kept.pipeline):
        assert rebuild(kept.pipeline).replaced
        assert one(floodmark.verify(**arguments(kept.pipeline))).status == "equal"
    run(spark, kept.pipeline)
    assert kept.rows() == rows_at(source)
    assert kept.marked() == []


@pytest.mark.parametrize(
    "step",
    [
        *(pytest.param(step, marks=pytest.mark.long) for step in ("after the mark", "all rows are read")),
        "after the signal",
    ],
)
def test_a_server_that_crashes_at_a_step(
    step: str, spark: SparkSession, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query and the rebuilding wait for the server, whose shadow has all that was committed."""
    source.execute(*MADE)
    _, name, after = STEPS[step]
    owner = RebuildableRelation if step == "after the mark" else rebuilder._Rebuilding
    method: Callable[..., Any] = getattr(owner, name)
    with EmbeddedPostgres(18) as server:
        target = PostgresTarget(server, "postgres")
        kept = relation(source, target, tmp_path, flush_max_retries="100")
        run(spark, kept.pipeline)
        kept.spoil()
        starting = Thread(target=server.start)

        def crashes(*args: Any) -> Any:
            result = method(*args) if after else None
            if not starting.ident:
                source.execute("UPDATE a SET v = 'meanwhile' WHERE id % 3 = 0")
                server.stop("immediate")
                starting.start()
            return result if after else method(*args)

        with running(spark, kept.pipeline), monkeypatch.context() as patch:
            patch.setattr(owner, name, crashes)
            assert rebuild(kept.pipeline).replaced
        starting.join()
        run(spark, kept.pipeline)
        assert kept.rows() == rows_at(source)
        assert kept.marked() == []


def rows_at(source: Source) -> Rows:
    with closing(psycopg.connect(source.conninfo)) as connection:
        return connection.execute("SELECT id, v, big FROM a ORDER BY id").fetchall()
