"""Translates conditions to SQL where the server decides exactly as Spark would on the values that it receives.

Each family of types defines how. Where values exist that rows don't hold (infinite times, NaN decimals: null in rows),
the server may let through more rows than are wanted; then the condition only narrows what is read, and Spark checks
again.

Text is compared as bytes, under the collation C, as in Spark. Conditions on ``char(n)`` are not translated: its
comparison ignores trailing blanks, which rows hold.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from floodmark.changes.column_plan import shows_as_stored
from floodmark.codecs.codec import unchanged
from floodmark.connectors.contract.conditions import Condition, SqlCondition
from floodmark.connectors.postgres.decode.relation import Column, Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import literal, quote
from floodmark.connectors.postgres.types.registry import below_domains, codec_for

COMPARISONS = {"=", "<", "<=", ">", ">="}


@dataclass(frozen=True)
class _Family:
    """How values of some types are compared.

    Attributes:
        operand: the column as an SQL expression, with ``{}`` for its name.
        literal: returns a value as SQL; None if the server can't compare with it.
        exact: whether rows hold every value of the type.
        text: whether substrings can be compared.
        lists: whether ``in`` means the same in Spark, which compares -0.0 and 0.0 differently in long lists.
    """

    operand: str
    literal: Callable[[object], str | None]
    exact: bool = True
    text: bool = False
    lists: bool = True


def to_sql(condition: Condition, relation: Relation, options: PostgresOptions, utf8: bool) -> SqlCondition | None:
    """Return a condition as SQL; None if the server can't decide it.

    Args:
        condition: a condition on a column of the table.
        relation: the table.
        options: they decide what rows hold of a column's values.
        utf8: whether the server's encoding is UTF-8, in which bytes sort as Spark's do.
    """
    column = next((column for column in relation.columns if column.name == condition.column), None)
    if column is None or not shows_as_stored(relation, relation.columns.index(column), options):
        return None
    family = _family(column, relation, options, utf8)
    if condition.operation == "null" or (condition.operation == "<=>" and condition.value is None):
        return _null_test(condition, column, relation, options, family)
    if family is None:
        return None
    sql = _comparison(condition, family, family.operand.format(quote(column.name)))
    if sql is None:
        return None
    return SqlCondition(f"NOT ({sql})" if condition.negated else sql, family.exact)


def _null_test(
    condition: Condition, column: Column, relation: Relation, options: PostgresOptions, family: _Family | None
) -> SqlCondition | None:
    codec = codec_for(column.type_oid, column.modifier, relation.types, options)
    exact = codec.to_arrow is unchanged or (family is not None and family.exact)
    if condition.negated:
        return SqlCondition(f"{quote(column.name)} IS NOT NULL", exact)
    # Rows may hold null for other values too, which the server must not leave out.
    return SqlCondition(f"{quote(column.name)} IS NULL", exact) if exact else None


def _comparison(condition: Condition, family: _Family, operand: str) -> str | None:
    if condition.operation == "in":
        items = ["NULL" if item is None else family.literal(item) for item in condition.value]
        known = [item for item in items if item is not None]
        return f"{operand} IN ({', '.join(known)})" if known and len(known) == len(items) and family.lists else None
    value = family.literal(condition.value)
    if value is None:
        return None
    if condition.operation in COMPARISONS:
        return f"{operand} {condition.operation} {value}"
    if condition.operation == "<=>":
        return f"{operand} IS NOT DISTINCT FROM {value}"
    if not family.text:
        return None
    return {
        "starts": f"starts_with({operand}, {value})",
        "ends": f"right({operand}, {len(condition.value)}) = {value}",
        "contains": f"strpos({operand}, {value}) > 0",
    }[condition.operation]


def _family(column: Column, relation: Relation, options: PostgresOptions, utf8: bool) -> _Family | None:
    """Return how a column is compared; None if rows hold something other than its values."""
    oid, _ = below_domains(column.type_oid, column.modifier, relation.types)
    info = relation.types.get(oid)
    family = _TEXT if info is not None and info.kind == "e" else _FAMILIES.get(oid)
    if family is _TEXT and not utf8:
        return None
    if family is _DECIMAL:
        held = codec_for(column.type_oid, column.modifier, relation.types, options).arrow_type
        return family if pa.types.is_decimal(held) else None
    return family


def _boolean(value: object) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None


def _integer(value: object) -> str | None:
    return f"({value})::int8" if isinstance(value, int) and not isinstance(value, bool) else None


def _real(value: object) -> str | None:
    return f"'{value!r}'::float4" if isinstance(value, float) else None


def _double(value: object) -> str | None:
    return f"'{value!r}'::float8" if isinstance(value, float) else None


def _decimal(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"({value})::numeric"
    return f"({value:f})::numeric" if isinstance(value, Decimal) and value.is_finite() else None


def _date(value: object) -> str | None:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        return None
    return f"'{value.isoformat()}'::date"


def _timestamp(value: object) -> str | None:
    if not isinstance(value, dt.datetime) or value.tzinfo is not None:
        return None
    return f"'{value.isoformat(sep=' ')}'::timestamp"


def _timestamptz(value: object) -> str | None:
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        return None
    return f"'{value.astimezone(dt.UTC).isoformat(sep=' ')}'::timestamptz"


def _text(value: object) -> str | None:
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        return None
    return literal(value)


_TEXT = _Family('{}::text COLLATE "C"', _text, text=True)
_INTEGER = _Family("{}::int8", _integer)
_DECIMAL = _Family("{}", _decimal, exact=False)
_FAMILIES = {
    16: _Family("{}", _boolean),
    20: _INTEGER,
    21: _INTEGER,
    23: _INTEGER,
    25: _TEXT,
    26: _INTEGER,
    700: _Family("{}::float4", _real, lists=False),
    701: _Family("{}::float8", _double, lists=False),
    1043: _TEXT,
    1082: _Family("{}::date", _date, exact=False),
    1114: _Family("{}::timestamp", _timestamp, exact=False),
    1184: _Family("{}::timestamptz", _timestamptz, exact=False),
    1700: _DECIMAL,
    2950: _TEXT,
}
"""The families by the type's OID, below domains."""
