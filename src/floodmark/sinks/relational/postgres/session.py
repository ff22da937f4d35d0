"""Connections to a PostgreSQL target."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from floodmark.errors import TargetBusyError, TargetError
from floodmark.redact import shown_reason
from floodmark.sinks.relational.failures import CURE_BUSY, CURE_RIGHTS, busy, refused, unfit
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.postgres.copy_text import column_list, copy_blocks
from floodmark.sinks.relational.postgres.csv_rows import rows_of

TITLE = "PostgreSQL"
MIN_VERSION = 13
_CONNECT_TIMEOUT_S = 15
_LOCK_TIMEOUT_MS = 30_000
"""How long a statement waits for another session's lock before the micro-batch is tried again."""
_MAY_PASS = ("08", "40", "53", "55", "57", "58", "XX")
"""Classes of SQLSTATE: connection, rollback, resources, locks, the operator, the system."""
_UNFIT = ("22", "23", "42", "54", "0A", "P0", "21")
"""Those that concern values and structures: data, constraints, names and types, limits, triggers."""
_REFUSED = ("28", "3D")
_READ_ONLY, _NO_RIGHT, _FULL, _CANCELED, _NO_TABLE = "25006", "42501", "53100", "57014", "42P01"
_SETTINGS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "DateStyle": "ISO,YMD",
        "IntervalStyle": "postgres",
        "TimeZone": "UTC",
        "client_encoding": "UTF8",
        "bytea_output": "hex",
        "standard_conforming_strings": "on",
        "default_transaction_isolation": "read\\ committed",
        "lock_timeout": _LOCK_TIMEOUT_MS,
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "client_min_messages": "warning",
    }.items()
)
_PASSED_ON = {"sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey"}


