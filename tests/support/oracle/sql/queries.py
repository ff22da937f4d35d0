"""Answers queries: DuckDB evaluates them on views and on the rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import exp

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.tables import Column, Row, Table, ordered, unordered
from tests.support.oracle.model.types import OracleType
from tests.support.oracle.sql.dictionary_views import DICTIONARY_VIEWS
from tests.support.oracle.sql.log_views import LOG_VIEWS, PLACE_IN_LOG
from tests.support.oracle.sql.result import Result, ResultColumn
from tests.support.oracle.sql.rewriting import rewritten
from tests.support.oracle.sql.shown_values import TEXT, is_shown_column, shown
from tests.support.oracle.sql.table_rows import PLACE, ROWID, table_rows

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

VIEWS = {**LOG_VIEWS, **DICTIONARY_VIEWS}
CLOB = OracleType("CLOB", "CLOB")
SCN_SECONDS = 3
"""How exactly ``SCN_TO_TIMESTAMP`` knows the time."""


def answer(session: Session, tree: exp.Expr) -> Result:
    """Return a query's result.

    Args:
        session: who asks.
        tree: the query, with values for its binds.

    Raises:
        OracleError: it names what isn't there, or what isn't understood.
    """
    engine = session.engine
    engine.failures.clear()
    rows_of: dict[str, dict[str, Row]] = {}
    tables: dict[str, Table] = {}
    names: list[str] = []
    contents = ""
    defined = {one.alias_or_name.upper() for one in tree.find_all(exp.CTE)}
    try:
        for place, node in enumerate(list(tree.find_all(exp.Table))):
            if node.name.upper() in defined:
                continue
            name = f"relation_{place}"
            names.append(name)
            if node.name.upper() == "V$LOGMNR_CONTENTS":
                contents = name
            table = _register(session, engine.connection, node, name)
            if table is not None:
                rows_of[name], tables[name] = table[1], table[0]
            renamed = exp.to_table(name)
            renamed.set("alias", exp.TableAlias(this=exp.to_identifier(node.alias or node.name)))
            node.replace(renamed)
        if len(tables) == 1 and _reads_columns(tree):
            (name,) = tables
            return _projected(engine, tree, tables[name], rows_of[name], session)
        tree = _in_order(tree, contents)
        sql = rewritten(tree, session.database.clock.now()).sql("duckdb", identify=True)
        return _result(engine.run(sql), tree)
    finally:
        for name in names:
            engine.connection.unregister(name)


def _in_order(tree: exp.Expr, relation: str) -> exp.Expr:
    """Return a query of LogMiner's view with an order, which DuckDB doesn't keep by itself if there are many rows."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(one) for one in ("order", "group", "distinct", "joins")):
        return tree
    source = tree.args["from_"].this
    if not relation or not isinstance(source, exp.Table) or source.name != relation or not _reads_rows(tree):
        return tree
    return tree.order_by(exp.column(PLACE_IN_LOG, quoted=True))


def _reads_rows(tree: exp.Select) -> bool:
    return not any(one.find(exp.AggFunc) for one in tree.expressions)


