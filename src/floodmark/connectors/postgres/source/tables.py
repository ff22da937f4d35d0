"""The captured tables of a PostgreSQL database, as the planner asks about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.postgres.continuity.published import PublicationProof
from floodmark.connectors.postgres.decode.relation import Column, Relation, as_read, key_columns
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Table, captured_tables, stored_tables, structures
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.server.policies import check_policies
from floodmark.connectors.postgres.server.publication import NewTables, ensure_publication
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.snapshot.key_ranges import key_of, message_key_of
from floodmark.connectors.postgres.snapshot.row_filters import row_filter, row_query
from floodmark.connectors.postgres.snapshot.tables import NO_FILE, Reading, SnapshotTables
from floodmark.connectors.postgres.source.session import Conn, PostgresSession
from floodmark.errors import SourceStateError
from floodmark.logger import get_logger
from floodmark.snapshots.modes import make_query
from floodmark.snapshots.select_statements import WHOLE

log = get_logger(__name__)


class PostgresTables:
    """A ``TableCatalog``.

    Args:
        options: the source's options.
        session: the connections.
        publication: verifies what the publication lets through.

    Attributes:
        snapshot: the tables of snapshots.
    """

    def __init__(self, options: PostgresOptions, session: PostgresSession, publication: PublicationProof) -> None:
        self._options = options
        self._session = session
        self._publication = publication
        self._new = NewTables()
        self.snapshot = SnapshotTables(options, make_query(options))

    def captured(self, sized: bool = False) -> list[CapturedTable]:
        """Return all tables that hold captured rows, whatever the initial snapshot reads of them.

        One that was created since and isn't published yet is left out until it is: its changes are not in the log.
        """
        return self._described(self._published(), sized)

    def to_snapshot(self) -> list[CapturedTable]:
        """Return the tables that hold captured rows, with their pages."""
        conn = self._session.ordinary()
        readings = self.snapshot.readings(conn)
        whole = {reading.stored.oid for reading in readings if reading.statement is not None}
        found = self._described([(reading.stored, reading.published) for reading in readings])
        return [replace(table, file=NO_FILE, units=WHOLE) if table.oid in whole else table for table in found]

    def names(self) -> list[str]:
        """Return the names under which the changes of all captured tables come."""
        return [published.full_name for _, published in self._published()]

    def follow(self, known: Collection[str]) -> frozenset[str]:
        """Update a ``filtered`` publication; return the new tables that can't be taken over yet."""
        conn = self._session.ordinary()
        tables = captured_tables(conn, self._options)
        if self._options.publication_autocreate_mode == "filtered":
            self.publish(conn, tables)
        self._publication.follow(conn, tables, known)
        if self._options.publication_autocreate_mode == "all_tables":
            return frozenset()
        pairs = stored_tables(conn, self._options)
        unpublished = {
            table.oid for pair in pairs for table in pair if not self._publication.published(table.full_name)
        }
        new = {table.oid for pair in pairs if pair[1].full_name not in known for table in pair} - unpublished
        waited = unpublished | self._new.unsettled(conn, new)
        return frozenset(pair[1].full_name for pair in pairs if any(table.oid in waited for table in pair))

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        """Return texts that change when tables are rewritten or altered; tables that are gone are left out."""
        return chunks.fingerprints(self._session.ordinary(), oids)

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        """Return tables as chunks name them; their ``structure`` is the ``Relation`` that events have."""
        conn = self._session.ordinary()
        own = self.snapshot.with_statements(conn)
        pairs = {table.oid: (table, published) for table, published in stored_tables(conn, self._options)}
        pairs |= {oid: (reading.stored, reading.published) for oid, reading in own.items()}
        wanted = [oid for oid in oids if oid in pairs]
        columns = chunks.describe_tables(
            conn, sorted({pairs[oid][1].oid for oid in wanted}), self._options.publication_name
        )
        types = {oid: {int(column[1]) for column in listed} for oid, listed in columns.items()}
        known = structures(conn, types)
        result = {}
        for oid in wanted:
            table, published = pairs[oid]
            relation = as_read(_relation(published, columns[published.oid], known[published.oid]), self._options)
            result[oid] = DescribedTable(oid, table.quoted, relation, own[oid].statement if oid in own else None)
        return result

    def key_of(self, oid: int, surrogate: str | None) -> TableKey | None:
        """Return the columns that a table is cut by; None if there are none."""
        found = key_of(self._session.ordinary(), oid, surrogate)
        # Rows read between watermarks are compared with the log by the table's own key, so there it must have one.
        if (
            found is None
            and surrogate is None
            and self._options.message_key_columns
            and self._options.incremental_snapshot_read_points == "exact"
        ):
            found = message_key_of(self._session.ordinary(), oid, self._options)
        return found

    def chunk_units(self) -> int:
        """Return how many pages make a chunk of ``snapshot.chunk.bytes``."""
        return max(self._options.snapshot_chunk_bytes // chunks.block_size(self._session.ordinary()), 1)

    def row_filter(self, oid: int, condition: str) -> str:
        """Return a signal's condition on the rows of a table as SQL that can do nothing else."""
        return row_filter(self._session.ordinary(), self._one(oid), condition, self._options)

    def row_query(self, oid: int, statement: str) -> str:
        """Return a blocking signal's statement on a table as SQL that reads its rows and can do nothing else."""
        return row_query(self._session.ordinary(), self._one(oid), statement, self._options)

    def sql_name(self, oid: int) -> str:
        """Return a table's name as SQL spells it.

        Raises:
            SourceStateError: the table is gone.
        """
        rows = run(
            self._session.ordinary(),
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c "
            f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {oid}",
            "the name of a table",
        )
        if not rows:
            raise SourceStateError(f"The table with OID {oid} does not exist any more.")
        return str(rows[0][0])

    def publish(self, conn: Conn, tables: Sequence[Table]) -> frozenset[int]:
        """Publish the tables; return those that can't be published yet because another session has locked them."""
        late = ensure_publication(conn, self._options, tables)
        names = [table.full_name for table in tables if table.oid in late]
        if any(self._publication.published(name) for name in names):
            log.warning(
                "tables_are_not_published_yet",
                tables=names,
                reason="another session holds a lock on them",
                next="tried again; until then they are not captured",
            )
        return late

    def check_policies(self) -> None:
        """Verify that row-level security hides nothing from snapshots."""
        stored = [reading.stored for reading in self.readings() if reading.statement is None]
        check_policies(self._session.ordinary(), stored)

    def readings(self) -> list[Reading]:
        """Return what a snapshot of all tables reads."""
        return self.snapshot.readings(self._session.ordinary())

    def _published(self) -> list[tuple[Table, Table]]:
        pairs = stored_tables(self._session.ordinary(), self._options)
        return [pair for pair in pairs if self._publication.published(pair[1].full_name)]

    def _described(self, tables: Sequence[tuple[Table, Table]], sized: bool = True) -> list[CapturedTable]:
        conn = self._session.ordinary()
        oids = [table.oid for table, _ in tables]
        # Reading a table's size waits for sessions that alter the table.
        sizes = chunks.table_pages(conn, oids) if sized else dict.fromkeys(oids, 0)
        files = chunks.fingerprints(conn, oids)
        return [
            CapturedTable(
                name=table.full_name,
                published=published.full_name,
                oid=table.oid,
                logged=published.oid,
                file=files[table.oid],
                units=sizes[table.oid],
                rows=table.rows,
            )
            for table, published in tables
            if table.oid in sizes and table.oid in files
        ]

    def _one(self, oid: int) -> DescribedTable:
        found = self.describe([oid]).get(oid)
        if found is None:
            raise SourceStateError(f"The table with OID {oid} does not exist any more.")
        return found


def _relation(table: Table, columns: Sequence[tuple[Any, ...]], structure: CatalogStructure) -> Relation:
    made = tuple(
        Column(name, oid, modifier, name in structure.identity, not required, structure.defaults.get(name))
        for name, oid, modifier, required in columns
    )
    indexed = table.replica_identity == "i" and structure.identity
    key = key_columns("i" if indexed else "f", made, structure.key)
    return Relation(table.oid, table.schema, table.name, table.replica_identity, made, key, structure.types)
