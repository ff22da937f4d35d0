"""The connections of a source to its server, and where that server's log stands to what was read before."""

from __future__ import annotations

from floodmark.capture.gaps import AcceptedGaps
from floodmark.connectors.mysql.checks.server import obstacles
from floodmark.connectors.mysql.continuity.check import Accepted, ResumePoint, Start, probe
from floodmark.connectors.mysql.continuity.resume_points import ResumePoints
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.catalog import read_server
from floodmark.connectors.mysql.server.binlogs import LogEnd
from floodmark.connectors.mysql.server.connection import (
    Connection,
    close,
    connect,
    limit_locks,
    limit_statements,
    run,
)
from floodmark.connectors.mysql.server.identity import ServerIdentity, server_identity
from floodmark.connectors.mysql.structures.session import Server
from floodmark.errors import ConnectError, SourceStateError


class MysqlSession:
    """Connections that are opened at their first use, and again when they are lost or lead to another server.

    Args:
        options: the source's options.
        gaps: collects the changes that are left out.

    Attributes:
        accepted: which losses of log the options accept.
        places: the places of the log that were read, with the server that they belong to.
        epoch: that of positions on the server that the ordinary connection leads to.
        at: that server; None before the first connection.
        streams: whether the log is streamed, so that statements have a limit on their time.
    """

    def __init__(self, options: BinlogOptions, gaps: AcceptedGaps) -> None:
        self._options = options
        self._gaps = gaps
        self.accepted = Accepted.from_options(options)
        self.places = ResumePoints()
        self.epoch = 0
        self.at: ServerIdentity | None = None
        self.streams = False
        self._conn: Connection | None = None
        self._known: Server | None = None
        self._limited = False

    def ordinary(self) -> Connection:
        """Return the ordinary connection; replace it if it is lost or leads to a server that capture has left.

        Raises:
            ConnectError: it leads to another server than the one that the log comes from.
            FloodmarkError: that server's log is not the one that was read.
        """
        captured, reader = self.places.reader
        if self._conn is not None:
            try:
                run(self._conn, "SELECT 1", "looking whether the connection is alive")
                self._agree(reader)
            except ConnectError:
                close(self._conn)
                self._conn = None
        if self._conn is None:
            conn = self.logging()
            try:
                at, before = server_identity(conn, self._options.connector), self.at
                self.at = at
                self._agree(reader)
                if at != before:
                    self._known = None
                    if reader is None:
                        self._take_up(captured)
                limit_statements(conn, self._options.connector, self._options.query_timeout_ms)
            except BaseException:
                self.at = None
                close(conn)
                raise
            self._conn = conn
            self._limited = False
        if self.streams and not self._limited:
            limit_ms = self._options.snapshot_statement_timeout_ms
            limit_ms = min(self._options.query_timeout_ms or limit_ms, limit_ms)
            limit_statements(self._conn, self._options.connector, limit_ms)
            if self._options.connector == "mysql":
                # Its limit is for SELECT only.
                limit_locks(self._conn, limit_ms // 2)
            self._limited = True
        return self._conn

    def server(self) -> Server:
        """Return the properties of the server."""
        if self._known is None:
            self._known = read_server(self.ordinary())
        return self._known

    def logging(self) -> Connection:
        """Open a connection to the server after checking that it logs everything that is needed."""
        conn = connect(self._options)
        try:
            for finding in obstacles(conn, read_server(conn), self._options):
                raise SourceStateError(finding.finding, finding.fix)
        except BaseException:
            close(conn)
            raise
        return conn

    def beside(self) -> Connection:
        """Open another connection to the server that the ordinary one leads to."""
        return self._connect_to(self.at)

    def of_the_log(self) -> Connection:
        """Open a connection to the server that capture reads the log from."""
        return self._connect_to(self.places.reader[1])

    def position_of(self, place: LogEnd) -> str:
        """Return the position of a place in the log of the server that the ordinary connection leads to."""
        return str(place.position(self.epoch))

    def reached(self) -> str:
        """Return a position that the log has reached; empty if none is known in the connection's epoch."""
        newest = self.places.newest()
        return "" if newest is None or Position.parse(newest[0]).epoch != self.epoch else newest[0]

    def moved_since(self, position: str) -> bool:
        """Return whether the log has moved to another server, where what lay before a position may come after it."""
        newest = self.places.newest()
        return newest is not None and Position.parse(newest[0]).epoch > Position.parse(position).epoch

    def prove(self, position: str, known: ResumePoint | None) -> int:
        """Verify that the server has the log that a position belongs to; return the epoch of positions there."""
        return self.proven(position, known).epoch

    def proven(self, position: str, known: ResumePoint | None) -> Start:
        """Verify that the server has the log that a position belongs to; return where a stream would begin."""
        options = self._options
        start = probe(self.beside, options.connector, Position.parse(position), known, self.accepted)
        if start.gap is not None:
            self._gaps.add(start.gap)
        return start

    def close(self) -> None:
        """Close the ordinary connection."""
        if self._conn is not None:
            close(self._conn)
            self._conn = None

    def _connect_to(self, server: ServerIdentity | None) -> Connection:
        conn = connect(self._options)
        try:
            at = server_identity(conn, self._options.connector)
            if at != server:
                raise ConnectError(f"The address leads to another server by now: {at.host} ({at.server}).")
        except BaseException:
            close(conn)
            raise
        return conn

    def _agree(self, reader: ServerIdentity | None) -> None:
        """Verify that the connection leads to the server that the log comes from, and take over its epoch.

        Raises:
            ConnectError: it leads to another server.
        """
        if reader is None:
            return
        if reader != self.at:
            raise ConnectError(f"The log comes from another server now: {reader.host} ({reader.server}).")
        newest = self.places.newest()
        if newest is not None:
            self.epoch = Position.parse(newest[0]).epoch

    def _take_up(self, captured: bool) -> None:
        """Verify that a server that is new to this process, and that capture doesn't read from, has the known log."""
        newest = self.places.newest()
        if newest is None:
            return
        position, known = newest
        place = Position.parse(position)
        # File 0: capture had just moved to another server, and no position of its log is known yet.
        epoch = self.prove(position, known) if place.file else None
        if captured and epoch != place.epoch:
            # Going on here would mean waiting for a position that the log may never reach.
            raise ConnectError("The address leads to another server, and the log doesn't come from there yet.")
        assert epoch is not None
        self.epoch = epoch
