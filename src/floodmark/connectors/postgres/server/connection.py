"""Opens ordinary and replication connections, and runs statements.

psycopg's libpq does host lookup, authentication and TLS. Its errors are raised as ``ConnectError`` with advice;
passwords never appear in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.refusals import cause_of
from floodmark.errors import (
    ConditionError,
    ConnectError,
    LockTimeoutError,
    LoginError,
    NotReadyError,
    SourceStateError,
    StatementTimeoutError,
)
from floodmark.redact import shown_reason, shown_statement

APPLICATION_NAME = "floodmark"
MIN_VERSION = 13
LOCK_WAIT_MS = 1000
"""How long a change on the server waits for a lock; the stream waits with it."""
GRANT_CURE = "GRANT SELECT on the table to the role that Floodmark logs in as."
LOCK_CURE = (
    "Another transaction holds the table, or waits for it (an ALTER TABLE, say): end it, raise "
    "snapshot.lock.timeout.ms, or set snapshot.locking.mode=none."
)
POLICY_CHECK = "check_enable_rls"
"""The server's function that raises an error, with ``row_security=off``, where a policy would hide rows."""
POLICY_CURE = "Let the role read all rows (ALTER ROLE … BYPASSRLS), or read the table as its owner."

_NOT_READY = re.compile(r"the database system is |too many (clients|connections)|remaining connection slots")
_REFUSED = re.compile(
    r"password authentication failed|no password supplied|FATAL: +(database|role) .* does not exist"
    r"|no pg_hba.conf entry|is not permitted to log in|permission denied for database"
    r"|authentication failed for user|permission denied to start WAL sender|must be superuser or replication role"
    r"|certificate verify failed|server certificate for|does not support SSL|certificate file|private key file"
)

_NOT_NOW = ("08", "25", "40", "53", "55", "57", "58", "XX")
"""Classes of SQLSTATE that don't concern the statement: connection, transaction, resources, locks, the operator."""

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
        # Rows that a policy hides would be missing silently; with this the server raises an error instead.
        "row_security": "off",
        # Notices of the replication stream are read.
        "client_min_messages": "notice",
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
        # libpq has no error code for what fails before the session begins. A message in a language that the patterns
        # don't match is a ConnectError, which is retried.
        text = str(exc)
        made = NotReadyError if _NOT_READY.search(text) else LoginError if _REFUSED.search(text) else ConnectError
        cause, cure = cause_of(text)
        raise made(
            f"Cannot connect to PostgreSQL at {options.hostname}:{options.port}, database '{options.dbname}', "
            f"as '{options.user}': {cause}.",
            cure,
        ) from None
    if not replication:
        for number, statement in enumerate(options.session_statements(), 1):
            doing = f"statement {number} of database.initial.statements ({shown_statement(statement)})"
            run_own(conn, statement, doing, "Correct the option.")
    return conn


def connect_for_queries(options: PostgresOptions) -> psycopg.Connection[TupleRow]:
    """Open an ordinary connection whose statements end after ``database.query.timeout.ms``.

    Raises:
        ConnectError: the server cannot be reached or refuses the login.
    """
    conn = connect(options)
    run(conn, f"SET statement_timeout = {options.query_timeout_ms}", "setting the statement timeout")
    return conn


def limit_statements(conn: psycopg.Connection[TupleRow], millis: int, local: bool = False) -> None:
    """Limit how long statements run, and to half of that how long they wait for a lock.

    Args:
        conn: an ordinary connection.
        millis: the limit for one statement.
        local: whether to limit only the open transaction.
    """
    scope = "LOCAL" if local else "SESSION"
    setting = f"SET {scope} statement_timeout = {millis}; SET {scope} lock_timeout = {max(millis // 2, 1)}"
    run(conn, setting, "setting the statement timeout")


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
    one: bool = False,
) -> list[TupleRow]:
    """Run a statement and return its rows; errors state what was being done.

    Args:
        doing: the action, for error messages.
        cure: what the user can do if the server refuses it.
        expected: errors that the caller handles; they are raised unchanged.
        one: whether to use the extended protocol, which rejects more than one statement.

    Raises:
        SourceStateError: the server refused the statement.
        StatementTimeoutError: it took longer than the session allows.
        LockTimeoutError: it waited for a lock for longer than the session allows.
        ConnectError: the connection was lost.
    """
    try:
        cursor = conn.execute(statement, prepare=True if one else None)
        return cursor.fetchall() if cursor.description else []
    except expected:
        raise
    except psycopg.errors.LockNotAvailable as exc:
        raise LockTimeoutError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None
    except psycopg.errors.QueryCanceled as exc:
        raise StatementTimeoutError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None
    except psycopg.OperationalError as exc:
        if exc.sqlstate is None or exc.sqlstate.startswith(("08", "57P")):
            raise ConnectError(f"Lost the connection to PostgreSQL while {doing}: {_one_line(exc)}.") from None
        raise SourceStateError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None
    except psycopg.Error as exc:
        if exc.diag.source_function == POLICY_CHECK:
            cure = POLICY_CURE
        elif cure == LOCK_CURE and isinstance(exc, psycopg.errors.InsufficientPrivilege):
            cure = GRANT_CURE
        raise SourceStateError(f"PostgreSQL refused {doing}: {_one_line(exc)}.", cure) from None


def run_own(conn: psycopg.Connection[TupleRow], statement: str, doing: str, cure: str) -> None:
    """Run a statement from the user's options, which may hold passwords: errors quote neither it nor parts of it.

    It uses the extended protocol, which rejects more than one statement.

    Raises:
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    try:
        conn.execute(statement, prepare=True)
    except psycopg.Error as exc:
        reason = shown_reason(exc.diag.message_primary or type(exc).__name__)
        if conn.closed or (exc.sqlstate or "").startswith(("08", "57P")):
            raise ConnectError(f"Lost the connection to PostgreSQL while {doing}: {reason}.") from None
        raise SourceStateError(f"PostgreSQL refused {doing}: {reason} ({exc.sqlstate}).", cure) from None


def parse_only(conn: psycopg.Connection[TupleRow], statement: str) -> None:
    """Make the server parse one statement without running it; the extended protocol rejects more than one.

    Raises:
        ConditionError: the server rejects the statement.
        SourceStateError: it can't be parsed now, for example because a lock is held.
        ConnectError: the connection was lost.
    """
    with conn.lock:
        result = conn.pgconn.prepare(b"", statement.encode())
    if result.status == psycopg.pq.ExecStatus.COMMAND_OK:
        return
    reason = " ".join(result.get_error_message().split()).removeprefix("ERROR:").strip().rstrip(".")
    if conn.broken or conn.closed:
        raise ConnectError(f"Lost the connection to PostgreSQL while a condition was checked: {reason}.")
    sqlstate = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
    if sqlstate.startswith(_NOT_NOW):
        raise SourceStateError(f"PostgreSQL could not check a condition: {reason}.")
    raise ConditionError(f"the server says {reason!r}")


def limit_waits(conn: psycopg.Connection[TupleRow], options: PostgresOptions) -> None:
    """Limit a session's waits for locks to ``snapshot.lock.timeout.ms``, unless ``snapshot.locking.mode`` is none."""
    if options.snapshot_locking_mode != "none":
        run(conn, f"SET lock_timeout = {options.snapshot_lock_timeout_ms}", "setting the lock timeout")


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split()).rstrip(".")
