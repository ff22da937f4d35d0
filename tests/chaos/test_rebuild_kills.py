"""A table is rebuilt again and again, while the query and the command that rebuilds it are killed at random points."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from floodmark.sinks.delta.rebuilds import RebuildMarks
from tests.chaos.killing import Place
from tests.integration.test_mirror import rows_of
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.planting import Planter
from tests.support.workload import Workload, held_rows

KILLS = int(os.environ.get("FLOODMARK_REBUILD_KILLS", "6"))
COMMAND = """
import json, sys
import floodmark
floodmark.rebuild(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], wait_s=600.0, tell=print)
"""
SURPLUS = -7


@pytest.mark.long
@pytest.mark.timeout(max(900, 60 * KILLS))
@pytest.mark.parametrize("mirrors", [{}, {"deletion.vectors": "off"}], ids=["vectors", "copies"])
def test_kills_while_a_table_is_rebuilt(place: Place, mirrors: dict[str, str], tmp_path: Path) -> None:
    database, options = place
    chance = random.Random(f"{database.schema} {mirrors}")
    options = {**options, "format": "arrow", "skipped.operations": "none", "signal.poll.interval.ms": "200"}
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "2000"}
    small["incremental.snapshot.chunk.size"] = "200"
    table = f"{database.schema}.plain"
    folder = tmp_path / "out" / table
    workload = Workload(database, 3, alters=False)
    workload.create(6000)
    first = Driver(options, tmp_path, available_now=True, mirrors=mirrors)
    assert first.wait(within(120)) == 0, first.log()[-4000:]
    call = [sys.executable, "-c", COMMAND, json.dumps(options), str(tmp_path / "out"), str(tmp_path / "checkpoint")]
    rebuilt, driver, command = 0, None, None
    workload.start()
    try:
        with following(folder) as seen:
            for _ in range(KILLS):
                if not mirrors:
                    plant(folder)
                command = command or started(call, table, tmp_path)
                driver = driver or Driver(small, tmp_path, mirrors=mirrors)
                assert driver.wait_for_batches(driver.batches() + 1, within(180)), driver.log()[-4000:]
                time.sleep(chance.random() * within(8))
                killed = chance.choice(("query", "command", "both"))
                if killed != "command":
                    driver.kill()
                    driver = None
                if killed != "query":
                    command.kill()
                    command.wait()
                if command.poll() is not None:
                    assert command.returncode in (0, -signal.SIGKILL), text_of(tmp_path)
                    rebuilt += command.returncode == 0
                    command = None
            driver = driver or Driver(small, tmp_path, mirrors=mirrors)
            command = command or started(call, table, tmp_path)
            assert command.wait(within(300)) == 0, text_of(tmp_path)
            rebuilt += 1
            driver.kill()
        assert len(seen) > KILLS
    finally:
        workload.stop()
    assert rebuilt
    last = Driver(options, tmp_path, available_now=True, mirrors=mirrors)
    assert last.wait(within(120)) == 0, last.log()[-4000:]
    assert RebuildMarks(str(tmp_path / "out")).all() == {}
    for name, columns in {"plain": ("v", "note"), "toasted": ("v", "big")}.items():
        rows = rows_of(tmp_path / "out" / f"{database.schema}.{name}", ", ".join(("id", *columns)))
        expected = [(*key, *values) for key, values in held_rows(database, name, columns).items()]
        assert sorted((tuple(row.values()) for row in rows), key=str) == sorted(expected, key=str), name


def started(call: list[str], table: str, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "rebuild.log").open("ab") as log:
        return subprocess.Popen([*call, table], stdout=log, stderr=log)


def text_of(folder: Path) -> str:
    return (folder / "rebuild.log").read_text(encoding="utf-8")[-4000:]


def plant(folder: Path) -> None:
    """Add a row that only a rebuilding removes, unless it is there."""
    ids = [row["id"] for row in rows_of(folder, "id")]
    if SURPLUS not in ids:
        Planter(folder).add(ids[0], id=SURPLUS)


@contextmanager
def following(folder: Path) -> Iterator[list[int]]:
    """Read a table all the time, and prove that it has rows, each once."""
    stop, found = threading.Event(), list[int]()

    def read() -> None:
        while not stop.is_set():
            ids = [row["id"] for row in rows_of(folder, "id")]
            assert ids
            assert len(set(ids)) == len(ids)
            found.append(len(ids))
            stop.wait(0.3)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(read)
        try:
            yield found
        finally:
            stop.set()
        done.result()
