"""A PostgreSQL database as a ``Source``."""

from __future__ import annotations

from floodmark.capture.gaps import AcceptedGaps
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.source import Source
from floodmark.connectors.postgres.continuity.published import PublicationProof
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.side_work import PostgresSideSession
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.source.log import PostgresLog
from floodmark.connectors.postgres.source.read_points import PostgresSnapshots, PostgresWindows
from floodmark.connectors.postgres.source.session import PostgresSession
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.connectors.side_statements import SideStatements
from floodmark.errors import FloodmarkError


class PostgresSource:
    """A ``Source``; opens its connections at the first use.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        load_converters(options)
        self._session = PostgresSession(options)
        self._background = SideStatements(lambda: PostgresSideSession(options))
        self.gaps = AcceptedGaps()
        publication = PublicationProof(options, self.gaps)
        commits = CommitLog()
        self.tables = PostgresTables(options, self._session, publication)
        self.snapshots = PostgresSnapshots(options, self._session, self.tables, commits)
        watermarks = self.snapshots.watermarks
        self.windows = (
            None if watermarks is None else PostgresWindows(options, self._session, self.snapshots, watermarks)
        )
        self.announcements = None
        self.log = PostgresLog(options, self._session, self.tables, self.snapshots, publication, commits, self.gaps)
        self.completeness = self.log

    def identity(self) -> dict[str, str]:
        """Return the server's system identifier, the database and the slot."""
        return {
            "system": self._session.system(),
            "database": self._options.dbname,
            "slot": self._options.slot_name,
        }

    def execute_in_background(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._background.run(statement)

    def close(self) -> None:
        """Close the connections; drop the slot if ``slot.drop.on.stop`` is set."""
        conn = self._session.open_connection
        if self._options.slot_drop_on_stop and conn is not None:
            try:
                slots.wait_until_free(conn, self._options)
                slots.drop_slot(conn, self._options.slot_name)
            except FloodmarkError:
                pass
        self._background.stop()
        self._session.close()


def make_source(options: PostgresOptions) -> Source:
    """Return the planner's side of a source."""
    return PostgresSource(options)
