"""Reads chunks of tables.

A table is cut by ranges of its pages (ctid), or of its key. While the read point is held, page ranges are exact. After
it is lost, a row may have moved to another page; then a chunk can be limited to the rows that have not changed since an
earlier snapshot, or to those that have, by the visibility of their ``xmin``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray
from psycopg.rows import TupleRow

from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, KeyRangeChunk, PageChunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.postgres.continuity.check import PLACE
from floodmark.connectors.postgres.decode.relation import Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import literal, quote
from floodmark.connectors.postgres.server.connection import LOCK_CURE, connect, limit_statements, limit_waits, run
from floodmark.connectors.postgres.snapshot.copy_text import split_rows
from floodmark.connectors.postgres.snapshot.key_ranges import range_condition
from floodmark.connectors.postgres.snapshot.token import ReadPointToken
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.connectors.postgres.source_block import INCREMENTAL, snapshot_block
from floodmark.connectors.postgres.wire.channel import CopyChannel, open_channel, parse_error, server_error
from floodmark.connectors.postgres.wire.frames import HEADER_BYTES, find_frames
from floodmark.errors import ConnectError, SourceStateError
from floodmark.events.columns import EventGroup

READ_BYTES = 8 << 20
BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
READY_FOR_QUERY = b"Z\0\0\0\5"
SNAPSHOT_GONE = (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject)


def changed_since(visible: str) -> str:
    """Return the SQL condition that a row version may have been made after a snapshot.

    It holds for all row versions of the oldest transaction that was running at the time, and of later ones. That
    includes versions that the snapshot sees, but a snapshot doesn't list subtransactions, whose numbers are larger than
    their transactions': only numbers below the oldest one are certain to be visible. ``xmin`` has 32 bits; the epoch is
    taken from the snapshot. A row of an unclear epoch counts as changed, which is safe: it is read once more.

    Args:
        visible: the snapshot as ``pg_current_snapshot()`` prints it.
    """
    oldest = int(visible.split(":")[0])
    epoch, low = oldest >> 32 << 32, oldest & 0xFFFFFFFF
    xid = "xmin::text::int8"
    # Numbers below 3 (FirstNormalTransactionId) mark rows that are older than every snapshot.
    full = (
        f"CASE WHEN {xid} < 3 THEN 3 WHEN {xid} - {low} > 2147483648 THEN greatest({epoch} + {xid} - 4294967296, 3) "
        f"WHEN {low} - {xid} > 2147483648 THEN {epoch} + {xid} + 4294967296 ELSE {epoch} + {xid} END"
    )
    return f"({full}) >= {oldest}"


def seen_at(visible: str) -> str | None:
    """Return the SQL condition that an earlier snapshot may see a row version.

    It doesn't hold for versions of transactions that had not ended, or not begun. It does for subtransactions of those
    that were running, which a snapshot doesn't list.

    Args:
        visible: the snapshot as ``pg_current_snapshot()`` prints it.

    Returns:
        None if it can't be told: the numbers in ``xmin`` may have been used before.
    """
    view = Visibility.parse(visible)
    if view.next >> 32:
        return None
    running = "".join(f" AND xmin::text::int8 <> {xid}" for xid in sorted(view.running))
    return f"(xmin::text::int8 < {view.next}{running})"


def chunk_query(chunk: Chunk, conditions: Sequence[str]) -> str:
    """Return the COPY command of a chunk, which has pages or a range of keys."""
    columns = ", ".join(quote(column.name) for column in chunk.table.structure.columns)
    match chunk:
        case KeyRangeChunk():
            span = range_condition(chunk.key, chunk.after, chunk.upto)
        case PageChunk():
            span = f"ctid >= '({chunk.first},0)'::tid AND ctid < '({chunk.last},0)'::tid"
        case _:
            raise TypeError(f"PostgreSQL's tables are read by pages or by keys, not as {type(chunk).__name__}.")
    where = " AND ".join([span, *conditions])
    return f"COPY (SELECT {columns} FROM ONLY {chunk.table.name} WHERE {where}) TO STDOUT"


def selected(columns: Sequence[str], statement: str) -> str:
    """Return columns of a statement's result, as the rest of a SELECT."""
    # The statement may end in a comment, so the bracket has a line of its own.
    inner = statement.strip().rstrip(";")
    return f"{', '.join(map(quote, columns))} FROM ({inner}\n) AS selected"


def statement_query(relation: Relation, statement: str) -> str:
    """Return the COPY command of a table that is read with a statement of its own."""
    return f"COPY (SELECT {selected([column.name for column in relation.columns], statement)}) TO STDOUT"


