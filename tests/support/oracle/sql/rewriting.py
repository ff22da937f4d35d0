"""Turns a query of Oracle's into one that DuckDB evaluates the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from tests.support.oracle.errors import OracleError

_WORDS = re.compile(r"""(?P<quoted>'(?:[^']|'')*'|"[^"]*")|(?P<bind>\?|:\w+)|\b(?P<word>ROLLBACK)\b""", re.IGNORECASE)
BIND = "BIND_"


def parsed(text: str, binds: Sequence[Any] | Mapping[str, Any]) -> exp.Expr:
    """Return a statement's syntax tree, with values for its binds.

    Raises:
        OracleError: it can't be parsed, or there are too few values.
    """
    known, names = _statement(text)
    tree: exp.Expr = known.copy()
    if isinstance(binds, Mapping):
        values = {f"{BIND}{name.upper()}": value for name, value in binds.items()}
    else:
        # A name that stands there again has its value again.
        values = dict(zip(dict.fromkeys(names), binds, strict=False))
    for one in list(tree.find_all(exp.Placeholder)):
        if str(one.this) not in values:
            raise OracleError(1008)
        one.replace(constant(values[str(one.this)]))
    return tree


@lru_cache(maxsize=1024)
def _statement(text: str) -> tuple[exp.Expr, list[str]]:
    """Return a statement's syntax tree, which must stay as it is, and the names of its binds.

    Raises:
        OracleError: it can't be parsed.
    """
    names: list[str] = []

    def word(found: re.Match[str]) -> str:
        # sqlglot knows neither binds by number nor a column that is called as a statement is.
        if found["quoted"]:
            return found["quoted"]
        if found["word"]:
            return f'"{found["word"].upper()}"'
        given = found["bind"]
        name = f"{BIND}{len(names)}" if given == "?" else f"{BIND}{given[1:].upper()}"
        names.append(name)
        return f":{name}"

    named = _WORDS.sub(word, text.strip().rstrip(";"))
    try:
        tree = sqlglot.parse_one(named, read="oracle")
    except sqlglot.errors.SqlglotError as exc:
        raise OracleError(900, text=f"invalid SQL statement (not understood by the stand-in: {exc})") from None
    assert isinstance(tree, exp.Expr)
    return tree, names


def constant(value: Any) -> exp.Expr:
    """Return a value as an expression."""
    if value is None or value == "":
        return exp.null()
    if isinstance(value, bytes):
        return exp.func("unhex", exp.Literal.string(value.hex()))
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        text = str(value)
        return exp.Neg(this=exp.Literal.number(text[1:])) if text.startswith("-") else exp.Literal.number(text)
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.replace(tzinfo=None).isoformat(" ")), "timestamp")
    return exp.Literal.string(str(value))


def rewritten(tree: exp.Expr, now: datetime) -> exp.Expr:
    """Return a query in which what means something else in DuckDB is replaced.

    Args:
        tree: the query, without binds.
        now: the database's time.
    """

    def again(node: exp.Expr) -> exp.Expr:
        # ``transform`` doesn't look into what it has replaced.
        return node.transform(replace)

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and node.is_string and node.this == "":
            return exp.null()
        if isinstance(node, exp.DPipe):
            # To Oracle, NULL is an empty text there.
            return exp.Anonymous(this="concat", expressions=[again(node.this), again(node.expression)])
        if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.DATE:
            return exp.DataType.build("timestamp")
        if isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) and node.text("unit").upper() == "DD":
            return exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string("day"), again(node.this)])
        if isinstance(node, exp.CurrentTimestamp):
            return constant(now.replace(microsecond=0))
        if isinstance(node, exp.Sub) and isinstance(node.this, exp.CurrentTimestamp):
            days = exp.Mul(this=exp.paren(again(node.expression)), expression=exp.Literal.number("86400000000"))
            span = exp.Anonymous(this="to_microseconds", expressions=[exp.cast(days, "bigint")])
            return exp.Sub(this=constant(now.replace(microsecond=0)), expression=span)
        if isinstance(node, exp.Systimestamp):
            return exp.cast(exp.Literal.string(now.isoformat(" ")), "timestamptz")
        if isinstance(node, exp.Anonymous):
            return _function(node, again)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
            function = node.expression
            name = f"{node.this.name}_{function.name}".lower()
            return exp.Anonymous(this=name, expressions=[again(one) for one in function.expressions])
        if isinstance(node, exp.ToChar):
            return _shown(node, again)
        if isinstance(node, exp.ToNumber):
            return exp.cast(again(node.this), "decimal(38, 9)")
        return node

    return tree.transform(replace)


_SHOWN = {
    "YYYY-MM-DD HH24:MI:SS": "%Y-%m-%d %H:%M:%S",
    "YYYY-MM-DD HH24:MI:SS.FF9": "%Y-%m-%d %H:%M:%S.%n",
}
"""Formats of TO_CHAR as DuckDB has them."""


def _shown(node: exp.ToChar, again: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    pattern = node.args.get("format")
    if pattern is None or pattern.name == "TM9":
        return exp.cast(again(node.this), "text")
    if pattern.name == "TZH:TZM":
        return exp.Literal.string("+00:00")
    if pattern.name not in _SHOWN:
        raise OracleError(1722, text=f"invalid number (the stand-in doesn't know the format '{pattern.name}')")
    return exp.Anonymous(this="strftime", expressions=[again(node.this), exp.Literal.string(_SHOWN[pattern.name])])


def _function(node: exp.Anonymous, again: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    name = node.name.upper()
    if name == "SCN_TO_TIMESTAMP":
        return exp.Anonymous(this="scn_to_timestamp", expressions=[exp.cast(again(node.expressions[0]), "bigint")])
    if name == "TIMESTAMP_TO_SCN":
        return exp.Anonymous(this="timestamp_to_scn", expressions=[exp.cast(again(node.expressions[0]), "timestamp")])
    return node
