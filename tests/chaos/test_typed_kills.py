"""The driver is killed while it delivers the typed rows of several tables: merged, they are what the source holds."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import drop_slots, make_source
from tests.support.databases import Database, Mysql
from tests.support.driver import Driver
from tests.support.merging import Target, key_of, merge
from tests.support.patience import within
from tests.support.sink import read_batches
from tests.support.workload import KEYS, Workload

KILLS = int(os.environ.get("FLOODMARK_CHAOS_TYPED_KILLS", "3"))
SNAPSHOT_ROWS = 3000
NAME = "typed_kills"
COMPARED = {"plain": ("v",), "Mixed Case": ("v", "amount"), "toasted": ("v", "big"), "full_identity": ("v",)}


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, dict[str, str]]]:
    """Return a database and the options of a source that reads it."""
    server = request.getfixturevalue(request.param)
    if request.param == "pg18":
        source = make_source(server, tmp_path / "state")
        yield source.database, source.options
        drop_slots(source)
        return
    server.execute(f"CREATE DATABASE {NAME}")
    options = {
        **server.options(),
        "topic.prefix": NAME,
        "state.dir": str(tmp_path / "state"),
        "database.include.list": NAME,
    }
    yield Mysql(server, NAME, image="MINIMAL"), options
    server.execute(f"DROP DATABASE {NAME}")


@pytest.mark.timeout(max(600, 24 * KILLS))
def test_kill_9(place: tuple[Database, dict[str, str]], tmp_path: Path) -> None:
    database, options = place
    chance = random.Random(database.schema)
    options = {**options, "format": "tables"}
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "1000"}
    # Typed rows end with an altered table.
    workload = Workload(database, seed=5, alters=False)
    workload.create(SNAPSHOT_ROWS)
    workload.start()
    try:
        for _ in range(KILLS):
            driver = Driver(small, tmp_path, every=chance.choice(["0 seconds", "700 milliseconds"]))
            assert driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180)), driver.log()[-4000:]
            driver.wait_for_batches(1 << 30, chance.random() * 0.8)
            driver.kill()
    finally:
        workload.stop()
    last = Driver(options, tmp_path, available_now=True)
    assert last.wait(within(120)) == 0, last.log()[-4000:]
    verify(database, tmp_path)


def verify(database: Database, work: Path) -> None:
    """Prove that no row came twice, and that all of them make the source's tables."""
    batches: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for number, rows in read_batches(work / "out"):
        batches[number] += rows
    for table, columns in COMPARED.items():
        column = f"{database.schema}.{table}"
        target: Target = {}
        seen: Counter[tuple[Any, ...]] = Counter()
        for number in sorted(batches):
            rows = [{**row, **row[column][0]} for row in batches[number] if row[column] is not None]
            # All rows of a snapshot have its position.
            seen.update((row["position"], row["op"], key_of(row, row["after"] or row["before"])) for row in rows)
            merge(target, rows)
        assert seen, f"{table}: nothing was delivered"
        assert not [row for row, count in seen.items() if count > 1], table
        found = {key: tuple(row[name] for name in columns) for key, row in target.items()}
        assert found == held(database, table, columns), table


def held(database: Database, table: str, columns: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return what the source holds of some columns, by key."""
    name = next(name for name in KEYS if name.strip('"') == table)
    keys = KEYS[name]
    with database.session() as session:
        rows = session.execute(f"SELECT {', '.join((*keys, *columns))} FROM {name}")
        return {tuple(row[: len(keys)]): tuple(row[len(keys) :]) for row in rows}
