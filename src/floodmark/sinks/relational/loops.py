"""Refuses targets that the query itself captures: each change would follow from the one before, for ever."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetChangedError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.relational.connect import dialect_of
from floodmark.sinks.relational.dialect import Dialect, Session
from floodmark.sinks.relational.options import JdbcOptions

log = get_logger(__name__)

_SCHEMES = {"postgres": "postgresql", "mysql": "mysql", "mariadb": "mariadb"}
_TLS = {"sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey"}


class LoopCheck:
    """Checks that targets aren't tables that the source captures.

    Args:
        source: the source's options.
        dialect: the target's.
    """

    def __init__(self, source: CommonOptions, dialect: Dialect) -> None:
        self._source = source
        self._dialect = dialect
        self._same: bool | None = None

    def __call__(self, session: Session, name: str) -> None:
        """Check a target.

        Args:
            session: a connection to the target.
            name: the target's.

        Raises:
            TargetChangedError: it is one of the captured tables of the source.
        """
        schema = self._dialect.schema()
        if not self._source.captures(schema, name):
            return
        if self._same is None:
            self._same = self._is_source(session)
        if self._same:
            raise TargetChangedError(
                f"The target table '{schema}.{name}' is in the source's database, and the source's filters capture it: "
                "each change would follow from the one before, for ever.",
                "Write to another database or schema, or leave the targets out with table.include.list or "
                "table.exclude.list.",
            )

    def _is_source(self, session: Session) -> bool:
        """Return whether the target's database is the source's."""
        given = _as_target(self._source)
        if given is None or given.connection_url.kind != self._dialect.kind:
            return False
        try:
            other = dialect_of(given).connect()
        except TargetError as error:
            log.warning("the_source_is_not_compared", error=error.what, effect="a loop would not be found")
            return False
        try:
            return self._dialect.identity(session) == self._dialect.identity(other)
        finally:
            other.close()


def _as_target(source: CommonOptions) -> JdbcOptions | None:
    """Return options with which a source's server is connected to; None for other kinds of databases."""
    scheme = _SCHEMES.get(source.connector)
    host, port = getattr(source, "hostname", None), getattr(source, "port", None)
    if scheme is None or not host or not port:
        return None
    # MySQL's sources have no database; every server has this one, and its users may ask who it is.
    database = getattr(source, "dbname", None) or "information_schema"
    password = getattr(source, "password", None)
    parameters = {theirs: getattr(source, ours, None) for theirs, ours in _TLS.items()}
    mode = getattr(source, "ssl_mode", None)
    parameters = {"sslMode": mode} if mode else {name: value for name, value in parameters.items() if value}
    at = f"{f'[{host}]' if ':' in host else host}:{port}"
    tail = f"?{urlencode(parameters)}" if parameters else ""
    return JdbcOptions.parse(
        {
            "connection.url": f"jdbc:{scheme}://{at}/{quote(database, safe='')}{tail}",
            "connection.username": str(getattr(source, "user", "")),
            **({} if password is None else {"connection.password": password.get_secret_value()}),
        }
    )
