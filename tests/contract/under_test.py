"""What a database provides so that the contract suite can test its connector.

A new database adds one module to ``adapters/`` that implements these protocols, and a line to ``adapters/__init__.py``.
All tables have the same three columns: ``id`` (the key, an integer), ``v`` (a 64-bit integer) and ``pad`` (text).
The suite needs no SQL: an adapter whose database has some builds on :mod:`.sql_source`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Row = tuple[int, int, str]
"""``id``, ``v`` and ``pad``."""
Need = Literal[
    "signal_table",
    "incremental",
    "watermarks",
    "holds_log",
    "loses_log",
    "login",
    "network",
    "refuses_no_tables",
    "log_rests",
]
NewTables = Literal["blocking", "incremental", "parallel"]


@dataclass(frozen=True)
class Capabilities:
    """What a connector can do; tests that need more are not collected for it.

    Attributes:
        signal_table: signals can be written to a table of the source.
        incremental: tables can be read by ranges of their key while the log goes on.
        watermarks: … also with ``incremental.snapshot.read.points=watermarks``.
        holds_log: the source keeps log until it was delivered.
        loses_log: a test can remove the source's log, and make another source.
        login: the source refuses an account that it doesn't know.
        network: the source is reached through connections, which can break.
        refuses_no_tables: a new query whose filters match no table ends with an error; else only ``floodmark check``
            warns, since the tables may be created later.
        log_rests: the log's end stays where it is while nothing is changed.
        is_slow: each query takes seconds to start, so that ``make test`` leaves the tests to ``make chaos``.
        new_tables: the values of ``snapshot.new.tables`` that read the rows of new tables.
    """

    signal_table: bool = True
    incremental: bool = True
    watermarks: bool = True
    holds_log: bool = False
    loses_log: bool = True
    login: bool = True
    network: bool = True
    refuses_no_tables: bool = True
    log_rests: bool = True
    is_slow: bool = False
    new_tables: tuple[NewTables, ...] = ("blocking", "incremental", "parallel")


class Writer(Protocol):
    """A session whose changes are committed by hand."""

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows with new keys."""

    def update(self, table: str, key: int, v: int, pad: str | None = None) -> None:
        """Set ``v`` of a row, and ``pad`` unless that is None."""

    def delete(self, table: str, key: int) -> None:
        """Delete a row."""

    def commit(self) -> None:
        """End the transaction."""

    def rollback(self) -> None:
        """Undo the transaction."""


class SourceUnderTest(Protocol):
    """A database with tables of its own, which one test captures and changes.

    Attributes:
        schema: what comes before a table's name in filters and signals.
        options: the options of a query but for ``topic.prefix``, ``state.dir`` and those about tables.
        quote: what encloses names of columns in conditions on rows.
        lost_log: a regular expression of the words by which an error must name the log that ``lose_log`` removed.
    """

    schema: str
    options: dict[str, str]
    quote: str
    lost_log: str

    def create(self, *tables: str) -> None:
        """Create empty tables."""

    def create_signal_table(self, table: str) -> None:
        """Create a table that ``signal`` writes to, and queries too if they mark windows."""

    def signal(self, table: str, number: str, kind: str, data: str) -> None:
        """Insert a row into a signal table, and commit it."""

    def writer(self) -> AbstractContextManager[Writer]:
        """Open a session."""

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table."""

    def lose_log(self) -> None:
        """Remove all log that was written so far, as far as queries that are stopped need it."""

    def away(self) -> dict[str, str]:
        """Return the options that lead to where no source answers."""

    def refused_login(self, secret: str) -> dict[str, str]:
        """Return the options of an account that the source refuses, whose password is ``secret``."""

    def created(self) -> list[str]:
        """Return what queries have created at the source, apart from what the test did itself."""

    def connections(self) -> int:
        """Return how many connections of queries the source has."""

    def cut_connections(self) -> None:
        """Break all connections of queries."""

    def held_log(self) -> str:
        """Return from where on the source keeps log for the query; a text that sorts like the log."""


class ConnectorUnderTest(Protocol):
    """A kind of source.

    Attributes:
        name: in the names of tests.
        capabilities: what the connector can do.
        required: the options without which it refuses to start, besides those that every connector requires.
        kept: directories below the source's own in ``state.dir`` whose files are more than a cache.
        is_further_log: whether it is another way to read the log of a database that the suite tests already.
    """

    name: str
    capabilities: Capabilities
    required: tuple[str, ...]
    kept: tuple[str, ...]
    is_further_log: bool

    def open(self, fixture: Callable[[str], Any]) -> AbstractContextManager[SourceUnderTest]:
        """Make a database on a server that tests share.

        Args:
            fixture: returns a pytest fixture of the session, such as a server, by its name.
        """

    def open_another(
        self, fixture: Callable[[str], Any], like: SourceUnderTest
    ) -> AbstractContextManager[SourceUnderTest]:
        """Make a database with the same name on a server that has nothing to do with the first one."""
