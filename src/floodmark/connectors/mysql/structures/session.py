"""The context that a statement's meaning depends on: the server and the session it ran in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from floodmark.connectors.mysql.binlog.queries import (
    ANSI_QUOTES,
    EXPLICIT_TIMESTAMPS,
    MAXDB,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    ORACLE,
    REAL_AS_FLOAT,
    Query,
)
from floodmark.connectors.mysql.structures.charsets import DEFAULT_COLLATIONS, python_codec

_TIME_TRUNCATE_FRACTIONAL, _UTF8_IS_UTF8MB4, _TIME_ROUND_FRACTIONAL = 1 << 32, 1 << 33, 1 << 34
"""Bits of ``sql_mode``."""


@dataclass(frozen=True)
class Server:
    """The properties of a server that its statements depend on.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        version: 90700 for 9.7.0, 101114 for 10.11.14.
        collations: the default collation of each character set.
        fold_names: whether names of databases and tables are kept in lower case (``lower_case_table_names`` > 0).
        time_zone: the abbreviation that its operating system has for its time zone (``system_time_zone``).
    """

    flavor: str = "mysql"
    version: int = 90700
    collations: Mapping[str, str] = field(default_factory=dict)
    fold_names: bool = False
    time_zone: str = "UTC"

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return self.flavor == "mariadb"

    def default_collation(self, charset: str) -> str:
        """Return the default collation of a character set."""
        known = self.collations.get(charset)
        if known is None and charset == "utf8mb4" and self.mariadb:
            known = "utf8mb4_general_ci"
        return known or DEFAULT_COLLATIONS.get(charset) or f"{charset}_general_ci"


@dataclass(frozen=True)
class Session:
    """The state of the session that a statement ran in, as its Query event carries it.

    Attributes:
        database: the default database.
        collation: ``collation_server``, the collation of databases that declare none.
        utf8mb4_collation: ``default_collation_for_utf8mb4``, the collation of utf8mb4 where none is declared.
        type_names: ``oracle`` or ``maxdb`` if ``sql_mode`` gives type names the meaning they have there (MariaDB).
        explicit_timestamps: ``explicit_defaults_for_timestamp``.
        other_fractions: whether fractions are cut off on MySQL and rounded on MariaDB, rather than the other way round:
            ``TIME_TRUNCATE_FRACTIONAL`` and ``TIME_ROUND_FRACTIONAL``.
        time_zone: the time zone, if the statement depends on it.
        brackets: whether names may be in square brackets (MariaDB's ``MSSQL``).
        utf8: the character set that ``utf8`` means (MySQL's ``INTERPRET_UTF8_AS_UTF8MB4``).
    """

    database: str = ""
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    real_as_float: bool = False
    type_names: str = ""
    collation: str | None = None
    utf8mb4_collation: str | None = None
    explicit_timestamps: bool = True
    other_fractions: bool = False
    time_zone: str | None = None
    brackets: bool = False
    utf8: str = "utf8mb3"


def session_of(query: Query, collations: Mapping[int, str], server: Server) -> Session:
    """Return the session that a statement of the log ran in.

    Args:
        collations: the server's collations by their numbers.
    """
    mode = query.sql_mode or 0
    explicit = query.explicit_timestamps is not False
    if server.mariadb and query.flags is not None:
        explicit = bool(query.flags & EXPLICIT_TIMESTAMPS)
    return Session(
        database=query.database,
        ansi_quotes=bool(mode & ANSI_QUOTES),
        brackets=server.mariadb and bool(mode & MSSQL),
        no_backslash_escapes=bool(mode & NO_BACKSLASH_ESCAPES),
        real_as_float=bool(mode & REAL_AS_FLOAT),
        type_names=("oracle" if mode & ORACLE else "maxdb" if mode & MAXDB else "") if server.mariadb else "",
        utf8="utf8mb4" if mode & _UTF8_IS_UTF8MB4 and not server.mariadb else "utf8mb3",
        collation=collations.get(query.server_collation or 0),
        utf8mb4_collation=collations.get(query.utf8mb4_collation or 0),
        explicit_timestamps=explicit,
        other_fractions=bool(mode & (_TIME_ROUND_FRACTIONAL if server.mariadb else _TIME_TRUNCATE_FRACTIONAL)),
        time_zone=query.time_zone,
    )


def statement_text(query: Query, collations: Mapping[int, str]) -> str:
    """Decode the text of a statement of the log, which is in its client's character set."""
    return query.raw.decode(python_codec(collations.get(query.client_charset or 0, "utf8mb4")), "replace")
