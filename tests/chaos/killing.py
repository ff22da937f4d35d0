"""Kills queries that keep tables, while rows and tables of the source are changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Protocol

import floodmark
from tests.support.databases import Database
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.worker import Worker

Place = tuple[Database, dict[str, str]]
"""A database, and the options that capture it."""
COMPARED = {
    "plain": ("v", "note", "extra"),
    "Mixed Case": ("v", "amount"),
    "toasted": ("v", "big", "label"),
    "full_identity": ("v",),
}
SPARE = "ALTER TABLE plain ADD spare integer DEFAULT 1"
ALTERATIONS = (
    # What the ALTER makes of the other rows is in no log.
    ("ALTER TABLE plain ADD extra integer DEFAULT 7", "UPDATE plain SET extra = -id WHERE id % 3 = 0"),
    ("TRUNCATE TABLE full_identity",),
    ("ALTER TABLE plain DROP spare", "ALTER TABLE toasted ADD label varchar(9) DEFAULT 'none' NOT NULL"),
    ("TRUNCATE TABLE toasted",),
)


class StartDriver(Protocol):
    """Starts a query, which goes on where the last one was killed."""

    def __call__(self, options: dict[str, str], *, available_now: bool = False) -> Driver:
        """Start it.

        Args:
            options: the source's.
            available_now: whether the query ends when it has caught up.
        """


def kill_and_end(
    place: Place, start: StartDriver, kills: int, workers: Sequence[Worker], alterations: Sequence[tuple[str, ...]] = ()
) -> None:
    """Kill a query again and again while rows and tables are changed, and let it come to the end then.

    Args:
        kills: how often.
        workers: they change rows.
        alterations: statements about tables, some before each kill.
    """
    database, options = place
    chance = random.Random(database.schema)
    options = {**options, "format": "arrow", "skipped.operations": "none"}
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "2000"}
    for worker in workers:
        worker.start()
    try:
        for statements in islice(chain(alterations, repeat(())), kills):
            driver = start(small)
            assert driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180)), driver.log()[-4000:]
            alter(database, statements)
            driver.wait_for_batches(1 << 30, chance.random() * 2)
            driver.kill()
    finally:
        for worker in workers:
            worker.stop()
    for statements in alterations[kills:]:
        alter(database, statements)
    # What the first one asks for, because of new columns, the second one reads.
    for _ in range(2):
        last = start(options, available_now=True)
        assert last.wait(within(120)) == 0, last.log()[-4000:]


def judge(place: Place, target: str | dict[str, str], work: Path, mirror: dict[str, str] | None = None) -> None:
    """Let ``floodmark verify`` compare what a query wrote with the source, of tables that have a key.

    Args:
        target: as for ``floodmark.verify``.
        work: the query's directory.
        mirror: as for ``floodmark.verify``.
    """
    found = floodmark.verify(place[1], target, str(work / "checkpoint"), at_rest=True, mirror=mirror).tables
    compared = [table for table in found if "has no key: " not in table.reason]
    assert len(compared) >= len(found) - 1 > 0
    assert all(table.status == "equal" for table in compared), compared


def alter(database: Database, statements: tuple[str, ...]) -> None:
    """Run statements about tables."""
    with database.session() as session:
        for statement in statements:
            session.execute(statement)
        session.commit()
