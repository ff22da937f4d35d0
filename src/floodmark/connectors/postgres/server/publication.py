"""Creates the publication and maintains its list of tables, by ``publication.autocreate.mode``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from psycopg.errors import DuplicateObject, UniqueViolation

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, literal, quote
from floodmark.connectors.postgres.server.connection import LOCK_WAIT_MS, run, server_version
from floodmark.errors import LockTimeoutError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

PUBLISHED = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
ROW_FILTERS_VERSION = 15
MOST_WAITS = 2
FOR_ALL_TABLES_CURE = (
    "Set another mode, such as all_tables; name another publication by publication.name; or drop this one."
)
CURE = "Grant CREATE on the database and the ownership of the tables (superuser for all tables), or create it by hand."

_CREATED_MEANWHILE = (DuplicateObject, UniqueViolation)

_TABLES = """
    SELECT c.oid::int8, format('%I.%I', n.nspname, c.relname), {whole}
    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.pubname = {name}
"""
_WRITERS = """
    SELECT relation::int8, array_agg(DISTINCT virtualtransaction) FROM pg_locks
    WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND relation = ANY(ARRAY[{oids}]::oid[]) AND granted
      AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    GROUP BY 1
"""


@dataclass(frozen=True)
class _Listed:
    """A table that a publication lists.

    Attributes:
        name: quoted, with its schema.
        whole: whether all rows and columns are published.
    """

    name: str
    whole: bool


def for_all_tables(name: str) -> str:
    """Return the error message for a publication for all tables that should list the captured ones."""
    return (
        f"The publication '{name}' is for all tables, so that it can't list those that are captured, as "
        "'publication.autocreate.mode' = 'filtered' asks for."
    )


def ensure_publication(conn: Conn, options: PostgresOptions, tables: Sequence[Table]) -> frozenset[int]:
    """Create the publication if it is missing; with mode ``filtered``, make it list exactly the captured tables.

    An existing publication is altered only where it differs, so that no other table is locked. A table whose lock
    isn't free within ``LOCK_WAIT_MS`` is left for the next call.

    Args:
        conn: an ordinary connection.
        options: the source's options.
        tables: the captured tables.

    Returns:
        The OIDs of the captured tables that the publication doesn't hold yet.

    Raises:
        SourceStateError: the publication is missing, or lacks a table, and must not or cannot be changed.
    """
    name = options.publication_name
    mode = options.publication_autocreate_mode
    found = run(conn, f"SELECT puballtables FROM pg_publication WHERE pubname = {literal(name)}", "the publications")
    exists = bool(found)
    if exists and mode != "filtered":
        return frozenset()
    if mode == "disabled":
        raise SourceStateError(
            f"The publication '{name}' does not exist and 'publication.autocreate.mode' is 'disabled'.",
            f"Create it (CREATE PUBLICATION {quote(name)} FOR TABLE …) or set another mode.",
        )
    if mode == "filtered" and not tables:
        raise SourceStateError(
            "No table matches the filters, so the publication would be empty.", "Check table.include.list."
        )
    if exists and found[0][0]:
        raise SourceStateError(for_all_tables(name), FOR_ALL_TABLES_CURE)
    if exists:
        return _follow(conn, name, tables)
    target = " FOR ALL TABLES" if mode == "all_tables" else ""
    if mode == "filtered":
        target = " FOR TABLE " + ", ".join(table.quoted for table in tables)
    creating = f"CREATE PUBLICATION {quote(name)}{target}{_settings(conn, options)}"
    try:
        run(conn, creating, f"the creation of the publication '{name}'", CURE, expected=_CREATED_MEANWHILE)
    except _CREATED_MEANWHILE:
        log.info("publication_created_meanwhile", publication=name)
        # Another query was faster; what it made is looked at as any publication is that was there before.
        return ensure_publication(conn, options, tables)
    return frozenset()


def _follow(conn: Conn, name: str, tables: Sequence[Table]) -> frozenset[int]:
    """Add and drop tables until a publication lists exactly the given ones; return those that it lacks for now."""
    listed = _listed(conn, name)
    wanted = {table.oid: table.quoted for table in tables}
    lacking = {oid: table for oid, table in wanted.items() if oid not in listed or not listed[oid].whole}
    late = _alter_each(conn, name, {oid: _Change(oid in listed, True, table) for oid, table in lacking.items()})
    # Their result doesn't matter: decoding leaves out tables that stay published for now.
    unwanted = {oid: _Change(True, False, table.name) for oid, table in listed.items() if oid not in wanted}
    _alter_each(conn, name, unwanted)
    return late


def _listed(conn: Conn, name: str) -> dict[int, _Listed]:
    whole = "r.prqual IS NULL AND r.prattrs IS NULL" if server_version(conn) >= ROW_FILTERS_VERSION else "true"
    rows = run(conn, _TABLES.format(name=literal(name), whole=whole), "the tables of the publication")
    return {oid: _Listed(table, is_whole) for oid, table, is_whole in rows}


@dataclass(frozen=True)
class _Change:
    """How a publication's entry of a table is changed."""

    drop: bool
    add: bool
    table: str


