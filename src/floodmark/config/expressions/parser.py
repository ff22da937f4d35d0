"""Parses expressions in Spark's SQL. What is allowed is listed; all else is refused by its text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, cast, get_args

import re2

from floodmark.config.expressions.tree import (
    Arithmetic,
    Call,
    Case,
    Cast,
    CastTarget,
    Compared,
    Comparison,
    Computed,
    Constant,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Logical,
    Negative,
    Not,
)

if TYPE_CHECKING:
    from sqlglot import exp

MOST_CHARACTERS = 65_536
MOST_NESTED = 200
_SHOWN = 80
_ROOTS = ("topic", "key", "value", "header")
FIELDS = "topic, key.<field>, value.<field>, such as value.after.id, and header.<name>"
ALLOWED = (
    f"Allowed are the fields {FIELDS}, texts, numbers, TRUE, FALSE, NULL, comparisons, AND, OR, NOT, IN, LIKE, "
    "BETWEEN, IS NULL, CASE, IF, + - * / %, ||, CONCAT, LOWER, UPPER, COALESCE, SUBSTRING, LENGTH, TRIM, and CAST to "
    f"{', '.join(get_args(CastTarget))}"
)
_COMPARISONS: Mapping[str, Comparison] = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "<=>",
}
_ARITHMETIC: Mapping[str, Arithmetic] = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_PAIR = frozenset({"this", "expression"})
_ONE = frozenset({"this"})
_KNOWN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*_COMPARISONS, *_ARITHMETIC, "And", "Or", "Dot", "DPipe", "Is", "NullSafeNEQ", "Escape"), _PAIR),
    **dict.fromkeys(("Paren", "Not", "Neg", "Lower", "Upper", "Length", "Trim", "Boolean", "Null"), _ONE),
    **dict.fromkeys(("Cast", "TryCast"), frozenset({"this", "to"})),
    "Column": frozenset({"this", "table", "db", "catalog"}),
    "Literal": frozenset({"this", "is_string"}),
    "In": frozenset({"this", "expressions"}),
    "Between": frozenset({"this", "low", "high"}),
    "Like": frozenset({"this", "expression", "negate"}),
    "Case": frozenset({"this", "ifs", "default"}),
    "If": frozenset({"this", "true", "false"}),
    "Concat": frozenset({"expressions"}),
    "Coalesce": frozenset({"this", "expressions"}),
    "Substring": frozenset({"this", "start", "length"}),
}
"""The kinds of nodes that are read, and what they may have.

sqlglot keeps in such parts what changes a node's meaning, such as NOT; others are refused, those of later versions too.
"""
_FLAGS = frozenset({"safe", "coalesce", "typed"})
"""Parts that only matter where sqlglot writes a node in another database's SQL."""
_TYPES: Mapping[str, CastTarget] = {
    "TEXT": "STRING",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
}


class ExpressionError(ValueError):
    """An expression can't be used; its text says why."""


@lru_cache(maxsize=64)
def parse_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ExpressionError: the text is none, or has something that is not allowed.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"it is longer than {MOST_CHARACTERS} characters")
    if "\\" in text:
        # Spark and sqlglot differ in what some of them mean.
        raise ExpressionError("it has a backslash, which is not allowed: put a text with quotes into the other quotes")
    # Only queries with such a transform need it, and it takes a while to import.
    import sqlglot
    from sqlglot.errors import SqlglotError

    # It warns of what it doesn't understand, which is refused here.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        if any(token.text.upper() == "TRY_CAST" for token in sqlglot.tokenize(text, dialect="spark")):
            raise ExpressionError(f"it has 'TRY_CAST', which is not allowed. {ALLOWED}")
        found = [one for one in sqlglot.parse(text, dialect="spark") if one is not None]
        if len(found) != 1:
            raise ExpressionError("it must be one expression")
        return _Reader().read(found[0])
    except SqlglotError as exc:
        reason = str(exc).partition("\n")[0].partition(". Line")[0]
        raise ExpressionError(f"it isn't SQL: {reason[:200]}") from None
    except RecursionError:
        raise ExpressionError(f"it is nested more than {MOST_NESTED} deep") from None


