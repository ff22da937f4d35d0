"""Writes statements of SQL_REDO as LogMiner does, with whatever may stand in literals and names."""

from __future__ import annotations

import random

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
        alike: whether each has all columns, whose values don't change their forms, but may be null.
    """

    def __init__(self, chance: random.Random, alike: bool = False) -> None:
        self._chance = chance
        self._alike = alike
        self._calls = {name: chance.choice(CALLS) for name in chance.sample(COLUMNS, 4)} if alike else {}

    def statement(self) -> str:
        kind = self._chance.choice(["insert", "update", "update", "delete"])
        table = self._chance.choice(['"S"."T"', '"S"."a table (x)"', '"Ж"."T"'])
        names = self._names()
        if kind == "insert":
            columns = ",".join(f'"{name}"' for name in names)
            return f"insert into {table}({columns}) values ({','.join(map(self._value, names))});"
        alias = self._chance.choice(["", "", " a"])
        where = self._where(alias.strip())
        if kind == "delete":
            return f"delete from {table}{alias}{where};"
        values = ", ".join(f'"{name}" = {self._value(name)}' for name in names)
        return f"update {table}{alias} set {values}{where};"

    def _names(self) -> list[str]:
        if self._alike:
            return COLUMNS
        names = [name for name in COLUMNS if self._chance.random() < 0.5] or COLUMNS[:1]
        if self._chance.random() < 0.1:
            names.append("ORA_ARCHIVE_STATE")
        return names

    def _where(self, alias: str) -> str:
        found = []
        for name in self._names():
            value = self._value(name)
            place = f'{alias}."{name}"' if alias else f'"{name}"'
            found.append(f"{place} IS NULL" if value == "NULL" else f"{place} = {value}")
        if self._chance.random() < 0.1:
            found.append(f"{alias + '.' if alias else ''}ROWID = 'AAARwWAAYAAAAAOAAA'")
        return f" where {' and '.join(found)}"

    def _value(self, name: str) -> str:
        kind = self._chance.random()
        if kind < 0.2:
            return "NULL"
        if name in self._calls:
            return self._calls[name]
        if self._alike:
            kind = 1
        if kind < 0.25:
            return "Unsupported Type"
        if kind < 0.5:
            return self._chance.choice(CALLS)
        text = "".join(self._chance.choices(PIECES, k=self._chance.randrange(6)))
        return "'" + text.replace("'", "''") + "'"