def _alter_each(conn: Conn, name: str, changes: Mapping[int, _Change]) -> frozenset[int]:
    """Change tables of a publication; return those that could not be changed yet.

    They are changed in one transaction if all locks are free, else one by one. After ``MOST_WAITS`` tables whose lock
    isn't free, the others aren't tried any more.
    """
    if not changes or _alter(conn, name, changes.values()):
        return frozenset()
    late: set[int] = set()
    for oid, change in changes.items():
        if len(late) >= MOST_WAITS or not _alter(conn, name, [change]):
            late.add(oid)
    return frozenset(late)


def _alter(conn: Conn, name: str, changes: Iterable[_Change]) -> bool:
    """Change tables of a publication in one transaction; return False if a lock isn't free."""
    dropped = ", ".join(change.table for change in changes if change.drop)
    added = ", ".join(change.table for change in changes if change.add)
    try:
        with conn.transaction():
            run(conn, f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}", "setting the lock timeout")
            for action, tables in (("DROP", dropped), ("ADD", added)):
                if tables:
                    altering = f"ALTER PUBLICATION {quote(name)} {action} TABLE {tables}"
                    run(conn, altering, f"changing the publication '{name}'", CURE)
    except LockTimeoutError:
        return False
    return True


class NewTables:
    """Decides which new tables of a ``filtered`` publication may be taken over.

    A transaction that changed a table before it was published and commits afterwards is neither in the log nor in a
    snapshot that is taken meanwhile. So a table must wait until the transactions that were changing it when it was
    first seen as published have ended.
    """

    def __init__(self) -> None:
        self._writers: dict[int, frozenset[str]] = {}

    def unsettled(self, conn: Conn, oids: Iterable[int]) -> frozenset[int]:
        """Return the new, published tables that must still wait for a transaction.

        Args:
            conn: an ordinary connection.
            oids: the new, published tables; others are forgotten.
        """
        wanted = sorted(set(oids))
        if not wanted:
            self._writers = {}
            return frozenset()
        rows = run(conn, _WRITERS.format(oids=",".join(map(str, wanted))), "the transactions that change new tables")
        now = {oid: frozenset(transactions) for oid, transactions in rows}
        # Transactions that begin to change a table later are in the log, so only the first ones are waited for.
        first = {oid: now.get(oid, frozenset()) for oid in wanted if oid not in self._writers}
        self._writers = {oid: self._writers[oid] & now.get(oid, frozenset()) for oid in wanted if oid not in first}
        self._writers |= first
        waited = frozenset(oid for oid, transactions in self._writers.items() if transactions)
        if any(oid in waited for oid in first):
            log.info("new_tables_wait", oids=sorted(waited), reason="transactions that changed them must end first")
        return waited


def _settings(conn: Conn, options: PostgresOptions) -> str:
    chosen = options.publication_operations
    operations = ", ".join(
        word for op, word in PUBLISHED.items() if (op in chosen if chosen else not options.skips(op))
    )
    settings = f"publish = '{operations}'"
    if server_version(conn) >= 13:
        settings += f", publish_via_partition_root = {str(options.publish_via_partition_root).lower()}"
    return f" WITH ({settings})"
