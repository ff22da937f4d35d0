"""Connections to a MySQL or MariaDB target."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymysql
import pymysql.cursors
from pymysql.constants import ER

from floodmark.errors import ConfigError, TargetBusyError, TargetError
from floodmark.redact import shown_reason
from floodmark.sinks.relational.failures import CURE_BUSY, CURE_RIGHTS, busy, refused, unfit
from floodmark.sinks.relational.mysql.literals import statements
from floodmark.sinks.relational.mysql.rows import columns_of
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.url import MYSQL_MODES

_CONNECT_TIMEOUT_S = 15
_ROWS_AT_ONCE = 10_000
_MOST_PACKET = 1 << 24
"""Longer statements gain nothing, and the server keeps memory for them."""
_SETTINGS = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ERROR_FOR_DIVISION_BY_ZERO'"
    ", time_zone = '+00:00', innodb_lock_wait_timeout = 30, lock_wait_timeout = 60, sql_auto_is_null = 0",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
)
_READ_ONLY = (1290, 1792, 1836)
_NO_RIGHT = (
    ER.DBACCESS_DENIED_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
)
_FULL = (1021, 1114)
_GONE = (ER.NO_SUCH_TABLE, ER.UNKNOWN_TABLE)
_OF_CLIENT = range(2000, 3000)
"""Errors that the client finds: connections that can't be opened, or are lost."""
_MAY_PASS = (
    *_GONE,
    ER.LOCK_WAIT_TIMEOUT,
    ER.LOCK_DEADLOCK,
    ER.CON_COUNT_ERROR,
    ER.SERVER_SHUTDOWN,
    ER.QUERY_INTERRUPTED,
    1041,  # out of memory
    1180,  # an error during COMMIT
    1927,  # MariaDB: the connection was killed
    3169,  # MySQL: the session was killed
    4031,  # MySQL: the client was idle for too long
)
_UNFIT = (
    1059,  # a name is too long
    1060,
    1070,
    1071,  # a key is too long
    1074,
    1103,
    1118,  # a row is too large
    1166,
    1364,  # a column that the source lacks has no default
    1366,
    1406,
    1264,
    1265,
    1292,
    1690,
    3140,  # no JSON
    3750,  # a table needs a primary key
    3819,
    4025,
)
_WRONG_LOGIN = (ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR, 1698, 1130, 3159)
"""Among them are hosts that may not connect, and connections without TLS."""


