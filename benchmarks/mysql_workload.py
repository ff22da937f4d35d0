"""A MySQL or MariaDB server with the tables and backlogs that the PostgreSQL benchmarks have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.mysql import Flavor, MysqlServer

from benchmarks.latency import Session
from benchmarks.workload import CHANGES, DELETES

DATABASE = "bench"
TABLE = f"{DATABASE}.t"
VERSIONS = {"mysql": "MySQL 9.7", "mariadb": "MariaDB 10.11"}
SERVER_SETTINGS: dict[str, str | None] = {"innodb_buffer_pool_size": "2G"}
OWN_SETTINGS: dict[str, dict[str, str | None]] = {
    "mysql": {"innodb_redo_log_capacity": "2G"},
    "mariadb": {"innodb_log_file_size": "2G"},
}

CREATE = f"""
CREATE TABLE {TABLE} (
    id bigint PRIMARY KEY,
    account integer NOT NULL,
    amount numeric(10,2),
    note text,
    updated_at timestamp(6) NULL
)
"""

SIGNAL_TABLE = f"{DATABASE}.signals"
SIGNALS = f"CREATE TABLE {SIGNAL_TABLE} (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
NUMBERS = f"CREATE TABLE {DATABASE}.numbers (number integer PRIMARY KEY)"
SOME = 1000

ROWS = f"""
    INSERT INTO {TABLE}
    SELECT id, (id * 7919) % 100000, (id % 1000000) / 100,
           CONCAT('note of row ', id, ' ', REPEAT('x', 40)),
           TIMESTAMP'2024-01-01 00:00:00.000000' + INTERVAL id * 1000 MICROSECOND
    FROM (SELECT {{base}} + number AS id FROM {DATABASE}.numbers WHERE number <= {{rows}}) AS ids
"""

CHANGE = f"""
CREATE PROCEDURE {DATABASE}.change_rows(transactions integer)
BEGIN
    DECLARE base bigint DEFAULT 0;
    WHILE base < transactions * 50 DO
        START TRANSACTION;
        {ROWS.format(base="base", rows=50)};
        UPDATE {TABLE} SET amount = amount + 1, updated_at = updated_at + INTERVAL 1 DAY
            WHERE id BETWEEN base - 49 AND base - 15;
        DELETE FROM {TABLE} WHERE id BETWEEN base - 14 AND base;
        COMMIT;
        SET base = base + 50;
    END WHILE;
END
"""
"""Each transaction inserts 50 rows, updates 35 and deletes 15 of those that the last one inserted."""

FILL = f"""
CREATE PROCEDURE {DATABASE}.fill_rows(many bigint)
BEGIN
    DECLARE base bigint DEFAULT 0;
    WHILE base < many DO
        {ROWS.format(base="base", rows=f"LEAST({SOME}, many - base)")};
        SET base = base + {SOME};
    END WHILE;
END
"""

UPDATE = f"""
CREATE PROCEDURE {DATABASE}.update_rows(transactions integer, size integer, many bigint)
BEGIN
    DECLARE left_over, chosen bigint;
    WHILE transactions > 0 DO
        SET left_over = size;
        START TRANSACTION;
        WHILE left_over > 0 DO
            SET chosen = 1 + FLOOR(RAND() * many);
            UPDATE {TABLE} SET amount = amount + 1, updated_at = NOW(6) WHERE id = chosen;
            SET left_over = left_over - 1;
        END WHILE;
        COMMIT;
        SET transactions = transactions - 1;
    END WHILE;
END
"""


@dataclass(frozen=True)
class BinlogBacklog:
    """Changes that wait in the binlog.

    Args:
        file: the binlog file that holds them and nothing else.
        changes: row changes.
        events: row changes and tombstones.
    """

    file: str
    changes: int
    events: int


@contextmanager
def database(flavor: Flavor) -> Iterator[MysqlServer]:
    """Start a private server with an empty table."""
    with MysqlServer(flavor, **SERVER_SETTINGS, **OWN_SETTINGS[flavor]) as server:
        numbers = ", ".join(f"({number})" for number in range(1, SOME + 1))
        fill_numbers = f"INSERT INTO {DATABASE}.numbers VALUES {numbers}"
        server.execute(f"CREATE DATABASE {DATABASE}", CREATE, NUMBERS, fill_numbers, CHANGE, FILL)
        yield server


def create_backlog(server: MysqlServer, transactions: int) -> BinlogBacklog:
    """Let a mix of changes wait in a binlog file of its own; the table holds what ``first_rows`` inserts."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = cursor.fetchall()[-1][0]
        cursor.execute(f"CALL {DATABASE}.change_rows({transactions})")
    return BinlogBacklog(file, transactions * CHANGES, transactions * (CHANGES + DELETES))


def first_rows(server: MysqlServer) -> int:
    """Insert the rows that the first transaction of a backlog changes; return how many."""
    server.execute(ROWS.format(base=-50, rows=50))
    return 50


def fill(server: MysqlServer, rows: int) -> None:
    """Insert rows into the table and let the server count them."""
    server.execute("SET SESSION sql_log_bin = 0", f"CALL {DATABASE}.fill_rows({rows})")
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(f"ANALYZE TABLE {TABLE}")
        cursor.fetchall()


def update(server: MysqlServer, rows: int, updates: int, size: int) -> int:
    """Update rows of the table, which has so many, at random, ``size`` in a transaction; return how many updates."""
    server.execute(UPDATE, f"CALL {DATABASE}.update_rows({updates // size}, {size}, {rows})")
    return updates // size * size


def session(server: MysqlServer, statement: str) -> Session:
    """Return what opens sessions; the statement's only parameter is the number that they are called with."""

    @contextmanager
    def opened() -> Iterator[Callable[[int], object]]:
        with server.connect() as connection, connection.cursor() as cursor:
            yield lambda number: cursor.execute(statement, (number,))

    return opened


class Watch:
    """Sees what sessions that begin after it do; use it as a context manager."""

    def __init__(self, server: MysqlServer) -> None:
        self._session = server.connect()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        self._session.close()

    def streams(self) -> bool:
        """Return whether one of them reads the binlog."""
        return self._any("command LIKE 'Binlog Dump%'")

    def reads(self) -> bool:
        """Return whether one of them reads the table."""
        return self._any("info LIKE 'SELECT `id`%'")

    def _any(self, condition: str) -> bool:
        query = f"SELECT 1 FROM information_schema.processlist WHERE id > CONNECTION_ID() AND {condition}"
        with self._session.cursor() as cursor:
            return bool(cursor.execute(query))
