"""Targets, and what a mirror remembers, on a disk that gets full: one error, nothing in part, and it goes on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.integration.test_mirror import rows_of
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.small_disk import SmallDisk, fill, free

Mount = Callable[[Path, str], SmallDisk]
FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))
ENGINES: list[dict[str, str]] = [{}, *([{"engine": "spark"}] if FULL else [])]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Return what mounts small filesystems."""
    mounted: list[SmallDisk] = []

    def one(place: Path, size: str) -> SmallDisk:
        mounted.append(SmallDisk(place, size))
        return mounted[-1]

    yield one
    for disk in mounted:
        disk.close()


@pytest.mark.parametrize("seed", range(40 if FULL else 4))
def test_wherever_the_disk_gets_full(tmp_path: Path, mount: Mount, seed: int) -> None:
    disk = mount(tmp_path / "disk", "4m")
    command = [*disk.command, sys.executable, "-m", "tests.support.full_disk", str(tmp_path / "disk"), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(100))
    assert done.returncode == 0, done.stderr[-4000:]
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"ENDED with {.*'TargetError': \d+.*}", last), last
    # What fails beside micro-batches is only a warning.
    assert "a_table_is_not_tidied" in done.stderr


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mirrors", ENGINES, ids=lambda case: case.get("engine", "floodmark"))
def test_a_query_whose_disk_is_full(
    pg18: EmbeddedPostgres, tmp_path: Path, mount: Mount, mirrors: dict[str, str]
) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text)", "INSERT INTO a SELECT g, g FROM generate_series(1, 500) g"
    )
    options = {**source.options, "format": "arrow", "skipped.operations": "none"}
    disk = mount(tmp_path / "out", "16m")
    table = disk.seen / "public.a"

    def run() -> tuple[int, str]:
        driver = Driver(options, tmp_path, available_now=True, mirrors=mirrors, prefix=disk.command)
        known = len(driver.log())
        return driver.wait(within(150)), driver.log()[known:]

    def rows() -> list[dict[str, Any]]:
        # delta-rs resolves links, and so doesn't find what is in another namespace.
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table, copy)
        return rows_of(copy, "id, v")

    code, log = run()
    assert code == 0, log[-4000:]
    before = rows()
    commits = sorted(path.name for path in (table / "_delta_log").glob("0*.json"))
    source.execute("UPDATE a SET v = 'new' WHERE id % 3 = 0", "DELETE FROM a WHERE id % 7 = 0")
    # With more pages what tasks write has room, and then it is Spark that has none.
    for pages in (0, 6, 10, 14) if mirrors else (0,):
        fill(disk.seen, pages)
        code, log = run()
        free(disk.seen)
        if code == 0:
            break
        assert re.search(r"table 'public\.a'.* No space left on device.*Free some space", log), log[-4000:]
        assert rows() == before
        assert sorted(path.name for path in (table / "_delta_log").glob("0*.json")) == commits
    assert code != 0 or pages
    code, log = run()
    assert code == 0, log[-4000:]
    with source.database.session() as session:
        expected = [{"id": row[0], "v": row[1]} for row in session.execute("SELECT id, v FROM a ORDER BY id")]
    assert rows() == expected
    drop(source)
