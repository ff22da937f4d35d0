"""Files in ``state.dir`` are flipped, cut, emptied, lost and swapped under load: the result is right, or refused.

What is refused says what the way out is, and the test takes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.connectors.load import load_options
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import FloodmarkError, LogGoneError, SchemaHistoryError, StateDirError
from floodmark.spark.stream.readers import output_schema
from tests.conftest import drop, make_source
from tests.support.applying import Event, Rows, apply, event
from tests.support.damage import Saboteur
from tests.support.databases import Database, Mysql
from tests.support.driver import Driver
from tests.support.mysql import Flavor, MysqlServer
from tests.support.patience import within
from tests.support.stream_reader import StreamReader, make_reader
from tests.support.verify import verify
from tests.support.workload import HURRIED, Workload, source_rows, toasted_rows

ROUNDS = int(os.environ.get("FLOODMARK_CHAOS_DAMAGE", "36"))
DATABASES = ("postgres", "mysql", "mariadb")
ROUNDS_A_CHECK = 12
SNAPSHOT_ROWS = 1500
SPARK_ROUNDS = max(ROUNDS // 36, 1)
SMALL = {
    "snapshot.chunk.bytes": "65536",
    "max.batch.bytes": "262144",
    "segment.bytes": "65536",
    "max.batch.rows": "1000",
    "incremental.snapshot.chunk.size": "200",
    "signal.poll.interval.ms": "1",
}
RESTART, RECOVERY, SEND_AGAIN = "estart the query", "snapshot.mode=recovery", "send the signal again"


class Target:
    """What a sink that takes each micro-batch as a whole, or not at all, has."""

    def __init__(self) -> None:
        self.batches = 0
        self._events: list[Event] = []
        self._tables: dict[str, Rows] = {}

    def take(self, rows: list[dict[str, Any]]) -> None:
        self._events += [event(self.batches, row) for row in rows if row["table"] is not None]
        self.batches += 1

    def tables(self) -> dict[str, Rows]:
        self._tables = apply(self._events, self._tables)
        self._events = []
        return self._tables


class Query:
    """A query whose offsets are kept as in Spark's checkpoint: a planned micro-batch is delivered, whoever planned it.

    Attributes:
        offset: the last one that is committed; None: there is none.
    """

    def __init__(self) -> None:
        self.offset: dict[str, Any] | None = None
        self.target = Target()
        self._planned: dict[str, Any] | None = None
        self._reader: StreamReader | None = None

    def open(self, options: dict[str, str]) -> None:
        self.stop()
        self._reader = make_reader(options, output_schema(load_options(options)))

    def stop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.stop()

    @property
    def is_open(self) -> bool:
        return self._reader is not None

    def step(self, meanwhile: Callable[[str], None] = lambda _: None) -> bool:
        """Run a micro-batch; return whether there was one.

        Args:
            meanwhile: is called between its parts.
        """
        reader = self._reader
        assert reader is not None
        start = reader.initialOffset() if self.offset is None else self.offset
        if self._planned is None:
            end = json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))
            if end == start:
                return False
            self._planned = end
        meanwhile("planned")
        partitions = reader.partitions(start, self._planned)
        meanwhile("to be read")
        rows = [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]
        self.target.take(rows)
        self.offset, self._planned = self._planned, None
        # Nothing but the damage may set a table aside, and it must not.
        assert not self.offset["aside"]
        reader.commit(self.offset)
        return True

    def drain(self) -> None:
        """Deliver all there is."""
        assert self._reader is not None
        while self._planned is not None or self.offset is None:
            self.step()
        self._reader.prepareForTriggerAvailableNow()
        while self.step():
            pass

    @property
    def in_snapshot(self) -> bool:
        """Whether a snapshot that a recovery would give up isn't finished."""
        known = self._planned or self.offset
        return known is None or known["snapshot"] is not None


@contextmanager
def served(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Database, dict[str, str]]]:
    """Yield a database and the options of a query that reads it."""
    state = tmp_path / "state"
    if name == "postgres":
        server: EmbeddedPostgres = request.getfixturevalue("pg18")
        source = make_source(server, state, **SMALL, **{"table.include.list": r"public\..*"})
        try:
            yield source.database, source.options
        finally:
            drop(source)
        return
    flavor: Flavor = "mysql" if name == "mysql" else "mariadb"
    with MysqlServer(flavor) as binlog:
        binlog.execute("CREATE DATABASE shop")
        options = {**binlog.options(), "topic.prefix": "test", "state.dir": str(state), "database.include.list": "shop"}
        options["include.schema.changes"] = "false"
        yield Mysql(binlog, "shop"), {**options, **SMALL}


