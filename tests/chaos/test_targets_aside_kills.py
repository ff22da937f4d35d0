"""A query is killed while it sets a target aside, and while it takes it back."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.integration.test_mirror import rows_of
from tests.support.driver import Driver
from tests.support.patience import within

CASES = [("*/public.a/_floodmark/set_aside.json", "*/public.a/_delta_log/*.json")]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    CASES += [
        ("state/*/mirrors/*/aside/*", "state/*/signals/*"),
        ("*/public.a/part-*", "*/public.a/part-*"),
        *[("", "")] * 4,
    ]
"""Files that are there when the query is killed; nothing: it is killed at random."""


@pytest.mark.timeout(600)
@pytest.mark.long
@pytest.mark.parametrize(("aside", "back"), CASES)
def test_kills_around_a_target_that_is_set_aside(pg18: EmbeddedPostgres, tmp_path: Path, aside: str, back: str) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "CREATE TABLE b (id integer PRIMARY KEY)")
    source.execute("INSERT INTO a SELECT g, g FROM generate_series(1, 500) g", "INSERT INTO b VALUES (1)")
    options = {**source.options, "format": "arrow", "skipped.operations": "none"}
    chance, table = random.Random(aside + back), tmp_path / "out" / "public.a"

    def end() -> None:
        driver = Driver(options, tmp_path, available_now=True, mirrors={})
        assert driver.wait(within(120)) == 0, driver.log()[-4000:]

    def kill(pattern: str) -> None:
        known = set(tmp_path.glob(pattern)) if pattern else set()
        driver = Driver(options, tmp_path, mirrors={})
        if pattern:
            wait(driver, lambda: set(tmp_path.glob(pattern)) > known)
        else:
            assert driver.wait_for_batches(driver.batches() + 1, within(120)), driver.log()[-4000:]
            driver.wait_for_batches(1 << 30, chance.random() * 2)
        driver.kill()

    end()
    before = rows_of(table, "id, v")
    source.execute("ALTER TABLE a ALTER v TYPE bigint USING v::bigint", "UPDATE a SET v = -1 WHERE id % 2 = 0")
    source.execute("INSERT INTO b VALUES (2)")
    kill(aside)
    source.execute("DELETE FROM a WHERE id % 3 = 0", "INSERT INTO b VALUES (3)")
    end()
    assert (table / "_floodmark" / "set_aside.json").exists()
    assert rows_of(table, "id, v") == before
    assert ids(source, "b") == [row["id"] for row in rows_of(tmp_path / "out" / "public.b", "id")]
    shutil.rmtree(table)
    source.execute("UPDATE a SET v = -2 WHERE id % 5 = 0", "INSERT INTO b VALUES (4)")
    kill(back)
    # What the first one asks for, the second one reads.
    for number in (5, 6):
        source.execute(f"UPDATE a SET v = {number} WHERE id % {number} = 0", f"INSERT INTO b VALUES ({number})")
        end()
    assert ids(source, "b") == [row["id"] for row in rows_of(tmp_path / "out" / "public.b", "id")]
    with source.database.session() as session:
        expected = [{"id": row[0], "v": row[1]} for row in session.execute("SELECT id, v FROM a ORDER BY id")]
    assert rows_of(table, "id, v") == expected
    drop(source)


def wait(driver: Driver, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + within(120)
    while not condition():
        assert time.monotonic() < deadline, driver.log()[-4000:]
        time.sleep(0.002)


def ids(source: Source, table: str) -> list[int]:
    with source.database.session() as session:
        return [row[0] for row in session.execute(f"SELECT id FROM {table} ORDER BY id")]
