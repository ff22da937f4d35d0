"""Opening ordinary connections and running statements on them.

PyMySQL does the login: ``caching_sha2_password``, ``mysql_native_password``, ``sha256_password`` and MariaDB's
``ed25519``. Errors are raised as ``ConnectError`` or ``SourceStateError`` with a remedy; passwords never appear in
them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import pymysql
from pydantic import SecretStr
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor

from floodmark.connectors.mysql.server.tls import tls_context
from floodmark.errors import (
    ConnectError,
    FloodmarkError,
    LockTimeoutError,
    LoginError,
    NotReadyError,
    PrivilegeError,
    SourceStateError,
    StatementTimeoutError,
)
from floodmark.redact import shown_reason, shown_statement

PROGRAM_NAME = "floodmark"

# What the server sends must not depend on how it or the user is configured, and a connection must outlive long waits.
SESSION_SETTINGS = (
    "SET SESSION sql_mode = '', SESSION time_zone = '+00:00', SESSION net_write_timeout = 31536000, "
    "SESSION wait_timeout = 31536000"
)

_LOST = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_CONN_HOST_ERROR, CR.CR_CONNECTION_ERROR)
_NO_LONGER = 1053, 1927, 3169, 4031, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1226, 1317, 3032, 3168
"""Shutdown in progress; connection killed; session killed; disconnected because of inactivity; shutting down; aborted
connections and errors of the network; too many statements an hour; interrupted; offline; not ready yet."""
_NO_PRIVILEGE = (
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
    ER.ACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    # The error of XA RECOVER without XA_RECOVER_ADMIN.
    ER.XAER_RMERR,
)
_WRONG_LOGIN = (ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR, 1698, 3118, 1862, 1820)
_NOT_NOW = (ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, 1203, 1226)
"""Too many connections, of all or of the user; shutdown in progress; a resource that is used up."""
_UNKNOWN_PLUGIN = 2059
_TOO_LONG = 1969, 3024
"""MariaDB's and MySQL's number for a statement that the server has ended since it took too long."""
_LEFT_OUT = ER.LOCK_WAIT_TIMEOUT, 1684
"""Warnings that a result lacks a table: it was locked for too long, or while the session itself holds locks."""
LOCKED_CURE = "End the session that alters a table, or wait until it has."

Connection: TypeAlias = "pymysql.Connection[Cursor]"

Row: TypeAlias = tuple[Any, ...]
"""A row as PyMySQL returns it: what its values are depends on the statement."""


class ConnectionOptions(Protocol):
    """The options that a connection needs."""

    @property
    def hostname(self) -> str:
        """Host name or address."""

    @property
    def port(self) -> int:
        """TCP port."""

    @property
    def user(self) -> str:
        """User to log in as."""

    @property
    def password(self) -> SecretStr | None:
        """The user's password."""

    @property
    def connect_timeout_ms(self) -> int:
        """How long connecting and logging in may take."""

    def session_statements(self) -> list[str]:
        """Return the statements that each session begins with."""

    @property
    def ssl_mode(self) -> str:
        """``disabled``, ``preferred``, ``required``, ``verify_ca`` or ``verify_identity``."""

    @property
    def ssl_keystore(self) -> str | None:
        """File with the client's certificate and key."""

    @property
    def ssl_keystore_password(self) -> SecretStr | None:
        """Password of that file or key."""

    @property
    def ssl_truststore(self) -> str | None:
        """File with the accepted authorities' certificates."""

    @property
    def ssl_truststore_password(self) -> SecretStr | None:
        """Password of that file."""


def connect(options: ConnectionOptions) -> Connection:
    """Open a connection in autocommit mode, with text in UTF-8 and times in UTC.

    Raises:
        ConfigError: a keystore or truststore cannot be read.
        LoginError: the server refuses the login.
        ConnectError: the server cannot be reached.
    """
    timeout = max(options.connect_timeout_ms / 1000, 0.001)
    try:
        conn = _Client(
            host=options.hostname,
            port=options.port,
            user=options.user,
            password=_text(options.password).encode(),  # PyMySQL sends text as Latin-1
            connect_timeout=timeout,
            read_timeout=timeout,
            charset="utf8mb4",
            autocommit=True,
            program_name=PROGRAM_NAME,
            ssl_disabled=options.ssl_mode == "disabled",
            ssl=_tls(options),
        )
    except (pymysql.err.Error, OSError, RuntimeError) as exc:
        raise _refusal(options, exc) from None
    try:
        for number, statement in enumerate(options.session_statements(), 1):
            doing = f"statement {number} of database.initial.statements ({shown_statement(statement)})"
            run_own(conn, statement, doing, "Correct the option.")
        run(conn, SESSION_SETTINGS, "settings of the session")
    except FloodmarkError:
        close(conn)
        raise
    conn._read_timeout = None  # type: ignore[attr-defined]  # from now on statements may take their time
    return conn


