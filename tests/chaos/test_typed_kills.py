"""The driver is killed while it delivers the typed rows of several tables: merged, they are what the source holds.

Meanwhile the tables get and lose columns, one column gets another type, and one table is truncated: the query ends
with an error at each altered table, and is loaded again."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import Database
from tests.support.driver import Driver
from tests.support.merging import Target, key_of, merge
from tests.support.patience import within
from tests.support.sink import read_batches
from tests.support.workload import Workload, held_rows

KILLS = int(os.environ.get("FLOODMARK_CHAOS_TYPED_KILLS", "2"))
SNAPSHOT_ROWS = 3000
COMPARED = {"plain": ("v", "extra"), "Mixed Case": ("v", "amount"), "toasted": ("v", "big"), "full_identity": ("v",)}


SPARE = "ALTER TABLE plain ADD spare integer DEFAULT 1"
# What an ALTER makes of existing rows is in no log.
ADDED = ("ALTER TABLE plain ADD extra integer DEFAULT 7", "UPDATE plain SET extra = -id")
ALTERATIONS = (
    ("TRUNCATE TABLE full_identity", "ALTER TABLE full_identity {decimal}"),
    ("ALTER TABLE plain DROP spare",),
    ("ALTER TABLE full_identity {bigint}",),
    ("TRUNCATE TABLE toasted", SPARE),
)
TYPES = {
    "pg18": {"decimal": "ALTER v TYPE numeric(20)", "bigint": "ALTER v TYPE bigint"},
    "mysql": {"decimal": "MODIFY v decimal(20) NOT NULL", "bigint": "MODIFY v bigint NOT NULL"},
}
ALTERED = "SchemaChangeError"
LOADS = 10
"""More than a query has to be loaded between two alterations."""


@pytest.mark.long
@pytest.mark.timeout(max(600, 24 * KILLS))
def test_kill_9(place: tuple[Database, dict[str, str]], tmp_path: Path) -> None:
    database, options = place
    chance = random.Random(database.schema)
    options = {**options, "format": "tables", "skipped.operations": "none"}
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "1000"}
    workload = Workload(database, seed=5, alters=False)
    workload.create(SNAPSHOT_ROWS)
    alter(database, (SPARE,))
    workload.start()
    try:
        for statements in islice(chain((ADDED,), cycle(ALTERATIONS)), KILLS):
            driver = running(small, tmp_path, chance)
            alter(database, statements)
            driver.wait_for_batches(1 << 30, chance.random() * 0.8)
            driver.kill()
    finally:
        workload.stop()
    caught_up(options, tmp_path)
    batches: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for number, rows in read_batches(tmp_path / "out"):
        batches[number] += rows
    verify(database, [batches[number] for number in sorted(batches)])


def running(options: dict[str, str], work: Path, chance: random.Random) -> Driver:
    """Return a query that has delivered some micro-batches, after all earlier alterations or some of them."""
    for _ in range(LOADS):
        driver = Driver(options, work, every=chance.choice(["0 seconds", "700 milliseconds"]))
        before = len(driver.log())
        if driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180)):
            return driver
        assert ALTERED in driver.log()[before:], driver.log()[-4000:]
    raise AssertionError(f"The query does not get past an altered table: {driver.log()[-4000:]}")


def caught_up(options: dict[str, str], work: Path) -> None:
    """Let the query deliver all that there is."""
    for _ in range(LOADS):
        driver = Driver(options, work, available_now=True)
        before = len(driver.log())
        if driver.wait(within(120)) == 0:
            return
        assert ALTERED in driver.log()[before:], driver.log()[-4000:]
    raise AssertionError(f"The query does not get past an altered table: {driver.log()[-4000:]}")


def alter(database: Database, statements: Sequence[str]) -> None:
    """Run statements that alter, empty or change tables."""
    types = TYPES["pg18" if database.schema == "public" else "mysql"]
    with database.session() as session:
        for statement in statements:
            session.execute(statement.format(**types))
        session.commit()


def verify(database: Database, batches: Sequence[list[dict[str, Any]]]) -> None:
    """Prove that no row of the micro-batches came twice, and that all of them make the source's tables."""
    for table, columns in COMPARED.items():
        column = f"{database.schema}.{table}"
        target: Target = {}
        seen: Counter[tuple[Any, ...]] = Counter()
        for batch in batches:
            rows = [{**row, **row[column][0]} for row in batch if row[column] is not None]
            # All rows of a snapshot have its position.
            seen.update((row["position"], row["op"], key_of(row, row["after"] or row["before"])) for row in rows)
            merge(target, rows)
        assert seen, f"{table}: nothing was delivered"
        assert not [row for row, count in seen.items() if count > 1], table
        found = {key: tuple(row.get(name) for name in columns) for key, row in target.items()}
        assert found == held_rows(database, table, columns), table
