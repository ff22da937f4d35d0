"""A random workload on tables with different kinds of keys and replica identities."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.support.databases import Database, Session
from tests.support.worker import Worker

KEYS = {
    "plain": ("id",),
    '"Mixed Case"': ("part", '"the key"'),
    "toasted": ("id",),
    "full_identity": ("id",),
}


ALTERED_EVERY = 150
HURRIED = (0, 0, 0.001, 0.005)
"""As much as a session can do."""
UNHURRIED = (0, 0.005, 0.02, 0.05)
"""Some hundred changes a second, which leave most of the machine to what is tested."""


class Workload(Worker):
    """Changes rows at random until told to stop; every change of a row sets a larger ``v``.

    Args:
        database: what is changed.
        seed: decides how.
        keys: about how many rows a table has that are changed.
        alters: whether tables are altered too.
        pauses_s: the times between two transactions, one of which is picked at random.
    """

    def __init__(
        self,
        database: Database,
        seed: int,
        keys: int = 300,
        alters: bool = True,
        pauses_s: Sequence[float] = UNHURRIED,
    ) -> None:
        super().__init__(database)
        self._alterations = database.alterations if alters else ()
        self._random = random.Random(seed)
        self._keys = keys
        self._pauses_s = pauses_s
        self._version = self._altered = 0

    def create(self, rows: int) -> None:
        """Create the tables with some rows."""
        numbers, text = f"FROM ({self._database.numbers}) n", self._database.text
        with self._database.session() as session:
            for statement in self._database.tables:
                session.execute(statement)
            session.execute(f"INSERT INTO plain SELECT g, 0, {text} {numbers}", [rows])
            session.execute(f"""INSERT INTO "Mixed Case" SELECT {text}, g %% 3, 0, g {numbers}""", [rows])
            session.execute(f"INSERT INTO toasted SELECT g, 0, repeat('x', 3000) {numbers}", [rows // 10])
            session.execute(f"INSERT INTO full_identity SELECT g, 0, '1' {numbers}", [rows])
            session.commit()

    def _transaction(self, session: Session) -> None:
        for _ in range(self._random.randint(1, 8)):
            self._change(session)
        if self._random.random() < 0.1:
            session.rollback()
        else:
            session.commit()
        self.transactions += 1
        alterations = self._alterations
        if alterations and self.transactions % ALTERED_EVERY == 0:
            session.execute(alterations[self._altered % len(alterations)])
            self._altered += 1
        self._stop.wait(self._random.choice(self._pauses_s))

    def _change(self, session: Session) -> None:
        pick = self._random
        self._version += 1
        v, key = self._version, pick.randint(1, self._keys)
        action = pick.random()
        table = pick.choice(["plain", "full_identity", "toasted", "mixed"])
        upsert = self._database.upsert
        if table == "mixed":
            name = f"k{key}"
            if action < 0.6:
                session.execute(
                    f"""INSERT INTO "Mixed Case" ("the key", part, v, amount) VALUES (%s, %s, %s, %s)
                        {upsert(("part", '"the key"'), ("v", "amount"))}""",
                    [name, key % 3, v, pick.randint(-(10**6), 10**6) / 100],
                )
            else:
                session.execute("""DELETE FROM "Mixed Case" WHERE "the key" = %s""", [name])
        elif table == "toasted":
            if action < 0.5:
                session.execute("UPDATE toasted SET v = %s WHERE id = %s", [v, key])
            elif action < 0.8:
                session.execute(
                    f"INSERT INTO toasted (id, v, big) VALUES (%s, %s, %s) {upsert(['id'], ('v', 'big'))}",
                    [key, v, chr(97 + v % 26) * 3000],
                )
            else:
                session.execute("DELETE FROM toasted WHERE id = %s", [key])
        else:
            self._change_simple(session, table, key, v, action)

    def _change_simple(self, session: Session, table: str, key: int, v: int, action: float) -> None:
        if action < 0.6:
            session.execute(
                f"INSERT INTO {table} (id, v, note) VALUES (%s, %s, %s) {self._database.upsert(['id'], ('v', 'note'))}",
                [key, v, json.dumps(f'a "quoted"\\ {v}\n\u00e9', ensure_ascii=False)],
            )
        elif action < 0.8:
            session.execute(f"DELETE FROM {table} WHERE id = %s", [key])
        else:
            session.execute(self._database.rekey(table), [key + self._keys, v, key, key + self._keys])


def source_rows(database: Database) -> dict[str, dict[str, int]]:
    """Return each table's versions by key, as events spell the key."""
    result: dict[str, dict[str, int]] = {}
    with database.session() as session:
        for table, columns in KEYS.items():
            names = [column.strip('"') for column in columns]
            found = result.setdefault(f"{database.schema}.{table.strip(chr(34))}", {})
            for *key, v in session.execute(f"SELECT {', '.join(columns)}, v FROM {table}"):
                found[json.dumps(dict(zip(names, key, strict=True)), separators=(",", ":"))] = v
    return result


def toasted_rows(database: Database) -> dict[str, str]:
    """Return the large values by key."""
    with database.session() as session:
        return {f'{{"id":{key}}}': big for key, big in session.execute("SELECT id, big FROM toasted")}


def held_rows(database: Database, table: str, columns: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return what the source holds of some columns, by key."""
    name = next(name for name in KEYS if name.strip('"') == table)
    keys = KEYS[name]
    with database.session() as session:
        rows = session.execute(f"SELECT {', '.join((*keys, *columns))} FROM {name}")
        return {tuple(row[: len(keys)]): tuple(row[len(keys) :]) for row in rows}
