"""The driver is killed while it reads a stand-in for Oracle, whose transactions overlap, roll back and switch logs."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.oracle_workload import ALTERED, Writer
from tests.support.applying import Event, apply, duplicates, time_travel
from tests.support.driver import Driver
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.replicator.world import World
from tests.support.oracle.scene import NAME, SCHEMA, Scene
from tests.support.patience import within
from tests.support.sink import read_sink

KILLS = int(os.environ.get("FLOODMARK_CHAOS_ORACLE_KILLS", "2"))
ROUNDS = max(1, -(-KILLS // 50))
"""Rows are compared at the end of each round, so that a long run shows early what it found."""
SNAPSHOT_ROWS = 3000
SPARK_STARTS = "Setting default log level"
"""What each process of a query says first in the log that they share."""
TRIGGERS = ["0 seconds", "700 milliseconds"]
SMALL = {
    "snapshot.chunk.bytes": "65536",
    "max.batch.bytes": "262144",
    "segment.bytes": "65536",
    "max.batch.rows": "500",
}
"""Small pieces and batches make many points at which to die."""
PLACES: dict[str, Callable[..., Scene]] = {
    **{one: partial(Scene, rows=SNAPSHOT_ROWS, adapter=one) for one in ("logminer", "logminer_unbuffered")},
    "olr": partial(World, rows=SNAPSHOT_ROWS),
}
MINED = {
    # Changes may be read when their table is another one already.
    "log.mining.strategy": "hybrid",
}


@pytest.mark.long
@pytest.mark.timeout(max(600, 24 * KILLS // ROUNDS))
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("adapter", PLACES)
def test_kill_9(adapter: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with PLACES[adapter](tmp_path, database=OracleDatabase(threads=2)) as scene:
        options = {**scene.options(), **({} if isinstance(scene, World) else mined(scene))}
        writer = Writer(scene, chance, SNAPSHOT_ROWS)
        writer.start()
        try:
            for _ in range(-(-KILLS // ROUNDS)):
                driver = Driver({**options, **SMALL}, tmp_path, every=chance.choice(TRIGGERS))
                planned = driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180))
                if not planned and begin_anew(scene, driver):
                    continue
                assert planned, driver.log()[-4000:]
                if chance.random() < 0.5:
                    lose_sessions(scene)
                driver.wait_for_batches(1 << 30, chance.random() * 0.8)
                driver.kill()
                if isinstance(scene, World):
                    scene.replicator.restart()
        finally:
            writer.stop()
        last = Driver(options, tmp_path, available_now=True)
        if last.wait(within(180)) and begin_anew(scene, last):
            last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        events = read_sink(last.out)
        judge(events)
        applied = apply(events)
        found = applied[f"{SCHEMA}.{NAME}"]
        assert sorted(tuple(row.values()) for row in found.values()) == scene.expected()
        altered = writer.expected()
        assert len(altered[0]) > 2
        assert sorted(whole(row, len(altered[0])) for row in applied[f"{SCHEMA}.{ALTERED}"].values()) == altered


def mined(scene: Scene) -> dict[str, str]:
    """Return what LogMiner needs for two instances."""
    nodes = ",".join(f"127.0.0.1:{one.port}" for one in (scene.server, *scene.nodes))
    return {**MINED, "rac.nodes": nodes}


def lose_sessions(scene: Scene) -> None:
    """End all that a query has with the database, and with the server that its log comes from."""
    for one in (scene.server, *scene.nodes):
        one.cut_connections()
    if isinstance(scene, World):
        # What it has sent already, it only sends again after that.
        scene.replicator.restart()


def begin_anew(scene: Scene, query: Driver) -> bool:
    """Do what the error says if a server, started again before its first checkpoint, leaves out what it has sent.

    Returns:
        Whether that was the query's error.
    """
    last = query.log().rpartition(SPARK_STARTS)[2]
    if not isinstance(scene, World) or "OpenLogReplicator goes on at " not in last:
        return False
    scene.replicator.checkpoint.scn = None
    scene.replicator.restart()
    return True


def judge(events: list[Event]) -> None:
    """Prove that events came exactly once, by their positions, and in the order of commits."""
    assert not duplicates(events)
    assert not time_travel(events, "V")
    assert {one.op for one in events} == {"r", "c", "u", "d"}


def whole(row: dict[str, object], count: int) -> tuple[object, ...]:
    """Return a row with the columns that its table has got since."""
    values = tuple(row.values())
    return (*values, *[None] * (count - len(values)))
