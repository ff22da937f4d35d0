"""Opening connections: ordinary ones, and replication ones.

psycopg's libpq does host lookup, authentication and TLS. Errors come back as ``ConnectError`` with
what to do; passwords never appear in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from floodmark.config.postgres import PostgresOptions
from floodmark.errors import ConnectError, SourceStateError

APPLICATION_NAME = "floodmark"
MIN_VERSION = 13
LOCK_CURE = (
    "Another transaction holds the table, or waits for it (an ALTER TABLE, say): end it, raise "
    "snapshot.lock.timeout.ms, or set snapshot.locking.mode=none."
)

# The server's text output must not depend on how the server, the database or the role is configured.
SESSION_SETTINGS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "TimeZone": "UTC",
        "extra_float_digits": "3",
        "bytea_output": "hex",
        "client_encoding": "UTF8",
        "lc_monetary": "C",
        "xmlbinary": "base64",
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
    }.items()
)


def conninfo(options: PostgresOptions, extra: Mapping[str, str] | None = None) -> str:
    """Return the libpq connection string for the options, with ``extra`` parameters."""
    params: dict[str, str | int | None] = {
        "host": options.hostname,
        "port": options.port,
        "user": options.user,
        "password": options.password.get_secret_value() if options.password else None,
        "dbname": options.dbname,
        "sslmode": options.sslmode,
        "sslrootcert": options.sslrootcert,
        "sslcert": options.sslcert,
        "sslkey": options.sslkey,
        "sslpassword": options.sslpassword.get_secret_value() if options.sslpassword else None,
        "keepalives": int(options.tcp_keepalive),
        "connect_timeout": options.connect_timeout_ms // 1000,
        "application_name": APPLICATION_NAME,
        **(extra or {}),
    }
    return make_conninfo("", **{name: value for name, value in params.items() if value is not None})


def connect(options: PostgresOptions, replication: bool = False) -> psycopg.Connection[TupleRow]:
    """Open a connection in autocommit mode.

    Args:
        options: the source's options.
        replication: whether the connection speaks the replication protocol (``START_REPLICATION``).

    Raises:
        ConnectError: the server cannot be reached or refuses the login.
        SourceStateError: it refuses an initial statement.
    """
    extra = {"options": SESSION_SETTINGS}
    if replication:
        extra["replication"] = "database"
    try:
        conn = psycopg.connect(conninfo(options, extra), autocommit=True)
    except psycopg.Error as exc:
        raise ConnectError(
            f"Cannot connect to PostgreSQL at {options.hostname}:{options.port}, database '{options.dbname}', "
            f"as '{options.user}': {_one_line(exc)}.",
            "Check database.hostname, database.port, database.user, database.password, database.dbname, "
            "database.sslmode and the server's pg_hba.conf.",
        ) from None
    if not replication:
        for statement in options.session_statements():
            run(conn, statement, f"the initial statement '{statement}'", "Correct database.initial.statements.")
    return conn


def connect_for_queries(options: PostgresOptions) -> psycopg.Connection[TupleRow]:
    """Open an ordinary connection whose statements end after ``database.query.timeout.ms``.

    Raises:
        ConnectError: the server cannot be reached or refuses the login.
    """
    conn = connect(options)
    run(conn, f"SET statement_timeout = {options.query_timeout_ms}", "setting the statement timeout")
    return conn


@contextmanager
def connection(options: PostgresOptions) -> Iterator[psycopg.Connection[TupleRow]]:
    """Open an ordinary connection for the duration of a ``with`` block."""
    conn = connect(options)
    try:
        yield conn
    finally:
        conn.close()


def server_version(conn: psycopg.Connection[TupleRow]) -> int:
    """Return the server's major version."""
    return conn.info.server_version // 10000


def run(
    conn: psycopg.Connection[TupleRow],
    statement: str,
    doing: str,
    cure: str = "",
    expected: tuple[type[psycopg.Error], ...] = (),
) -> list[TupleRow]:
    """Run a statement, with an error that says what was being done.

    Args:
        expected: refusals that the caller handles; they are passed on as they are.

    Raises:
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    try:
        cursor = conn.execute(statement)
        return cursor.fetchall() if cursor.description else []
    except expected:
        raise
    except psycopg.OperationalError as exc:
        if exc.sqlstate is None or exc.sqlstate.startswith(("08", "57P")):
            raise ConnectError(f"Lost the connection to PostgreSQL while {doing}: {_one_line(exc)}.") from None
        raise SourceStateError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None
    except psycopg.Error as exc:
        raise SourceStateError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None


def limit_waits(conn: psycopg.Connection[TupleRow], options: PostgresOptions) -> None:
    """Let no statement of a session wait longer than ``snapshot.lock.timeout.ms``, if tables are locked."""
    if options.snapshot_locking_mode != "none":
        run(conn, f"SET lock_timeout = {options.snapshot_lock_timeout_ms}", "setting the lock timeout")


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split()).rstrip(".")
