"""Windows of Oracle: rows that are read between two watermarks in the signal table, without the server's undo.

Each statement sees what was committed when it began. What was committed before the window's beginning, it sees; what is
committed until the window's end, the log has. So it is enough that both are numbers that the database has reached.
"""

from __future__ import annotations

from collections.abc import Generator

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.read_points import ChunkOutcome, KeyRanges
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import behind
from floodmark.connectors.oracle.server.connection import batches, close, connect, run
from floodmark.connectors.oracle.server.database import micros_of, read_database
from floodmark.connectors.oracle.snapshot.key_ranges import OracleKeyRanges
from floodmark.connectors.oracle.snapshot.reader import FETCHED_ROWS, chunk_statement
from floodmark.connectors.oracle.snapshot.selection import Selection
from floodmark.connectors.oracle.snapshot.tables import ReadTable, sql_name
from floodmark.connectors.oracle.snapshot.token import ReadPointToken
from floodmark.connectors.oracle.snapshot.watermarks import OracleWatermarks
from floodmark.connectors.oracle.snapshot.window_reader import packed
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.oracle.source.tables import OracleTables
from floodmark.json_data import Json


class OracleWindow:
    """A ``Window``; it has a connection of its own.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        watermarks: writes the watermarks.
    """

    local = None

    def __init__(
        self, options: OracleOptions, session: OracleSession, tables: OracleTables, watermarks: OracleWatermarks
    ) -> None:
        self._tables = tables
        self._watermarks = watermarks
        self._conn = connect(options)
        self._closed = False
        try:
            self._conn.call_timeout = options.snapshot_statement_timeout_ms
            found = read_database(self._conn)
            session.agree(found)
            self.low = behind(found.scn)
            self.position = self.low
            self._token = ReadPointToken(found.scn, micros_of(self._conn, found.scn), found.identity)
            self._mark = watermarks.open(self._conn)
        except BaseException:
            close(self._conn)
            raise

    @property
    def token(self) -> dict[str, Json]:
        """What events say of when the rows were read."""
        return self._token.to_json()

    @property
    def visible(self) -> str:
        """The change number at its end, once it is closed."""
        return str(self._token.scn)

    def alive(self) -> bool:
        """Return whether it was closed: its rows have been read by then."""
        return self._closed

    def settle(self, after: str) -> bool:
        """Return whether all of it follows what was delivered, so that the log of all of it can be read."""
        return self.low >= after

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as it is now, to be split by its key."""
        table = sql_name(self._tables.snapshot.one(oid).table)
        return OracleKeyRanges(
            lambda query: run(self._conn, query, "the bounds of a table's chunks"), table, key, condition
        )

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the rows of a chunk in pieces, and return the outcome."""
        table: ReadTable = chunk.table.structure
        selection = Selection(table.structure.columns)
        statement, binds = chunk_statement(chunk, selection, None)
        doing = f"reading {chunk.table.name}"
        for fetched in batches(self._conn, statement, doing, selection.schema, FETCHED_ROWS, binds):
            if len(fetched):
                yield packed(fetched)
        # The statement must have seen the table as it was described.
        self._tables.snapshot.forget()
        known = self._tables.fingerprints([chunk.table.oid])
        return "complete" if known.get(chunk.table.oid) == chunk.file else "nothing"

    def close(self) -> None:
        """Write the second watermark, and set the position."""
        self._watermarks.close(self._conn, self._mark)
        found = read_database(self._conn)
        self._token = ReadPointToken(found.scn, micros_of(self._conn, found.scn), found.identity)
        self.position = behind(found.scn)
        self._closed = True
        close(self._conn)

    def release(self) -> None:
        """Close its connection."""
        close(self._conn)


class OracleWindows:
    """A ``WindowSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        watermarks: writes the watermarks.
    """

    def __init__(
        self, options: OracleOptions, session: OracleSession, tables: OracleTables, watermarks: OracleWatermarks
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._watermarks = watermarks

    def open(self, after: str) -> OracleWindow:
        """Open a window; what was delivered was committed before, so its tables show it."""
        del after
        return OracleWindow(self._options, self._session, self._tables, self._watermarks)
