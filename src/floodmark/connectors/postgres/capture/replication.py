"""Starts replication, and verifies that it sends the log that is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from floodmark.capture.gaps import AcceptedGaps
from floodmark.connectors.postgres.capture.stream_settings import stream_settings
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_position
from floodmark.connectors.postgres.server.catalog import Conn
from floodmark.connectors.postgres.server.connection import connect, run, server_version
from floodmark.connectors.postgres.server.slots import check_position, check_slot, find_slot
from floodmark.connectors.postgres.wire.channel import CopyChannel, messages, open_channel
from floodmark.errors import ConnectError, SlotBusyError, SourceStateError

LAST_WORDS_S = 1.0

Catalog = Callable[[], Conn]


@dataclass(frozen=True)
class Replication:
    """Opens connections that replicate from the slot.

    Attributes:
        options: the source's options.
        catalog: returns an ordinary connection for catalog queries by the capture thread.
        continuity: verifies that a connection leads to the log that is read.
        gaps: collects the changes that are left out.
    """

    options: PostgresOptions
    catalog: Catalog
    continuity: Continuity
    gaps: AcceptedGaps

    def begin(self, position: str) -> CopyChannel:
        """Connect, verify that this is still the log that the position belongs to, and start replication after it."""
        lsn, _ = parse_position(position)
        conn = connect(self.options, replication=True)
        try:
            self.continuity.prove(conn, position)
            settings = stream_settings(self.options, server_version(conn))
            walsender = int(run(conn, "SELECT pg_backend_pid()", "the walsender's process")[0][0])
        except BaseException:
            conn.close()
            raise
        channel = open_channel(conn)
        try:
            self._start(channel, lsn, settings)
            # The slot is checked only now, since nothing else can drop or advance it while this connection holds it.
            self._prove_slot(lsn, walsender, channel)
        except BaseException:
            channel.close()
            raise
        return channel

    def _start(self, channel: CopyChannel, lsn: int, settings: str) -> None:
        command = f'START_REPLICATION SLOT "{self.options.slot_name}" LOGICAL {format_lsn(lsn)} ({settings})'
        try:
            channel.start(command)
        except SlotBusyError:
            raise
        except SourceStateError:
            # The slot may have been lost since the query was started: then raise the error for that.
            self._prove_slot(lsn)
            raise

    def _prove_slot(self, lsn: int, walsender: int | None = None, channel: CopyChannel | None = None) -> None:
        """Verify that the slot still holds the log from ``lsn`` on and, if given, that ``walsender`` reads it."""
        slot = find_slot(self.catalog(), self.options.slot_name)
        if slot is not None:
            check_slot(slot, self.options)
            if walsender is not None and slot.active_pid != walsender:
                if channel is not None and slot.active_pid is None:
                    # A walsender that can't go on ends right after it has begun: raise its error, if there is one.
                    for _ in messages(channel, LAST_WORDS_S):
                        pass
                raise ConnectError("The connections to PostgreSQL lead to different servers.")
        check_position(slot, self.options, max(lsn, self.continuity.delivered), self.gaps)
