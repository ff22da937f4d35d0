"""Renders what databases write alike: the parts of conditions that standard SQL has."""

from __future__ import annotations

from collections.abc import Callable

from floodmark.connectors.predicates.tree import (
    Between,
    Binary,
    Column,
    Expression,
    In,
    Like,
    Logical,
    Negative,
    Not,
    Number,
    Query,
    Text,
)

Render = Callable[[Expression], str]
"""Returns an expression as SQL, in brackets if it has parts."""


def standard_sql(node: Expression, sql: Render, quote: Callable[[str], str], text: Callable[[str], str]) -> str | None:
    """Return an expression as SQL, in brackets if it has parts; None if each database writes it in its own way.

    Operators and functions aren't qualified, so it is only for databases in which nobody can define operators.

    Args:
        node: the expression.
        sql: renders its parts.
        quote: quotes a name.
        text: returns a text as a literal.
    """
    match node:
        case Column(name):
            return quote(name)
        case Number(digits):
            return digits
        case Text(value):
            return text(value)
        case Negative(operand):
            return f"(- {sql(operand)})"
        case Not(operand):
            return f"(NOT {sql(operand)})"
        case Binary(operator, left, right):
            return f"({sql(left)} {operator} {sql(right)})"
        case Logical(word, operands):
            return f"({f' {word} '.join(map(sql, operands))})"
        case In(operand, items, negated):
            return f"({sql(operand)} {negation(negated)}IN ({', '.join(map(sql, items))}))"
        case Between(operand, low, high, negated):
            return f"({sql(operand)} {negation(negated)}BETWEEN {sql(low)} AND {sql(high)})"
        case Like(operand, pattern, escape, False, negated):
            escaped = "" if escape is None else f" ESCAPE {text(escape)}"
            return f"({sql(operand)} {negation(negated)}LIKE {sql(pattern)}{escaped})"
        case _:
            return None


def negation(negated: bool) -> str:
    """Return the word that negates what follows it."""
    return "NOT " if negated else ""


def clauses(query: Query, sql: Render) -> str:
    """Return the WHERE and ORDER BY clauses of a query, each with a blank before it."""
    where = f" WHERE {sql(query.condition)}" if query.condition is not None else ""
    order = ", ".join(f"{sql(column)}{' DESC' if descends else ''}" for column, descends in query.order)
    return f"{where} ORDER BY {order}" if order else where