class Engine:
    """What evaluates a session's queries: a DuckDB with Oracle's functions.

    Args:
        session: the session.

    Attributes:
        failures: what functions have raised, since DuckDB only has the text.
    """

    def __init__(self, session: Session) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        # Its queries are small: more threads only wait for each other.
        self.connection.execute("SET threads = 1")
        self.failures = _add_functions(self.connection, session)

    def run(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run a query."""
        try:
            return self.connection.execute(sql)
        except duckdb.Error as exc:
            if self.failures:
                raise self.failures[0] from None
            raise OracleError(
                904, text=f"invalid identifier (not understood by the stand-in: {exc}) in {sql}"
            ) from None


def _register(
    session: Session, connection: duckdb.DuckDBPyConnection, node: exp.Table, name: str
) -> tuple[Table, dict[str, Row]] | None:
    """Give DuckDB what a query reads; of a table, return its rows by their ROWIDs."""
    schema, called = node.db, node.name
    if not node.this.args.get("quoted"):
        called = called.upper()
    view = VIEWS.get(called.removeprefix("SYS."))
    if view is not None and schema.upper() in ("", "SYS"):
        session.require(called)
        connection.register(name, view.read(session))
        return None
    if node.args.get("sample") is not None:
        # A sample may have any rows.
        node.set("sample", None)
    table = session.table(exp.to_identifier(schema) if schema else None, node)
    rows = session.rows_of(table, _scn(node))
    connection.register(name, table_rows(table.structure, rows))
    return table, rows


def _scn(node: exp.Table) -> int | None:
    version = node.args.get("version")
    if version is None:
        return None
    if version.name.upper() != "SCN":
        raise OracleError(900, text="invalid SQL statement (the stand-in only knows AS OF SCN)")
    return int(version.expression.name)


def _reads_columns(tree: exp.Expr) -> bool:
    """Return whether a query of a table returns columns as they are."""
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("distinct"):
        return False
    if not isinstance(tree.args["from_"].this, exp.Table):
        return False
    return all(
        isinstance(one.unalias(), (exp.Column, exp.Star)) or is_shown_column(one.unalias()) for one in tree.expressions
    )


def _projected(
    engine: Engine,
    tree: exp.Expr,
    table: Table,
    rows: Mapping[str, Row],
    session: Session,
) -> Result:
    """Let DuckDB choose the rows, and take their values from the model, which has all of Oracle's."""
    structure = table.structure
    columns: list[ResultColumn] = []
    values: list[Callable[[str], Any]] = []
    for one in tree.expressions:
        called = one.unalias()
        if isinstance(called, exp.Star):
            columns += [ResultColumn(column.name, column.type) for column in structure.columns]
            values += [_value_of(rows, column.name) for column in structure.columns]
            continue
        name = _column_name(called.this if is_shown_column(called) else called)
        label = one.alias.upper() if one.alias else name
        if name == ROWID:
            columns.append(ResultColumn(label, OracleType("ROWID", "ROWID", length=18)))
            values.append(lambda place: place)
        elif is_shown_column(called):
            columns.append(ResultColumn(label, TEXT))
            values.append(_shown_value_of(rows, called, structure.column(name), session))
        else:
            columns.append(ResultColumn(label, structure.column(name).type))
            values.append(_value_of(rows, name))
    tree.set("expressions", [exp.column(PLACE)])
    found = engine.run(rewritten(tree, session.database.clock.now()).sql("duckdb", identify=True))
    places = [place for (place,) in found.fetchall()]
    return Result(tuple(columns), [[value(place) for value in values] for place in places])


def _column_name(column: exp.Expr) -> str:
    called = column.this
    name: str = called.name
    return name if called.args.get("quoted") else name.upper()


def _value_of(rows: Mapping[str, Row], name: str) -> Callable[[str], Any]:
    # A column that was added later is null in the rows of before.
    return lambda place: rows[place].get(name)


def _shown_value_of(rows: Mapping[str, Row], call: exp.Expr, column: Column, session: Session) -> Callable[[str], Any]:
    return lambda place: shown(call, column.type, rows[place].get(column.name), session.formats)


def _result(found: duckdb.DuckDBPyConnection, tree: exp.Expr) -> Result:
    described = found.description or []
    columns = tuple(
        ResultColumn(name if _quoted(one) else name.upper(), CLOB if _is_large(one) else _type(str(kind)))
        for (name, kind, *_), one in zip(described, _outputs(tree, len(described)), strict=True)
    )
    return Result(columns, found.fetchall())


def _outputs(tree: exp.Expr, count: int) -> list[exp.Expr]:
    outputs = tree.selects if isinstance(tree, exp.Query) else []
    return list(outputs) if len(outputs) == count else [exp.Null()] * count


def _is_large(one: exp.Expr) -> bool:
    function = one.unalias()
    return isinstance(function, exp.Dot) and function.expression.name.upper() == "GET_DDL"


def _quoted(one: exp.Expr) -> bool:
    alias = one.args.get("alias") or one.this
    return isinstance(alias, exp.Identifier) and bool(alias.args.get("quoted"))


def _type(name: str) -> OracleType:
    if name.startswith("DECIMAL") or name in {"INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT", "BOOLEAN"}:
        return OracleType("NUMBER", "NUMBER")
    if name == "DOUBLE":
        return OracleType("NUMBER", "NUMBER")
    if name == "TIMESTAMP_S":
        return OracleType("DATE", "DATE")
    if name == "TIMESTAMP WITH TIME ZONE":
        return OracleType.parse("TIMESTAMP(6) WITH TIME ZONE")
    if name.startswith("TIMESTAMP"):
        return OracleType.parse("TIMESTAMP(6)")
    if name == "BLOB":
        return OracleType("RAW", "RAW(2000)", length=2000)
    return OracleType("VARCHAR2", "VARCHAR2(4000)", length=4000)


def _add_functions(connection: duckdb.DuckDBPyConnection, session: Session) -> list[OracleError]:
    """Add Oracle's functions; what they raise is collected, since DuckDB only has the text."""
    failures: list[OracleError] = []
    database = session.database

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)  # DuckDB counts the parameters.
        def call(*values: Any) -> Any:
            try:
                return function(*values)
            except OracleError as exc:
                failures.append(exc)
                raise

        return call

    def scn_to_timestamp(scn: int) -> datetime:
        time = database.clock.time_of(scn)
        return (time - timedelta(seconds=time.second % SCN_SECONDS, microseconds=time.microsecond)).replace(tzinfo=None)

    def timestamp_to_scn(time: datetime) -> int:
        return max(database.clock.scn_of(time.replace(tzinfo=database.clock.now().tzinfo)), 1)

    def get_ddl(kind: str, name: str, owner: str) -> str:
        del kind
        table = database.table(owner, name, session.container)
        return table.structure.ddl if session.sql_terminator else table.structure.ddl.rstrip(";")

    def charset_id(name: str) -> int:
        return {"AL32UTF8": 873, "UTF8": 871, "WE8ISO8859P1": 31, "AL16UTF16": 2000}[name]

    for name, function, given, returned in (
        ("scn_to_timestamp", scn_to_timestamp, ["BIGINT"], "TIMESTAMP"),
        ("timestamp_to_scn", timestamp_to_scn, ["TIMESTAMP"], "BIGINT"),
        ("dbms_metadata_get_ddl", get_ddl, ["VARCHAR"] * 3, "VARCHAR"),
        ("nls_charset_id", charset_id, ["VARCHAR"], "BIGINT"),
        ("chartorowid", ordered, ["VARCHAR"], "VARCHAR"),
        ("rowidtochar", unordered, ["VARCHAR"], "VARCHAR"),
    ):
        connection.create_function(name, guarded(function), given, returned)  # type: ignore[arg-type]
    return failures
