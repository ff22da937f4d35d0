"""Renders signals' conditions as SQL for Oracle."""

from __future__ import annotations

from floodmark.changes.column_plan import hidden_columns
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.sql import constant, quoted
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.predicates.dialect import Dialect, functions, words
from floodmark.connectors.predicates.errors import locating
from floodmark.connectors.predicates.parser import TableColumns, parse_condition, parse_query
from floodmark.connectors.predicates.standard_sql import clauses, negation, standard_sql
from floodmark.connectors.predicates.tree import Call, Constant, Expression, Is, Query, Typed
from floodmark.errors import ConditionError

ORACLE = Dialect(
    name="Oracle",
    backslashes=False,
    double_quoted_text=False,
    nested_comments=False,
    operators={"+": 1, "-": 1, "*": 2, "/": 2},
    comparisons=words("= <> != < <= > >="),
    ignore_case=False,
    xor=False,
    functions=functions("abs:1 ceil:1 coalesce:2-20 floor:1 length:1 lower:1 mod:2 round:1-2 substr:2-3 upper:1"),
    clocks=frozenset(),
    types={},
    typed=words("DATE TIMESTAMP"),
    periods=frozenset(),
    session_words=words(
        "user uid sysdate systimestamp level rownum rowid current_date current_timestamp localtimestamp"
    ),
    upper_case=True,
)


def row_filter(table: Table, text: str, options: OracleOptions) -> str:
    """Return a signal's condition on a table's rows as SQL.

    Raises:
        ConditionError: the text is not one condition, or has something that is not allowed.
    """
    with locating(f"{table.owner}.{table.name}", text):
        return sql(parse_condition(text, _columns(table, options), ORACLE))


def row_query(table: Table, text: str, options: OracleOptions) -> str:
    """Return a blocking signal's statement as SQL that reads the rows of a table; see ``row_filter``."""
    with locating(f"{table.owner}.{table.name}", text):
        return _query(parse_query(text, _columns(table, options), ORACLE), table)


def _query(query: Query, table: Table) -> str:
    found = f"SELECT * FROM {quoted(table.owner)}.{quoted(table.name)}{clauses(query, sql)}"
    return found if query.limit is None else f"{found} FETCH FIRST {query.limit} ROWS ONLY"


def _columns(table: Table, options: OracleOptions) -> TableColumns:
    names = tuple(column.name for column in table.columns)
    hidden = hidden_columns(TableStructure(table, options.settings), names, options)
    return TableColumns(((table.owner, table.name),), names, hidden)


def sql(node: Expression) -> str:
    """Return an expression as SQL, in brackets if it has parts.

    Raises:
        ConditionError: it has a part that Oracle doesn't have.
    """
    match node:
        case Typed(type_, value):
            return f"{type_} {constant(value)}"
        case Is(operand, "NULL", negated):
            return f"({sql(operand)} IS {negation(negated)}NULL)"
        case Call(name, arguments):
            return f"{name}({', '.join(map(sql, arguments))})"
        case Constant(word):
            # Oracle has no truth values before 23ai.
            raise ConditionError(f"it has the constant {word}, which Oracle doesn't know")
    found = standard_sql(node, sql, quoted, constant)
    if found is None:
        raise ConditionError(f"it has what Oracle doesn't know ({type(node).__name__})")
    return found
