"""Cuts a table into ranges of its key. Only the server compares keys: collations and types are its own.

A key is a list of texts, one per column, which represent the values exactly. They come from queries (``bounds``) or
from the last row of a piece (``key_of_row``), in the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from floodmark.connectors.contract.table_key import TableKey, beyond
from floodmark.connectors.mysql.structures.table import Column, Table, quote
from floodmark.connectors.mysql.structures.type_names import BLOBS, INTEGERS

Rows = list[tuple[Any, ...]]

_NUMBERS = frozenset((*INTEGERS, "decimal"))
_FLOATS = frozenset(("float", "double"))
_BINARY = frozenset(("binary", "varbinary", *BLOBS))
_NULL = 0xFB
_LENGTH_BYTES = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def key_of(table: Table, surrogate: str | None = None) -> TableKey | None:
    """Return the key that a table is cut by; None if it has none.

    Args:
        table: its structure.
        surrogate: a column to use instead of the key.
    """
    names = [surrogate] if surrogate is not None else list(table.key)
    columns = {column.name: column for column in table.columns}
    if not names or any(name not in columns for name in names):
        return None
    index = next((index.name for index in table.indexes if _serves(index.columns, names) and not index.partial), None)
    nulls = any(columns[name].optional for name in names)
    return TableKey(tuple(names), nulls, tuple(_kind(columns[name]) for name in names), index)


def _serves(indexed: Sequence[str], names: Sequence[str]) -> bool:
    return list(indexed[: len(names)]) == list(names)


def _kind(column: Column) -> tuple[str, ...]:
    """Return how a column's values are written and compared: a word, and its parameters."""
    if column.type in _NUMBERS:
        return ("number",)
    if column.type in _FLOATS:
        return ("float",)
    if column.type in _BINARY:
        return ("binary",)
    if column.type == "bit":
        return ("bit",)
    if column.type in ("enum", "set"):
        # They are compared by the numbers of their labels in the table.
        return (column.type, *column.values)
    if column.charset is not None and column.collation is not None:
        return ("text", column.charset, column.collation)
    return ("quoted",)


def range_condition(key: TableKey, after: Sequence[str] | None, upto: Sequence[str] | None) -> str:
    """Return the SQL condition of the keys in ``(after, upto]``; without either bound that of all keys."""
    parts = []
    if after is not None:
        parts.append(f"({_beyond(key, after, '>', '>')})")
    if upto is not None:
        parts.append(f"({_beyond(key, upto, '<', '<=')})")
    return " AND ".join(parts) or "TRUE"


def null_condition(key: TableKey) -> str:
    """Return the SQL condition of the rows that are in no range."""
    return " OR ".join(f"{quote(name)} IS NULL" for name in key.columns)


def _beyond(key: TableKey, bound: Sequence[str], sign: str, last_sign: str) -> str:
    """Return the SQL condition of keys beyond a bound.

    The servers find no index range for a comparison of rows.
    """
    values = [literal(kind, value) for kind, value in zip(key.kinds, bound, strict=True)]
    return beyond([quote(name) for name in key.columns], values, sign, last_sign)


def literal(kind: Sequence[str], value: str) -> str:
    """Return a key's value as an SQL literal."""
    if kind[0] in ("number", "float", "bit", "enum", "set"):
        return value
    if kind[0] == "binary":
        return f"X'{value}'"
    if kind[0] == "text":
        _, charset, collation = kind
        # The text came in UTF-8, and the comparison must be the column's own.
        text = f"_utf8mb4 X'{value.encode().hex()}'"
        return f"CONVERT({text} USING {charset}) COLLATE {collation}"
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _expressions(key: TableKey) -> str:
    """Return the expressions to select so that the key is returned as texts."""
    shown = []
    for name, kind in zip(map(quote, key.columns), key.kinds, strict=True):
        if kind[0] == "text":
            shown.append(name)
        elif kind[0] == "binary":
            shown.append(f"HEX({name})")
        elif kind[0] in ("bit", "enum", "set"):
            shown.append(f"CAST({name} + 0 AS CHAR)")
        else:
            shown.append(f"CAST({name} * 1e0 AS CHAR)" if kind[0] == "float" else f"CAST({name} AS CHAR)")
    return ", ".join(shown)


def key_of_row(row: bytes, columns: Sequence[Column], key: TableKey) -> list[str]:
    """Return the key of a row of a query that selects all columns.

    Args:
        row: the payload of its packet; its key has no NULL.
        columns: in the order of the row.
        key: of the table.
    """
    wanted = dict(zip(key.columns, key.kinds, strict=True))
    found: dict[str, str] = {}
    at = 0
    for column in columns:
        length, at = _length(row, at)
        if column.name in wanted:
            found[column.name] = _key_text(row[at : at + length], wanted[column.name])
            if len(found) == len(wanted):
                break
        at += length
    return [found[name] for name in key.columns]


