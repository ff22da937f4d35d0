"""Differences are repaired again and again, while the query and the command that repairs them are killed at random."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.killing import Place
from tests.integration.test_mirror import rows_of
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.planting import Planter
from tests.support.workload import Workload, held_rows

KILLS = int(os.environ.get("FLOODMARK_REPAIR_KILLS", "4"))
COMMAND = """
import json, sys
import floodmark
options, path, checkpoint = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
found = floodmark.verify(options, path, checkpoint, repair=True, wait_s=float(sys.argv[4]))
print([(one.table, one.status, one.reason, one.repaired, one.count) for one in found.tables], flush=True)
sys.exit(0 if found.equal else 1)
"""
SURPLUS = -7
"""The key of a row that the source hasn't."""


@pytest.mark.long
@pytest.mark.timeout(max(900, 60 * KILLS))
@pytest.mark.parametrize("mirrors", [{}, {"deletion.vectors": "off"}], ids=["vectors", "copies"])
def test_kills_while_differences_are_repaired(place: Place, mirrors: dict[str, str], tmp_path: Path) -> None:
    database, options = place
    chance = random.Random(f"{database.schema} {mirrors}")
    options = {**options, "format": "arrow", "skipped.operations": "none", "signal.poll.interval.ms": "200"}
    small = {**options, "segment.bytes": "65536", "max.batch.rows": "2000", "incremental.snapshot.chunk.size": "200"}
    table = f"{database.schema}.plain"
    folder = tmp_path / "out" / table
    workload = Workload(database, 3, alters=False)
    workload.create(6000)
    first = Driver(options, tmp_path, available_now=True, mirrors=mirrors)
    assert first.wait(within(120)) == 0, first.log()[-4000:]
    wait_s = str(within(120))
    call = [
        sys.executable,
        "-c",
        COMMAND,
        json.dumps(options),
        str(tmp_path / "out"),
        str(tmp_path / "checkpoint"),
        wait_s,
    ]
    driver, planted = None, 0
    workload.start()
    try:
        for _ in range(KILLS):
            planted += plant(folder, chance)
            driver = driver or Driver(small, tmp_path, mirrors=mirrors)
            command = started(call, tmp_path)
            assert driver.wait_for_batches(driver.batches() + 1, within(180)), driver.log()[-4000:]
            time.sleep(chance.random() * within(6))
            killed = chance.choice(("query", "command", "both"))
            if killed != "command":
                driver.kill()
                driver = None
            if killed != "query":
                command.kill()
                assert command.wait() in (0, 1, -signal.SIGKILL)
            else:
                driver = Driver(small, tmp_path, mirrors=mirrors)
                # Differences may be left that it couldn't be sure of; nothing else may keep it from its work.
                assert command.wait(within(300)) in (0, 1), text_of(tmp_path)
        driver = driver or Driver(small, tmp_path, mirrors=mirrors)
        workload.stop()
        last = started(call, tmp_path)
        assert last.wait(within(300)) == 0, text_of(tmp_path)
        driver.kill()
    finally:
        workload.stop()
    assert planted
    end = Driver(options, tmp_path, available_now=True, mirrors=mirrors)
    assert end.wait(within(120)) == 0, end.log()[-4000:]
    for name, columns in {"plain": ("v", "note"), "toasted": ("v", "big")}.items():
        rows = rows_of(tmp_path / "out" / f"{database.schema}.{name}", ", ".join(("id", *columns)))
        expected = [(*key, *values) for key, values in held_rows(database, name, columns).items()]
        assert sorted((tuple(row.values()) for row in rows), key=str) == sorted(expected, key=str), name


def plant(folder: Path, chance: random.Random) -> int:
    """Let rows be missing, other ones and surplus; return how many."""
    ids = sorted(row["id"] for row in rows_of(folder, "id") if row["id"] != SURPLUS)
    lost, spoiled, like = chance.sample(ids, 3)
    planter = Planter(folder)
    planter.lose([lost])
    planter.spoil(spoiled, note="planted")
    planter.add(like, id=SURPLUS)
    return 3


def started(call: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "repair.log").open("ab") as log:
        return subprocess.Popen(call, stdout=log, stderr=log)


def text_of(folder: Path) -> str:
    return (folder / "repair.log").read_text(encoding="utf-8")[-4000:]