class PostgresChunkReader:
    """Reads chunks as events, each in a transaction of its own, all over one connection."""

    def __init__(self, options: PostgresOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._conn: psycopg.Connection[TupleRow] | None = None

    def read(self, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        """Yield the chunk's rows as read events, and return the outcome.

        Args:
            chunk: pages, or a range of keys; the table's ``structure`` is the events' ``Relation``.
        """
        conn = self._conn or connect(self._options)
        # After an error, or if the rows are not all taken, the connection can't be used again.
        self._conn = None
        try:
            outcome = yield from self._read(conn, chunk)
            # If the connection is lost only now, the next chunk opens another.
            with contextlib.suppress(ConnectError):
                # Releases the table's lock.
                run(conn, "ROLLBACK", "ending a chunk")
                self._conn = conn
        finally:
            if self._conn is None:
                conn.close()
        return outcome

    def close(self) -> None:
        """Close the connection that the last chunk left, if any."""
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def _read(self, conn: psycopg.Connection[TupleRow], chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        relation: Relation = chunk.table.structure
        version = self._make_version(relation)
        limit_waits(conn, self._options)
        if chunk.streams:
            self._limit(conn, chunk)
        held = _begin(conn, chunk)
        if not held and not _same_server(conn, ReadPointToken.from_json(chunk.token)):
            # Transactions' numbers show which rows have changed only on the server that the read point was opened at.
            return "nothing"
        command = _command(conn, relation, chunk, held)
        if command is None:
            return "nothing"
        for rows, columns in copy_rows(conn, command, len(version.names), keep=True):
            batch = self.events(version, rows, columns, chunk)
            if batch is not None:
                yield batch
        return "complete" if held else "unchanged"

    def _limit(self, conn: psycopg.Connection[TupleRow], chunk: Chunk) -> None:
        """Limit statements and locks to what the stream may wait; for page ranges, which are read whole, only locks."""
        limit_statements(conn, self._options.snapshot_statement_timeout_ms)
        if isinstance(chunk, PageChunk):
            run(conn, "SET statement_timeout = 0", "setting the statement timeout")

    def events(
        self, version: TableVersion, rows: int, columns: Sequence[RawColumn], chunk: Chunk
    ) -> pa.RecordBatch | None:
        """Return read events.

        Args:
            version: the table's version.
            rows: the number of rows.
            columns: the rows' values.
            chunk: the chunk that they belong to, as for ``read``.
        """
        token, marker = ReadPointToken.from_json(chunk.token), chunk.marker
        relation = version.structure
        version.admit(None)
        after = version.encode(columns)
        source = snapshot_block(
            self._options.topic_prefix,
            self._options.dbname,
            relation.schema,
            relation.table,
            token.lsn,
            token.xid,
            token.micros,
            marker,
        )
        names = TableNames.of(relation, self._options)
        columns_of = {
            **names.columns(),
            **version.columns("r", rows, None, after, [source], topic=names.topic),
            "txid": pa.repeat(None if marker == INCREMENTAL else str(token.xid), rows).cast(pa.string()),
            "source_ts": pa.repeat(pa.scalar(token.micros, pa.timestamp("us", tz="UTC")), rows),
            "op": "r",
            "database": self._options.dbname,
            "position": f"{chunk.position}-00",
        }
        return self._make_version.assemble([EventGroup.of(np.zeros(rows, np.int64), columns_of)])


def _command(conn: psycopg.Connection[TupleRow], relation: Relation, chunk: Chunk, held: bool) -> str | None:
    """Return the COPY command; None if there is nothing to read any more."""
    table = chunk.table
    if table.statement is not None:
        # Which of its rows have changed since the read point can't be determined, so without it nothing is read:
        # the planner has the table read again at the next read point.
        return statement_query(relation, table.statement) if held and _lock(conn, table) else None
    conditions = [f"({chunk.condition})"] if chunk.condition else []
    if chunk.since is not None:
        conditions.append(changed_since(chunk.since))
    if not held:
        conditions.append("NOT " + changed_since(ReadPointToken.from_json(chunk.token).visible))
    if not same_file(conn, table, chunk.file) or not _has_columns(conn, relation, table):
        return None
    if chunk.began is not None and not relation.key and _was_there(conn, table, chunk.began):
        conditions.append(seen_at(chunk.began) or "true")
    return chunk_query(chunk, conditions)


def _has_columns(conn: psycopg.Connection[TupleRow], relation: Relation, table: DescribedTable) -> bool:
    """Return whether a locked table has the columns now; its fingerprint is only that of the transaction's snapshot."""
    columns = ", ".join(quote(column.name) for column in relation.columns)
    try:
        looking = f"SELECT {columns} FROM ONLY {table.name} LIMIT 0"
        run(conn, looking, "looking for the columns", expected=(psycopg.errors.UndefinedColumn,))
    except psycopg.errors.UndefinedColumn:
        return False
    return True


def _was_there(conn: psycopg.Connection[TupleRow], table: DescribedTable, visible: str) -> bool:
    """Return whether a table has not been created or rewritten since an earlier snapshot.

    Rewriting gives rows the number of the transaction that does it, and the table another entry in the catalog.
    """
    query = f"SELECT NOT {changed_since(visible)} FROM pg_class WHERE oid = {table.oid}"
    found = run(conn, query, "looking for the table's age")
    return bool(found and found[0][0])


def _begin(conn: psycopg.Connection[TupleRow], chunk: Chunk) -> bool:
    """Open the transaction; return whether it sees the read point's snapshot."""
    if not chunk.lost:
        if import_snapshot(conn, ReadPointToken.from_json(chunk.token)):
            return True
        run(conn, "ROLLBACK", "opening a chunk")
    run(conn, BEGIN, "opening a chunk")
    return False


def _same_server(conn: psycopg.Connection[TupleRow], token: ReadPointToken) -> bool:
    """Return whether a connection leads to the server, and its timeline, of a read point."""
    if token.place is None:
        return True  # the token is from a checkpoint that an earlier version wrote
    return bool(run(conn, f"SELECT {PLACE}", "the server's identity")[0][0] == token.place)


def import_snapshot(conn: psycopg.Connection[TupleRow], token: ReadPointToken) -> bool:
    """Open a transaction that sees a read point's snapshot; return False if the snapshot is gone."""
    run(conn, BEGIN, "opening a chunk")
    try:
        importing = f"SET TRANSACTION SNAPSHOT '{token.snapshot}'"
        run(conn, importing, "importing the snapshot", expected=SNAPSHOT_GONE)
    except SNAPSHOT_GONE:
        return False
    seen = run(conn, "SELECT pg_current_snapshot()::text", "checking the snapshot")
    return bool(seen[0][0] == token.visible)


def same_file(conn: psycopg.Connection[TupleRow], table: DescribedTable, file: str) -> bool:
    """Lock the table against changes of its structure; return False if it has been dropped, renamed or altered.

    A rewritten table has other pages and looks empty to older snapshots: the planner has its chunks read again.
    """
    if not _lock(conn, table):
        return False
    return fingerprints(conn, [table.oid]).get(table.oid) == file


def copy_rows(
    conn: psycopg.Connection[TupleRow], command: str, width: int, keep: bool = False
) -> Iterator[tuple[int, Sequence[RawColumn]]]:
    """Yield the rows that a COPY command returns, as row counts and columns.

    Args:
        conn: the connection, closed afterwards unless ``keep``.
        command: a COPY … TO STDOUT.
        width: how many columns it returns.
        keep: whether the connection stays open; it is closed all the same if not all rows are taken.
    """
    for buf, starts in copy_pieces(conn, command, keep):
        yield len(starts), split_rows(buf, starts, width)


def copy_pieces(
    conn: psycopg.Connection[TupleRow], command: str, keep: bool = False
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Yield the rows that a COPY command returns, as buffers and the rows' starts, for ``split_rows``.

    Args:
        conn: the connection, closed afterwards unless ``keep``.
        command: a COPY … TO STDOUT.
        keep: whether the connection stays open; it is closed all the same if not all rows are taken.
    """
    channel = open_channel(conn)
    finished = False
    try:
        channel.start(command)
        yield from _copied(channel)
        finished = True
    except SourceStateError:
        finished = True
        raise
    finally:
        if keep and finished:
            channel.detach()
        else:
            channel.close()


def _lock(conn: psycopg.Connection[TupleRow], table: DescribedTable) -> bool:
    """Lock the table against being altered; return False if its name is no longer its own."""
    locking = f"LOCK TABLE ONLY {table.name} IN ACCESS SHARE MODE"
    try:
        run(conn, locking, "locking the table", LOCK_CURE, expected=(psycopg.errors.UndefinedTable,))
    except psycopg.errors.UndefinedTable:
        return False
    # to_regclass reads the current catalogs, whatever the transaction's snapshot sees.
    named = run(conn, f"SELECT to_regclass({literal(table.name)})::oid::int8", "the table of a name")
    return bool(named[0][0] == table.oid)


def _copied(channel: CopyChannel) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Yield pieces of a COPY: a buffer that holds whole frames, and where their rows start."""
    buf = np.empty(READ_BYTES, np.uint8)
    filled = 0
    ended = False
    while not ended:
        if filled == len(buf):
            buf = np.concatenate([buf, np.empty(len(buf), np.uint8)])
        filled += channel.read_into(buf.data[filled:], 1.0)
        # No text holds a zero byte, so this can only be the ReadyForQuery that ends the command.
        ended = bytes(buf[max(filled - 6, 0) : filled])[:5] == READY_FOR_QUERY
        if not ended and filled < len(buf) // 2:
            continue
        starts, end = find_frames(buf[:filled])
        if ended:
            _check_end(bytes(buf[end:filled]))
        if len(starts):
            # The frame headers are blanked, so that nothing in them looks like a delimiter.
            area = buf[:end]
            area[starts[:, None] + np.arange(HEADER_BYTES)] = 0
            yield area, starts + HEADER_BYTES
            # What was yielded still uses `buf`, so reading continues in another buffer.
            fresh = np.empty(READ_BYTES, np.uint8)
            tail = buf[end:filled]
            if len(tail) > len(fresh):
                fresh = np.empty(2 * len(tail), np.uint8)
            fresh[: len(tail)] = tail
            buf, filled = fresh, len(tail)


def _check_end(rest: bytes) -> None:
    """Raise the server's error if that is what ended the copy."""
    if rest[:1] == b"E":
        raise server_error(parse_error(rest[5 : 1 + int.from_bytes(rest[1:5], "big")]))


def table_pages(conn: psycopg.Connection[TupleRow], oids: Sequence[int]) -> dict[int, int]:
    """Return the number of pages of tables, by OID."""
    rows = run(
        conn,
        "SELECT c.oid::int8, (pg_relation_size(c.oid) / current_setting('block_size')::int8)::int8 "
        f"FROM pg_class c WHERE c.oid = ANY(ARRAY[{_listed(oids)}]::oid[])",
        "the sizes of the tables",
    )
    return dict(rows)


def fingerprints(conn: psycopg.Connection[TupleRow], oids: Sequence[int]) -> dict[int, str]:
    """Return texts that change when a table is rewritten or its columns are altered, by OID."""
    rows = run(
        conn,
        "SELECT c.oid::int8, pg_relation_filenode(c.oid)::text || ':' || md5(string_agg(concat_ws(' ', a.attnum, "
        "a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attisdropped), ',' ORDER BY a.attnum)) "
        "FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        f"WHERE c.oid = ANY(ARRAY[{_listed(oids)}]::oid[]) GROUP BY c.oid",
        "the structure of the tables",
    )
    return {oid: text or "" for oid, text in rows}


def _listed(oids: Sequence[int]) -> str:
    return ",".join(str(int(oid)) for oid in oids)


def describe_tables(
    conn: psycopg.Connection[TupleRow], oids: list[int], publication: str
) -> dict[int, list[tuple[Any, ...]]]:
    """Return the columns that changes of the tables hold: name, type, modifier and whether NOT NULL.

    Stored generated columns are left out, since the log doesn't hold them, unless the publication includes them
    (PostgreSQL 18 and later).
    """
    rows = run(
        conn,
        "SELECT attrelid::int8, attname::text, atttypid::int8, atttypmod, attnotnull OR typnotnull "
        "FROM pg_attribute JOIN pg_type t ON t.oid = atttypid "
        f"WHERE attrelid = ANY(ARRAY[{_listed(oids)}]::oid[]) AND attnum > 0 AND NOT attisdropped "
        "AND (attgenerated = '' OR attgenerated = 's' AND EXISTS (SELECT FROM pg_publication p "
        f"WHERE pubname = {literal(publication)} AND to_jsonb(p) ->> 'pubgencols' = 's')) ORDER BY attrelid, attnum",
        "the columns of the tables",
    )
    result: dict[int, list[tuple[Any, ...]]] = {oid: [] for oid in oids}
    for oid, *rest in rows:
        result[oid].append(tuple(rest))
    return result


def block_size(conn: psycopg.Connection[TupleRow]) -> int:
    """Return the server's page size in bytes."""
    return int(run(conn, "SELECT current_setting('block_size')::int", "the page size")[0][0])
