"""Statements in blocks of many that are alike are read as they are in blocks of few."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from floodmark.connectors.oracle.redo.calls import contents
from floodmark.connectors.oracle.redo.kinds import Kind
from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.redo.steps import MOST
from floodmark.connectors.oracle.redo.values import Statements
from tests.support.patience import within
from tests.support.small_disk import SmallDisk, fill

FEW = 63
READING = """
import pyarrow as pa
from floodmark.connectors.oracle.redo.statements import StatementReader
statement = 'delete from "S"."T" where "A" = ' + "'1';"
print(len(StatementReader(("A",)).read(pa.array([statement])).forms))
"""
COLUMNS = ["ID", "NAME", "AT", "DOC", "Ж", "FLAG", "UNTIL", "N", "A B"]
TEXTS = [
    "'",
    "''",
    "a",
    "it's",
    ",",
    " and ",
    " IS NULL",
    "NULL",
    '"',
    '"NAME" = ',
    "Ж",
    "漢字",
    "x" * 30,
    "",
    ");",
    " ",
]
KINDS: list[Callable[[random.Random], str]] = [
    lambda chance: _quoted("".join(chance.choices(TEXTS, k=chance.randrange(4)))),
    lambda chance: f"'{chance.randrange(10 ** chance.randrange(1, 9))}'",
    lambda chance: f"TO_DATE('{chance.randrange(1000, 3000)}-01-02', 'YYYY-MM-DD')",
    lambda chance: f"TO_TIMESTAMP('{chance.randrange(1000, 3000)}-01-02 03:04:05.{chance.choice(['', '5'])}')",
    lambda chance: f"HEXTORAW('{'ab' * chance.randrange(3)}')",
    lambda chance: f"UNISTR('\\04{chance.randrange(10, 60)}{chance.choice(['', 'x'])}')",
    lambda chance: chance.choice(["EMPTY_CLOB()", "'text'"]),
    lambda _: "EMPTY_BLOB()",
    lambda chance: str(chance.randrange(100)),
    lambda _: "Unsupported Type",
    lambda chance: f"'{chance.randrange(9)}' || 'x'",
]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def block(chance: random.Random, count: int) -> list[str]:
    """Return statements of a table, each column of which has one kind of values, and a few that differ in a letter."""
    kinds = [chance.choice(KINDS) for _ in COLUMNS]
    nulls = [chance.choice([0.0, 0.0, 0.1, 0.5, 1.0]) for _ in COLUMNS]
    changes = [chance.sample(range(len(COLUMNS)), chance.randrange(1, 4)) for _ in range(chance.choice([1, 2, 40]))]
    row_id = chance.random() < 0.2
    alias = chance.choice(["", "", "a"])
    weights = chance.choice([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
    return [
        _changed(chance, _statement(chance, kinds, nulls, chance.choice(changes), row_id, alias, weights))
        for _ in range(count)
    ]


def _statement(
    chance: random.Random,
    kinds: Sequence[Callable[[random.Random], str]],
    nulls: Sequence[float],
    changed: Sequence[int],
    row_id: bool,
    alias: str,
    weights: Sequence[int],
) -> str:
    def value(number: int) -> str:
        return "NULL" if chance.random() < nulls[number] else kinds[number](chance)

    def item(number: int) -> str:
        name, text = (f"{alias}." if alias else "") + f'"{COLUMNS[number]}"', value(number)
        return f"{name} IS NULL" if text == "NULL" else f"{name} = {text}"

    kind = chance.choices(["insert", "update", "delete"], weights)[0]
    if kind == "insert":
        names = ",".join(f'"{name}"' for name in COLUMNS)
        return f'insert into "S"."T"({names}) values ({",".join(map(value, range(len(COLUMNS))))});'
    where = " where " + " and ".join(map(item, range(len(COLUMNS)))) + (" and ROWID = 'AAA'" if row_id else "") + ";"
    if kind == "delete":
        return f'delete from "S"."T"{alias and " " + alias}{where}'
    new = ", ".join(f'"{COLUMNS[number]}" = {value(number)}' for number in changed)
    return f'update "S"."T"{alias and " " + alias} set {new}{where}'


def _changed(chance: random.Random, statement: str) -> str:
    """Return a statement, one in 20 with another letter somewhere, or one more or less, or without its end."""
    # Of a text of UNISTR, another letter may make none.
    if chance.random() > 0.05 or "UNISTR" in statement:
        return statement
    at = chance.randrange(len(statement))
    return chance.choice(
        [
            statement[:at] + chance.choice("'x\" ,;()Ж") + statement[at + 1 :],
            statement[:at] + statement[at + 1 :],
            statement[:at] + chance.choice("'x\" ,;()Ж") + statement[at:],
            statement[:at],
            statement.rstrip(";"),
        ]
    )


def found_in(read: Statements, rows: int) -> list[list[object]]:
    """Return what is known of each statement: problem, and form, text, kind and content of all values."""
    found: list[list[object]] = [[read.problems.get(row)] for row in range(rows)]
    for side in Side:
        for column in range(len(COLUMNS)):
            texts, meant = read.texts(side, column).to_pylist(), contents(read, side, column)
            content = meant.texts.to_pylist()
            for row in range(rows):
                form = Form(read.forms[side, column, row]).name
                found[row].append((form, texts[row], Kind(meant.kinds[row]).name, content[row]))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_large_blocks_are_read_as_small_ones(seed: int) -> None:
    """What was scanned for other statements, and which room their texts took, changes nothing."""
    chance = random.Random(seed)
    reader, other = StatementReader(COLUMNS), StatementReader(COLUMNS)
    for _ in range(2):
        statements = block(chance, 300)
        together = found_in(reader.read(pa.array(statements, pa.string())), len(statements))
        small = []
        for first in range(0, len(statements), FEW):
            some = statements[first : first + FEW]
            small += found_in(other.read(pa.array(some, pa.string())), len(some))
        assert together == small


def test_a_column_that_stands_twice_has_its_last_value() -> None:
    """Also if the first is longer than the other, or one isn't a text."""
    where = "\"ID\" = '12345678901' and \"NAME\" = TO_DATE('1', '2') and \"AT\" = '1' and \"DOC\" IS NULL"
    again = '"ID" = \'x\' and "NAME" = \'\'\'\' and "AT" IS NULL and "DOC" = EMPTY_CLOB() and "Ж" = \'2\''
    statements = [f'delete from "S"."T" where {where} and {again};', f'delete from "S"."T" where {where};'] * 2
    read = StatementReader(COLUMNS).read(pa.array(statements, pa.string()))
    assert read.problems == {}
    texts = [read.texts(Side.OLD, column).to_pylist() for column in range(5)]
    assert texts == [
        ["x", "12345678901"] * 2,
        ["'", "TO_DATE('1', '2')"] * 2,
        [None, "1"] * 2,
        ["EMPTY_CLOB()", None] * 2,
        ["2", None] * 2,
    ]


