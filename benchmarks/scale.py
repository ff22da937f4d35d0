"""See whether an incremental snapshot's time grows with its rows alone, whatever the number and size of the tables."""

from __future__ import annotations

from psycopg import sql

from benchmarks.common import Connection, Result, Scale, database
from benchmarks.incremental import SIGNALS, floodmark

ROWS = "INSERT INTO {} SELECT id, id % 1000 FROM generate_series(1, {}) AS id"


def run(scale: Scale, postgres: int) -> Result:
    """Read one table, one of ten times the size, and many tables."""
    result = Result("scale", scale.name, f"PostgreSQL {postgres}")
    result.notes.append("narrow rows, read incrementally while nothing else happens")
    for tables, rows in ((1, scale.scale_rows), (1, 10 * scale.scale_rows), (100, scale.scale_rows // 100)):
        with database(postgres) as (server, connection):
            names = [f"t{number:03}" for number in range(tables)]
            _create(connection, names, rows)
            (leg,) = floodmark(server, connection, names, tables * rows)
        leg.name = f"{tables} x {rows:,} rows"
        result.legs.append(leg)
    return result


def _create(connection: Connection, names: list[str], rows: int) -> None:
    connection.execute(SIGNALS)
    for name in names:
        table = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE TABLE {} (id bigint PRIMARY KEY, v integer)").format(table))
        connection.execute(sql.SQL(ROWS).format(table, sql.Literal(rows)))
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(table))
    connection.execute("CREATE PUBLICATION bench FOR ALL TABLES")
