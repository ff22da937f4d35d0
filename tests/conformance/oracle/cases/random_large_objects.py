"""Random changes of tables with large values, of those kinds that Debezium understands."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.conformance.oracle.cases.case import Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.large_values import Apart, Content, Later
from tests.support.oracle.model.transactions import Transaction

TRANSACTIONS = 40
LETTERS = "abc'Ж🐘 "
COLUMNS = {"DOCS": ("C", "N", "B"), "PAPERS": ("X",), "STRINGS": ("S", "T")}
DOCUMENTS = ("X", "S", "T")
Rows = dict[tuple[str, int], dict[str, Content]]


def random_changes(seed: int) -> Step:
    """Return a step that makes random changes."""

    def change(database: OracleDatabase) -> None:
        changes = _Changes(random.Random(seed), database)
        for _ in range(TRANSACTIONS):
            changes.transaction()

    return change


class _Changes:
    def __init__(self, chance: random.Random, database: OracleDatabase) -> None:
        self._chance = chance
        self._database = database
        self._rows: Rows = {}
        self._number = 100

    def transaction(self) -> None:
        """Make a transaction."""
        chance, transaction = self._chance, self._database.begin()
        saved: Rows | None = None
        for _ in range(chance.randrange(1, 8)):
            kind = chance.choices(
                ["insert", "update", "delete", "plain", "write", "save", "undo"], [6, 7, 2, 2, 2, 1, 2]
            )[0]
            if kind == "insert" or (kind in ("update", "delete") and not self._rows):
                self._insert(transaction)
            elif kind == "update":
                self._update(transaction)
            elif kind == "delete":
                name, number = key = chance.choice(list(self._rows))
                transaction.delete(table(self._database, name), {"ID": number})
                del self._rows[key]
            elif kind == "plain":
                transaction.insert(table(self._database, "PLAIN"), ID=self._new(), NAME="plain")
            elif kind == "write":
                self._write(transaction)
            elif kind == "save" or saved is None:
                transaction.savepoint("a")
                saved = self._copy()
            else:
                transaction.rollback_to("a")
                self._rows, saved = saved, None
        transaction.commit()

    def _insert(self, transaction: Transaction) -> None:
        name, number = self._chance.choice(list(COLUMNS)), self._new()
        key, row = (name, number), {}
        values: dict[str, Any] = {}
        for column in self._some(COLUMNS[name], 0.6):
            values[column], row[column] = self._value(column, None)
        transaction.insert(table(self._database, name), ID=number, NAME=self._chance.choice(["a", "b", None]), **values)
        self._rows[key] = row

    def _update(self, transaction: Transaction) -> None:
        name, number = key = self._chance.choice(list(self._rows))
        values: dict[str, Any] = {}
        if self._chance.random() < 0.6:
            values["NAME"] = self._chance.choice(["x", "y", None])
        for column in self._some(COLUMNS[name], 0.4):
            values[column], self._rows[key][column] = self._value(column, self._rows[key].get(column))
        if values:
            transaction.update(table(self._database, name), {"ID": number}, **values)

    def _write(self, transaction: Transaction) -> None:
        # Of what was there before, Debezium only knows what comes from the same transaction.
        found = [key for key, row in self._rows.items() if key[0] == "DOCS" and row.get("C")]
        if found:
            name, number = key = self._chance.choice(found)
            text = self._text(len(self._rows[key]["C"]) + 1)
            transaction.lob_write(table(self._database, name), {"ID": number}, "C", (1, text))
            self._rows[key]["C"] = text

    def _value(self, column: str, before: Content | None) -> tuple[Any, Content]:
        """Return a value as a statement gets it, and what it is: longer than that before it."""
        text = self._text((0 if before is None else len(before)) + self._chance.choice([1, 5, 30, 900]))
        value = text.encode() if column == "B" else text
        how = self._chance.randrange(5)
        if column in DOCUMENTS:
            long = text if column == "X" else "y" * 4001
            return (Apart(long, 1500), long) if how or column == "X" else ("short", "short")
        if how < 2:
            return (None, value[:0]) if how else (value[:0], value[:0])
        return (value, Later(value), Apart(value, self._chance.choice([7, 100, 2000])))[how - 2], value

    def _text(self, length: int) -> str:
        return "".join(self._chance.choices(LETTERS, k=length))

    def _some(self, columns: Sequence[str], share: float) -> list[str]:
        return [column for column in columns if self._chance.random() < share]

    def _new(self) -> int:
        self._number += 1
        return self._number

    def _copy(self) -> Rows:
        return {key: dict(row) for key, row in self._rows.items()}
