"""The verdict on a query's output."""

from __future__ import annotations

from pathlib import Path

from tests.support.applying import apply, duplicates, time_travel
from tests.support.databases import Database
from tests.support.sink import read_sink
from tests.support.turmoil import Turmoil
from tests.support.workload import source_rows, toasted_rows


def verify(database: Database, work: Path, turmoil: Turmoil | None = None, reads: int = 1) -> None:
    """Prove that what a workload's query wrote equals the source, without duplicates or time travel.

    Args:
        database: the source.
        work: directory of the query.
        turmoil: what else changed tables.
        reads: how often a table was read, so how often its rows may come while they don't change.
    """
    events = read_sink(work / "out")
    assert events, "nothing was delivered"
    assert not duplicates(events, reads)
    assert not time_travel(events)
    applied = apply(events)
    for table, rows in source_rows(database).items():
        got = {key: row["v"] for key, row in applied.get(table, {}).items()}
        assert got == rows, table
    big = {key: row["big"] for key, row in applied[f"{database.schema}.toasted"].items()}
    assert big == toasted_rows(database)
    if turmoil is not None:
        turmoil.check(events)
