"""Our reader of SQL_REDO and Debezium's parser, on generated statements."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pyarrow as pa

from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from tests.conformance.oracle.redo_parser import Values, debezium_values

INPUTS = int(os.environ.get("FLOODMARK_REDO_INPUTS", "20000"))
SEED = int(os.environ.get("FLOODMARK_REDO_SEED", "1"))
BLOCK = 5000
COLUMNS = ["ID", "NAME", "a column", "ПРИМЕЧАНИЕ", "X,Y", "P(Q)", "where", "V1", "V2", "V3"]
PIECES = [
    *("'", "''", '"', ",", ", ", "(", ")", ";", " ", " and ", " where ", " set ", " values ", "||", "NULL", "="),
    *("a", "Ж", "漢字", "🐘", "\\0041", "\n", "\t", "x" * 40, "IS NULL", "TO_DATE(", "1", ""),
]
CALLS = [
    "TO_DATE('2026-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')",
    "TO_TIMESTAMP('2026-01-02 03:04:05.123456')",
    "TO_TIMESTAMP_TZ('2026-01-02 03:04:05.123456 +05:30')",
    "TO_DSINTERVAL('+01 02:03:04.500000')",
    "TO_YMINTERVAL('+01-02')",
    "HEXTORAW('00ff')",
    "HEXTORAW('')",
    "UNISTR('\\0412\\044B')",
    "UNISTR('a''b')",
    "UNISTR('\\0412') || UNISTR('\\044B')",
    "EMPTY_CLOB()",
    "EMPTY_BLOB()",
    "SYS.XMLTYPE('<a b=\"c\">(''</a>')",
    "5",
    "-1.5E+003",
]


class Writer:
    """Writes statements as LogMiner does.

    Args:
        chance: of the choices.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def statement(self) -> str:
        kind = self._chance.choice(["insert", "update", "update", "delete"])
        table = self._chance.choice(['"S"."T"', '"S"."a table (x)"', '"Ж"."T"'])
        names = self._names()
        if kind == "insert":
            columns = ",".join(f'"{name}"' for name in names)
            return f"insert into {table}({columns}) values ({','.join(self._value() for _ in names)});"
        alias = self._chance.choice(["", "", " a"])
        where = self._where(alias.strip())
        if kind == "delete":
            return f"delete from {table}{alias}{where};"
        values = ", ".join(f'"{name}" = {self._value()}' for name in names)
        return f"update {table}{alias} set {values}{where};"

    def _names(self) -> list[str]:
        names = [name for name in COLUMNS if self._chance.random() < 0.5] or COLUMNS[:1]
        if self._chance.random() < 0.1:
            names.append("ORA_ARCHIVE_STATE")
        return names

    def _where(self, alias: str) -> str:
        found = []
        for name in self._names():
            value = self._value()
            place = f'{alias}."{name}"' if alias else f'"{name}"'
            found.append(f"{place} IS NULL" if value == "NULL" else f"{place} = {value}")
        if self._chance.random() < 0.1:
            found.append(f"{alias + '.' if alias else ''}ROWID = 'AAARwWAAYAAAAAOAAA'")
        return f" where {' and '.join(found)}"

    def _value(self) -> str:
        kind = self._chance.random()
        if kind < 0.2:
            return "NULL"
        if kind < 0.25:
            return "Unsupported Type"
        if kind < 0.5:
            return self._chance.choice(CALLS)
        text = "".join(self._chance.choices(PIECES, k=self._chance.randrange(6)))
        return "'" + text.replace("'", "''") + "'"


def our_values(columns: Sequence[str], statements: Sequence[str]) -> list[tuple[Values, Values] | None]:
    """Return the same as `debezium_values`, by its rules of which side has what."""
    read = StatementReader(columns).read(pa.array(statements, pa.string()))
    texts = {side: [read.texts(side, column).to_pylist() for column in range(len(columns))] for side in Side}
    found: list[tuple[Values, Values] | None] = []
    for number, statement in enumerate(statements):
        if number in read.problems:
            found.append(None)
            continue
        old, new = ([texts[side][column][number] for column in range(len(columns))] for side in Side)
        if statement.startswith("update"):
            given = read.forms[Side.NEW, :, number]
            new = [
                was if form in (Form.ABSENT, Form.UNSUPPORTED) else is_now
                for was, is_now, form in zip(old, new, given, strict=True)
            ]
        found.append((old, new))
    return found


def test_generated_statements() -> None:
    """Each value is what Debezium's parser finds."""
    writer = Writer(random.Random(SEED))
    for _ in range(0, INPUTS, BLOCK):
        statements = [writer.statement() for _ in range(BLOCK)]
        theirs, ours = debezium_values(COLUMNS, statements), our_values(COLUMNS, statements)
        for statement, expected, found in zip(statements, theirs, ours, strict=True):
            sides = None
            if expected is not None and found is not None:
                # Debezium has no values on the side that a statement doesn't have.
                sides = tuple(side or [None] * len(COLUMNS) for side in expected)
            assert found == sides, statement
