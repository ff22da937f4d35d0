"""An Oracle database as a ``Source``."""

from __future__ import annotations

from floodmark.capture.gaps import AcceptedGaps
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.source import Source
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.side_session import OracleSideSession
from floodmark.connectors.oracle.source.announcements import OracleAnnouncements
from floodmark.connectors.oracle.source.log import OracleLog
from floodmark.connectors.oracle.source.read_points import OracleSnapshots
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.oracle.source.tables import OracleTables
from floodmark.connectors.oracle.source.windows import OracleWindows
from floodmark.connectors.side_statements import SideStatements


class OracleSource:
    """A ``Source``; opens its connections at the first use.

    Args:
        options: the source's options.
    """

    completeness = None

    def __init__(self, options: OracleOptions) -> None:
        load_converters(options)
        self.gaps = AcceptedGaps()
        self._session = OracleSession(options)
        self._background = SideStatements(lambda: OracleSideSession(options))
        self.tables = OracleTables(options, self._session)
        self.snapshots = OracleSnapshots(options, self._session, self.tables)
        watermarks = self.snapshots.watermarks
        self.windows = None if watermarks is None else OracleWindows(options, self._session, self.tables, watermarks)
        self.announcements = OracleAnnouncements(options, self._session, self.tables)
        self.log = OracleLog(options, self._session, self.tables, self.snapshots, self.gaps)

    def identity(self) -> dict[str, str]:
        """Return the kind of server; the database itself is verified with each position."""
        self._session.ordinary()
        return {"connector": "oracle"}

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._background.run(statement)

    def close(self) -> None:
        """Close the connections."""
        self._background.stop()
        self._session.close()


def make_source(options: OracleOptions) -> Source:
    """Return the planner's side of a source."""
    return OracleSource(options)