class MysqlSession:
    """A connection (``Session``).

    Args:
        options: the sink's.

    Raises:
        TargetBusyError: the server can't be reached now.
        TargetError: it refuses the login.
        ConfigError: the certificate of ``serverSslCert`` can't be read.
    """

    def __init__(self, options: JdbcOptions) -> None:
        url = options.connection_url
        ((host, port),) = url.hosts
        password = options.connection_password
        mode, context = _tls(url.parameters.get("sslMode", "preferred"), url.parameters.get("serverSslCert"))
        try:
            self._conn: pymysql.Connection[Any] = pymysql.connect(
                host=host,
                port=port,
                user=options.connection_username,
                password="" if password is None else password.get_secret_value().encode(),
                database=url.database,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=_CONNECT_TIMEOUT_S,
                program_name="floodmark",
                ssl_disabled=mode == "disabled",
                ssl=context,
            )
        except (pymysql.err.Error, OSError, RuntimeError) as exc:
            raise _unreachable(options, exc) from None
        self.title = "MySQL"
        try:
            for statement in _SETTINGS:
                self.execute(statement, doing="setting up the session")
            ((packet, self._version),) = self.query("SELECT @@max_allowed_packet, VERSION()")
        except BaseException:
            self.close()
            raise
        self.title = "MariaDB" if "mariadb" in self._version.lower() else "MySQL"
        self._packet = min(int(packet), _MOST_PACKET) - 1024

    @property
    def version(self) -> str:
        """The server's version, for messages."""
        return f"{self.title} {self._version}"

    def execute(self, statement: str, values: Sequence[Any] = (), doing: str = "a statement") -> int:
        """Run a statement (``Session``)."""
        with self._told(doing), self._conn.cursor() as cursor:
            return int(cursor.execute(statement, tuple(values) or None))

    def query(self, statement: str, values: Sequence[Any] = (), doing: str = "a query") -> list[tuple[Any, ...]]:
        """Return the rows of a statement (``Session``)."""
        with self._told(doing), self._conn.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            return list(cursor.fetchall())

    def load(self, table: str, rows: pa.Table) -> list[str]:
        """Append rows to a staging table (``Session``)."""
        lost: set[str] = set()
        begin = f"INSERT INTO {table} ({', '.join(rows.column_names)})"
        with self._told("loading rows"):
            for statement in statements(begin, rows, self._packet, lost):
                self._conn.query(statement)
        return sorted(lost)

    def read(self, statement: str, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a query (``Session``)."""
        try:
            with self._told("reading rows"), self._conn.cursor(pymysql.cursors.SSCursor) as cursor:
                cursor.execute(statement)
                while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                    yield columns_of(rows, columns)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
            raise unfit(self.title, "reading rows", shown_reason(str(exc))) from None

    def begin(self) -> None:
        """Begin a transaction (``Session``)."""
        self.execute("START TRANSACTION", doing="START TRANSACTION")

    def commit(self) -> None:
        """Commit it (``Session``)."""
        self.execute("COMMIT", doing="COMMIT")

    def rollback(self) -> None:
        """Undo it (``Session``)."""
        with contextlib.suppress(pymysql.err.Error, OSError):
            self._conn.rollback()

    def close(self) -> None:
        """Close the connection (``Session``)."""
        with contextlib.suppress(pymysql.err.Error, OSError):
            self._conn.close()

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        """Raise errors of the driver as those of the sink."""
        try:
            yield
        except (pymysql.err.Error, OSError) as exc:
            raise _error(self.title, exc, doing) from None


def _tls(mode: str, authority: str | None) -> tuple[str, ssl.SSLContext | None]:
    """Return how a connection is encrypted, and the context that demands it."""
    wanted = MYSQL_MODES[mode]
    if wanted in ("disabled", "preferred") and authority is None:
        return wanted, None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates that MySQL generates don't pass the strict checks of newer versions of Python.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    verified = wanted in ("verify_ca", "verify_identity") or authority is not None
    context.check_hostname = wanted == "verify_identity"
    context.verify_mode = ssl.CERT_REQUIRED if verified else ssl.CERT_NONE
    try:
        if authority is not None:
            context.load_verify_locations(authority)
        elif verified:
            context.load_default_certs()
    except OSError as exc:
        raise ConfigError(
            f"The file '{authority}', which serverSslCert of connection.url names, can't be read: "
            f"{exc.strerror or 'it is no PEM file'}.",
            "Name a PEM file with the authority's certificate, on the driver and all executors.",
        ) from None
    return wanted, context


def _code(exc: BaseException) -> int:
    return exc.args[0] if exc.args and isinstance(exc.args[0], int) else 0


def _text(exc: BaseException) -> str:
    text = str(exc.args[1]) if len(exc.args) > 1 else str(exc)
    return " ".join((text or type(exc).__name__).split()).rstrip(".")


def _unreachable(options: JdbcOptions, exc: Exception) -> TargetError:
    text = shown_reason(_text(exc)) if _code(exc) in _WRONG_LOGIN else _text(exc)
    what = f"Cannot connect to the target {options.connection_url}, as '{options.connection_username}': {text}."
    cause = exc.__cause__ or exc.__context__ or exc
    if _code(exc) in _WRONG_LOGIN or isinstance(exc, RuntimeError) or isinstance(cause, ssl.SSLError):
        return TargetError(what, "Correct connection.url, connection.username and connection.password.")
    return TargetBusyError(what, CURE_BUSY)


def _error(title: str, exc: Exception, doing: str) -> TargetError:
    code, text = _code(exc), _text(exc)
    if code in _READ_ONLY:
        cure = "Connect to the primary server, and see to it that read_only is off there."
        return refused(title, doing, "it is read-only, such as a replica", cure)
    if code in _NO_RIGHT:
        return refused(title, doing, text, CURE_RIGHTS)
    if code in _FULL:
        return busy(title, doing, "its disk is full")
    if code in _MAY_PASS or code in _OF_CLIENT or not isinstance(exc, pymysql.err.Error):
        return busy(title, doing, text)
    if isinstance(exc, pymysql.err.InterfaceError):
        # The connection is closed already.
        return busy(title, doing, text or "the connection is closed")
    kinds = (pymysql.err.DataError, pymysql.err.IntegrityError, pymysql.err.ProgrammingError)
    if code in _UNFIT or isinstance(exc, (*kinds, pymysql.err.NotSupportedError)):
        quotes = isinstance(exc, pymysql.err.IntegrityError) or code in (1366, 1292)
        return unfit(title, doing, f"{shown_reason(text) if quotes else text} (error {code})")
    return refused(title, doing, f"{text} (error {code})", CURE_BUSY)
