"""Splits a table by ranges of its key. Only the server compares keys, as its session does: by their bytes.

A key is a list of texts, one for each column, which represent the values exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from floodmark.connectors.contract.table_key import TableKey, beyond
from floodmark.connectors.oracle.sql import constant, quoted
from floodmark.connectors.oracle.structures.table import Column, Table

Rows = list[tuple[Any, ...]]

_SHOWN = {
    "number": "TO_CHAR({}, 'TM9')",
    "text": "{}",
    "national": "{}",
    "bytes": "RAWTOHEX({})",
    "date": "TO_CHAR({}, 'YYYY-MM-DD HH24:MI:SS')",
    "moment": "TO_CHAR({}, 'YYYY-MM-DD HH24:MI:SS.FF9')",
}
_WRITTEN = {
    "number": "TO_NUMBER({})",
    "text": "{}",
    "national": "TO_NCHAR({})",
    "bytes": "HEXTORAW({})",
    "date": "TO_DATE({}, 'YYYY-MM-DD HH24:MI:SS')",
    "moment": "TO_TIMESTAMP({}, 'YYYY-MM-DD HH24:MI:SS.FF9')",
}
_KINDS = {
    "NUMBER": "number",
    "FLOAT": "number",
    "CHAR": "text",
    "VARCHAR2": "text",
    "NCHAR": "national",
    "NVARCHAR2": "national",
    "RAW": "bytes",
    "DATE": "date",
    "TIMESTAMP": "moment",
}


def key_of(table: Table, surrogate: str | None = None) -> TableKey | None:
    """Return the key that a table is split by; None if it has none, or one of a type that has no exact text.

    Args:
        table: its structure.
        surrogate: a column to use instead of the key.
    """
    columns = {column.name: column for column in table.columns}
    names = table.key if surrogate is None else (surrogate,)
    if not names or any(name not in columns or columns[name].type not in _KINDS for name in names):
        return None
    nulls = any(columns[name].optional for name in names)
    # A row with a null in one of several columns is in no range.
    if nulls and len(names) > 1:
        return None
    return TableKey(tuple(names), nulls, tuple((_kind(columns[name]),) for name in names))


def _kind(column: Column) -> str:
    return _KINDS[column.type]


def range_condition(key: TableKey, after: Sequence[str] | None, upto: Sequence[str] | None) -> str:
    """Return the condition of the keys in ``(after, upto]``; without bounds that of all keys."""
    parts = [f"{quoted(name)} IS NOT NULL" for name in key.columns] if key.nulls else []
    if after is not None:
        parts.append(f"({_beyond(key, after, '>', '>')})")
    if upto is not None:
        parts.append(f"({_beyond(key, upto, '<', '<=')})")
    return " AND ".join(parts) or "1 = 1"


def null_condition(key: TableKey) -> str:
    """Return the condition of the rows that are in no range."""
    return " OR ".join(f"{quoted(name)} IS NULL" for name in key.columns)


def _beyond(key: TableKey, bound: Sequence[str], sign: str, last_sign: str) -> str:
    """Return the condition of keys beyond a bound; Oracle compares no rows."""
    values = [_WRITTEN[kind].format(constant(value)) for (kind,), value in zip(key.kinds, bound, strict=True)]
    return beyond([quoted(name) for name in key.columns], values, sign, last_sign)


class OracleKeyRanges:
    """A ``KeyRanges``.

    Args:
        query: runs a query.
        table: the table as of the read point, as SQL.
        key: as ``key_of`` returned it.
        condition: on the rows; empty: all.
    """

    def __init__(self, query: Callable[[str], Rows], table: str, key: TableKey, condition: str) -> None:
        self._query = query
        self._table = table
        self._key = key
        self._and = f" AND ({condition})" if condition else ""
        self._names = ", ".join(map(quoted, key.columns))
        self._shown = ", ".join(
            _SHOWN[kind].format(quoted(name)) for name, (kind,) in zip(key.columns, key.kinds, strict=True)
        )

    def last(self) -> list[str] | None:
        """Return the highest key."""
        order = ", ".join(f"{quoted(name)} DESC" for name in self._key.columns)
        where = range_condition(self._key, None, None)
        highest = f"SELECT {self._names} FROM {self._table} WHERE {where}{self._and} ORDER BY {order}"
        rows = self._query(f"SELECT {self._shown} FROM ({highest} FETCH FIRST 1 ROWS ONLY) HIGHEST")
        return [str(value) for value in rows[0]] if rows else None

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of the next ranges, each with how many rows it has."""
        where = range_condition(self._key, after, upto)
        some = (
            f"SELECT {self._names}, ROW_NUMBER() OVER (ORDER BY {self._names}) AS FM_N FROM {self._table} "
            f"WHERE {where}{self._and} ORDER BY {self._names} FETCH FIRST {size * count} ROWS ONLY"
        )
        counted = f"SELECT {self._names}, FM_N, MAX(FM_N) OVER () AS FM_LAST FROM ({some}) NUMBERED"
        rows = self._query(
            f"SELECT FM_N, {self._shown} FROM ({counted}) COUNTED "
            f"WHERE MOD(FM_N, {size}) = 0 OR FM_N = FM_LAST ORDER BY FM_N"
        )
        numbers = [0, *(int(row[0]) for row in rows)]
        bounds = [
            ([str(value) for value in row[1:]], int(row[0]) - before)
            for row, before in zip(rows, numbers, strict=False)
        ]
        if sum(number for _, number in bounds) < size * count:
            # Nothing follows: the last range goes to the end, whether or not its last row is still there.
            last = (list(upto), bounds[-1][1] if bounds else 0)
            bounds = [*bounds[:-1], last]
        return bounds
