"""Splits a table by ranges of its key. Keys are lists of texts, which only SQLite compares, by the columns' types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from floodmark.connectors.contract.table_key import TableKey
from tests.toy.notebook.database.notebook import Table, quote

Bound = int | str
Rows = list[tuple[Any, ...]]


def key_of(table: Table, surrogate: str | None = None) -> TableKey | None:
    """Return the key that a table is split by; None if it has none.

    Args:
        table: the table.
        surrogate: a column to use instead of the key.
    """
    columns = {column.name: column for column in table.columns}
    names = table.key if surrogate is None else (surrogate,)
    if not names or any(name not in columns for name in names):
        return None
    nulls = any(columns[name].optional for name in names)
    return TableKey(tuple(names), nulls, tuple((columns[name].type,) for name in names))


def range_condition(key: TableKey, after: Sequence[str] | None, upto: Sequence[str] | None) -> tuple[str, list[Bound]]:
    """Return the condition of the keys in ``(after, upto]``, and the values in it; without bounds that of all keys."""
    names = _names(key)
    parts = [f"{name} IS NOT NULL" for name in map(quote, key.columns)]
    values: list[Bound] = []
    for sign, bound in ((">", after), ("<=", upto)):
        if bound is not None:
            parts.append(f"({names}) {sign} ({', '.join('?' * len(bound))})")
            values += _values(key, bound)
    return " AND ".join(parts), values


def null_condition(key: TableKey) -> str:
    """Return the condition of the rows that are in no range."""
    return " OR ".join(f"{quote(name)} IS NULL" for name in key.columns)


def ordered(key: TableKey, direction: str = "") -> str:
    """Return the list for ``ORDER BY`` that sorts rows by their key."""
    return ", ".join(f"{quote(name)}{direction}" for name in key.columns)


def _names(key: TableKey) -> str:
    return ", ".join(map(quote, key.columns))


def _values(key: TableKey, texts: Sequence[str]) -> list[Bound]:
    return [int(text) if kind == ("integer",) else text for kind, text in zip(key.kinds, texts, strict=True)]


class NotebookKeyRanges:
    """A ``KeyRanges``.

    Args:
        query: runs a query that sees the read point.
        table: the table's name.
        key: as ``key_of`` returned it.
        condition: on the rows; empty: all.
    """

    def __init__(
        self, query: Callable[[str, Sequence[Bound]], Rows], table: str, key: TableKey, condition: str
    ) -> None:
        self._query = query
        self._table = quote(table)
        self._key = key
        self._and = f" AND ({condition})" if condition else ""
        self._texts = ", ".join(f"CAST({quote(name)} AS TEXT)" for name in key.columns)

    def last(self) -> list[str] | None:
        """Return the highest key; None if no row has one."""
        found = self._keys(None, None, " DESC", 0)
        return list(found[0]) if found else None

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of up to ``count`` ranges of ``size`` rows in ``(after, upto]``, and their sizes."""
        result: list[tuple[list[str], int]] = []
        while len(result) < count and after != upto:
            found = self._keys(after, upto, "", size - 1)
            if not found:
                result.append((list(upto), self._count(after, upto)))
                break
            after = list(found[0])
            result.append((after, size))
        return result

    def cuts(self, count: int) -> list[list[str]]:
        """Return keys that cut the table into up to ``count`` ranges of the same size."""
        last = self.last()
        if last is None:
            return []
        size = max(self._count(None, last) // count, 1)
        return [key for key, _ in self.bounds(None, last, size, count - 1) if key != last]

    def _keys(self, after: Sequence[str] | None, upto: Sequence[str] | None, direction: str, offset: int) -> Rows:
        where, values = range_condition(self._key, after, upto)
        order = ordered(self._key, direction)
        chosen = f"FROM {self._table} WHERE {where}{self._and} ORDER BY {order} LIMIT 1 OFFSET {offset}"
        return self._query(f"SELECT {self._texts} {chosen}", values)

    def _count(self, after: Sequence[str] | None, upto: Sequence[str]) -> int:
        where, values = range_condition(self._key, after, upto)
        found = self._query(f"SELECT count(*) FROM {self._table} WHERE {where}{self._and}", values)
        return int(found[0][0])