class _Client(pymysql.Connection):
    def _create_ssl_ctx(self, sslp: object) -> ssl.SSLContext:
        # For a connection without checks PyMySQL loads the system's authorities, which takes longer than the login.
        return sslp if isinstance(sslp, ssl.SSLContext) else tls_context("preferred")


def limit_statements(conn: Connection, flavor: str, millis: int) -> None:
    """Limit how long the server lets statements run; 0: no limit.

    MySQL applies the limit to ``SELECT`` statements only.
    """
    setting = f"max_statement_time = {millis / 1000}" if flavor == "mariadb" else f"max_execution_time = {millis}"
    run(conn, f"SET SESSION {setting}", "setting the statement timeout")


def limit_locks(conn: Connection, millis: int) -> None:
    """Limit how long statements wait for locks, in whole seconds.

    A query of the catalog that reaches the limit lacks the locked tables on MariaDB, which ``run`` refuses.
    """
    seconds = max(millis // 1000, 1)
    limiting = f"SET SESSION lock_wait_timeout = {seconds}, SESSION innodb_lock_wait_timeout = {seconds}"
    run(conn, limiting, "setting the lock timeout")


@contextmanager
def without_waiting(conn: Connection) -> Iterator[None]:
    """Make MariaDB answer at once even if locks leave its result incomplete, which ``run`` refuses."""
    run(conn, "SET SESSION lock_wait_timeout = 0", "setting the lock timeout")
    try:
        yield
    finally:
        run(conn, "SET SESSION lock_wait_timeout = DEFAULT", "setting the lock timeout")


def limited(statement: str, flavor: str, millis: int) -> str:
    """Return a ``SELECT`` statement with a time limit."""
    if flavor == "mariadb":
        return f"SET STATEMENT max_statement_time = {millis / 1000} FOR {statement}"
    return statement.replace("SELECT", f"SELECT /*+ MAX_EXECUTION_TIME({millis}) */", 1)


@contextmanager
def connection(options: ConnectionOptions) -> Iterator[Connection]:
    """Open a connection for the duration of a ``with`` block."""
    conn = connect(options)
    try:
        yield conn
    finally:
        close(conn)


def close(conn: Connection) -> None:
    """Close a connection, whatever state it is in."""
    try:
        conn.close()
    except (pymysql.err.Error, OSError):
        return  # it is closed already


def run(conn: Connection, statement: str, doing: str, cure: str = "") -> list[tuple[Any, ...]]:
    """Run a statement and return its rows; errors name what was being done.

    Args:
        statement: one statement; it may hold percent signs.
        doing: what it is for, such as ``reading the list of binlog files``.
        cure: what the user can do if the server refuses it.

    Raises:
        SourceStateError: the server refused the statement.
        LockTimeoutError: it answered only in part, since another session has locked the rest.
        ConnectError: the connection was lost.
    """
    try:
        with conn.cursor() as cursor:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
            lacking = _lacks_locked(conn) if cursor.warning_count else ""
    except (pymysql.err.Error, OSError) as exc:
        raise statement_error(exc, doing, cure) from None
    if lacking:
        raise LockTimeoutError(f"The server's answer while {doing} lacks tables: {lacking}.", cure or LOCKED_CURE)
    return rows


def _lacks_locked(conn: Connection) -> str:
    """Return MariaDB's warning that a result lacks tables that another session has locked; empty if there is none."""
    warnings = conn.show_warnings()  # type: ignore[no-untyped-call]
    return next((str(text) for _, code, text in warnings or () if code in _LEFT_OUT), "")


def run_own(conn: Connection, statement: str, doing: str, cure: str = "") -> None:
    """Run a statement from the user's options; errors don't quote it, since it may hold passwords.

    Raises:
        SourceStateError: the server refused the statement.
        ConnectError: the connection was lost.
    """
    try:
        run(conn, statement, doing, cure)
    except SourceStateError as exc:
        raise SourceStateError(
            f"The server refused {doing}: {shown_reason(exc.what.partition(': ')[2])}.", cure
        ) from None


def statement_error(exc: Exception, doing: str, cure: str = "") -> FloodmarkError:
    """Convert an exception into the error of a refused statement or a lost connection."""
    code, text = _parts(exc)
    if isinstance(exc, (OSError, pymysql.err.InterfaceError)) or code in _LOST or code in _NO_LONGER:
        return ConnectError(f"Lost the connection to the server while {doing}: {text}.")
    if code in _NO_PRIVILEGE:
        return PrivilegeError(
            f"The server refused {doing}: {text}.",
            cure or "Grant the user SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE and REPLICATION CLIENT.",
        )
    refused = f"The server refused {doing}: {text} (error {code})."
    if code == ER.LOCK_WAIT_TIMEOUT:
        return LockTimeoutError(refused, cure)
    if code in _TOO_LONG:
        raise_it = "Raise snapshot.statement.timeout.ms or database.query.timeout.ms."
        return StatementTimeoutError(refused, cure or raise_it)
    return SourceStateError(refused, cure)


def _refusal(options: ConnectionOptions, exc: Exception) -> ConnectError:
    code, text = _parts(exc)
    cause = getattr(exc, "original_exception", exc)
    place = f"Cannot connect to {options.hostname}:{options.port} as '{options.user}': "
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "verify_message", "") or cause.reason or "TLS failed"
        made = LoginError if isinstance(cause, ssl.SSLCertVerificationError) else ConnectError
        return made(
            f"{place}{reason}.",
            "Check database.ssl.mode, database.ssl.truststore and database.ssl.keystore, and the server's certificate.",
        )
    if isinstance(cause, TimeoutError):
        return ConnectError(
            f"{place}no answer within {options.connect_timeout_ms} ms.",
            "Check database.hostname, database.port and firewalls, or raise connect.timeout.ms.",
        )
    if isinstance(cause, OSError):
        return ConnectError(
            f"{place}{cause.strerror or cause}.",
            "Check database.hostname and database.port, and that the server runs.",
        )
    if code in _NOT_NOW:
        return NotReadyError(f"{place}{text}.", "Wait, or end connections that are not needed.")
    if code in _WRONG_LOGIN:
        return LoginError(f"{place}{text}.", "Check database.user and database.password, and the user's host part.")
    if code == CR.CR_SSL_CONNECTION_ERROR:
        return LoginError(f"{place}the server has no TLS.", "Configure it there, or set database.ssl.mode.")
    if code == _UNKNOWN_PLUGIN:
        return LoginError(
            f"{place}{text}.",
            "Let the user log in by caching_sha2_password, mysql_native_password or MariaDB's ed25519.",
        )
    return ConnectError(
        f"{place}{text}.",
        "Check database.hostname, database.port, database.user, database.password and database.ssl.mode.",
    )


def _tls(options: ConnectionOptions) -> ssl.SSLContext | None:
    """Return the context of a connection; None: no TLS, or TLS without checks if the server has it."""
    stores = (options.ssl_keystore, options.ssl_truststore)
    if options.ssl_mode == "disabled" or (options.ssl_mode == "preferred" and not any(stores)):
        return None
    keystore_password, truststore_password = (
        _text(options.ssl_keystore_password),
        _text(options.ssl_truststore_password),
    )
    return tls_context(
        options.ssl_mode,
        options.ssl_keystore,
        keystore_password or None,
        options.ssl_truststore,
        truststore_password or None,
    )


def _text(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""


def _parts(exc: Exception) -> tuple[int | None, str]:
    """Return an error's number and its text on one line."""
    code = exc.args[0] if exc.args and isinstance(exc.args[0], int) else None
    text = exc.args[1] if code is not None and len(exc.args) > 1 else str(exc)
    return code, " ".join(str(text).split()).rstrip(".")
