"""Renders signals' conditions as SQL for PostgreSQL.

Operators and functions are qualified with their schema: otherwise, anyone who may create them in a schema of the search
path could have them run with this role's rights. A column is compared by the operators of its type: ``pg_catalog``'s,
or, for a base type of an extension such as ``citext``, which only a superuser can create, those in the type's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floodmark.changes.column_plan import hidden_columns
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.postgres.decode.relation import Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, literal, quote
from floodmark.connectors.postgres.server.connection import parse_only, run
from floodmark.connectors.predicates.dialect import EXTRACTED, Dialect, functions, words
from floodmark.connectors.predicates.errors import locating
from floodmark.connectors.predicates.parser import TableColumns, parse_condition, parse_query
from floodmark.connectors.predicates.standard_sql import clauses
from floodmark.connectors.predicates.tree import (
    Between,
    Binary,
    Call,
    Cast,
    Column,
    Constant,
    Distinct,
    Expression,
    Extract,
    In,
    Is,
    Like,
    Logical,
    Negative,
    Not,
    Number,
    Query,
    Text,
    Typed,
)
from floodmark.errors import ConditionError

CATALOG = "pg_catalog"

_TYPES = {
    "BIGINT": "int8",
    "BOOLEAN": "bool",
    "BOOL": "bool",
    "CHARACTER VARYING": "varchar",
    "DATE": "date",
    "DECIMAL": "numeric",
    "DOUBLE PRECISION": "float8",
    "FLOAT4": "float4",
    "FLOAT8": "float8",
    "INT": "int4",
    "INT2": "int2",
    "INT4": "int4",
    "INT8": "int8",
    "INTEGER": "int4",
    "INTERVAL": "interval",
    "NUMERIC": "numeric",
    "REAL": "float4",
    "SMALLINT": "int2",
    "TEXT": "text",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP WITHOUT TIME ZONE": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "UUID": "uuid",
    "VARCHAR": "varchar",
}
_SIZES = {"NUMERIC": 2, "DECIMAL": 2, "VARCHAR": 1, "CHARACTER VARYING": 1, "TIMESTAMP": 1, "TIMESTAMPTZ": 1}
_SYNTAX = frozenset(("coalesce", "greatest", "least"))
"""Functions that are part of the grammar and have no schema."""
_CLOCKS = frozenset(("current_date", "current_timestamp", "localtimestamp"))
_NAMES = {"trim": "btrim", "substring": "substr"}
"""The names of functions in the catalog, where they differ; ``substring`` with a text is a regular expression there."""

POSTGRES = Dialect(
    name="PostgreSQL",
    backslashes=False,
    double_quoted_text=False,
    nested_comments=True,
    operators={"+": 1, "-": 1, "*": 2, "/": 2, "%": 2},
    comparisons=frozenset(("=", "<>", "!=", "<", "<=", ">", ">=")),
    ignore_case=True,
    xor=False,
    functions=functions(
        "abs:1 btrim:1-2 ceil:1 ceiling:1 char_length:1 character_length:1 coalesce:1-20 date_part:2 date_trunc:2 "
        "floor:1 greatest:1-20 least:1-20 left:2 length:1 lower:1 ltrim:1-2 md5:1 mod:2 now:0 octet_length:1 right:2 "
        "round:1-2 rtrim:1-2 sign:1 starts_with:2 strpos:2 substr:2-3 substring:2-3 to_timestamp:1 trim:1 upper:1"
    ),
    clocks=frozenset(word.upper() for word in _CLOCKS),
    types={name: _SIZES.get(name, 0) for name in _TYPES},
    typed=frozenset(("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "UUID", "NUMERIC")),
    periods=frozenset(),
    session_words=words(
        "user current_user session_user system_user current_role current_catalog current_schema localtime current_time"
    ),
)

_NAME = """
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {oid}
"""
# The schema of the operators of each column's type, below domains. Only superusers can create base types.
_OPERATORS = """
    WITH RECURSIVE below AS (
        SELECT attname, attnum, atttypid AS type FROM pg_catalog.pg_attribute
        WHERE attrelid OPERATOR(pg_catalog.=) {oid}::pg_catalog.oid AND attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
          AND NOT attisdropped
        UNION ALL
        SELECT below.attname, below.attnum, typbasetype FROM below JOIN pg_catalog.pg_type t
        ON t.oid OPERATOR(pg_catalog.=) below.type AND t.typtype OPERATOR(pg_catalog.=) 'd'::"char"
    )
    SELECT below.attname::pg_catalog.text,
           CASE WHEN t.typtype OPERATOR(pg_catalog.=) 'b'::"char" AND t.typelem OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                THEN n.nspname::pg_catalog.text ELSE 'pg_catalog' END
    FROM below JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) below.type
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
    WHERE t.typtype OPERATOR(pg_catalog.<>) 'd'::"char" ORDER BY below.attnum
"""


def row_filter(conn: Conn, table: DescribedTable, text: str, options: PostgresOptions) -> str:
    """Return a signal's condition on a table's rows as SQL.

    Args:
        conn: an ordinary connection.
        table: the table.
        text: the condition.
        options: the source's options.

    Raises:
        ConditionError: the text is not one condition, or contains something that is not allowed.
    """
    with locating(table.name, text):
        found = parse_condition(text, _columns(conn, table, options), POSTGRES)
        sql = PostgresRenderer(operator_schemas(conn, table.oid)).sql(found)
        # The server parses it, too, and finds what doesn't fit the columns' types, but runs nothing.
        parse_only(conn, f"SELECT FROM ONLY {table.name} WHERE {sql}")
    return sql


def row_query(conn: Conn, table: DescribedTable, text: str, options: PostgresOptions) -> str:
    """Return a blocking signal's statement as SQL that reads the rows of a table; see ``row_filter``."""
    with locating(table.name, text):
        found = parse_query(text, _columns(conn, table, options), POSTGRES)
        schemas = operator_schemas(conn, table.oid)
        sql = PostgresRenderer(schemas).query(found, table.name)
        parse_only(conn, sql)
    return sql