class _Reader:
    """Turns sqlglot's tree into ours."""

    def __init__(self) -> None:
        self._depth = 0

    def read(self, node: exp.Expr) -> Expression:
        """Return a node as an expression."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise ExpressionError(f"it is nested more than {MOST_NESTED} deep")
        name = type(node).__name__
        given = {part for part, found in node.args.items() if found not in (None, False, [])}
        if name not in _KNOWN or given - _KNOWN[name] - _FLAGS:
            _refuse(node)
        if name in _COMPARISONS:
            found: Expression = Compared(_COMPARISONS[name], *self._pair(node))
        elif name in _ARITHMETIC:
            found = Computed(_ARITHMETIC[name], *self._pair(node))
        elif name in ("And", "Or"):
            found = Logical("AND" if name == "And" else "OR", *self._pair(node))
        else:
            found = cast(Callable[["exp.Expr"], Expression], getattr(self, f"_{name.lower()}"))(node)
        self._depth -= 1
        return found

    def _pair(self, node: exp.Expr) -> tuple[Expression, Expression]:
        return self.read(node.args["this"]), self.read(node.args["expression"])

    def _paren(self, node: exp.Expr) -> Expression:
        return self.read(node.this)

    def _column(self, node: exp.Expr) -> Field:
        if any(type(part).__name__ != "Identifier" for part in node.parts):  # type: ignore[attr-defined]
            _refuse(node)
        return _field([part.name for part in node.parts], node)  # type: ignore[attr-defined]

    def _dot(self, node: exp.Expr) -> Field:
        inner = node.this
        if type(inner).__name__ not in ("Column", "Dot") or type(node.expression).__name__ != "Identifier":
            _refuse(node)
        return Field((*cast(Field, self.read(inner)).path, node.expression.name))

    def _literal(self, node: exp.Expr) -> Constant:
        text = str(node.this)
        if node.args["is_string"]:
            return Constant(text, "string")
        if re2.fullmatch("[0-9]+", text):
            number = int(text)
            if number >= 1 << 63:
                raise ExpressionError(f"it has the number {text[:_SHOWN]}, which is beyond 64 bits")
            return Constant(number, "int" if number < 1 << 31 else "bigint")
        if re2.fullmatch(r"[0-9]*\.[0-9]*", text) and len(text) <= 38:
            return Constant(text, "decimal")
        return Constant(float(text), "double")

    def _boolean(self, node: exp.Expr) -> Constant:
        return Constant(bool(node.this), "boolean")

    def _null(self, _node: exp.Expr) -> Constant:
        return Constant(None, "null")

    def _not(self, node: exp.Expr) -> Not:
        return Not(self.read(node.this))

    def _nullsafeneq(self, node: exp.Expr) -> Not:
        return Not(Compared("<=>", *self._pair(node)))

    def _neg(self, node: exp.Expr) -> Expression:
        operand = self.read(node.this)
        if isinstance(operand, Constant) and operand.kind in ("int", "bigint"):
            return Constant(-cast(int, operand.value), operand.kind)
        return Negative(operand)

    def _is(self, node: exp.Expr) -> Expression:
        operand, word = self.read(node.this), type(node.expression).__name__
        if word == "Null":
            return IsNull(operand)
        if word != "Boolean":
            _refuse(node)
        # TRUE and FALSE as null isn't.
        return Compared("<=>", operand, Constant(bool(node.expression.this), "boolean"))

    def _in(self, node: exp.Expr) -> In:
        return In(self.read(node.this), tuple(map(self.read, node.expressions)))

    def _between(self, node: exp.Expr) -> Expression:
        operand = self.read(node.this)
        low, high = self.read(node.args["low"]), self.read(node.args["high"])
        return Logical("AND", Compared(">=", operand, low), Compared("<=", operand, high))

    def _like(self, node: exp.Expr, escape: str = "") -> Expression:
        pattern = node.expression
        if type(pattern).__name__ != "Literal" or not pattern.args["is_string"]:
            raise ExpressionError(f"it has '{_text(node)}': behind LIKE a text must follow")
        found = Like(self.read(node.this), _regex(str(pattern.this), escape, node))
        return Not(found) if node.args.get("negate") else found

    def _escape(self, node: exp.Expr) -> Expression:
        sign = node.expression
        if type(node.this).__name__ != "Like" or not sign.args.get("is_string") or len(str(sign.this)) != 1:
            _refuse(node)
        return self._like(node.this, str(sign.this))

    def _case(self, node: exp.Expr) -> Case:
        base = None if node.this is None else self.read(node.this)
        branches = []
        for one in node.args["ifs"]:
            when = self.read(one.this)
            condition = when if base is None else Compared("=", base, when)
            branches.append((condition, self.read(one.args["true"])))
        return Case(tuple(branches), self._optional(node.args.get("default")))

    def _if(self, node: exp.Expr) -> Case:
        branch = self.read(node.this), self.read(node.args["true"])
        return Case((branch,), self._optional(node.args.get("false")))

    def _optional(self, node: exp.Expr | None) -> Expression:
        return Constant(None, "null") if node is None else self.read(node)

    def _concat(self, node: exp.Expr) -> Call:
        return Call("CONCAT", tuple(map(self.read, node.expressions)))

    def _dpipe(self, node: exp.Expr) -> Call:
        return Call("CONCAT", self._pair(node))

    def _lower(self, node: exp.Expr) -> Call:
        return Call("LOWER", (self.read(node.this),))

    def _upper(self, node: exp.Expr) -> Call:
        return Call("UPPER", (self.read(node.this),))

    def _length(self, node: exp.Expr) -> Call:
        return Call("LENGTH", (self.read(node.this),))

    def _trim(self, node: exp.Expr) -> Call:
        return Call("TRIM", (self.read(node.this),))

    def _coalesce(self, node: exp.Expr) -> Call:
        return Call("COALESCE", tuple(map(self.read, (node.this, *node.expressions))))

    def _substring(self, node: exp.Expr) -> Call:
        parts: Sequence[exp.Expr | None] = (node.this, node.args.get("start"), node.args.get("length"))
        read = [self.read(part) for part in parts if part is not None]
        if len(read) < 2 or not all(isinstance(one, Constant) and one.kind == "int" for one in read[1:]):
            raise ExpressionError(f"it has '{_text(node)}': the position and the length must be whole numbers")
        return Call("SUBSTRING", tuple(read))

    def _cast(self, node: exp.Expr) -> Cast:
        target = _TYPES.get(node.args["to"].this.name)
        if target is None or node.args["to"].expressions:
            _refuse(node)
        return Cast(self.read(node.this), target)

    _trycast = _cast
    """As sqlglot calls Spark's CAST, which fails only in ANSI mode."""


