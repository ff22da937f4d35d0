"""Opening connections to Oracle and running statements on them.

python-oracledb in thin mode does the protocol. Errors are raised as ``ConnectError`` or ``SourceStateError`` with a
remedy; passwords never appear in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import oracledb
import pyarrow as pa
from pydantic import SecretStr

from floodmark.connectors.oracle.server.failures import ERRORS, refusal, statement_error
from floodmark.errors import SourceStateError
from floodmark.redact import shown_reason, shown_statement

Connection: TypeAlias = oracledb.Connection
Bind: TypeAlias = "str | int | bytes"

ROOT = "CDB$ROOT"
"""Where logs are mined if there are containers."""
FORMATS = (
    "ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD HH24:MI:SS' NLS_TIMESTAMP_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9' "
    "NLS_TIMESTAMP_TZ_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM' NLS_NUMERIC_CHARACTERS = '.,'"
)
"""What LogMiner writes into statements must not depend on how the server is configured."""
IN_UTC = "ALTER SESSION SET TIME_ZONE = '00:00'"
PROGRAM = "floodmark"
oracledb.defaults.fetch_lobs = False


class ConnectionOptions(Protocol):
    """The options that a connection needs."""

    @property
    def address(self) -> str:
        """What the driver connects to."""

    @property
    def mining_address(self) -> str:
        """What it connects to for LogMiner: that of a standby, or the same."""

    @property
    def place(self) -> str:
        """The address as errors show it."""

    @property
    def user(self) -> str:
        """Account to log in as."""

    @property
    def password(self) -> SecretStr | None:
        """The account's password."""

    @property
    def tls_wallet(self) -> str | None:
        """Directory with certificates and a key."""

    @property
    def tls_wallet_password(self) -> SecretStr | None:
        """Password of the key."""

    @property
    def connect_timeout_ms(self) -> int:
        """How long connecting and logging in may take."""

    @property
    def query_timeout_ms(self) -> int:
        """How long an answer may take; 0: without end."""

    @property
    def pluggable(self) -> str:
        """Name of the pluggable database; empty: there is none."""

    def session_statements(self) -> list[str]:
        """Return the statements that each session begins with."""


def connect(options: ConnectionOptions, to_mine: bool = False, address: str = "") -> Connection:
    """Open a connection to the database whose tables are captured, or to where its log is mined.

    Args:
        options: the source's options.
        to_mine: whether it is for LogMiner: then it leads to the root of the containers, if there are some.
        address: of another instance of the database, or another copy; empty: the options'.

    Raises:
        LoginError: the server refuses the login.
        ConnectError: the server cannot be reached.
        SourceStateError: there is no such pluggable database.
    """
    standby = options.mining_address if to_mine and options.mining_address != options.address else ""
    address = address or standby
    try:
        conn = oracledb.connect(
            user=options.user,
            password=_text(options.password),
            dsn=address or options.address,
            tcp_connect_timeout=options.connect_timeout_ms / 1000,
            wallet_location=options.tls_wallet,
            wallet_password=_text(options.tls_wallet_password),
            program=PROGRAM,
            retry_count=0,
        )
    except (*ERRORS, ValueError) as exc:
        raise refusal(address or options.place, options.user, options.connect_timeout_ms, exc) from None
    try:
        conn.call_timeout = options.query_timeout_ms
        for number, statement in enumerate(options.session_statements(), 1):
            doing = f"statement {number} of database.initial.statements ({shown_statement(statement)})"
            run_own(conn, statement, doing)
        run(conn, FORMATS, "settings of the session")
        run(conn, IN_UTC, "the session's time zone")
        if options.pluggable:
            enter(conn, ROOT if to_mine else options.pluggable.upper())
    except BaseException:
        close(conn)
        raise
    return conn


def enter(conn: Connection, container: str) -> None:
    """Let a session work in a container; its name is checked with the options."""
    run(conn, f"ALTER SESSION SET CONTAINER = {container}", f"entering the container {container}")


@contextmanager
def connection(options: ConnectionOptions, to_mine: bool = False) -> Iterator[Connection]:
    """Open a connection for the duration of a ``with`` block; see ``connect``."""
    conn = connect(options, to_mine)
    try:
        yield conn
    finally:
        close(conn)


@contextmanager
def at_primary(options: ConnectionOptions, conn: Connection) -> Iterator[Connection]:
    """Return the connection for what only the primary says, such as which transactions are open.

    Args:
        options: the source's options.
        conn: a connection to where the log is mined; the same unless that is a standby.
    """
    if options.mining_address == options.address:
        yield conn
        return
    primary = connect(options, to_mine=True, address=options.address)
    try:
        yield primary
    finally:
        close(primary)


def close(conn: Connection) -> None:
    """Close a connection, whatever state it is in."""
    try:
        conn.close()
    except ERRORS:
        return  # it is closed already


def run(
    conn: Connection, statement: str, doing: str, cure: str = "", binds: Sequence[Bind] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows, if it has some.

    Args:
        conn: the connection.
        statement: one statement or block.
        doing: what it is for, such as ``reading the list of logs``.
        cure: what the user can do if the server refuses it.
        binds: the values of ``:1``, ``:2`` and so on.

    Raises:
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    try:
        with conn.cursor() as cursor:
            cursor.arraysize = 1000
            cursor.execute(statement, list(binds))
            return [tuple(row) for row in cursor] if cursor.description else []
    except ERRORS as exc:
        raise statement_error(exc, doing, cure) from None


def value(conn: Connection, statement: str, doing: str, cure: str = "", binds: Sequence[Bind] = ()) -> Any:
    """Return the only value that a query returns; None: it is null, or there is no row."""
    rows = run(conn, statement, doing, cure, binds)
    return rows[0][0] if rows else None


def batches(
    conn: Connection, statement: str, doing: str, schema: pa.Schema, size: int, binds: Sequence[Bind] = ()
) -> Iterator[pa.Table]:
    """Yield the rows of a query as tables.

    Args:
        conn: the connection.
        statement: the query.
        doing: what it is for.
        schema: the columns, as they are wanted: without it numbers would lose digits.
        size: how many rows come at once.
        binds: the values of ``:1``, ``:2`` and so on.

    Raises:
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    try:
        for frame in conn.fetch_df_batches(statement, list(binds), size=size, requested_schema=schema):
            yield pa.table(frame)
    except ERRORS as exc:
        raise statement_error(exc, doing) from None


def run_own(conn: Connection, statement: str, doing: str) -> None:
    """Run a statement from the user's options; errors don't quote it, since it may hold passwords."""
    try:
        run(conn, statement, doing, "Correct the option.")
    except SourceStateError as exc:
        reason = shown_reason(exc.what.partition(": ")[2])
        raise SourceStateError(f"The server refused {doing}: {reason}.", "Correct the option.") from None


def _text(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
