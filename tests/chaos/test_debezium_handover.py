"""Debezium is stopped or killed at random moments, and a query goes on from its offset; and the other way round."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets, import_offsets
from floodmark.errors import OffsetError
from floodmark.spark.checkpoint import Checkpoint
from tests.conformance.debezium.debezium import Debezium
from tests.support.debezium_files import debezium_options
from tests.support.handed_over import (
    Change,
    Counting,
    Delivered,
    Place,
    going_back,
    missing_or_disordered,
    of_debezium,
    of_query,
    pipeline_file,
    place_on,
)
from tests.support.inprocess import InProcess
from tests.support.patience import within

ROUNDS = int(os.environ.get("FLOODMARK_CHAOS_HANDOVERS", "3"))
"""How often a source goes from Debezium to a query and back."""
ROWS = 400


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with place_on(request.getfixturevalue(request.param), tmp_path / "state") as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(120 + 60 * ROUNDS)
def test_a_source_goes_back_and_forth(place: Place, tmp_path: Path) -> None:
    course, work = begin(place, tmp_path, ROWS)
    work.start()
    try:
        for number in range(ROUNDS):
            course.debezium(kill=bool(course.chance.getrandbits(1)), least=0 if number else ROWS)
            course.query()
    finally:
        work.stop()
    course.debezium(kill=False, until=work.done[-1])
    assert not missing_or_disordered(course.delivered, work.done)
    assert course.taken_over


@pytest.mark.long
@pytest.mark.timeout(300)
def test_debezium_is_killed_during_its_snapshot(place: Place, tmp_path: Path) -> None:
    course, work = begin(place, tmp_path, 20000)
    work.start()
    try:
        course.debezium(kill=True, least=3000, most=3000)
        assert not course.query(), "the snapshot wasn't finished"
        # The slot, or the binlog, has the rest: the query takes a snapshot of its own.
        query = InProcess({**course.options, "snapshot.mode": "initial"})
        rows = query.drain()
    finally:
        work.stop()
    rows += query.drain()
    query.stop()
    assert not missing_or_disordered([*course.delivered, of_query(rows)], work.done)
    assert len({key for key, _ in of_query(rows).reads if key > 1000}) == 20000


def begin(place: Place, directory: Path, rows: int) -> tuple[Course, Counting]:
    """Return a course through a source, and the workload there, which has made its table."""
    database, given = place
    options = {
        **given,
        "table.include.list": f"{database.schema}.counted",
        "snapshot.mode": "no_data",
        "segment.bytes": "65536",
    }
    work = Counting(database, 1)
    work.create(rows)
    return Course(options, directory, random.Random(options["connector"])), work


class Course:
    """What Debezium and a query deliver of a source, in turn.

    Args:
        options: the query's.
        directory: for all files.
        chance: decides when they end.

    Attributes:
        delivered: by each, in turn.
        taken_over: how often the query has gone on from Debezium's offset.
    """

    def __init__(self, options: Mapping[str, str], directory: Path, chance: random.Random) -> None:
        self.options = dict(options)
        self.chance = chance
        self._directory = directory
        history = None if options["connector"] == "postgres" else str(directory / "history.dat")
        self._stores = Stores(str(directory / "offsets.dat"), history)
        self._file = pipeline_file(directory, options)
        self.delivered: list[Delivered] = []
        self.taken_over = 0

    def debezium(self, kill: bool, least: int = 0, most: int = 800, until: Change | None = None) -> None:
        """Let Debezium deliver a number of records, or go on until a change has come; then stop or kill it."""
        output = self._directory / f"records{len(self.delivered)}"
        connector = Debezium(debezium_options(self.options, self._directory), output)
        connector.start()
        try:
            if until is not None:
                connector.wait_for(f'"n":{until[1]},', within(60))
            else:
                connector.wait_records(self.chance.randint(least, max(least, most)) or 1, within(60))
                if least < most:
                    time.sleep(self.chance.random() * 2)
            if kill:
                os.kill(connector.pid, signal.SIGKILL)
        finally:
            connector.stop()
        self.delivered.append(of_debezium(connector.records()))

    def query(self) -> bool:
        """Let the query go on from Debezium's offset for a while, and hand its own back.

        Returns:
            Whether it could; it can't if Debezium was killed before it had finished its snapshot.
        """
        try:
            once_free(lambda: import_offsets(self._file, None, self._stores, True))
        except OffsetError as exc:
            if "snapshot" not in exc.what and "no offset" not in exc.what:
                raise
            return False
        self.taken_over += 1
        checkpoint = Checkpoint(str(self._directory / "checkpoint"))
        small = {**self.options, "max.batch.rows": str(self.chance.choice([37, 500, 5000]))}
        query = InProcess(small, checkpoint.delivered())
        rows = []
        for _ in range(self.chance.randint(1, 12)):
            rows += query.step()
            time.sleep(self.chance.random() * 0.2)
        query.stop()
        delivered = of_query(rows)
        assert not going_back(delivered.changes)
        self.delivered.append(delivered)
        checkpoint.go_on_from(query.offset)
        once_free(lambda: export_offsets(self._file, None, self._stores, True))
        return True


def once_free(action: Callable[[], None]) -> None:
    """Do something as soon as the server has noticed that the last reader is gone."""
    deadline = time.monotonic() + within(30)
    while True:
        try:
            return action()
        except OffsetError as exc:
            if "being read" not in exc.what or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