def _length(row: bytes, at: int) -> tuple[int, int]:
    first = row[at]
    width = _LENGTH_BYTES.get(first)
    if width is not None:
        return int.from_bytes(row[at + 1 : at + 1 + width], "little"), at + 1 + width
    return (0 if first == _NULL else first), at + 1


def _key_text(value: bytes, kind: Sequence[str]) -> str:
    if kind[0] == "binary":
        return value.hex().upper()
    if kind[0] == "bit":
        return str(int.from_bytes(value, "big"))
    text = value.decode()
    if kind[0] == "enum":
        # The server stores a value that is no label as number 0.
        return str(kind.index(text, 1) if text in kind[1:] else 0)
    if kind[0] == "set":
        return str(sum(1 << (kind.index(label, 1) - 1) for label in text.split(",") if label))
    return text


def ordered(key: TableKey, direction: str = "") -> str:
    """Return the list for ``ORDER BY`` that sorts rows by their key."""
    return ", ".join(f"{quote(name)}{direction}" for name in key.columns)


def forced(key: TableKey) -> str:
    """Return the index hint that makes the server read in the key's order, without sorting; empty without an index."""
    return f" FORCE INDEX ({quote(key.index)})" if key.index is not None else ""


_PREFIX_BYTES = 8


def _between(kind: Sequence[str], first: str, last: str, count: int) -> list[str]:
    """Return values that cut the range of a column evenly; none for kinds that can't be interpolated."""
    if kind[0] == "number":
        low, high = (int(Decimal(text)) for text in (first, last))
    elif kind[0] == "binary":
        low, high = (int(text[: 2 * _PREFIX_BYTES].ljust(2 * _PREFIX_BYTES, "0"), 16) for text in (first, last))
    else:
        return []
    values = [low + (high - low) * number // count for number in range(1, count)]
    return [str(value) if kind[0] == "number" else f"{value:0{2 * _PREFIX_BYTES}X}" for value in values]


class MysqlKeyRanges:
    """A ``KeyRanges``.

    Args:
        query: runs a query that sees the read point.
        table: the table's name for SQL.
        key: as ``key_of`` returned it.
        condition: on the rows; empty: all.
    """

    def __init__(self, query: Callable[[str], Rows], table: str, key: TableKey, condition: str) -> None:
        self._query = query
        self._key = key
        self._from = f"FROM {table}{forced(key)}"
        self._and = f" AND ({condition})" if condition else ""

    def last(self) -> list[str] | None:
        """Return the highest key."""
        return self._end(" DESC")

    def _end(self, direction: str) -> list[str] | None:
        present = " AND ".join(f"{quote(name)} IS NOT NULL" for name in self._key.columns)
        rows = self._query(
            f"SELECT {_expressions(self._key)} {self._from} WHERE {present}{self._and} "
            f"ORDER BY {ordered(self._key, direction)} LIMIT 1"
        )
        return list(rows[0]) if rows else None

    def cuts(self, count: int) -> list[list[str]]:
        """Return keys that cut the table into up to ``count`` ranges, as even as the keys are between first and last.

        They are interpolated and then looked up in the index, without reading rows; so there are none for kinds of keys
        that can't be interpolated.
        """
        first, last = self._end(""), self._end(" DESC")
        if first is None or last is None:
            return []
        kind, name = self._key.kinds[0], quote(self._key.columns[0])
        found: list[list[str]] = []
        for value in _between(kind, first[0], last[0], count):
            rows = self._query(
                f"SELECT {_expressions(self._key)} {self._from} WHERE {name} >= {literal(kind, value)}{self._and} "
                f"ORDER BY {ordered(self._key)} LIMIT 1"
            )
            key = list(rows[0]) if rows else last
            if key not in (last, *found[-1:]):
                found.append(key)
        return found

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of the next ranges, each with how many rows it has."""
        result: list[tuple[list[str], int]] = []
        while len(result) < count and after != upto:
            where = f"WHERE {range_condition(self._key, after, upto)}{self._and}"
            rows = self._query(
                f"SELECT {_expressions(self._key)} {self._from} {where} "
                f"ORDER BY {ordered(self._key)} LIMIT 1 OFFSET {size - 1}"
            )
            if not rows:
                left = self._query(f"SELECT COUNT(*) {self._from} {where}")
                result.append((list(upto), int(left[0][0])))
                break
            after = list(rows[0])
            result.append((after, size))
        return result