class Rounds:
    """Damages files while a query runs, and takes the ways out.

    Args:
        name: of the database.
        database: what the workload changes.
        options: of the query.
    """

    def __init__(self, name: str, database: Database, options: dict[str, str]) -> None:
        self.chance = random.Random(f"{name} {ROUNDS}")
        self.database = database
        self.options = options
        self.saboteur = Saboteur(random.Random(f"{name} damage"), Path(options["state.dir"]))
        self.query = Query()
        self.refused: list[str] = []
        self.altered = False
        self._alterations = 0
        self._mode: dict[str, str] = {}

    def run(self) -> None:
        """Run a round: some micro-batches, with damage at some moment."""
        if self.chance.random() < 0.3:
            kinds = self.chance.sample(["plain", "toasted", "full_identity"], self.chance.randint(1, 2))
            tables = [rf"{self.database.schema}\.{kind}" for kind in kinds]
            floodmark.signal(self.options, "execute-snapshot", {"data-collections": tables})
        if self.database.alterations and self.chance.random() < 0.15:
            self._alter()
        moment = self.chance.choice(["stopped", "running", "planned", "to be read"])
        if moment == "stopped":
            self._guarded(self.query.stop)
            self.saboteur.strike()
        strikes = [moment]

        def meanwhile(place: str) -> None:
            if place in strikes:
                strikes.remove(place)
                self.saboteur.strike()

        for _ in range(self.chance.randint(1, 4)):
            meanwhile("running")
            self._guarded(lambda: self._step(meanwhile))
        if self.chance.random() < 0.3:
            self._guarded(self.query.stop)

    def check(self) -> None:
        """Deliver everything, and compare with the source."""
        while not self._guarded(self._drain):
            pass
        self.altered = False
        applied = self.query.target.tables()
        for table, rows in source_rows(self.database).items():
            got = {key: row["v"] for key, row in applied.get(table, {}).items()}
            assert got == rows, (table, self.saboteur.done[-20:], self.refused[-20:])
        big = {key: row["big"] for key, row in applied[f"{self.database.schema}.toasted"].items()}
        assert big == toasted_rows(self.database), (self.saboteur.done[-20:], self.refused[-20:])

    def _drain(self) -> None:
        self._open()
        self.query.drain()

    def _alter(self) -> None:
        """Alter a table, unless it is being read: this thread must go on for that to end."""
        statement = self.database.alterations[self._alterations % len(self.database.alterations)]
        with contextlib.suppress(*self.database.lost), self.database.session() as session:
            session.execute("SET lock_wait_timeout = 1")
            self.altered = True
            session.execute(statement)
            session.commit()
            self._alterations += 1

    def _open(self) -> None:
        if self.query.is_open:
            return
        if self._mode and (self.altered or self.query.in_snapshot):
            # What a recovery may not be used for.
            self.query, self._mode = Query(), {}
        self.query.open({**self.options, **self._mode})

    def _step(self, meanwhile: Callable[[str], None]) -> None:
        self._open()
        self.query.step(meanwhile)
        if self._mode:
            # What was rebuilt is kept; the query goes on as before.
            self._mode = {}
            self.query.stop()

    def _guarded(self, action: Callable[[], Any]) -> bool:
        """Do something; if it is refused take the way out that the error names, and return False."""
        try:
            action()
        except FloodmarkError as exc:
            self.query.stop()
            self._take_the_way_out(exc)
            return False
        return True

    def _take_the_way_out(self, error: FloodmarkError) -> None:
        text = str(error)
        assert isinstance(error, StateDirError | SchemaHistoryError | LogGoneError), repr(error)
        self.refused.append(text)
        if isinstance(error, SchemaHistoryError):
            assert RECOVERY in text
            assert "new checkpoint" in text
            self._mode = {"snapshot.mode": "recovery"}
        elif SEND_AGAIN in text:
            found = re.search(r"The signal in (\S+) is damaged", text)
            assert found is not None
            Path(found[1]).unlink()
        else:
            assert RESTART in text, text


@pytest.mark.timeout(300 + 10 * ROUNDS)
@pytest.mark.parametrize("name", DATABASES)
def test_damage_under_load(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with served(name, tmp_path, request) as (database, options):
        # The test alters tables itself: it must know whether one was altered since the query stopped.
        workload = Workload(database, seed=7, alters=False, pauses_s=HURRIED)
        workload.create(SNAPSHOT_ROWS)
        rounds = Rounds(name, database, options)
        for first in range(0, ROUNDS // len(DATABASES), ROUNDS_A_CHECK):
            workload.start()
            for _ in range(min(ROUNDS_A_CHECK, ROUNDS // len(DATABASES) - first)):
                rounds.run()
            workload.stop()
            rounds.check()
        rounds.query.stop()
        assert len(rounds.saboteur.done) >= ROUNDS // len(DATABASES) // 3
        assert rounds.refused


@pytest.mark.long
@pytest.mark.timeout(600 + 120 * SPARK_ROUNDS)
def test_damage_under_spark(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with served("mysql", tmp_path, request) as (database, options):
        workload = Workload(database, seed=8, alters=False)
        workload.create(SNAPSHOT_ROWS)
        workload.start()
        try:
            for _ in range(SPARK_ROUNDS):
                driver = Driver(options, tmp_path)
                try:
                    deadline = time.monotonic() + within(240)
                    # What tasks are to read, until one has met it.
                    while not driver.ended(0.01):
                        # The driver removes directories meanwhile.
                        with contextlib.suppress(FileNotFoundError):
                            for path in Path(options["state.dir"]).rglob("*.seg"):
                                flip_last_byte(path)
                        assert time.monotonic() < deadline, driver.log()[-4000:]
                finally:
                    driver.kill()
        finally:
            workload.stop()
        assert "DamagedFileError" in driver.log()
        assert RESTART in driver.log()
        last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        verify(database, tmp_path)


def flip_last_byte(path: Path) -> None:
    """Change a file in place, so that one which is being written goes on where it was."""
    with contextlib.suppress(OSError), path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 0x55]))
