"""Read points of Oracle: change numbers, as of which any session can read."""

from __future__ import annotations

from floodmark.connectors.contract.read_points import KeyRanges
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import behind
from floodmark.connectors.oracle.server.connection import run
from floodmark.connectors.oracle.server.database import micros_of, read_database
from floodmark.connectors.oracle.snapshot.key_ranges import OracleKeyRanges
from floodmark.connectors.oracle.snapshot.tables import sql_name
from floodmark.connectors.oracle.snapshot.token import ReadPointToken
from floodmark.connectors.oracle.snapshot.watermarks import OracleWatermarks
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.oracle.source.tables import OracleTables
from floodmark.json_data import Json

_LOCK_CURE = "GRANT LOCK ANY TABLE TO the account, or set snapshot.locking.mode=none."


class OracleReadPoint:
    """A ``ReadPoint``. No session holds it, so it outlives processes; it ends when the server's undo does."""

    local = None

    def __init__(self, token: ReadPointToken, session: OracleSession, tables: OracleTables) -> None:
        self._token = token
        self._session = session
        self._tables = tables
        self.position = behind(token.scn)
        """Everything that was committed up to its number lies before it."""

    @property
    def token(self) -> dict[str, Json]:
        """What a chunk needs to read from it."""
        return self._token.to_json()

    @property
    def visible(self) -> str:
        """Its change number."""
        return str(self._token.scn)

    def alive(self) -> bool:
        """Return True: whether the server still has the undo, only reading shows."""
        return True

    def settle(self, after: str) -> bool:
        """Return whether the log is delivered no further than its position, which is exact from the beginning."""
        return self.position >= after

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> KeyRanges:
        """Return a table as of the number, to be split by its key."""
        table = f"{sql_name(self._tables.snapshot.one(oid).table)} AS OF SCN {self._token.scn}"
        return OracleKeyRanges(
            lambda query: run(self._session.ordinary(), query, "the bounds of a table's chunks"), table, key, condition
        )

    def release(self) -> None:
        """Do nothing: the server holds nothing for it."""


class OracleSnapshots:
    """A ``SnapshotSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.

    Attributes:
        watermarks: writes those of incremental snapshots; None: they have exact read points.
    """

    local = False

    def __init__(self, options: OracleOptions, session: OracleSession, tables: OracleTables) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        exact = options.incremental_snapshot_read_points == "exact"
        self.watermarks = None if exact else OracleWatermarks(options)

    def check_watermarks(self) -> None:
        """Verify that watermarks can be written, if the options ask for them.

        Raises:
            SourceStateError: they can't be written.
        """
        if self.watermarks is not None:
            self.watermarks.check(self._session.ordinary())

    def open(self, begins: bool = False) -> OracleReadPoint:
        """Open a read point at the newest change number."""
        if begins and self._options.snapshot_locking_mode == "shared":
            return self._locked()
        return self._opened()

    def open_unsettled(self) -> OracleReadPoint:
        """Open a read point at the newest change number; its position is exact."""
        return self._opened()

    def reopen(self, token: dict[str, Json]) -> OracleReadPoint | None:
        """Return the read point of a token that another process has opened; None: it is of another database."""
        found = ReadPointToken.from_json(token)
        if self._session.database().identity != found.database:
            return None
        return OracleReadPoint(found, self._session, self._tables)

    def _opened(self) -> OracleReadPoint:
        conn = self._session.ordinary()
        found = read_database(conn)
        # A structure from before the number might lack columns that the rows have then.
        self._tables.snapshot.forget()
        token = ReadPointToken(found.scn, micros_of(conn, found.scn), found.identity)
        return OracleReadPoint(token, self._session, self._tables)

    def _locked(self) -> OracleReadPoint:
        """Open a read point while no captured table is altered; others may go on writing."""
        conn = self._session.ordinary()
        self._tables.snapshot.forget()
        seconds = max(self._options.snapshot_lock_timeout_ms // 1000, 1)
        try:
            for found in self._tables.snapshot.now().values():
                name = sql_name(found.table)
                run(conn, f"LOCK TABLE {name} IN ROW SHARE MODE WAIT {seconds}", f"locking {name}", _LOCK_CURE)
            self._tables.snapshot.forget()
            self._tables.snapshot.now()
            return self._opened()
        finally:
            conn.rollback()
