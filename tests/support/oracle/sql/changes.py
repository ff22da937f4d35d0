"""Changes that clients make themselves: of signal tables, and of the table that flushes the redo."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import exp

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.tables import Structure, Table, column
from tests.support.oracle.sql.result import Result
from tests.support.oracle.sql.rewriting import rewritten
from tests.support.oracle.sql.table_rows import PLACE, table_rows

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session


def change(session: Session, tree: exp.Expr) -> Result:
    """Insert, update or delete rows in the session's transaction."""
    if isinstance(tree, exp.Insert):
        return _insert(session, tree)
    target = tree.this
    assert isinstance(target, exp.Table)
    table = session.table(exp.to_identifier(target.db) if target.db else None, target)
    places = _matching(session, table, tree.args.get("where"))
    transaction = session.transaction()
    for place in places:
        if isinstance(tree, exp.Delete):
            transaction.delete(table, place)
        else:
            values = {_name(one.this): _value(table.structure, one.this, one.expression) for one in tree.expressions}
            transaction.update(table, place, **values)
    return Result(changed=len(places))


def create(session: Session, tree: exp.Expr) -> Result:
    """Create a table; it is committed at once."""
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        raise OracleError(900, text="invalid SQL statement (the stand-in only creates tables)")
    session.commit()
    definitions = [one for one in tree.this.expressions if one.args.get("kind")]
    columns = [
        column(_name(one.this), one.args["kind"].sql("oracle"), nullable=not _has(one, exp.NotNullColumnConstraint))
        for one in definitions
    ]
    name = tree.this.this
    session.database.create_table(
        name.db or session.schema,
        _name(name.this),
        columns,
        [_name(one.this) for one in definitions if _has(one, exp.PrimaryKeyColumnConstraint)],
        user=session.user,
        supplemental=False,
        container=session.container,
        session=True,
    )
    return Result()


def _has(definition: exp.Expr, kind: type[exp.Expr]) -> bool:
    return any(isinstance(one.args.get("kind"), kind) for one in definition.args.get("constraints", ()))


def _insert(session: Session, tree: exp.Insert) -> Result:
    target = tree.this
    names: list[str] | None = None
    if isinstance(target, exp.Schema):
        names = [_name(one) for one in target.expressions]
        target = target.this
    table = session.table(exp.to_identifier(target.db) if target.db else None, target)
    structure = table.structure
    known = names or [one.name for one in structure.columns]
    rows = tree.expression.expressions
    for row in rows:
        given = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(given) != len(known):
            raise OracleError(900, text="not enough values")
        values = {
            name: _value(structure, exp.column(name, quoted=True), one) for name, one in zip(known, given, strict=True)
        }
        session.transaction().insert(table, **values)
    return Result(changed=len(rows))


def _matching(session: Session, table: Table, where: exp.Expr | None) -> list[str]:
    rows = session.rows_of(table, None)
    if where is None:
        return list(rows)
    query = exp.select(exp.column(PLACE, quoted=True)).from_("rows_of_table").where(where.this)
    connection = duckdb.connect()
    try:
        connection.register("rows_of_table", table_rows(table.structure, rows))
        sql = rewritten(query, session.database.clock.now()).sql("duckdb", identify=True)
        return [place for (place,) in connection.execute(sql).fetchall()]
    except duckdb.Error as exc:
        raise OracleError(904, text=f"invalid identifier (not understood by the stand-in: {exc})") from None
    finally:
        connection.close()


def _name(node: exp.Expr) -> str:
    identifier = node.this if isinstance(node, exp.Column) else node
    return identifier.name if identifier.args.get("quoted") else identifier.name.upper()


def _value(structure: Structure, target: exp.Expr, node: exp.Expr) -> Any:
    type_ = structure.column(_name(target)).type
    if isinstance(node, exp.Null):
        return None
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        raise OracleError(900, text=f"only constants are known to the stand-in: {node.sql('oracle')}")
    if type_.base in {"NUMBER", "FLOAT"}:
        return Decimal(f"-{literal.this}" if negative else literal.this)
    return literal.this or None