class PostgresSession:
    """A connection (``Session``).

    Args:
        options: the sink's.

    Raises:
        TargetBusyError: the server can't be reached now.
        TargetError: it refuses the login, or is too old.
    """

    def __init__(self, options: JdbcOptions) -> None:
        url = options.connection_url
        given: dict[str, Any] = {
            "host": ",".join(host for host, _ in url.hosts),
            "port": ",".join(str(port) for _, port in url.hosts),
            "dbname": url.database,
            "user": options.connection_username,
            "password": None if options.connection_password is None else options.connection_password.get_secret_value(),
            "connect_timeout": _CONNECT_TIMEOUT_S,
            # Without answers for so long the connection counts as lost.
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 6,
            "tcp_user_timeout": 120_000,
            "application_name": "floodmark",
            "options": _SETTINGS,
            **{ours: url.parameters[theirs] for theirs, ours in _PASSED_ON.items() if theirs in url.parameters},
        }
        if url.parameters.get("targetServerType", "any") != "any":
            given["target_session_attrs"] = "read-write"
        try:
            self._conn: psycopg.Connection[TupleRow] = psycopg.connect(
                "",
                autocommit=True,
                prepare_threshold=None,
                **{name: value for name, value in given.items() if value is not None},
            )
        except psycopg.Error as exc:
            raise _unreachable(options, exc) from None
        version = self._conn.info.server_version // 10000
        if version < MIN_VERSION:
            self.close()
            raise TargetError(
                f"The target {url} is PostgreSQL {version}.", f"Floodmark writes to {MIN_VERSION} and later."
            )

    @property
    def version(self) -> str:
        """The server's version, for messages."""
        return f"{TITLE} {self._conn.info.server_version // 10000}"

    def execute(self, statement: str, values: Sequence[Any] = (), doing: str = "a statement") -> int:
        """Run a statement (``Session``)."""
        with _told(doing):
            return self._conn.execute(statement, tuple(values) or None).rowcount

    def query(self, statement: str, values: Sequence[Any] = (), doing: str = "a query") -> list[tuple[Any, ...]]:
        """Return the rows of a statement (``Session``)."""
        with _told(doing):
            return self._conn.execute(statement, tuple(values) or None).fetchall()

    def load(self, table: str, rows: pa.Table) -> list[str]:
        """Append rows to a staging table (``Session``)."""
        lost: set[str] = set()
        statement = f"COPY {table} ({column_list(rows.column_names)}) FROM STDIN"
        with _told("loading rows"), self._conn.cursor() as cursor, cursor.copy(statement) as copy:
            for block in copy_blocks(rows, lost):
                copy.write(block)
        return sorted(lost)

    def read(self, statement: str, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a query (``Session``)."""
        try:
            with (
                _told("reading rows"),
                self._conn.cursor() as cursor,
                cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv)") as copy,
            ):
                yield from rows_of(copy, columns)
        except pa.ArrowInvalid as exc:
            raise unfit(TITLE, "reading rows", shown_reason(str(exc))) from None

    def begin(self) -> None:
        """Begin a transaction (``Session``)."""
        self.execute("BEGIN", doing="BEGIN")

    def commit(self) -> None:
        """Commit it (``Session``)."""
        with _told("COMMIT"):
            done = self._conn.execute("COMMIT").statusmessage
        # A transaction that has failed is rolled back without an error.
        if done != "COMMIT":
            raise busy(TITLE, "COMMIT", f"it answered {done}")

    def rollback(self) -> None:
        """Undo it (``Session``)."""
        with contextlib.suppress(psycopg.Error):
            self._conn.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection (``Session``)."""
        with contextlib.suppress(psycopg.Error):
            self._conn.close()


def _unreachable(options: JdbcOptions, exc: psycopg.Error) -> TargetError:
    reason = shown_reason(str(exc).split("\n", 1)[0].rsplit(": ", 1)[-1])
    text = str(exc)
    fatal = "authentication failed" in text or "no password supplied" in text or "does not exist" in text
    fatal = fatal or "pg_hba.conf" in text or "permission denied" in text or "certificate" in text or "SSL" in text
    what = f"Cannot connect to the target {options.connection_url}, as '{options.connection_username}': {reason}."
    if fatal:
        return TargetError(what, "Correct connection.url, connection.username and connection.password.")
    return TargetBusyError(what, CURE_BUSY)


@contextmanager
def _told(doing: str) -> Iterator[None]:
    """Raise errors of the driver as those of the sink."""
    try:
        yield
    except psycopg.Error as exc:
        raise _error(exc, doing) from None


def _error(exc: psycopg.Error, doing: str) -> TargetError:
    state = exc.sqlstate or ""
    told = exc.diag.message_primary or str(exc).split("\n", 1)[0] or type(exc).__name__
    names = [name for name in (exc.diag.table_name, exc.diag.column_name, exc.diag.constraint_name) if name]
    if state == _READ_ONLY:
        cure = "Connect to the primary server: with several hosts, add targetServerType=primary to connection.url."
        return refused(TITLE, doing, "it is read-only, such as a replica", cure)
    if state == _NO_RIGHT:
        return refused(TITLE, doing, told.rstrip("."), CURE_RIGHTS)
    if state == _FULL:
        return busy(TITLE, doing, "its disk is full")
    if state == _CANCELED:
        return refused(TITLE, doing, told, "Lift the limit of time that someone has set for the user's statements.")
    if state == _NO_TABLE:
        # It was dropped meanwhile; the next attempt knows.
        return busy(TITLE, doing, told)
    if state.startswith(_UNFIT):
        # What concerns values quotes them.
        shown = shown_reason(told) if state.startswith(("22", "23")) else told
        at = f" ({', '.join(names)})" if names else ""
        return unfit(TITLE, doing, f"{shown.rstrip('.')}{at}")
    if not state or state.startswith(_MAY_PASS):
        return busy(TITLE, doing, " ".join(told.split()).rstrip("."))
    return refused(TITLE, doing, " ".join(told.split()).rstrip("."), CURE_BUSY)
