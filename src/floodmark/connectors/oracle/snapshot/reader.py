"""Reads chunks of tables as events, in tasks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.contract.chunk import Chunk, KeyRangeChunk, PageChunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection, batches, close, connect, run
from floodmark.connectors.oracle.server.database import read_database
from floodmark.connectors.oracle.snapshot.key_ranges import null_condition, range_condition
from floodmark.connectors.oracle.snapshot.selection import Selection
from floodmark.connectors.oracle.snapshot.tables import ReadTable
from floodmark.connectors.oracle.snapshot.token import ReadPointToken
from floodmark.connectors.oracle.source_block import snapshot_block
from floodmark.errors import ReadPointGoneError
from floodmark.events.columns import EventGroup
from floodmark.logger import get_logger

log = get_logger(__name__)

FETCHED_ROWS = 10_000
_FLASHBACK = "GRANT EXECUTE ON DBMS_FLASHBACK TO the account."


class OracleChunkReader:
    """A ``ChunkReader``: reads chunks as of the read point's change number, all over one connection."""

    def __init__(self, options: OracleOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._conn: Connection | None = None

    def read(self, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        """Yield the chunk's rows as read events, and return the outcome.

        A read point isn't held by any session: as long as the server has the undo, it can be read from.
        """
        conn = self._conn or connect(self._options)
        # After an error, or if the rows are not all taken, the connection can't be used again.
        self._conn = None
        try:
            outcome = yield from self._read(conn, chunk)
            self._conn = conn
        finally:
            if self._conn is None:
                close(conn)
        return outcome

    def close(self) -> None:
        """Close the connection that the last chunk left, if any."""
        if self._conn is not None:
            close(self._conn)
            self._conn = None

    def _read(self, conn: Connection, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        token = ReadPointToken.from_json(chunk.token)
        if read_database(conn).identity != token.database:
            return "nothing"  # the number means something else there
        table: ReadTable = chunk.table.structure
        version = self._make_version(table.structure)
        selection = Selection(table.structure.columns)
        statement, binds = chunk_statement(chunk, selection, token.scn)
        own = chunk.table.statement is not None
        try:
            if own:
                _look_back(conn, token.scn)
            for rows in batches(conn, statement, f"reading {chunk.table.name}", selection.schema, FETCHED_ROWS, binds):
                batch = self.events(version, selection.raw_columns(rows), chunk)
                if batch is not None:
                    yield batch
            if own:
                run(conn, "BEGIN DBMS_FLASHBACK.DISABLE; END;", "ending the flashback", _FLASHBACK)
        except ReadPointGoneError as exc:
            log.info("read_point_is_gone", table=chunk.table.name, scn=token.scn, reason=exc.what)
            with suppress(Exception):
                run(conn, "BEGIN DBMS_FLASHBACK.DISABLE; END;", "ending the flashback")
            return "nothing"
        return "complete"

    def events(self, version: TableVersion, columns: Sequence[RawColumn], chunk: Chunk) -> pa.RecordBatch | None:
        """Return the read events of rows.

        Args:
            version: of their table.
            columns: the rows.
            chunk: that they are of.
        """
        token = ReadPointToken.from_json(chunk.token)
        structure = version.structure
        count = len(columns[0].values)
        version.admit(None)
        after = version.encode(columns)
        options = self._options
        source = snapshot_block(
            options.topic_prefix,
            options.database,
            structure.schema,
            structure.table,
            token.scn,
            token.micros,
            chunk.marker,
        )
        names = TableNames.of(structure, options)
        shown = {
            **names.columns(),
            **version.columns("r", count, None, after, [source], topic=names.topic),
            "txid": pa.nulls(count, pa.string()),
            "source_ts": pa.repeat(pa.scalar(token.micros, pa.timestamp("us", tz="UTC")), count),
            "op": "r",
            "database": options.database,
            "position": f"{chunk.position}-00",
        }
        return self._make_version.assemble([EventGroup.of(np.zeros(count, np.int64), shown)])


def _look_back(conn: Connection, scn: int) -> None:
    """Let a session see all tables as of a number: in a statement of the user's, no table can be given one."""
    run(conn, "COMMIT", "ending the session's transaction")
    block = f"BEGIN DBMS_FLASHBACK.ENABLE_AT_SYSTEM_CHANGE_NUMBER({scn}); END;"
    run(conn, block, "reading as of a change number", _FLASHBACK)


def chunk_statement(chunk: Chunk, selection: Selection, scn: int | None) -> tuple[str, list[str]]:
    """Return the query of a chunk's rows, and its binds.

    Args:
        chunk: the chunk.
        selection: the columns.
        scn: the change number that the rows are read as of; None: they are read as they are.
    """
    table: ReadTable = chunk.table.structure
    if chunk.table.statement is not None:
        # The statement may end in a comment, so the bracket has a line of its own.
        inner = chunk.table.statement.strip().rstrip(";")
        return f"SELECT {selection.expressions} FROM ({inner}\n)", []
    conditions = [f"({chunk.condition})"] if chunk.condition else []
    binds: list[str] = []
    if isinstance(chunk, PageChunk):
        condition, binds = table.ranges.condition(chunk.first, chunk.last)
        conditions += [condition] if condition else []
    elif isinstance(chunk, KeyRangeChunk):
        whole = chunk.upto is None and not chunk.to_end
        conditions.append(
            f"({null_condition(chunk.key)})" if whole else range_condition(chunk.key, chunk.after, chunk.upto)
        )
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    source = chunk.table.name if scn is None else f"{chunk.table.name} AS OF SCN {scn}"
    return f"SELECT {selection.expressions} FROM {source}{where}", binds
