"""Cases of a longer workload: many transactions of all kinds over tables with different keys, the same in each run."""

from __future__ import annotations

import random

from tests.conformance.cases.case import Case

COLUMNS = (
    "a integer, b text, c numeric(10,2) DEFAULT 1.5, d timestamptz, e boolean NOT NULL DEFAULT true, f jsonb, "
    "g integer[]"
)
VALUES = (
    "{n}, 'text ' || i || chr(200 + i), i * 1.25, timestamptz '2024-02-29 11:14:15.123456+00' + i * interval '1 s', "
    "i % 2 = 0, jsonb_build_object('i', i), ARRAY[i, NULL, {n}]"
)
TABLES = ("w_default", "w_full")
SETUP = (
    *(f"CREATE TABLE {table} (id bigint PRIMARY KEY, {COLUMNS})" for table in TABLES),
    "ALTER TABLE w_full REPLICA IDENTITY FULL",
    "CREATE TABLE w_pair (x text, n integer, v text, PRIMARY KEY (n, x))",
    "CREATE TABLE w_none (v text)",
    *(f"INSERT INTO {table} SELECT i, {VALUES.format(n=0)} FROM generate_series(1, 30) i" for table in TABLES),
    "INSERT INTO w_pair SELECT 'k' || i, i, 'v' FROM generate_series(1, 20) i",
)
KEYS = 60


def _change(chance: random.Random, n: int) -> str:
    """Return one statement; ``n`` makes its values different from others'.

    It changes one row at most: the order in which a statement changes several is the server's own.
    """
    table, key = chance.choice(TABLES), chance.randint(1, KEYS)
    pair = f"x = 'k{key}' AND n = {key % 7}"
    return chance.choice(
        (
            f"INSERT INTO {table} SELECT i, {VALUES.format(n=n)} FROM generate_series({key}, {key + 2}) i"
            " ON CONFLICT (id) DO NOTHING",
            f"INSERT INTO {table} SELECT i, {VALUES.format(n=n)} FROM generate_series({key}, {key}) i"
            " ON CONFLICT (id) DO UPDATE SET a = excluded.a, c = NULL",
            f"UPDATE {table} SET a = {n}, b = NULL WHERE id = {key}",
            f"UPDATE {table} SET c = DEFAULT, e = NOT e, f = NULL WHERE id = {key}",
            f"UPDATE {table} SET id = id + 1000 * {n} WHERE id = {key}",
            f"DELETE FROM {table} WHERE id = {key}",
            f"INSERT INTO w_pair VALUES ('k{key}', {key % 7}, 'v{n}') ON CONFLICT DO NOTHING",
            f"UPDATE w_pair SET n = n + {n} WHERE {pair}",
            f"UPDATE w_pair SET v = 'v{n}' WHERE {pair}",
            f"DELETE FROM w_pair WHERE {pair}",
            f"INSERT INTO w_none VALUES ('v{n}'), (NULL)",
        )
    )


def _transactions(seed: int, count: int) -> tuple[str, ...]:
    chance = random.Random(seed)
    result = []
    for n in range(1, count + 1):
        changes = [_change(chance, 10 * n + i) for i in range(chance.choice((1, 1, 1, 2, 5)))]
        undone = "SAVEPOINT s; " + _change(chance, 10 * n + 9) + "; ROLLBACK TO s; " if chance.random() < 0.2 else ""
        end = "ROLLBACK" if chance.random() < 0.05 else "COMMIT"
        result.append(changes[0] if len(changes) == 1 else f"BEGIN; {undone}{'; '.join(changes)}; {end}")
    return tuple(result)


CASES = (
    Case("workload", SETUP, _transactions(1, 300)),
    Case(
        "workload_transactions",
        SETUP,
        _transactions(2, 150),
        {"provide.transaction.metadata": "true", "tombstones.on.delete": "false", "decimal.handling.mode": "string"},
    ),
    Case(
        "workload_modes",
        SETUP,
        _transactions(3, 150),
        {"skipped.operations": "none", "time.precision.mode": "isostring", "column.exclude.list": r"public\.w_full\.b"},
    ),
)
