"""Cuts a table into ranges of its key.

Only the server compares keys, since they have its collations and types.
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.column_plan import event_key
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, key_names, literal, quote
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.snapshot.read_point import PostgresReadPoint

_COLUMN = """
    SELECT attname::text, NOT attnotnull FROM pg_attribute
    WHERE attrelid = {oid} AND attname = {name} AND attnum > 0 AND NOT attisdropped
"""


_COLUMNS = """
    SELECT n.nspname::text, c.relname::text, a.attname::text, NOT a.attnotnull
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def key_of(conn: Conn, oid: int, surrogate: str | None) -> TableKey | None:
    """Return the key that a table is cut by; None if it has none.

    Args:
        conn: an ordinary connection.
        oid: the table.
        surrogate: a column to use instead of the key.
    """
    if surrogate is not None:
        found = run(conn, _COLUMN.format(oid=oid, name=literal(surrogate)), "the surrogate key")
        if not found:
            return None
        name, nulls = found[0]
        return TableKey((name,), nulls)
    columns = key_names(conn, [oid]).get(oid)
    return TableKey(tuple(columns), False) if columns else None


def message_key_of(conn: Conn, oid: int, options: PostgresOptions) -> TableKey | None:
    """Return what a table without a key is cut by: the key of its events; None if that isn't possible."""
    rows = run(conn, _COLUMNS.format(oid=oid), "the columns of a table")
    if not rows:
        return None
    schema, table = rows[0][:2]
    nullable = {name: nulls for _, _, name, nulls in rows}
    columns = tuple(event_key(schema, table, list(nullable), (), options))
    nulls = any(nullable[name] for name in columns)
    # A row with a null in one of several columns is in no range.
    return TableKey(columns, nulls) if columns and (len(columns) == 1 or not nulls) else None


def range_condition(key: TableKey, after: Sequence[str] | None, upto: Sequence[str] | None) -> str:
    """Return the SQL condition for keys in ``(after, upto]``; if ``upto`` is None, for null keys."""
    if upto is None:
        return f"{quote(key.columns[0])} IS NULL"
    parts = [f"{_columns(key)} <= {_values(upto)}"]
    if after is not None:
        parts.insert(0, f"{_columns(key)} > {_values(after)}")
    return " AND ".join(parts)


class PostgresKeyRanges:
    """``KeyRanges`` of a table at a read point.

    Args:
        point: the read point.
        table: the table's name for SQL.
        key: as ``key_of`` returned it.
        condition: on the rows; empty: all.
    """

    def __init__(self, point: PostgresReadPoint, table: str, key: TableKey, condition: str) -> None:
        self._point = point
        self._table = table
        self._key = key
        self._and = f" AND ({condition})" if condition else ""

    def last(self) -> list[str] | None:
        """Return the highest key."""
        present = " AND ".join(f"{quote(name)} IS NOT NULL" for name in self._key.columns)
        order = ", ".join(f"{place} DESC" for place, _ in enumerate(self._key.columns, 1))
        rows = self._point.probe(
            f"SELECT {_texts(self._key)} FROM (SELECT {_named(self._key)} FROM ONLY {self._table} "
            f"WHERE {present}{self._and} ORDER BY {order} LIMIT 1) AS highest",
            "the highest key of a table",
        )
        return list(rows[0]) if rows else None

    def bounds(
        self, after: Sequence[str] | None, upto: Sequence[str], size: int, count: int
    ) -> list[tuple[list[str], int]]:
        """Return the upper bounds of the next ranges, each with how many rows it has."""
        order = ", ".join(f"k{number}" for number, _ in enumerate(self._key.columns))
        places = ", ".join(str(place) for place, _ in enumerate(self._key.columns, 1))
        rows = self._point.probe(
            f"SELECT n, {_texts(self._key)} FROM (SELECT {order}, row_number() OVER (ORDER BY {order}) AS n, "
            f"lead(true) OVER (ORDER BY {order}) AS more FROM (SELECT {_named(self._key)} FROM ONLY {self._table} "
            f"WHERE {range_condition(self._key, after, upto)}{self._and} ORDER BY {places} LIMIT {size * count}) "
            f"AS keys) AS numbered WHERE n % {size} = 0 OR more IS NULL ORDER BY n",
            "the bounds of a table's chunks",
        )
        numbers = [0, *(row[0] for row in rows)]
        bounds = [(list(row[1:]), row[0] - before) for row, before in zip(rows, numbers, strict=False)]
        if sum(number for _, number in bounds) < size * count:
            # Nothing follows: the last range goes to the end, whether or not its last row is still there.
            if bounds:
                bounds[-1] = (list(upto), bounds[-1][1])
            else:
                bounds = [(list(upto), 0)]
        return bounds


def _columns(key: TableKey) -> str:
    names = ", ".join(map(quote, key.columns))
    return f"({names})" if len(key.columns) > 1 else names


def _values(values: Sequence[str]) -> str:
    # An untyped literal takes the column's type, without its length, and the column's collation.
    texts = [literal(value) for value in values]
    return f"({', '.join(texts)})" if len(texts) > 1 else texts[0]


def _named(key: TableKey) -> str:
    """Return the key's columns under the names ``k0``, ``k1`` and so on.

    ORDER BY in the same query must use positions: it resolves a name to an output column before a column of the table.
    """
    return ", ".join(f"{quote(name)} AS k{number}" for number, name in enumerate(key.columns))


def _texts(key: TableKey) -> str:
    """Return the columns that ``_named`` named, as text."""
    return ", ".join(f"k{number}::text" for number, _ in enumerate(key.columns))
