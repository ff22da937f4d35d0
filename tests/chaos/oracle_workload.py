"""What is done on a stand-in for Oracle while a query is killed: transactions on two instances, and statements."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Event, Thread

from tests.support.oracle.model.tables import column
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.scene import COLUMNS, SCHEMA, Scene

ALTERED = "ALTERED"
"""The table that statements change, a row of which is written after each."""
OPEN_AT_ONCE = 6
LONG = 2
"""How many of these stay open for a long time."""
MOST_COLUMNS = 60
_SAVEPOINT = "S"


@dataclass
class _Open:
    """A transaction that is open.

    Attributes:
        transaction: the transaction.
        ends: how probable it is that it ends after its next changes.
        rows: keys of the rows that it has locked.
        has_savepoint: whether it has one that it can go back to.
    """

    transaction: Transaction
    ends: float
    rows: set[int] = field(default_factory=set)
    has_savepoint: bool = False


class Writer:
    """Keeps transactions open, each with rows of its own, as a row's lock would have it.

    Args:
        scene: the database.
        chance: of all choices.
        rows: how many rows the table had at first.
    """

    def __init__(self, scene: Scene, chance: random.Random, rows: int) -> None:
        self._scene = scene
        self._chance = chance
        self._first_rows = rows
        self._next = rows
        self._gone: set[int] = set()
        self._version = 0
        self._open: list[_Open] = []
        self._altered = scene.database.create_table(SCHEMA, ALTERED, COLUMNS[:2], ["ID"], logged=False)
        with scene.change() as transaction:
            transaction.insert(self._altered, ID=Decimal(0), V=Decimal(0))
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
            for one in self._open:
                one.transaction.commit()
            self._scene.database.background()

    def expected(self) -> list[tuple[int, ...]]:
        """Return the rows of the table that statements have changed."""
        return self._scene.expected(self._altered)

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.02):
                with self._scene.database.lock:
                    self._step()
        except BaseException as e:
            self._failure = e

    def _step(self) -> None:
        database, chance = self._scene.database, self._chance
        if len(self._open) < OPEN_AT_ONCE:
            self._begin()
        one = chance.choice(self._open)
        for _ in range(chance.randint(1, 6)):
            self._change(one)
        self._undo_some(one)
        if chance.random() < one.ends:
            if chance.random() < 0.25:
                one.transaction.rollback()
            else:
                one.transaction.commit()
            self._open.remove(one)
            database.background()
        if chance.random() < 0.02:
            database.switch_log(chance.choice([None, *database.threads]))
        if chance.random() < 0.01 and len(self._altered.structure.columns) < MOST_COLUMNS:
            self._alter()

    def _begin(self) -> None:
        long = sum(one.ends < 0.1 for one in self._open) < LONG
        thread = self._chance.choice([*self._scene.database.threads])
        self._open.append(_Open(self._scene.database.begin(thread=thread), 0.02 if long else 0.4))

    def _undo_some(self, one: _Open) -> None:
        if one.has_savepoint and self._chance.random() < 0.3:
            one.transaction.rollback_to(_SAVEPOINT)
            one.has_savepoint = False
        elif self._chance.random() < 0.2:
            one.transaction.savepoint(_SAVEPOINT)
            one.has_savepoint = True

    def _alter(self) -> None:
        """Add a column while transactions are open, and write a row that has it."""
        columns = self._altered.structure.columns
        added = column(f"N{len(columns)}", "NUMBER(9,0)")
        text = f'ALTER TABLE "{SCHEMA}"."{ALTERED}" ADD ({added.ddl})'
        self._scene.database.ddl(self._altered, text, columns=(*columns, added))
        self._version += 1
        transaction = self._scene.database.begin()
        number = Decimal(len(columns))
        transaction.insert(self._altered, ID=number, V=Decimal(self._version), **{added.name: number})
        transaction.update(self._altered, {"ID": 0}, V=Decimal(self._version))
        transaction.commit()

    def _change(self, one: _Open) -> None:
        table, chance, transaction = self._scene.table, self._chance, one.transaction
        self._version += 1
        if chance.random() < 0.3:
            pad = "new" * chance.randint(1, 99)
            transaction.insert(table, ID=Decimal(self._next), V=Decimal(self._version), PAD=pad)
            self._next += 1
            return
        key = chance.randrange(self._first_rows)
        if key in self._gone or any(key in other.rows for other in self._open if other is not one):
            return
        transaction.update(table, {"ID": key}, V=Decimal(self._version))
        one.rows.add(key)
        if chance.random() < 0.2:
            transaction.delete(table, {"ID": key})
            self._gone.add(key)
