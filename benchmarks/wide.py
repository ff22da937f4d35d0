"""Drain a table of 40 columns of 20 types, beside Debezium."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.common import Connection, Result, Scale, database
from benchmarks.workload import CHANGES, DELETES, PUBLICATION, Backlog, create_slot, current_lsn

SHARE = 5
"""One change for so many of the benchmark ``drain``: a row is about that much larger."""

COLUMNS = {
    "smallint": "(id % 30000)::smallint",
    "integer": "(id * 7919 % 2000000000)::integer",
    "bigint": "id * 1000003",
    "real": "(id % 1000)::real / 8",
    "double precision": "id / 7.0::double precision",
    "numeric(12,2)": "(id % 1000000)::numeric / 100",
    "numeric": "(id % 1000000)::numeric / 1000",
    "boolean": "id % 3 = 0",
    "text": "'text of row ' || id || ' \"quoted\"'",
    "varchar(40)": "'varchar ' || id",
    "bytea": "decode(md5(id::text), 'hex')",
    "date": "date '2000-01-01' + (id % 10000)::integer",
    "time": "time '00:00' + (id % 86400000) * interval '1 millisecond'",
    "timestamp": "timestamp '2024-01-01' + id * interval '1 millisecond'",
    "timestamptz": "timestamptz '2024-01-01 00:00:00+00' + id * interval '1 microsecond'",
    "interval": "(id % 1000) * interval '1 hour 1 second'",
    "uuid": "md5(id::text)::uuid",
    "jsonb": "jsonb_build_object('id', id, 'list', jsonb_build_array(1, 'two', null))",
    "inet": "inet '10.0.0.0' + (id % 16000000)",
    "wide_mood": "(ARRAY['sad', 'so so', 'happy'])[1 + id % 3]::wide_mood",
}
"""Each type, and the value of a row in its first and second column of it; every tenth in the second is null."""

ROWS = "INSERT INTO wide SELECT {values} FROM generate_series({first}, {last}::bigint) AS id"

CHANGE = """
CREATE PROCEDURE change(transactions integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR number IN 0 .. transactions - 1 LOOP
        {rows};
        UPDATE wide SET a2 = a2 + 1, a6 = a6 + 1, a15 = a15 + interval '1 day'
            WHERE id BETWEEN number * 50 - 49 AND number * 50 - 15;
        DELETE FROM wide WHERE id BETWEEN number * 50 - 14 AND number * 50;
        COMMIT;
    END LOOP;
END $$
"""
"""Each transaction inserts 50 rows, updates 35 and deletes 15 of those that the last one inserted."""


def run(scale: Scale, postgres: int) -> Result:
    """Drain copies of one slot with Debezium and with Floodmark."""
    result = Result("wide", scale.name, f"PostgreSQL {postgres}")
    with database(postgres) as (server, connection):
        backlog = create_backlog(connection, scale.drain_transactions // SHARE)
        result.notes.append(f"{backlog.changes:,} row changes of {2 * len(COLUMNS)} columns")
        if scale.debezium:
            result.legs.append(reference.debezium_drain(server, connection, backlog))
        with tempfile.TemporaryDirectory() as scratch:
            result.legs += engine.halves(server, connection, backlog, Path(scratch))
        with tempfile.TemporaryDirectory() as scratch:
            result.legs.append(engine.drain(server, connection, backlog, Path(scratch)))
    result.add_ratio("changes/s", "x Debezium", reference.DEBEZIUM)
    return result


def create_backlog(connection: Connection, transactions: int) -> Backlog:
    """Create the table and a slot, and let a mix of changes wait in it."""
    firsts = [f"a{number} {kind}" for number, kind in enumerate(COLUMNS, 1)]
    seconds = [f"b{number} {kind}" for number, kind in enumerate(COLUMNS, 1)]
    # The key takes the place of the second bigint.
    seconds[list(COLUMNS).index("bigint")] = "id bigint PRIMARY KEY"
    values = [*COLUMNS.values(), *(f"CASE WHEN id % 10 <> 0 THEN {value} END" for value in COLUMNS.values())]
    values[len(COLUMNS) + list(COLUMNS).index("bigint")] = "id"
    listed = ", ".join(values)
    rows = ROWS.format(values=listed, first="number * 50 + 1", last="(number + 1) * 50")
    connection.execute("CREATE TYPE wide_mood AS ENUM ('sad', 'so so', 'happy')")
    connection.execute(f"CREATE TABLE wide ({', '.join([*firsts, *seconds])})".encode())
    connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE wide".encode())
    connection.execute(ROWS.format(values=listed, first=-49, last=0).encode())
    connection.execute(CHANGE.format(rows=rows).encode())
    create_slot(connection, "backlog")
    connection.execute("CALL change(%s)", [transactions])
    events = transactions * (CHANGES + DELETES)
    return Backlog("backlog", ["wide"], transactions * CHANGES, events, current_lsn(connection))
