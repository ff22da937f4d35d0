"""A random workload on tables with different kinds of keys and replica identities."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg

SCHEMA = """
CREATE TABLE plain (id integer PRIMARY KEY, v bigint NOT NULL, note text);
CREATE TABLE "Mixed Case" ("the key" text, part integer, v bigint NOT NULL, amount numeric(12,2),
                           PRIMARY KEY (part, "the key"));
CREATE TABLE toasted (id bigint PRIMARY KEY, v bigint NOT NULL, big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
CREATE TABLE full_identity (id integer PRIMARY KEY, v bigint NOT NULL, note text);
ALTER TABLE full_identity REPLICA IDENTITY FULL;
"""

KEYS = {
    "plain": ("id",),
    '"Mixed Case"': ("part", '"the key"'),
    "toasted": ("id",),
    "full_identity": ("id",),
}


class Workload:
    """Changes rows at random until told to stop; every change of a row sets a larger ``v``."""

    def __init__(self, conninfo: str, seed: int, keys: int = 300) -> None:
        self._conninfo = conninfo
        self._random = random.Random(seed)
        self._keys = keys
        self._version = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.transactions = 0
        self.error: BaseException | None = None

    def create(self, rows: int) -> None:
        """Create the tables with some rows."""
        with psycopg.connect(self._conninfo, autocommit=True) as conn:
            conn.execute(SCHEMA)
            conn.execute("INSERT INTO plain SELECT g, 0, 'note ' || g FROM generate_series(1, %s) g", [rows])
            conn.execute(
                """INSERT INTO "Mixed Case" SELECT 'k' || g, g %% 3, 0, g FROM generate_series(1, %s) g""", [rows]
            )
            large = "INSERT INTO toasted SELECT g, 0, repeat('x', 3000) FROM generate_series(1, %s) g"
            conn.execute(large, [rows // 10])
            conn.execute("INSERT INTO full_identity SELECT g, 0, 'n' FROM generate_series(1, %s) g", [rows])

    def start(self) -> None:
        """Start changing rows in a thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop and wait for the last transaction."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._conninfo) as conn:
                    while not self._stop.is_set():
                        self._transaction(conn)
            except psycopg.OperationalError:
                self._stop.wait(0.1)  # the server restarts
            except BaseException as exc:
                self.error = exc
                return

    def _transaction(self, conn: psycopg.Connection[Any]) -> None:
        for _ in range(self._random.randint(1, 8)):
            self._change(conn)
        if self._random.random() < 0.1:
            conn.rollback()
        else:
            conn.commit()
        self.transactions += 1
        self._stop.wait(self._random.choice([0, 0, 0.001, 0.005]))

    def _change(self, conn: psycopg.Connection[Any]) -> None:
        pick = self._random
        self._version += 1
        v, key = self._version, pick.randint(1, self._keys)
        action = pick.random()
        table = pick.choice(["plain", "full_identity", "toasted", "mixed"])
        if table == "mixed":
            name = f"k{key}"
            if action < 0.6:
                conn.execute(
                    """INSERT INTO "Mixed Case" VALUES (%s, %s, %s, %s) ON CONFLICT (part, "the key")
                       DO UPDATE SET v = excluded.v, amount = excluded.amount""",
                    [name, key % 3, v, pick.randint(-(10**6), 10**6) / 100],
                )
            else:
                conn.execute("""DELETE FROM "Mixed Case" WHERE "the key" = %s""", [name])
        elif table == "toasted":
            if action < 0.5:
                conn.execute("UPDATE toasted SET v = %s WHERE id = %s", [v, key])
            elif action < 0.8:
                conn.execute(
                    "INSERT INTO toasted VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET v = excluded.v, "
                    "big = excluded.big",
                    [key, v, chr(97 + v % 26) * 3000],
                )
            else:
                conn.execute("DELETE FROM toasted WHERE id = %s", [key])
        else:
            self._change_simple(conn, table, key, v, action)

    def _change_simple(self, conn: psycopg.Connection[Any], table: str, key: int, v: int, action: float) -> None:
        if action < 0.6:
            conn.execute(
                f"INSERT INTO {table} VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET v = excluded.v, "
                "note = excluded.note",
                [key, v, f'a "quoted"\\ {v}\n\u00e9'],
            )
        elif action < 0.8:
            conn.execute(f"DELETE FROM {table} WHERE id = %s", [key])
        else:
            conn.execute(
                f"UPDATE {table} SET id = %s, v = %s WHERE id = %s AND NOT EXISTS (SELECT FROM {table} WHERE id = %s)",
                [key + self._keys, v, key, key + self._keys],
            )


def source_rows(conninfo: str) -> dict[str, dict[str, int]]:
    """Return each table's versions by key, as events spell the key."""
    result: dict[str, dict[str, int]] = {}
    with psycopg.connect(conninfo) as conn:
        for table, columns in KEYS.items():
            fields = ", ".join(f"'{column.strip(chr(34))}', {column}" for column in columns)
            rows = conn.execute(
                f"SELECT replace(json_build_object({fields})::text, ' : ', ':'), v FROM {table}"
            ).fetchall()
            name = f"public.{table.strip(chr(34))}"
            result[name] = {key.replace(", ", ","): v for key, v in rows}
    return result


def toasted_rows(conninfo: str) -> dict[str, str]:
    """Return the large values by key."""
    with psycopg.connect(conninfo) as conn:
        return {f'{{"id":{key}}}': big for key, big in conn.execute("SELECT id, big FROM toasted").fetchall()}