def _columns(conn: Conn, table: DescribedTable, options: PostgresOptions) -> TableColumns:
    relation: Relation = table.structure
    schema, name = run(conn, _NAME.format(oid=table.oid), "the name of a table")[0]
    names = tuple(operator_schemas(conn, table.oid))
    own = (relation.schema, relation.table), (str(schema), str(name))
    return TableColumns(own, names, hidden_columns(relation, names, options))


def operator_schemas(conn: Conn, oid: int) -> dict[str, str]:
    """Return the schema of the operators that compare each column of a table."""
    return {str(name): str(schema) for name, schema in run(conn, _OPERATORS.format(oid=int(oid)), "a table's columns")}


class PostgresRenderer:
    """Writes conditions as SQL.

    Args:
        schemas: as ``operator_schemas`` returned them.
    """

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self._schemas = schemas

    def query(self, query: Query, table: str) -> str:
        """Return the statement that reads a table's rows.

        Args:
            query: selects the rows.
            table: the table's name for SQL.
        """
        limit = f" LIMIT {query.limit}" if query.limit is not None else ""
        return f"SELECT * FROM ONLY {table}{clauses(query, self.sql)}{limit}"

    def sql(self, node: Expression) -> str:
        """Return an expression, in brackets if it has parts."""
        match node:
            case Column(name):
                return quote(name)
            case Number(text):
                return text
            case Negative(Number(text)):
                return f"(-{text})"
            case Negative(operand):
                return f"(OPERATOR({CATALOG}.-) {self.sql(operand)})"
            case Text(value):
                return literal(value)
            case Constant(word):
                return word
            case Typed(type_, value):
                return f"({literal(value)}::{CATALOG}.{_TYPES[type_]})"
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Not(operand):
                return f"(NOT {self.sql(operand)})"
            case Logical(word, operands):
                return f"({f' {word} '.join(map(self.sql, operands))})"
            case Is(operand, word, negated):
                return f"({self.sql(operand)} IS {'NOT ' if negated else ''}{word})"
            case _:
                return self._longer(node)

    def _longer(self, node: Expression) -> str:
        match node:
            case Distinct(left, right, negated):
                # IS DISTINCT FROM takes its operator from the search path.
                both = f"({self.sql(left)} IS NULL AND {self.sql(right)} IS NULL)"
                same = f"COALESCE({self._binary('=', left, right)}, {both})"
                return same if negated else f"(NOT {same})"
            case In(operand, items, negated):
                return f"(NOT {self._in(operand, items)})" if negated else self._in(operand, items)
            case Between(operand, low, high, negated):
                inside = f"({self._binary('>=', operand, low)} AND {self._binary('<=', operand, high)})"
                return f"(NOT {inside})" if negated else inside
            case Like(operand, pattern, escape, ignore_case, negated):
                operator = f"{'!' if negated else ''}~~{'*' if ignore_case else ''}"
                matched = self.sql(pattern)
                if escape is not None:
                    matched = f"{CATALOG}.like_escape({matched}, {literal(escape)})"
                return f"({self.sql(operand)} {self._operator(operator, operand, pattern)} {matched})"
            case Cast(operand, type_, sizes):
                sized = f"({', '.join(map(str, sizes))})" if sizes else ""
                return f"CAST({self.sql(operand)} AS {CATALOG}.{_TYPES[type_]}{sized})"
            case Call(name, arguments):
                return self._call(name, arguments)
            case Extract(field, operand):
                assert field in EXTRACTED
                return f"EXTRACT({field} FROM {self.sql(operand)})"
            case _:
                raise ConditionError(f"it has what {POSTGRES.name} doesn't know ({type(node).__name__})")

    def _binary(self, operator: str, left: Expression, right: Expression) -> str:
        return f"({self.sql(left)} {self._operator(operator, left, right)} {self.sql(right)})"

    def _operator(self, operator: str, *operands: Expression) -> str:
        schemas = {self._schemas.get(one.name, CATALOG) for one in operands if isinstance(one, Column)} - {CATALOG}
        if len(schemas) > 1:
            raise ConditionError("it compares columns of types of different schemas")
        return f"OPERATOR({quote(next(iter(schemas), CATALOG))}.{operator})"

    def _in(self, operand: Expression, items: Sequence[Expression]) -> str:
        """Return the test whether a value is one of several, without ``IN``: its operator is of the search path."""
        left, equals = self.sql(operand), self._operator("=", operand)
        if len(items) > 1 and all(isinstance(item, Text) for item in items):
            listed = ",".join(_array_item(item.value) for item in items if isinstance(item, Text))
            return f"({left} {equals} ANY ({literal('{' + listed + '}')}))"
        if len(items) > 1 and all(isinstance(item, Number) for item in items):
            return f"({left} {equals} ANY (ARRAY[{', '.join(map(self.sql, items))}]))"
        return f"({' OR '.join(self._binary('=', operand, item) for item in items)})"

    def _call(self, name: str, arguments: Sequence[Expression]) -> str:
        if name in _CLOCKS:
            return name.upper()
        given = ", ".join(map(self.sql, arguments))
        return f"{name.upper()}({given})" if name in _SYNTAX else f"{CATALOG}.{_NAMES.get(name, name)}({given})"


def _array_item(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