@pytest.mark.parametrize("length", range(34))
def test_statements_at_the_end_of_the_memory(length: int) -> None:
    """Texts are compared and copied in words and chunks, of which some would end after the last statement."""
    for value, wanted in (
        (_quoted("x" * length), "x" * length),
        (f"f('{'x' * length}')", f"f('{'x' * length}')"),
        ("1" * (length + 1), "1" * (length + 1)),
    ):
        text = pa.py_buffer(f'delete from "T" where "ID" = {value}'.encode())
        block_of_one = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, text.size], np.int32)), text)
        reader = StatementReader(COLUMNS)
        for _ in range(2):
            assert reader.read(block_of_one).texts(Side.OLD, 0).to_pylist() == [wanted]


def test_more_gaps_than_are_kept() -> None:
    """What is known is forgotten, and the statements are read all the same."""
    numbers = range(0, 2 * MOST, 2)
    statements = [f'delete from "T" where "ID" = {number} and "NAME" = \'{number}\';' for number in numbers]
    read = StatementReader(COLUMNS).read(pa.array(statements, pa.string()))
    assert read.problems == {}
    for column in range(2):
        assert read.texts(Side.OLD, column).to_pylist() == list(map(str, numbers))


def test_a_full_disk_keeps_no_machine_code(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk", "1m")
    try:
        fill(disk.seen, 3)
        done = subprocess.run(
            [*disk.command, sys.executable, "-c", READING],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "disk")},
            capture_output=True,
            text=True,
            check=False,
            timeout=within(120),
        )
    finally:
        disk.close()
    assert done.stdout == "2\n", done.stderr[-2000:]
