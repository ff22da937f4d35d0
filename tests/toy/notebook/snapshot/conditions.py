"""Converts signals' conditions to SQL for SQLite."""

from __future__ import annotations

from floodmark.changes.column_plan import hidden_columns
from floodmark.connectors.predicates.dialect import Dialect, functions, words
from floodmark.connectors.predicates.errors import locating
from floodmark.connectors.predicates.parser import TableColumns, parse_condition, parse_query
from floodmark.connectors.predicates.standard_sql import clauses
from floodmark.connectors.predicates.tree import (
    Between,
    Binary,
    Column,
    Constant,
    Expression,
    In,
    Is,
    Logical,
    Negative,
    Not,
    Number,
    Text,
)
from floodmark.errors import ConditionError
from tests.toy.notebook.database.notebook import SCHEMA, Table, quote
from tests.toy.notebook.decode.structure import TableStructure
from tests.toy.notebook.options import NotebookOptions

SQLITE = Dialect(
    name="a notebook",
    backslashes=False,
    double_quoted_text=False,
    nested_comments=False,
    operators={"+": 1, "-": 1, "*": 2, "/": 2, "%": 2},
    comparisons=words("= <> != < <= > >="),
    ignore_case=False,
    xor=False,
    functions=functions(""),
    clocks=frozenset(),
    types={},
    typed=frozenset(),
    periods=frozenset(),
    session_words=frozenset(),
)


def row_filter(table: Table, text: str, options: NotebookOptions) -> str:
    """Return a signal's condition on a table's rows as SQL.

    Raises:
        ConditionError: the text is not a single condition, or has a part that is not allowed.
    """
    with locating(f"{SCHEMA}.{table.name}", text):
        return sql(parse_condition(text, _columns(table, options), SQLITE))


def row_query(table: Table, text: str, options: NotebookOptions) -> str:
    """Return a blocking signal's statement as SQL that reads the rows of a table; see ``row_filter``."""
    with locating(f"{SCHEMA}.{table.name}", text):
        query = parse_query(text, _columns(table, options), SQLITE)
        limit = f" LIMIT {query.limit}" if query.limit is not None else ""
        return f"SELECT * FROM {quote(table.name)}{clauses(query, sql)}{limit}"


def _columns(table: Table, options: NotebookOptions) -> TableColumns:
    names = tuple(column.name for column in table.columns)
    return TableColumns(((SCHEMA, table.name),), names, hidden_columns(TableStructure(table), names, options))


def sql(node: Expression) -> str:
    """Return an expression as SQL, in brackets if it has parts.

    Raises:
        ConditionError: it has a part that a notebook doesn't have.
    """
    match node:
        case Column(name):
            return quote(name)
        case Number(text) | Constant(text):
            return text
        case Text(value):
            return "'" + value.replace("'", "''") + "'"
        case Negative(operand):
            return f"(- {sql(operand)})"
        case Not(operand):
            return f"(NOT {sql(operand)})"
        case Binary(operator, left, right):
            return f"({sql(left)} {operator} {sql(right)})"
        case Logical(word, operands):
            return f"({f' {word} '.join(map(sql, operands))})"
        case Is(operand, word, negated):
            return f"({sql(operand)} IS {'NOT ' if negated else ''}{'NULL' if word == 'UNKNOWN' else word})"
        case In(operand, items, negated):
            return f"({sql(operand)} {'NOT ' if negated else ''}IN ({', '.join(map(sql, items))}))"
        case Between(operand, low, high, negated):
            return f"({sql(operand)} {'NOT ' if negated else ''}BETWEEN {sql(low)} AND {sql(high)})"
        case _:
            raise ConditionError(f"it has what a notebook doesn't know ({type(node).__name__})")
