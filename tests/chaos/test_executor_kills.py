"""Executors of a cluster are killed while they write a mirror's tables, and Spark runs tasks twice at the same time."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake.exceptions import DeltaError

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.delta.format.log import DeltaLog
from floodmark.sinks.delta.stores import table_folder
from tests.conftest import Source, drop, make_source
from tests.integration.test_mirror import rows_of
from tests.integration.test_retried_tasks import left_over
from tests.support import delta_spark
from tests.support.cluster import Cluster, running_cluster
from tests.support.driver import Driver
from tests.support.patience import within

FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))
KILLS = 10 if FULL else 1
CASES: list[dict[str, str]] = [{}]
if FULL:
    CASES += [{"deletion.vectors": "off"}, {"history": "on"}, {"engine": "spark"}]
SPECULATION = {
    "spark.executor.cores": "1",
    "spark.task.maxFailures": "100",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}
"""Every task is run once more as soon as there is nothing else to do."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mirrors", CASES, ids=lambda case: "-".join(case.values()) or "default")
def test_executors_are_killed(pg18: EmbeddedPostgres, tmp_path: Path, mirrors: dict[str, str]) -> None:
    source = make_source(pg18, tmp_path / "state", **{"snapshot.chunk.bytes": "16384", "segment.bytes": "65536"})
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v integer)",
        "CREATE TABLE b (id integer, v integer)",
        "INSERT INTO a SELECT g, 0 FROM generate_series(1, 1500) g",
        "INSERT INTO b SELECT g, 0 FROM generate_series(1, 1500) g",
    )
    options = {**source.options, "format": "arrow", "skipped.operations": "none"}
    chance = random.Random(str(mirrors))
    home = delta_spark.home() if "engine" in mirrors else None
    with running_cluster(tmp_path, home) as cluster:
        driver = Driver(options, tmp_path, master=cluster.url, mirrors=mirrors, properties=SPECULATION)
        try:
            assert driver.wait_for_batches(2, within(120)), driver.log()[-4000:]
            for number in range(1, KILLS + 1):
                batches = driver.batches()
                change(source, number, chance)
                time.sleep(chance.random() * 2)
                kill_one(cluster, chance)
                change(source, -number, chance)
                assert driver.wait_for_batches(batches + 1, within(120)), driver.log()[-4000:]
            until(lambda: mirrored(tmp_path, mirrors) == held(source), driver)
        finally:
            driver.kill()
    left = [len(left_over(tmp_path / "out" / f"public.{name}")) for name in ("a", "b")]
    assert sum(left) > 0
    for name in ("a", "b"):
        folder = table_folder(str(tmp_path / "out"), f"public.{name}")
        files = DeltaLog(folder.store).state().files.values()
        assert all((Path(folder.uri) / file.path).exists() for file in files)
    drop(source)


def change(source: Source, number: int, chance: random.Random) -> None:
    """Change rows in several transactions, so that several segments, and so tasks, have some."""
    for _ in range(20):
        part = chance.randrange(10)
        source.execute(
            f"UPDATE a SET v = {number} WHERE id % 10 = {part}",
            f"DELETE FROM a WHERE id % 97 = {part}",
            f"INSERT INTO b VALUES ({chance.randrange(10**9)}, {number})",
        )


def kill_one(cluster: Cluster, chance: random.Random) -> None:
    executors = cluster.executors()
    if executors:
        with contextlib.suppress(psutil.NoSuchProcess):
            chance.choice(executors).kill()


def held(source: Source) -> list[list[tuple[int, int]]]:
    with source.database.session() as session:
        return [sorted(session.execute(f"SELECT id, v FROM {name}").fetchall()) for name in ("a", "b")]


def mirrored(folder: Path, mirrors: dict[str, str]) -> list[list[tuple[Any, ...]]]:
    living = " WHERE is_current" if "history" in mirrors else ""
    try:
        return [
            sorted(tuple(row.values()) for row in rows_of(folder / "out" / f"public.{name}", "id, v", where))
            for name, where in (("a", living), ("b", ""))
        ]
    except DeltaError:
        return []  # there is none yet


def until(happens: Callable[[], bool], driver: Driver) -> None:
    deadline = time.monotonic() + within(90)
    while not happens():
        assert time.monotonic() < deadline, driver.log()[-4000:]
        assert not driver.ended(0.5), driver.log()[-4000:]
