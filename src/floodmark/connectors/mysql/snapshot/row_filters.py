"""Converts signals' conditions to SQL for MySQL and MariaDB.

Texts are written in hexadecimal digits, so that neither the session's mode nor a character set decides where one ends.
Only the server's own functions are called: users' functions are called only by names that are not the server's.
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.column_plan import hidden_columns
from floodmark.connectors.mysql.decode.structure import TableStructure, flavor_of
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.structures.table import Table, quote, table_name
from floodmark.connectors.predicates.dialect import EXTRACTED, Dialect, functions, words
from floodmark.connectors.predicates.errors import locating
from floodmark.connectors.predicates.parser import TableColumns, parse_condition, parse_query
from floodmark.connectors.predicates.standard_sql import clauses, negation, standard_sql
from floodmark.connectors.predicates.tree import (
    Bytes,
    Call,
    Cast,
    Constant,
    Distinct,
    Expression,
    Extract,
    Is,
    Period,
    Query,
    Typed,
)
from floodmark.errors import ConditionError

_CLOCKS = frozenset(("current_date", "current_timestamp", "localtimestamp", "utc_timestamp", "utc_date"))

MYSQL = Dialect(
    name="MySQL",
    backslashes=True,
    double_quoted_text=True,
    nested_comments=False,
    operators={"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "DIV": 2, "MOD": 2},
    comparisons=frozenset(("=", "<=>", "<>", "!=", "<", "<=", ">", ">=")),
    ignore_case=False,
    xor=True,
    functions=functions(
        "abs:1 adddate:2 ceil:1 ceiling:1 char_length:1 character_length:1 coalesce:1-20 crc32:1 curdate:0 "
        "current_date:0 current_timestamp:0-1 date:1 date_add:2 date_sub:2 datediff:2 day:1 dayofmonth:1 dayofweek:1 "
        "floor:1 from_unixtime:1 greatest:2-20 hour:1 if:3 ifnull:2 instr:2 isnull:1 lcase:1 least:2-20 left:2 "
        "length:1 locate:2-3 lower:1 ltrim:1 md5:1 microsecond:1 mid:3 minute:1 mod:2 month:1 now:0-1 nullif:2 "
        "octet_length:1 quarter:1 right:2 round:1-2 rtrim:1 second:1 sign:1 subdate:2 substr:2-3 substring:2-3 "
        "to_days:1 trim:1 ucase:1 unix_timestamp:0-1 upper:1 utc_date:0 utc_timestamp:0-1 week:1 weekday:1 year:1"
    ),
    clocks=frozenset(word.upper() for word in _CLOCKS),
    types={
        "BINARY": 1,
        "CHAR": 1,
        "DATE": 0,
        "DATETIME": 1,
        "DECIMAL": 2,
        "SIGNED": 0,
        "SIGNED INTEGER": 0,
        "TIME": 1,
        "UNSIGNED": 0,
        "UNSIGNED INTEGER": 0,
    },
    typed=frozenset(("DATE", "TIME", "TIMESTAMP")),
    periods=words("MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR"),
    session_words=words("current_user current_role session_user system_user"),
)


def row_filter(table: Table, text: str, options: BinlogOptions) -> str:
    """Return a signal's condition on a table's rows as SQL.

    Args:
        table: its structure.
        text: the condition.
        options: the source's options.

    Raises:
        ConditionError: the text is not a single condition, or has a part that is not allowed.
    """
    with locating(table_name(table), text):
        return sql(parse_condition(text, _columns(table, options), MYSQL))


def row_query(table: Table, text: str, options: BinlogOptions) -> str:
    """Return a blocking signal's statement as SQL that reads the rows of a table; see ``row_filter``."""
    with locating(table_name(table), text):
        return query_sql(parse_query(text, _columns(table, options), MYSQL), table_name(table))


def _columns(table: Table, options: BinlogOptions) -> TableColumns:
    names = tuple(column.name for column in table.columns)
    hidden = hidden_columns(TableStructure(table, flavor_of(options)), names, options)
    return TableColumns(((table.database, table.name),), names, hidden)


def query_sql(query: Query, table: str) -> str:
    """Return the statement that reads a table's rows.

    Args:
        query: which rows.
        table: the table's name for SQL.
    """
    limit = f" LIMIT {query.limit}" if query.limit is not None else ""
    return f"SELECT * FROM {table}{clauses(query, sql)}{limit}"


def sql(node: Expression) -> str:
    """Return an expression as SQL, in brackets if it has parts."""
    match node:
        case Bytes(digits):
            return f"X'{digits}'"
        case Constant(word):
            return word
        case Typed(type_, value):
            # A typed literal must be plain text, so it is a cast.
            return f"CAST({text_literal(value)} AS {'DATETIME(6)' if type_ == 'TIMESTAMP' else type_})"
        case Period(amount, unit):
            return f"INTERVAL {sql(amount)} {unit}"
        case Is(operand, word, negated):
            return f"({sql(operand)} IS {negation(negated)}{word})"
        case Distinct(left, right, negated):
            same = f"({sql(left)} <=> {sql(right)})"
            return same if negated else f"(NOT {same})"
        case Cast(operand, type_, sizes):
            sized = f"({', '.join(map(str, sizes))})" if sizes else ""
            return f"CAST({sql(operand)} AS {type_}{sized})"
        case Call(name, arguments):
            return _call(name, arguments)
        case Extract(field, operand):
            assert field in EXTRACTED
            return f"EXTRACT({field} FROM {sql(operand)})"
    found = standard_sql(node, sql, quote, text_literal)
    if found is None:
        raise ConditionError(f"it has what {MYSQL.name} doesn't know ({type(node).__name__})")
    return found


def _call(name: str, arguments: Sequence[Expression]) -> str:
    # No blank before the bracket, which would make it the name of a user's function.
    return f"{name.upper()}({', '.join(map(sql, arguments))})"


def text_literal(text: str) -> str:
    """Return a text as an SQL literal that doesn't depend on the session's mode."""
    return f"_utf8mb4 X'{text.encode().hex()}'"
