"""Random scenarios: tables, and what several sessions do to them at the same time."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.conformance.oracle.cases.case import SCHEMA, Pause, Step
from tests.conformance.oracle.cases.generated.columns import random_column, random_value
from tests.conformance.oracle.cases.generated.options import CLIENTS, USERS, random_options
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Column, Row, Structure, Table, column
from tests.support.oracle.model.transactions import Transaction

FIRST_ROWS = 3
OPEN_AT_ONCE = 3
ACTIONS = 28
_ID = column("ID", "NUMBER(9,0)", nullable=False)
_PART = column("PART", "VARCHAR2(10)", nullable=False)


class Scenario:
    """Tables, options and steps, all of which follow from a seed.

    Args:
        seed: of the choices.

    Attributes:
        options: of the connector.
        structures: the tables that are there when it begins.
        threads: how many redo threads the database has.
        steps: what happens while a connector streams.
    """

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._seed = seed
        self._large = chance.random() < 0.3
        self.structures = [self._structure(chance, number) for number in range(chance.choice([2, 2, 3, 4]))]
        self.options = random_options(chance, self.structures)
        self.threads = chance.choice([1, 1, 1, 2])
        self.steps = self._plan(chance)
        self._session = _Sessions(chance, OracleDatabase(), self.threads)

    def setup(self, database: OracleDatabase) -> None:
        """Make the tables, and a few rows in each."""
        self._session = _Sessions(random.Random(self._seed), database, self.threads)
        for one in self.structures:
            database.create_table(one.owner, one.name, one.columns, one.key, logged=False)
        self._session.fill()

    def _structure(self, chance: random.Random, number: int) -> Structure:
        key: list[Column] = chance.choice([[_ID], [_ID], [_ID, _PART], []])
        large = self._large and bool(key)
        others = [random_column(chance, str(place), large) for place in range(chance.randrange(2, 7))]
        first = key or [replace(_ID, nullable=True)]
        columns = [*others, *first] if chance.random() < 0.2 else [*first, *others]
        return Structure(SCHEMA, f"T{number}", tuple(columns), tuple(one.name for one in key))

    def _plan(self, chance: random.Random) -> list[Step | Pause]:
        """Return the steps. LogMiner knows structures as they are now, so all is read before one is altered."""
        steps: list[Step | Pause] = [lambda _: self._session.work()]
        for _ in range(chance.choice([0, 1, 2])):
            steps.append(chance.choice([lambda _: self._session.switch(), lambda _: self._session.truncate()]))
            steps.append(lambda _: self._session.work())
        if chance.random() < 0.6:
            steps += [lambda _: self._session.finish(), Pause(), lambda _: self._session.alter()]
            steps.append(lambda _: self._session.work())
        return steps


class _Sessions:
    """What sessions do. A choice never depends on what clients of the database do."""

    def __init__(self, chance: random.Random, database: OracleDatabase, threads: int) -> None:
        self._chance = chance
        self._database = database
        self._threads = threads
        self._open: list[Transaction] = []
        self._changed: dict[str, set[tuple[int, str]]] = {}
        self._saved: dict[str, bool] = {}
        self._number = 100

    def fill(self) -> None:
        transaction = self._database.begin()
        for table in self._tables():
            for _ in range(FIRST_ROWS):
                transaction.insert(table, **self._row(table.structure))
        transaction.commit()

    def work(self) -> None:
        """Change rows in transactions that overlap."""
        for _ in range(ACTIONS):
            kinds = ["begin", "insert", "update", "delete", "save", "undo", "commit", "rollback"]
            (kind,) = self._chance.choices(kinds, [3, 8, 8, 3, 2, 2, 4, 1])
            if kind == "begin" or not self._open:
                self._begin()
                continue
            self._act(kind, self._chance.choice(self._open))

    def switch(self) -> None:
        """Begin other logs, with transactions that are still open."""
        self._database.switch_log(self._chance.choice([None, 1]))

    def finish(self) -> None:
        """End all transactions."""
        for transaction in self._open:
            transaction.commit()
        self._open.clear()

    def truncate(self) -> None:
        """Empty a table that nobody is changing."""
        idle = self._idle()
        if idle:
            self._database.truncate(self._chance.choice(idle))

    def alter(self) -> None:
        """Change structures."""
        for table in self._chance.sample(self._tables(), 2):
            self._alter(table)
        if self._chance.random() < 0.5:
            made = [_ID, *(random_column(self._chance, str(place), False) for place in range(3))]
            self._database.create_table(SCHEMA, "MADE", made, ["ID"])

    def _begin(self) -> None:
        if len(self._open) < OPEN_AT_ONCE:
            chance = self._chance
            thread = chance.randrange(self._threads) + 1
            self._open.append(self._database.begin(chance.choice(USERS), thread, chance.choice(CLIENTS)))

    def _act(self, kind: str, transaction: Transaction) -> None:
        xid = transaction.xid
        if kind == "save":
            transaction.savepoint("a")
            self._saved[xid] = True
        elif kind == "undo" and self._saved.pop(xid, False):
            transaction.rollback_to("a", unknown_sequence=self._chance.random() < 0.3)
        elif kind in ("commit", "rollback"):
            self._open.remove(transaction)
            self._changed.pop(xid, None)
            if kind == "commit":
                transaction.commit()
            else:
                transaction.rollback(unknown_sequence=self._chance.random() < 0.3)
        else:
            self._change(kind, transaction)

    def _change(self, kind: str, transaction: Transaction) -> None:
        table = self._chance.choice(self._tables())
        changed = self._changed.setdefault(transaction.xid, set())
        taken = set().union(*(rows for xid, rows in self._changed.items() if xid != transaction.xid))
        seen = transaction.seen(table, dict(table.rows_at(self._database.clock.scn)))
        free = {place: row for place, row in seen.items() if (table.object_id, place) not in taken}
        if kind == "insert" or not free:
            place = transaction.insert(table, **self._row(table.structure))
        else:
            place = self._chance.choice(list(free))
            if kind == "update":
                transaction.update(table, place, **self._update(table.structure, free[place]))
            else:
                transaction.delete(table, place)
        changed.add((table.object_id, place))

    def _row(self, structure: Structure) -> Row:
        found = {one.name: random_value(self._chance, one) for one in structure.columns}
        if "PART" in found:
            # Debezium leaves quotes doubled where it finds the rows of large objects.
            found["PART"] = found["PART"].replace("'", "q")
        return {**found, "ID": Decimal(self._next())}

    def _update(self, structure: Structure, row: Row) -> dict[str, Any]:
        others = [one for one in structure.columns if one.name not in ("ID", "PART")]
        chosen = self._chance.sample(others, self._chance.randrange(1, len(others) + 1))
        found = {one.name: random_value(self._chance, one, row.get(one.name)) for one in chosen}
        if self._chance.random() < 0.1:
            found["ID"] = Decimal(self._next())
        return found

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _tables(self) -> list[Table]:
        names = [one for one in self._database.tables if one.owner == SCHEMA and one.name[:1] in "TM"]
        return [one for one in names if not one.dropped]

    def _idle(self) -> list[Table]:
        busy = {object_id for rows in self._changed.values() for object_id, _ in rows}
        return [one for one in self._tables() if one.object_id not in busy]

    def _alter(self, table: Table) -> None:
        chance, name = self._chance, self._spelled(table)
        columns = list(table.structure.columns)
        others = [one for one in columns if one.name not in ("ID", "PART")]
        one = chance.choice(others)
        kind = chance.choice(["add", "add several", "drop", "rename", "comment"])
        if kind == "add":
            added = self._new_column()
            self._restructure(table, f"ALTER TABLE {name} ADD {added.ddl}", [*columns, added])
        elif kind == "add several":
            first, second = self._new_column(), self._new_column()
            text = f"ALTER TABLE {name} ADD ({first.ddl}, {second.ddl})"
            self._restructure(table, text, [*columns, first, second])
        elif kind == "drop" and len(others) > 1:
            columns.remove(one)
            self._restructure(table, f'ALTER TABLE {name} DROP COLUMN "{one.name}"', columns)
        elif kind == "rename":
            renamed = replace(one, name=f"{one.name}_R")
            columns[columns.index(one)] = renamed
            text = f'ALTER TABLE {name} RENAME COLUMN "{one.name}" TO "{renamed.name}"'
            self._restructure(table, text, columns, {one.name: renamed.name})
        else:
            text = f"COMMENT ON COLUMN {name}.\"{one.name}\" IS 'About {one.name}'"
            self._database.ddl(table, text)

    def _new_column(self) -> Column:
        found = random_column(self._chance, f"N{self._next()}", False)
        return replace(found, nullable=True, default="")

    def _restructure(
        self, table: Table, text: str, columns: Iterable[Column], renamed: dict[str, str] | None = None
    ) -> None:
        scn = self._database.ddl(table, text, columns=tuple(columns))
        names = renamed or {}
        rows = dict(table.rows_at(scn))
        moved = {place: {names.get(name, name): value for name, value in row.items()} for place, row in rows.items()}
        kept = [one.name for one in table.structure.columns]
        table.rewrite({place: {one: row.get(one) for one in kept} for place, row in moved.items()}, scn)

    def _spelled(self, table: Table) -> str:
        plain = f"{table.owner}.{table.name}"
        return self._chance.choice([f'"{table.owner}"."{table.name}"', plain, plain.lower()])


def names(structures: Sequence[Structure]) -> tuple[str, ...]:
    """Return the names of tables."""
    return tuple(one.name for one in structures)
