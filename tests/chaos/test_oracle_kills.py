"""The driver is killed while it reads a stand-in for Oracle, whose transactions overlap, roll back and switch logs."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.support.applying import apply, duplicates, time_travel
from tests.support.driver import Driver
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.scene import NAME, SCHEMA, Scene
from tests.support.patience import within
from tests.support.sink import read_sink

KILLS = int(os.environ.get("FLOODMARK_CHAOS_ORACLE_KILLS", "2"))
ROUNDS = max(1, -(-KILLS // 50))
"""Rows are compared at the end of each round, so that a long run shows early what it found."""
SNAPSHOT_ROWS = 3000
TRIGGERS = ["0 seconds", "700 milliseconds"]


class _Writer:
    """Keeps a few transactions open, each with rows of its own, as a row's lock would have it."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self._scene = scene
        self._chance = chance
        self._next = SNAPSHOT_ROWS
        self._gone: set[int] = set()
        self._version = 0
        self._open: list[tuple[Transaction, set[int]]] = []
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Commit what is open.

        Raises:
            BaseException: what the writer failed with.
        """
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        with self._scene.database.lock:
            for transaction, _ in self._open:
                transaction.commit()
            self._scene.database.background()

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.02):
                with self._scene.database.lock:
                    self._step()
        except BaseException as e:
            self._failure = e

    def _step(self) -> None:
        database, chance = self._scene.database, self._chance
        if len(self._open) < 4:
            self._open.append((database.begin(), set()))
        number = chance.randrange(len(self._open))
        transaction, rows = self._open[number]
        for _ in range(chance.randint(1, 6)):
            self._change(transaction, rows)
        end = chance.random()
        if end < 0.3:
            transaction.commit()
        elif end < 0.4:
            transaction.rollback()
        if end < 0.4:
            del self._open[number]
            database.background()
        if chance.random() < 0.02:
            database.switch_log()

    def _change(self, transaction: Transaction, rows: set[int]) -> None:
        table, chance = self._scene.table, self._chance
        self._version += 1
        if chance.random() < 0.3:
            transaction.insert(
                table, ID=Decimal(self._next), V=Decimal(self._version), PAD="new" * chance.randint(1, 99)
            )
            rows.add(self._next)
            self._next += 1
            return
        key = chance.randrange(SNAPSHOT_ROWS)
        if key in self._gone or any(key in others for other, others in self._open if other is not transaction):
            return
        transaction.update(table, {"ID": key}, V=Decimal(self._version))
        rows.add(key)
        if chance.random() < 0.2:
            transaction.delete(table, {"ID": key})
            self._gone.add(key)


@pytest.mark.long
@pytest.mark.timeout(max(600, 24 * KILLS // ROUNDS))
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_kill_9(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with Scene(tmp_path, rows=SNAPSHOT_ROWS) as scene:
        options = scene.options()
        # Small pieces and batches make many points at which to die.
        small = {
            **options,
            "snapshot.chunk.bytes": "65536",
            "max.batch.bytes": "262144",
            "segment.bytes": "65536",
            "max.batch.rows": "500",
        }
        writer = _Writer(scene, chance)
        writer.start()
        try:
            for _ in range(-(-KILLS // ROUNDS)):
                driver = Driver(small, tmp_path, every=chance.choice(TRIGGERS))
                planned = driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180))
                assert planned, driver.log()[-4000:]
                driver.wait_for_batches(1 << 30, chance.random() * 0.8)
                driver.kill()
        finally:
            writer.stop()
        last = Driver(options, tmp_path, available_now=True)
        assert last.wait(within(180)) == 0, last.log()[-4000:]
        events = read_sink(last.out)
        assert events
        assert not duplicates(events)
        assert not time_travel(events, "V")
        applied = apply(events)[f"{SCHEMA}.{NAME}"]
        assert sorted(tuple(row.values()) for row in applied.values()) == scene.expected()
        assert {one.op for one in events} == {"r", "c", "u", "d"}
