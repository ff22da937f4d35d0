"""A MySQL or MariaDB server as a ``Source``."""

from __future__ import annotations

from floodmark.capture.gaps import AcceptedGaps
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.source import Source
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.server.side_session import BinlogSideSession
from floodmark.connectors.mysql.source.log import MysqlLog
from floodmark.connectors.mysql.source.read_points import MysqlSnapshots, MysqlWindows
from floodmark.connectors.mysql.source.session import MysqlSession
from floodmark.connectors.mysql.source.tables import MysqlTables
from floodmark.connectors.side_statements import SideStatements


class BinlogSource:
    """A ``Source``; opens its connections at the first use.

    Args:
        options: the source's options.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        load_converters(options)
        self.gaps = AcceptedGaps()
        self._session = MysqlSession(options, self.gaps)
        self._background = SideStatements(lambda: BinlogSideSession(options))
        schema = SchemaFollower(options, self.gaps)
        self.tables = MysqlTables(options, self._session)
        self.snapshots = MysqlSnapshots(options, self._session, self.tables, schema)
        self.windows = MysqlWindows(self.snapshots)
        self.announcements = self.snapshots
        # Each new connection checks what the server leaves out of its binlog.
        self.completeness = None
        self.log = MysqlLog(options, self._session, self.tables, self.snapshots, schema, self.gaps)

    def identity(self) -> dict[str, str]:
        """Return the kind of server; the server itself may change, and the log verifies that it has what is needed."""
        self._session.ordinary()
        return {"connector": self._options.connector}

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._background.run(statement)

    def close(self) -> None:
        """Close the connections."""
        self._background.stop()
        self._session.close()


def make_source(options: BinlogOptions) -> Source:
    """Return the planner's side of a source."""
    return BinlogSource(options)