def _field(path: list[str], node: exp.Expr) -> Field:
    root = path[0]
    if root not in _ROOTS or (root == "topic" and len(path) > 1) or (root == "header" and len(path) != 2):
        raise ExpressionError(f"it has '{_text(node)}', which is no field. The fields are {FIELDS}")
    return Field(tuple(path))


def _regex(pattern: str, escape: str, node: exp.Expr) -> str:
    """Return a pattern of LIKE as a regular expression that the whole text must match.

    Args:
        pattern: the pattern.
        escape: the sign before ``_`` and ``%`` that stand for themselves; empty: there is none.
        node: what has the pattern, for errors.
    """
    parts, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == escape:
            at += 1
            if pattern[at : at + 1] not in ("_", "%", escape) or at == len(pattern):
                raise ExpressionError(f"it has '{_text(node)}': behind the escape sign, '_', '%' or itself must follow")
            parts.append(re2.escape(pattern[at]))
        else:
            parts.append(".*" if sign == "%" else "." if sign == "_" else re2.escape(sign))
        at += 1
    return rf"(?s)\A(?:{''.join(parts)})\z"


def _text(node: exp.Expr) -> str:
    shown = node.sql(dialect="spark", comments=False)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


def _refuse(node: exp.Expr) -> NoReturn:
    raise ExpressionError(f"it has '{_text(node)}', which is not allowed. {ALLOWED}")
