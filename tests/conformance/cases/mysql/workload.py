"""Cases of a longer workload: many transactions of all kinds over tables with different keys, the same in each run."""

from __future__ import annotations

import random

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

COLUMNS = (
    "a int, b varchar(40), c decimal(10,2) DEFAULT 1.5, d datetime(3), e tinyint unsigned NOT NULL DEFAULT 200, "
    "f double, g enum('x','y'), h blob, t timestamp(6) NULL"
)
WIDE = "w_wide"
SETUP = (
    f"CREATE TABLE {WIDE} (id bigint PRIMARY KEY, {COLUMNS})",
    "CREATE TABLE w_pair (x varchar(10), n int, v text, PRIMARY KEY (n, x))",
    "CREATE TABLE w_none (v varchar(20))",
)
KEYS = 60


def _row(key: int, n: int) -> str:
    return (
        f"({key}, {n}, CONCAT('text ', {key}, 'é'), {key} * 1.25, '2024-02-29 11:14:15.125' + INTERVAL {key} SECOND, "
        f"{key % 256}, {n} / 3, IF({key % 2}, 'x', 'y'), UNHEX(HEX({n})), '2024-02-29 11:14:15.000001')"
    )


def _change(chance: random.Random, n: int) -> str:
    """Return one statement; ``n`` makes its values different from others'.

    It changes one row at most, or inserts rows in the order that it tells: else their order is the server's own.
    """
    key = chance.randint(1, KEYS)
    pair = f"x = 'k{key}' AND n = {key % 7}"
    rows = ", ".join(_row(key + i, n) for i in range(3))
    return chance.choice(
        (
            f"INSERT IGNORE INTO {WIDE} VALUES {rows}",
            f"INSERT INTO {WIDE} VALUES {_row(key, n)} ON DUPLICATE KEY UPDATE a = {n}, c = NULL",
            f"REPLACE INTO {WIDE} VALUES {_row(key, n)}",
            f"UPDATE {WIDE} SET a = {n}, b = NULL WHERE id = {key}",
            f"UPDATE {WIDE} SET c = DEFAULT, e = 255 - e, f = NULL, h = x'00ff' WHERE id = {key}",
            f"UPDATE {WIDE} SET id = id + 1000 * {n} WHERE id = {key}",
            f"DELETE FROM {WIDE} WHERE id = {key}",
            f"INSERT IGNORE INTO w_pair VALUES ('k{key}', {key % 7}, 'v{n}')",
            f"UPDATE w_pair SET n = n + {n} WHERE {pair}",
            f"UPDATE w_pair SET v = 'v{n}' WHERE {pair}",
            f"DELETE FROM w_pair WHERE {pair}",
            f"INSERT INTO w_none VALUES ('v{n}'), (NULL)",
        )
    )


def _transactions(seed: int, count: int) -> tuple[str, ...]:
    chance = random.Random(seed)
    result: list[str] = []
    for n in range(1, count + 1):
        changes = [_change(chance, 10 * n + i) for i in range(chance.choice((1, 1, 1, 2, 5)))]
        if len(changes) == 1:
            result += changes
            continue
        undone = ("SAVEPOINT s", _change(chance, 10 * n + 9), "ROLLBACK TO s") if chance.random() < 0.2 else ()
        end = "ROLLBACK" if chance.random() < 0.05 else "COMMIT"
        result += ["BEGIN", *undone, *changes, end]
    return tuple(result)


ALTERED = (
    *_transactions(4, 40),
    f"ALTER TABLE {WIDE} ADD late int unsigned DEFAULT 7 AFTER a",
    f"UPDATE {WIDE} SET late = 4294967295 WHERE id = 1",
    f"ALTER TABLE {WIDE} DROP COLUMN late, RENAME COLUMN b TO bb",
    f"INSERT INTO {WIDE} (id, bb) VALUES (5000, 'renamed')",
    f"ALTER TABLE {WIDE} RENAME COLUMN bb TO b",
    *_transactions(5, 40),
)

CASES: tuple[Case, ...] = (
    *both("workload", (*SETUP, *_transactions(0, 60)), _transactions(1, 250)),
    *both(
        "workload_transactions",
        SETUP,
        _transactions(2, 150),
        {"provide.transaction.metadata": "true", "tombstones.on.delete": "false", "decimal.handling.mode": "string"},
    ),
    *both(
        "workload_modes",
        SETUP,
        _transactions(3, 150),
        {"time.precision.mode": "isostring", "column.exclude.list": r".*\.w_wide\.b", "binary.handling.mode": "hex"},
    ),
    *both("workload_altered", SETUP, ALTERED, {"include.schema.changes": "true"}),
)
