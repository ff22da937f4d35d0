"""Oracle's connector through Spark: mirrors, their comparison with the source, and typed rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from tests.integration.test_mirror import run
from tests.integration.test_verify import one, running, verify
from tests.support.available_now import ENDING, start_to_end
from tests.support.oracle.outbound.world import World
from tests.support.oracle.scene import NAME, SCHEMA, Scene
from tests.support.patience import within
from tests.support.planting import Planter

pytestmark = pytest.mark.slow


def mirror_of(scene: Scene, folder: Path) -> Pipeline:
    return parse_pipeline(
        {
            "source": scene.options(),
            "sink": {"type": "mirror", "path": str(folder / "lake")},
            "checkpoint": str(folder / "checkpoint"),
            "trigger": {"availableNow": "true"},
        }
    )


def mirrored(folder: Path) -> list[tuple[Any, ...]]:
    target = QueryBuilder().register("t", DeltaTable(str(folder / "lake" / f"{SCHEMA}.{NAME}")))
    rows = pa.table(target.execute('SELECT "ID", "V", "PAD" FROM t').read_all()).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("scene_of", [Scene, pytest.param(World, marks=pytest.mark.long)], ids=["logminer", "xstream"])
def test_a_mirror_follows_and_is_compared(scene_of: type[Scene], spark: SparkSession, tmp_path: Path) -> None:
    with scene_of(tmp_path, rows=300) as scene:
        pipeline = mirror_of(scene, tmp_path)
        run(spark, pipeline)
        assert mirrored(tmp_path) == scene.expected()
        scene.write(1000)
        with scene.change() as transaction:
            transaction.delete(scene.table, {"ID": 7})
        run(spark, pipeline)
        assert mirrored(tmp_path) == scene.expected()
        with running(spark, pipeline):
            found = one(verify(pipeline))
            assert (found.status, found.source_rows, found.target_rows) == ("equal", 300, 300)
            Planter(tmp_path / "lake" / f"{SCHEMA}.{NAME}", "ID").lose([9])
            assert [(key.key, key.kind) for key in one(verify(pipeline)).differences] == [({"ID": 9}, "missing")]


def test_typed_rows(spark: SparkSession, tmp_path: Path) -> None:
    with Scene(tmp_path) as scene:
        scene.write(100)
        options = {**scene.options(), "format": "rows", **ENDING}
        stream = spark.readStream.format("floodmark").options(**options).load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = start_to_end(writer, str(tmp_path / "out"))
        assert query.awaitTermination(int(within(120)))
        rows = spark.read.parquet(str(tmp_path / "out")).select("after.*").collect()
        assert sorted(tuple(row) for row in rows) == scene.expected()
