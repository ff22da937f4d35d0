"""The log of a PostgreSQL database, as the planner uses it: a replication slot and a publication."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import LogStream
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.guardrail import guard
from floodmark.connectors.postgres.capture.stream import PostgresStream
from floodmark.connectors.postgres.checks.tables import silent_tables_text
from floodmark.connectors.postgres.continuity.check import StandbyError
from floodmark.connectors.postgres.continuity.published import PublicationProof, Seen
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_lsn, parse_position, position
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.attached import AttachedPartitions
from floodmark.connectors.postgres.server.catalog import Table, captured_tables, silent_tables
from floodmark.connectors.postgres.server.connection import MIN_VERSION, run, server_version
from floodmark.connectors.postgres.server.publication import ensure_publication
from floodmark.connectors.postgres.server.replica_identity import set_identities
from floodmark.connectors.postgres.server.side_work import OldestTransaction
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.read_point import first_lsn
from floodmark.connectors.postgres.snapshot.visibility import Visibility
from floodmark.connectors.postgres.source.read_points import PostgresSnapshots
from floodmark.connectors.postgres.source.session import Conn, PostgresSession
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.errors import ConnectError, LogGoneError, SourceStateError, StatementTimeoutError
from floodmark.json_data import Json
from floodmark.logger import get_logger

log = get_logger(__name__)


class PostgresLog:
    """A ``LogSource``.

    Args:
        options: the source's options.
        session: the connections.
        tables: the captured tables.
        snapshots: opens the read point that belongs to a new slot.
        publication: verifies what the publication lets through.
        commits: the transactions that capture has received.
        gaps: collects the changes that are left out.
    """

    def __init__(
        self,
        options: PostgresOptions,
        session: PostgresSession,
        tables: PostgresTables,
        snapshots: PostgresSnapshots,
        publication: PublicationProof,
        commits: CommitLog,
        gaps: AcceptedGaps,
    ) -> None:
        self._options = options
        self._session = session
        self._tables = tables
        self._snapshots = snapshots
        self._publication = publication
        self._commits = commits
        self._gaps = gaps
        self._attached = AttachedPartitions(options)
        self._oldest = OldestTransaction(options)

    def create(self, with_read_point: bool) -> tuple[str, ReadPoint | None]:
        """Create publication and slot; the read point is the one that belongs to the slot's position."""
        try:
            self._session.prove_log(None)
        except StandbyError as exc:
            # A new query has no server of its own that may be about to be promoted, so it doesn't wait.
            raise SourceStateError(exc.what, exc.cure) from None
        conn, tables = self._checked(new=True)
        late = self._tables.publish(conn, tables)
        while late:
            # A new query must have all changes from its first position on, so all tables are published before that.
            late = ensure_publication(conn, self._options, tables)
        slot = self._slot(conn, tables)
        self._begin(conn, tables, None, None, ())
        if with_read_point:
            self._tables.check_policies()
        if slot is None:
            lsn, point = self._snapshots.create_slot(temporary=False)
        elif with_read_point:
            lsn, point = self._snapshots.create_slot(temporary=True)
        else:
            return position(slot.confirmed), None
        if not with_read_point:
            point.release()
            return position(lsn), None
        return position(lsn), self._snapshots.locked(point)

    def resume(self, position: str, bookmark: dict[str, Json] | None = None, known: Sequence[str] = ()) -> None:
        """Verify that the slot still holds the log from a position on, and that the publication left nothing out."""
        self._session.prove_log(position, bookmark)
        conn, tables = self._checked(new=False)
        self._tables.publish(conn, tables)
        slot = self._slot(conn, tables)
        slots.check_position(slot, self._options, parse_position(position)[0], self._gaps)
        seen = Seen.from_json(bookmark["publication"]) if bookmark and bookmark.get("publication") else None
        self._begin(conn, tables, position, seen, known)
        self._tables.snapshot.statements.checked = True

    def _checked(self, new: bool) -> tuple[Conn, list[Table]]:
        """Verify the server, the tables and the signal table; return an ordinary connection and the tables."""
        conn = self._session.ordinary()
        self._check_server(conn)
        tables = captured_tables(conn, self._options)
        self._check_tables(tables, new)
        self._snapshots.check_watermarks()
        return conn, tables

    def _slot(self, conn: Conn, tables: Sequence[Table]) -> slots.Slot | None:
        """Return the slot, verified, once nothing else reads it; None if there is none."""
        set_identities(conn, self._options, tables)
        slot = slots.wait_until_free(conn, self._options, self._snapshots.half_made)
        if slot is not None:
            slots.check_slot(slot, self._options)
            self._session.continuity.prove_kept(slot)
        return slot

    def _begin(
        self, conn: Conn, tables: Sequence[Table], position: str | None, seen: Seen | None, known: Sequence[str]
    ) -> None:
        self._publication.begin(conn, tables, position, seen, known)
        self._attached.begin(seen.oldest if seen is not None else None)
        with contextlib.suppress(StatementTimeoutError):
            self._attached.check(conn, tables)

    def check_planned(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the log still holds what an earlier process planned up to a position."""
        self._session.prove_log(position, bookmark)

    def locate(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the server has the log that a query reads."""
        self._session.prove_log(position, bookmark)

    def bookmark(self, position: str) -> dict[str, Json]:
        """Return what identifies the log before a position; verify that the publication left nothing out of it."""
        continuity = self._session.continuity.bookmark(position)
        self.prove_complete(position)
        seen = self._publication.seen
        return {**continuity, "publication": seen.to_json() if seen is not None else None}

    def prove_complete(self, position: str, ends: bool = False) -> None:
        """Verify that the publication has left nothing out of the log."""
        if not (ends or self._publication.due):
            return
        # If the server can't be reached, the checkpoint keeps what the last check saw.
        with contextlib.suppress(ConnectError, StatementTimeoutError):
            conn = self._session.ordinary()
            if self._publication.outdated(conn, position) or ends:
                tables = captured_tables(conn, self._options)
                self._publication.follow(conn, tables)
                self._attached.check(conn, tables)

    def discard_lost(self) -> None:
        """Drop the slot if the server has invalidated it, or has removed log that it needs."""
        slot = slots.wait_until_free(self._session.ordinary(), self._options)
        if slot is not None and (slot.invalidated or not self._is_kept(slot)):
            slots.drop_slot(self._session.ordinary(), slot.name)

    def _is_kept(self, slot: slots.Slot) -> bool:
        try:
            self._session.continuity.prove_kept(slot)
        except LogGoneError:
            return False
        return True

    def delivered(self, position: str) -> None:
        """Record that the log was delivered up to ``position``; forget transactions that no read point needs."""
        self._session.continuity.deliver(parse_position(position)[0])
        if self._commits.large:
            text = run(self._session.ordinary(), "SELECT pg_current_snapshot()::text", "the running transactions")[0][0]
            self._commits.compact(Visibility.parse(text), first_lsn(position))

    def end(self) -> str:
        """Return the end of the log that is on the server's disk."""
        row = run(self._session.ordinary(), "SELECT pg_current_wal_flush_lsn()::text", "the end of the log")[0]
        return position(parse_lsn(row[0]))

    def lag_bytes(self, position: str) -> int:
        """Return how many bytes of log lie between a position and the end of the log."""
        return max(parse_position(self.end())[0] - parse_position(position)[0], 0)

    def decode_context(self) -> int | None:
        """Return the slot's oldest transaction, as of at most ``xmin.fetch.interval.ms`` ago."""
        if self._oldest.wanted:
            # If the server can't be reached, the last known number is good enough.
            with contextlib.suppress(ConnectError):
                self._oldest.fetch(self._session.ordinary())
        return self._oldest.known

    def open_stream(self) -> LogStream:
        """Return a new replication stream."""
        self._session.streams = True
        return PostgresStream(self._options, self._session.catalog, self._commits, self._session.continuity, self._gaps)

    def _check_server(self, conn: Conn) -> None:
        if server_version(conn) < MIN_VERSION:
            raise SourceStateError(
                f"The server is PostgreSQL {server_version(conn)}; {MIN_VERSION} or later is needed.",
                "Upgrade the server.",
            )
        level = run(conn, "SHOW wal_level", "wal_level")[0][0]
        if level != "logical":
            raise SourceStateError(
                f"The server's wal_level is '{level}'; capture needs 'logical'.",
                "ALTER SYSTEM SET wal_level = 'logical' and restart the server.",
            )
        role = run(
            conn,
            "SELECT rolsuper OR rolreplication OR EXISTS (SELECT FROM pg_roles managed WHERE managed.rolname = "
            "'rds_replication' AND pg_has_role(current_user, managed.oid, 'member')) "
            "FROM pg_roles WHERE rolname = current_user",
            "the role",
        )
        if not role[0][0]:
            raise SourceStateError(
                f"The role '{self._options.user}' may not replicate.",
                f'ALTER ROLE "{self._options.user}" REPLICATION.',
            )

    def _check_tables(self, tables: Sequence[Table], new: bool) -> None:
        guard(len(tables), self._options)
        via_root = self._options.publish_via_partition_root
        silent = silent_tables(tables, via_root) if self._options.table_include_list else []
        if silent:
            text, fix = silent_tables_text([table.full_name for table in silent], via_root)
            if new and len(silent) == len(tables):
                raise SourceStateError(f"No changes would be captured. {text}", fix)
            log.warning("tables_capture_nothing", text=text, cure=fix)
        if tables or not self._options.table_include_list:
            return
        patterns = ", ".join(pattern.pattern for pattern in self._options.table_include_list)
        raise SourceStateError(
            f"No table of the database '{self._options.dbname}' matches table.include.list ({patterns}).",
            "Its items are regular expressions of whole names, schema.table; check them and the role's rights.",
        )
