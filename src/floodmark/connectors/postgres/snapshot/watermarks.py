"""Opens windows: views of the tables between two watermarks in the signal table, as in Debezium's DDD-3.

The rows of a window need no exact position in the log; it is enough that everything they contain was committed before
the second watermark, and that they contain everything that was committed before the window's beginning. The first
watermark alone doesn't ensure the latter: a commit is in the log before it is visible, and may become visible after the
view was opened. So the beginning is moved back, by the transactions' numbers, to the first commit that the view doesn't
see.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import psycopg
from psycopg.rows import TupleRow

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.server.catalog import literal, quote
from floodmark.connectors.postgres.server.connection import limit_statements, run
from floodmark.connectors.postgres.snapshot.chunks import (
    changed_since,
    chunk_query,
    copy_pieces,
    same_file,
)
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.read_point import PostgresReadPoint, first_lsn
from floodmark.errors import ConnectError, SourceStateError
from floodmark.snapshots.incremental.watermarks import EXACT, WRITING, Mark, Watermarks

Conn = psycopg.Connection[TupleRow]

_TABLE = """
    SELECT format('%I.%I', n.nspname, c.relname), a.attname::text,
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT'),
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'DELETE')
               AND has_column_privilege(c.oid, a.attnum, 'SELECT'), pg_is_in_recovery()
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE n.nspname || '.' || c.relname = {name} AND c.relkind IN ('r', 'p')
    ORDER BY a.attnum LIMIT 1
"""


class PostgresWatermarks(Watermarks[Conn]):
    """Writes watermarks to the signal table."""

    def __init__(self, options: PostgresOptions) -> None:
        super().__init__(options)
        self._user = options.user

    def check(self, conn: Conn) -> tuple[str, str]:
        """Verify that watermarks can be written; return the table's name for SQL, and that of its first column.

        Raises:
            SourceStateError: they can't be written.
        """
        rows = run(conn, _TABLE.format(name=literal(self.table)), "the signal table")
        if not rows:
            raise SourceStateError(f"{self.what} does not exist.", f"Create it (see the page on signals), {EXACT}")
        table, column, inserts, deletes, standby = rows[0]
        if standby:
            cure = f"Use the primary, {EXACT}"
            raise SourceStateError(f"{self.what} can't be written: the server is a standby.", cure)
        if not inserts or (self.deletes and not deletes):
            cure = f"GRANT {self.rights} ON {table} TO {quote(self._user)} (and USAGE on its schema), {EXACT}"
            what = f"{self.what} can't be written: the role '{self._user}' needs {self.rights}."
            raise SourceStateError(what, cure)
        return table, column

    def _insert(self, conn: Conn, name: str, kind: str, data: str) -> None:
        table, _ = self.check(conn)
        _write(conn, f"INSERT INTO {table} VALUES ({literal(name)}, {literal(kind)}, {literal(data)})")

    def _delete(self, conn: Conn, name: str) -> None:
        table, column = self.check(conn)
        _write(conn, f"DELETE FROM {table} WHERE {quote(column)} = {literal(name)}")


def _write(conn: Conn, statement: str) -> None:
    # The commit is on disk when the statement returns, without a wait for standbys.
    run(conn, "SET synchronous_commit = local", "the session's commits")
    run(conn, statement, WRITING)


class PostgresWindow(PostgresReadPoint):
    """A ``Window``.

    Attributes:
        low: the log's position when the first watermark had been written; once settled, not after any commit that isn't
            visible.
        mark: the first watermark.
    """

    def __init__(self, options: PostgresOptions, mark: Mark, lsn: int) -> None:
        super().__init__(options)
        self.mark = mark
        self.low = position(lsn)
        self._low_lsn = lsn
        self._closed = False
        self._token = replace(self._token, window=mark.name)

    def close(self, lsn: int) -> None:
        """Set the position at which the second watermark has been written."""
        self._settle(lsn)
        self._closed = True

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the rows of a chunk in pieces, and return the outcome.

        They are read over the connection that has the table locked: any other would have to wait behind an ALTER TABLE
        that waits for this lock.
        """
        with self._transaction():
            limit_statements(self._conn, self._limit_ms, local=True)
            if not same_file(self._conn, chunk.table, chunk.file):
                return "nothing"
            conditions = [f"({chunk.condition})"] if chunk.condition else []
            if chunk.since is not None:
                conditions.append(changed_since(chunk.since))
            command = chunk_query(chunk, conditions)
            for buf, starts in copy_pieces(self._conn, command, keep=True):
                yield SegmentData(buf, starts.astype(np.uint32))
        return "complete"

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._conn.transaction():
                yield
        except psycopg.OperationalError as exc:
            raise ConnectError(f"Lost the connection to PostgreSQL while reading a window: {exc}.") from None

    def end_view(self) -> None:
        """Release the snapshot, and the tables' locks."""
        self._conn.close()

    def settle(self, commits: CommitLog, doubtful: frozenset[int], after: str) -> bool:
        """Fix the window's beginning, now that the log has been received up to its end."""
        first = commits.first_hidden(self.visible, doubtful, first_lsn(after), self._token.lsn)
        if first is None:
            return False
        low = min(first, self._low_lsn)
        self.low = position(low)
        # The log before `after` has been delivered, so which keys it touches is no longer known.
        return low >= first_lsn(after)

    def alive(self) -> bool:
        """Return whether it was closed: its rows have been read by then."""
        return self._closed
