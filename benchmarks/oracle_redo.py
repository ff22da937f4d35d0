"""Read statements of SQL_REDO, beside Debezium's parser: no server. Seconds are those of one core."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pyarrow as pa
from tests.conformance.oracle.redo_parser import debezium_seconds

from benchmarks import reference
from benchmarks.common import Leg, Result, Scale
from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.statements import StatementReader

ROUNDS = 12
"""How often each reads all; the fastest counts, so that Java's compiler has done its work."""
BLOCK = 16384
WIDE = [f"COLUMN_{number}" for number in range(40)]
NARROW = ["ID", "NAME", "SCORE", "REGION", "AT", "NOTE", "CREATED", "AMOUNT"]
_DATE = "TO_DATE('2026-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')"
_TIME = "TO_TIMESTAMP('2026-11-20 10:00:00.123456')"


def run(scale: Scale, wide: bool = False) -> Result:
    """Read the statements of a table with 8 columns, or of one with 40, of which a random half is null."""
    name = "oracle_redo_wide" if wide else "oracle_redo"
    columns, make, count = (
        (WIDE, _wide, scale.snapshot_rows // 50) if wide else (NARROW, _narrow, scale.snapshot_rows // 10)
    )
    result, chance = Result(name, scale.name, "no server"), random.Random(1)
    statements = [make(chance, number) for number in range(count)]
    result.legs.append(_leg("Floodmark", count, _ours(columns, statements)))
    if scale.debezium:
        result.legs.append(_leg(reference.DEBEZIUM, count, min(debezium_seconds(columns, statements, ROUNDS))))
        result.add_ratio("rows per CPU s", "x Debezium", reference.DEBEZIUM)
    length = sum(map(len, statements)) // count
    result.notes.append(
        f"{count:,} statements of {length} characters, 6 in 10 of them updates; best of {ROUNDS} rounds"
    )
    return result


def _leg(name: str, count: int, seconds: float) -> Leg:
    return Leg(name, {"rows per CPU s": count / seconds, "CPU s": seconds})


def _ours(columns: Sequence[str], statements: Sequence[str]) -> float:
    """Return the CPU seconds of the fastest round of reading all statements, and cutting out all of their values."""
    reader = StatementReader(columns)
    # As the decoder does, which reads the statements of a kind together.
    kinds = [[one for one in statements if one.startswith(kind)] for kind in ("insert", "update", "delete")]
    blocks = [pa.array(some[at : at + BLOCK], pa.string()) for some in kinds for at in range(0, len(some), BLOCK)]
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for block in blocks:
            read = reader.read(block)
            if read.problems:
                raise RuntimeError(f"a statement isn't read: {read.problems}")
            for side in Side:
                for place in range(len(columns)):
                    if (read.forms[side, place] >= Form.LITERAL).any():
                        read.texts(side, place)
        times.append(time.process_time() - begin)
    return min(times)


def _narrow(chance: random.Random, number: int) -> str:
    values = [
        f"'{number}'",
        f"'customer {chance.randrange(100_000)}'",
        f"'{chance.randrange(100)}.5'",
        "NULL",
        _TIME,
        "'a note of some length, as people write it'",
        _DATE,
        f"'{chance.randrange(1_000_000)}.25'",
    ]
    return _statement(chance, NARROW, values, lambda: {"AMOUNT": f"'{chance.randrange(1_000_000)}.75'", "AT": _TIME})


def _wide(chance: random.Random, number: int) -> str:
    values = [f"'{number}'"]
    values += ["NULL" if chance.random() < 0.5 else f"'{chance.randrange(1000)}'" for _ in WIDE[1:]]
    changed = chance.sample(WIDE[1:], 3)
    return _statement(chance, WIDE, values, lambda: dict.fromkeys(changed, "'new'"))


def _statement(
    chance: random.Random, columns: Sequence[str], values: Sequence[str], changed: Callable[[], dict[str, str]]
) -> str:
    kind, pairs = chance.random(), list(zip(columns, values, strict=True))
    if kind < 0.3:
        names = ",".join(f'"{name}"' for name in columns)
        return f'insert into "SHOP"."CUSTOMERS"({names}) values ({",".join(values)});'
    items = (f'"{name}" IS NULL' if value == "NULL" else f'"{name}" = {value}' for name, value in pairs)
    where = " where " + " and ".join(items)
    if kind < 0.4:
        return f'delete from "SHOP"."CUSTOMERS"{where};'
    given = ", ".join(f'"{name}" = {value}' for name, value in changed().items())
    return f'update "SHOP"."CUSTOMERS" set {given}{where};'
