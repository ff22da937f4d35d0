"""The process that rebuilds a table dies at each of its steps: the same call goes on, whatever holds the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
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
from floodmark.sinks.relational.rebuilding.target import RebuildableRelation
from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from tests.conftest import Source, drop, make_source
from tests.integration.test_mirror import rows_of, run
from tests.integration.test_verify import running
from tests.support.jdbc import target_on
from tests.support.patience import within
from tests.support.planting import Planter

pytestmark = pytest.mark.slow
TABLE = "public.a"
Rows = list[tuple[int, str]]


@dataclass(frozen=True)
class Kept:
    """A table that a query keeps.

    Attributes:
        pipeline: the query.
        kind: what can be rebuilt.
        rows: returns its rows.
        spoil: lets the rows with the keys 1 and 2 be missing, and adds one with the key -1.
        marked: returns the tables that are being rebuilt.
    """

    pipeline: Pipeline
    kind: type
    rows: Callable[[], Rows]
    spoil: Callable[[], None]
    marked: Callable[[], list[str]]


def made(source: Source, folder: Path, **sink: Any) -> Pipeline:
    return parse_pipeline(
        {
            "source": source.options,
            "sink": sink,
            "checkpoint": str(folder / "checkpoint"),
            "trigger": {"availableNow": "true"},
        }
    )


def in_order(rows: list[dict[str, Any]]) -> Rows:
    return sorted((row["id"], row["v"]) for row in rows)


def delta(source: Source, folder: Path) -> Kept:
    lake, table = folder / "lake", folder / "lake" / TABLE

    def spoil() -> None:
        planter = Planter(table)
        planter.lose([1, 2])
        planter.add(5, id=-1)

    pipeline = made(source, folder, type="mirror", path=str(lake))
    rows = lambda: in_order(rows_of(table, "id, v"))  # noqa: E731
    return Kept(pipeline, RebuildableDeltaTable, rows, spoil, lambda: list(RebuildMarks(str(lake)).all()))


def iceberg(source: Source, folder: Path) -> Kept:
    catalogue = {"type": "sql", "uri": f"sqlite:///{folder}/catalogue.db", "warehouse": f"file://{folder}/warehouse"}
    lake = load_catalog("lake", **catalogue)
    lake.create_namespace("shop")

    def rows() -> pa.Table:
        return lake.load_table("shop.public_a").scan().to_arrow()

    def spoil() -> None:
        table = lake.load_table("shop.public_a")
        row = table.scan(row_filter="id = 5").to_arrow()
        table.delete("id = 1 or id = 2")
        table.append(row.set_column(row.schema.get_field_index("id"), row.schema.field("id"), pa.array([-1], "int32")))

    options = {"catalog.schema": "lake.shop", **{f"catalog.{name}": value for name, value in catalogue.items()}}
    path = str(folder / "lake")
    pipeline = made(source, folder, type="mirror", format="iceberg", path=path, options=options)
    marked = lambda: list(RebuildMarks(path).all())  # noqa: E731
    return Kept(pipeline, RebuildableIcebergTable, lambda: in_order(rows().to_pylist()), spoil, marked)


@pytest.fixture
def source(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state", **{"signal.poll.interval.ms": "200"})
    yield made
    drop(made)


@pytest.fixture
def kept(request: pytest.FixtureRequest, source: Source, tmp_path: Path) -> Iterator[Kept]:
    if request.param in (delta, iceberg):
        yield request.param(source, tmp_path)
        return
    with target_on(request.getfixturevalue(request.param)) as target:
        surplus = "INSERT INTO public_a (id, v, big, _position) SELECT -1, v, big, _position FROM public_a WHERE id = 5"
        yield Kept(
            made(source, tmp_path, type="jdbc", options=target.options),
            RebuildableRelation,
            lambda: sorted((number, v) for number, v in target.rows("SELECT id, v FROM public_a")),
            lambda: target.execute("DELETE FROM public_a WHERE id IN (1, 2)", surplus),
            lambda: [name for (name,) in target.rows("SELECT target FROM floodmark_rebuilds")],
        )


STEPS: dict[str, tuple[type | None, str, bool]] = {
    "before the mark": (None, "begin", False),
    "after the mark": (None, "begin", True),
    "after the signal": (rebuilder._Rebuilding, "_ask", True),
    "all rows are read": (rebuilder._Rebuilding, "_replace", False),
    "the table is replaced": (rebuilder._Rebuilding, "_replace", True),
    "the mark is removed": (None, "finish", True),
}
"""Methods, those of the target where no class is given, and whether the process dies after what they do."""
OFTEN = {(delta, "after the mark"), (delta, "the table is replaced"), ("pg16", "all rows are read")}


class Death(BaseException):
    """The process that rebuilds dies."""


def rebuild(pipeline: Pipeline) -> floodmark.Rebuilt:
    sink = pipeline.sink
    target = sink.path or sink.options
    mirror = {"format": "iceberg", **sink.options} if sink.format == "iceberg" else {}
    wait_s = within(60.0)
    return floodmark.rebuild(pipeline.source, target, pipeline.checkpoint, TABLE, mirror=mirror, wait_s=wait_s)


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
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, repeat('b' || g, 900) FROM generate_series(1, 500) g",
    )
    run(spark, kept.pipeline)
    kept.spoil()
    owner, name, after = STEPS[step]
    owner = owner or kept.kind
    method: Callable[..., Any] = getattr(owner, name)

    def dies(*args: Any) -> Any:
        if after:
            method(*args)
        raise Death

    with running(spark, kept.pipeline), monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Death):
            rebuild(kept.pipeline)
    replaced = step in ("the table is replaced", "the mark is removed")
    source.execute("UPDATE a SET v = 'later' WHERE id % 7 = 0", "DELETE FROM a WHERE id % 11 = 0")
    run(spark, kept.pipeline)
    assert (-1 in dict(kept.rows())) is not replaced
    with running(spark, kept.pipeline):
        assert rebuild(kept.pipeline).replaced
    with closing(psycopg.connect(source.conninfo)) as connection:
        expected = connection.execute("SELECT id, v FROM a ORDER BY id").fetchall()
    run(spark, kept.pipeline)
    assert kept.rows() == expected
    assert kept.marked() == []
