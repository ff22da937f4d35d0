"""Tables and backlogs, made by the server itself so that it takes seconds."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from benchmarks.common import Connection

INSERTS, UPDATES, DELETES = 50, 35, 15
"""Row changes in a transaction, in the proportion of 1,000,000 : 700,000 : 300,000."""

CHANGES = INSERTS + UPDATES + DELETES
PUBLICATION = "bench"

CREATE = """
CREATE TABLE {table} (
    id bigint PRIMARY KEY,
    account integer NOT NULL,
    amount numeric(10,2),
    note text,
    updated_at timestamptz
)
"""

ROWS = """
INSERT INTO {table}
SELECT id, (id * 7919) % 100000, (id % 1000000)::numeric / 100,
       'note of row ' || id || ' ' || repeat('x', 40),
       timestamptz '2024-01-01 00:00:00+00' + id * interval '1 millisecond'
FROM generate_series({first}::bigint, {last}::bigint) AS id
"""

CHANGE = """
CREATE PROCEDURE change(tables text[], transactions integer) LANGUAGE plpgsql AS $$
DECLARE
    base bigint;
    name text;
BEGIN
    FOR number IN 0 .. transactions - 1 LOOP
        name := tables[1 + number % array_length(tables, 1)];
        base := (number / array_length(tables, 1))::bigint * 50;
        EXECUTE format('INSERT INTO %I SELECT id, (id * 7919) %% 100000, (id %% 1000000)::numeric / 100,
            ''note of row '' || id || '' '' || repeat(''x'', 40),
            timestamptz ''2024-01-01 00:00:00+00'' + id * interval ''1 millisecond''
            FROM generate_series($1 + 1, $1 + 50) AS id', name) USING base;
        EXECUTE format('UPDATE %I SET amount = amount + 1, updated_at = updated_at + interval ''1 day''
            WHERE id BETWEEN $1 - 49 AND $1 - 15', name) USING base;
        EXECUTE format('DELETE FROM %I WHERE id BETWEEN $1 - 14 AND $1', name) USING base;
        COMMIT;
    END LOOP;
END $$
"""
"""Each transaction inserts 50 rows, updates 35 and deletes 15 of those that its table's last one inserted."""


@dataclass(frozen=True)
class Backlog:
    """Changes that wait in a slot, and what a consumer must have seen when it is through.

    Args:
        slot: the slot that retains them; consumers read copies of it.
        tables: the captured tables.
        changes: row changes.
        events: row changes and tombstones.
        end_lsn: the position after the last of them.
    """

    slot: str
    tables: list[str]
    changes: int
    events: int
    end_lsn: str

    @property
    def include_list(self) -> str:
        """The tables as Debezium's ``table.include.list``."""
        return ",".join(f"public.{table}" for table in self.tables)


def create_tables(connection: Connection, names: list[str]) -> None:
    """Create empty tables and a publication of them."""
    for name in names:
        connection.execute(sql.SQL(CREATE).format(table=sql.Identifier(name)))
    tables = sql.SQL(", ").join(map(sql.Identifier, names))
    connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(PUBLICATION), tables))


def fill(connection: Connection, table: str, first: int, last: int) -> None:
    """Insert the rows of a range of keys in one transaction."""
    statement = sql.SQL(ROWS).format(table=sql.Identifier(table), first=sql.Literal(first), last=sql.Literal(last))
    connection.execute(statement)


def create_backlog(connection: Connection, transactions: int, tables: int = 1, slot: str = "backlog") -> Backlog:
    """Create tables and a slot, and let a mix of changes wait in it, spread over the tables in turn."""
    names = ["t"] if tables == 1 else [f"t{number:03}" for number in range(tables)]
    create_tables(connection, names)
    for name in names:
        fill(connection, name, -49, 0)
    connection.execute(CHANGE.encode())
    create_slot(connection, slot)
    connection.execute("CALL change(%s, %s)", [names, transactions])
    connection.execute("DROP PROCEDURE change")
    return Backlog(slot, names, transactions * CHANGES, transactions * (CHANGES + DELETES), current_lsn(connection))


def create_large_transaction(connection: Connection, rows: int, slot: str = "backlog") -> Backlog:
    """Create a table and a slot, and let one transaction of so many inserts wait in it."""
    create_tables(connection, ["t"])
    create_slot(connection, slot)
    fill(connection, "t", 1, rows)
    return Backlog(slot, ["t"], rows, rows, current_lsn(connection))


def create_slot(connection: Connection, name: str) -> None:
    """Create a logical slot at the current position."""
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])


def copy_slot(connection: Connection, source: str, target: str) -> None:
    """Copy a slot, so that another consumer gets the same backlog."""
    connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [source, target])


def drop_slot(connection: Connection, name: str) -> None:
    """Drop a slot as soon as no consumer holds it; nothing happens if there is none."""
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", [name]
    )


def slot_active(connection: Connection, name: str) -> bool:
    """Return whether a consumer is streaming from a slot."""
    row = connection.execute("SELECT active FROM pg_replication_slots WHERE slot_name = %s", [name]).fetchone()
    return row is not None and bool(row[0])


def current_lsn(connection: Connection) -> str:
    """Return the server's current log position."""
    connection.execute("SELECT pg_switch_wal()")
    row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None
    return str(row[0])
