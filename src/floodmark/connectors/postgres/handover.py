"""Finds the place of Debezium's offset in the log of a PostgreSQL database, and Debezium's offset for a place.

Debezium numbers what it has delivered by the LSN of each message of the replication stream: that of a change is where
its log record begins, that of a commit where the commit record ends. Its offset has the last commit before
(``lsn_commit``), and the last message that it has completed (``lsn_proc``), which lies in the transaction that follows
that commit. A position here is the commit's record and the number of the change, so the transaction is looked for in
the slot's stream, which begins at ``lsn_commit``, and the change in it.

Several events can have one LSN: rows of a multi-row insert, and the events that one change becomes (a deletion and its
tombstone). Debezium's offset doesn't say how many of them it has delivered, so they come again.

Source: Debezium's ``PostgresOffsetContext`` and ``WalPositionLocator``; the server's ``replication/logical/logical.c``,
which sets the LSN of each message.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.contract.handover import HandedBack, Handover, Place
from floodmark.connectors.contract.key_forms import KeyForm
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.postgres.capture.receive_buffer import Frames, ReceiveBuffer
from floodmark.connectors.postgres.capture.stream_settings import stream_settings
from floodmark.connectors.postgres.continuity.check import ServerLog
from floodmark.connectors.postgres.continuity.physical import commits_before
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_lsn, parse_position, position
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.connection import connect, run, server_version
from floodmark.connectors.postgres.source.session import PostgresSession
from floodmark.connectors.postgres.wire.channel import CopyChannel, open_channel, parse_error, server_error
from floodmark.connectors.postgres.wire.frames import be32, be64
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    BEGIN_LSN,
    BEGIN_TIME,
    BEGIN_XID,
    CHANGE_TUPLE_KIND,
    CHANGES,
    COMMIT,
    DELETE,
    ERROR_RESPONSE,
    INSERT,
    KEEPALIVE_END,
    MESSAGE,
    PAYLOAD,
    PG_EPOCH_US,
    TRUNCATE,
    UPDATE,
    WAL_LSN,
)
from floodmark.debezium.snapshot_state import RUNNING
from floodmark.errors import ConnectError, OffsetError, SourceStateError
from floodmark.json_data import Json, JsonObject

_TYPES = """
    SELECT a.attname::text, t.typname::text FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
    WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped
"""
_FORMS: dict[str, KeyForm] = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar"), "text"),
    "uuid": "uuid",
    "bytea": "bytea",
}
BUFFER_BYTES = 1 << 20
SILENCE_S = 60.0
NEAR_BYTES = 8192
FAR_BYTES = 1 << 20
"""A commit record ends with what belongs to it (transactions, relations), so its time can lie far before its end."""
NEW_TUPLE = ord("N")
_LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
_POSITION = re.compile(r"[0-9A-F]{16}-[0-9A-F]{8}")
OPERATIONS = {INSERT: "INSERT", UPDATE: "UPDATE", DELETE: "DELETE", TRUNCATE: "TRUNCATE", MESSAGE: "MESSAGE"}
"""Debezium's names of messages' types."""
OTHER_SERVER = (
    "It is of another server or database, or the server was restored from a backup. Connect to the server that "
    "Debezium has read, or start with a new checkpoint and snapshot.mode=initial, which takes a new snapshot."
)
NEW_SNAPSHOT = "Start the query with a new checkpoint and snapshot.mode=initial, which takes the snapshot."


@dataclass(frozen=True)
class DebeziumPlace:
    """Where Debezium's PostgreSQL connector is.

    Attributes:
        lsn: the last message that it has completed.
        commit: the end of the last commit before; None: there was none since its snapshot.
        xid: the transaction of the last message; None: not known.
        micros: when that was committed, microseconds since 1970; None: not known.
        message: the last message's type, such as ``INSERT``; None: the offset is that of a snapshot's end.
        events: how many events of that LSN it has completed; 0: not known.
    """

    lsn: int
    commit: int | None
    xid: int | None
    micros: int | None
    message: str | None
    events: int = 0

    @property
    def is_change(self) -> bool:
        """Whether the last message is a change, so that it lies inside of a transaction.

        A change can have the LSN at which the commit before ends. A message outside of transactions counts as a commit.
        """
        outside = self.message == "MESSAGE" and self.lsn == self.commit
        return self.message not in (None, "BEGIN", "COMMIT") and not outside

    @classmethod
    def from_fields(cls, fields: Mapping[str, Json]) -> DebeziumPlace:
        """Read an offset.

        Raises:
            OffsetError: it isn't one of this connector, or its snapshot isn't finished.
        """
        offset = JsonObject(fields, "Debezium's offset", _wrong)
        reads = offset.value("snapshot") in RUNNING
        if (
            offset.value("snapshot") is not None
            and not reads
            and not (offset.flag("snapshot_completed", False) or offset.flag("last_snapshot_record", False))
        ):
            raise OffsetError(
                "Debezium has not finished its snapshot, and would begin it again: there is no position from which the "
                "log alone is enough.",
                f"{NEW_SNAPSHOT} The slot keeps the log until then.",
            )
        processed = offset.value("lsn_proc") is not None
        commit = offset.integer("lsn_commit") if offset.value("lsn_commit") is not None else None
        return cls(
            offset.integer("lsn_proc" if processed else "lsn"),
            commit,
            offset.integer("txId") if offset.value("txId") is not None else None,
            # After a row of an incremental snapshot it is the time of reading.
            offset.integer("ts_usec") if offset.value("ts_usec") is not None and not reads else None,
            offset.optional_text("messageType") if processed else None,
            offset.integer("lsn_events_processed", 0),
        )


def _wrong(problem: str) -> OffsetError:
    return OffsetError(f"This is not an offset of Debezium's PostgreSQL connector: {problem}.", "Give its own store.")


@dataclass(frozen=True)
class Transaction:
    """The first transaction of the slot's stream.

    Attributes:
        commit: where its commit record begins.
        end: where its commit record ends.
        xid: its number.
        micros: when it was committed, microseconds since 1970.
        lsns: the LSN of each of its changes, shape (changes,).
        kinds: the type of each message, shape (changes,).
        single: whether the change becomes exactly one record, shape (changes,).
    """

    commit: int
    end: int
    xid: int
    micros: int
    lsns: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    single: NDArray[np.bool_]

    def done(self, place: DebeziumPlace) -> int:
        """Return how many of its changes Debezium has certainly delivered all events of."""
        at = np.flatnonzero(self.lsns == place.lsn)
        if not len(at):
            return 0
        first, last = int(at[0]), int(at[-1])
        if place.events:
            # The counter has no gaps: all changes before the last one counted have become events.
            last = min(first + place.events - 1, last)
            return last + int(self.single[last])
        return first + int(self.single[first])


class PostgresHandover:
    """A ``Handover``.

    Args:
        options: the source's options.
    """

    catalog = ""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._session = PostgresSession(options)

    def taken_over(
        self, offset: Mapping[str, Json], history: Iterable[Mapping[str, Json]] | None, before: str | None
    ) -> Place:
        """Return the place where Debezium's offset lies."""
        del history, before
        place = DebeziumPlace.from_fields(offset)
        log, slot = self._server_log(), self._slot()
        done = place.lsn if place.commit is None else place.commit
        self._refuse_future(max(place.lsn, done), log)
        if not place.is_change:
            self._check_slot(slot, done, place.lsn)
            unproven: tuple[str, ...] = ()
            if place.message == "COMMIT" and place.micros is not None:
                unproven = self._prove_commit(log, done, place.micros)
            return self._place(position(done), f"LSN {format_lsn(done)}", unproven)
        # The slot may have passed the last commit, as long as it still sends the transaction that followed it.
        found = self._first_transaction(max(done, slot.confirmed))
        if (
            found is None
            or (place.xid is not None and found.xid != place.xid % (1 << 32))
            or (place.micros is not None and found.micros != place.micros)
        ):
            self._check_slot(slot, done, place.lsn)
            is_there = "nothing" if found is None else f"the transaction {found.xid}"
            raise OffsetError(
                f"Debezium's offset lies in the transaction {place.xid}, after {format_lsn(done)}, but the slot "
                f"'{slot.name}' sends {is_there} from there.",
                f"{OTHER_SERVER} If the publication is not the one that Debezium reads, set publication.name.",
            )
        count = found.done(place)
        notes = []
        passed = int((found.lsns <= place.lsn).sum()) if len(found.lsns) else 0
        if count < passed:
            notes.append(
                f"The change at {format_lsn(place.lsn)}, which Debezium's offset names, makes several events, and may "
                "not have been delivered whole: it comes again."
            )
        at = position(found.commit, count) if count else position(found.commit)
        shown = (
            f"change {count} of {len(found.lsns)} in the transaction {found.xid} that ends at {format_lsn(found.end)}"
        )
        return self._place(at, shown, tuple(notes))

    def handed_back(self, position: str, bookmark: Mapping[str, Json] | None) -> HandedBack:
        """Return the offset from which Debezium goes on at a query's position."""
        lsn, count = parse_position(position)
        log, slot = self._server_log(), self._slot()
        self._refuse_future(lsn, log)
        self._check_slot(slot, lsn, lsn)
        if count:
            inside = self._inside(lsn, count)
            if inside is not None:
                return HandedBack(inside)
        offset: dict[str, Json] = {"lsn": lsn, "lsn_proc": lsn, "lsn_commit": lsn, "messageType": "COMMIT"}
        match None if bookmark is None else bookmark.get("end"):
            case [str(end), int(micros)] if parse_lsn(end) == lsn:
                offset["ts_usec"] = micros
        return HandedBack(offset)

    def _inside(self, lsn: int, count: int) -> dict[str, Json] | None:
        """Return the offset after a change of a transaction; None if Debezium must begin with the whole transaction.

        Debezium goes on with the message of the next LSN. Changes of one LSN (rows of one multi-row insert) therefore
        come again together, if not all of them have been delivered.
        """
        found = self._first_transaction(lsn)
        if found is None or found.commit != lsn or count > len(found.lsns):
            raise OffsetError(
                f"The query has delivered {count} changes of the transaction whose commit is at {format_lsn(lsn)}, but "
                f"the slot '{self._options.slot_name}' does not send that transaction.",
                OTHER_SERVER,
            )
        last = int(found.lsns[count - 1])
        alike = np.flatnonzero(found.lsns == last)
        if int(alike[-1]) >= count:
            if not alike[0]:
                return None
            count = int(alike[0])
            last = int(found.lsns[count - 1])
        # The transaction's own commit lies behind this, and all commits before it don't.
        return {
            "lsn": last,
            "lsn_proc": last,
            "lsn_commit": lsn,
            "messageType": OPERATIONS[int(found.kinds[count - 1])],
            "txId": found.xid,
            "ts_usec": found.micros,
        }

    def chosen(self, text: str, before: str | None) -> Place:
        """Return the place of an LSN, such as ``16/B374D848``, or of a log position."""
        del before
        if _POSITION.fullmatch(text):
            lsn, count = parse_position(text)
        elif _LSN.fullmatch(text):
            lsn, count = parse_lsn(text), 0
        else:
            raise OffsetError(f"'{text}' is not a position in PostgreSQL's log.", "Give an LSN, such as 16/B374D848.")
        log, slot = self._server_log(), self._slot()
        self._refuse_future(lsn, log)
        self._check_slot(slot, lsn, lsn)
        if count:
            found = self._first_transaction(lsn)
            if found is None or found.commit != lsn or count > len(found.lsns):
                raise OffsetError(f"No transaction of {count} changes or more has its commit at {format_lsn(lsn)}.")
        return self._place(position(lsn, count), f"LSN {format_lsn(lsn)}", ())

    def latest(self, before: str | None) -> Place:
        """Return the end of the log that is on the server's disk."""
        del before
        log = self._server_log()
        self._slot()
        return self._place(position(log.end), f"LSN {format_lsn(log.end)}", ())

    def key_forms(self, oid: int, key: TableKey) -> tuple[KeyForm | None, ...]:
        """Return how the values of a key's columns are written."""
        rows = run(self._session.ordinary(), _TYPES.format(oid=oid), "the types of a table's key")
        types = {str(name): str(kind) for name, kind in rows}
        return tuple(_FORMS.get(types.get(name, "")) for name in key.columns)

    def settle(self, place: Place) -> dict[str, Json] | None:
        """Return the place's bookmark: the log has the tables' structures."""
        return place.bookmark

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def _slot(self) -> slots.Slot:
        """Return the slot, which nothing reads and whose log the server has."""
        conn = self._session.ordinary()
        slot = slots.find_slot(conn, self._options.slot_name)
        if slot is None:
            raise OffsetError(
                f"There is no replication slot '{self._options.slot_name}': the log since Debezium's offset is lost.",
                f"Set slot.name to that of Debezium's connector. If the slot is gone: {NEW_SNAPSHOT}",
            )
        slots.check_slot(slot, self._options)
        if slot.active_pid is not None:
            raise OffsetError(
                f"The replication slot '{slot.name}' is being read by the server process {slot.active_pid}.",
                "Stop Debezium's connector, or the query, and wait until pg_replication_slots.active is false.",
            )
        self._session.continuity.prove_kept(slot)
        return slot

    def _server_log(self) -> ServerLog:
        conn = connect(self._options, replication=True)
        try:
            return self._session.continuity.prove(conn)
        finally:
            conn.close()

    def _refuse_future(self, lsn: int, log: ServerLog) -> None:
        if lsn > log.end:
            raise OffsetError(
                f"The position {format_lsn(lsn)} lies in the future: the server's log ends at {format_lsn(log.end)}.",
                OTHER_SERVER,
            )

    def _check_slot(self, slot: slots.Slot, done: int, lsn: int) -> None:
        if slot.confirmed > max(done, lsn) or (slot.confirmed > done and lsn == done):
            raise OffsetError(
                f"The replication slot '{slot.name}' is at {format_lsn(slot.confirmed)} (confirmed_flush_lsn), beyond "
                f"the position {format_lsn(max(done, lsn))}: it was created again, advanced or read by something else. "
                "The server would silently begin at the slot, and the changes between are lost.",
                f"{NEW_SNAPSHOT} To go on at the slot and accept the gap, move the query there with "
                "`floodmark offsets set`.",
            )

    def _prove_commit(self, log: ServerLog, end: int, micros: int) -> tuple[str, ...]:
        """Verify that a commit of that time ends at an LSN; return what is to be known if the log can't be read."""
        try:
            for size in (NEAR_BYTES, FAR_BYTES):
                if commits_before(self._options, log.timeline_at(end - 1), end, size, micros):
                    return ()
        except (ConnectError, SourceStateError) as exc:
            return (f"Whether the server's log has Debezium's last commit could not be verified: {exc.what}",)
        raise OffsetError(f"No commit of the time in Debezium's offset ends at {format_lsn(end)}.", OTHER_SERVER)

    def _place(self, at: str, shown: str, notes: tuple[str, ...]) -> Place:
        source = {"system": self._session.system(), "database": self._options.dbname, "slot": self._options.slot_name}
        self._session.prove_log(at)
        bookmark: dict[str, Json] = {**self._session.continuity.bookmark(at), "publication": None}
        return Place(source, at, bookmark, shown, notes)

    def _first_transaction(self, after: int) -> Transaction | None:
        """Return the first transaction that the slot sends from an LSN on; None if there is none in the log.

        The slot isn't advanced: no position is confirmed.
        """
        conn = connect(self._options, replication=True)
        end = slots.end_of_log(self._session.ordinary())
        try:
            settings = stream_settings(self._options, server_version(conn))
        except BaseException:
            conn.close()
            raise
        channel = open_channel(conn)
        try:
            name = self._options.slot_name
            channel.start(f'START_REPLICATION SLOT "{name}" LOGICAL {format_lsn(after)} ({settings})')
            return _read_transaction(channel, end)
        finally:
            channel.close()


def _read_transaction(channel: CopyChannel, end: int) -> Transaction | None:
    buffer = ReceiveBuffer(BUFFER_BYTES)
    begun: tuple[int, int, int] | None = None
    lsns: list[NDArray[np.int64]] = []
    types: list[NDArray[np.uint8]] = []
    single: list[NDArray[np.bool_]] = []
    until = time.monotonic() + SILENCE_S
    while time.monotonic() < until:
        count = channel.read_into(buffer.space(), 0.5)
        if count:
            until = time.monotonic() + SILENCE_S
        for part in buffer.take(count):
            if not isinstance(part, Frames):
                if part.kind == ERROR_RESPONSE:
                    raise server_error(parse_error(part.body))
                continue
            data, starts = buffer.data, part.records
            kinds = data[starts + PAYLOAD] if len(starts) else np.empty(0, np.uint8)
            if begun is None:
                first = np.flatnonzero(kinds == BEGIN)
                if len(first):
                    at = int(starts[first[0]]) + PAYLOAD
                    micros = be64(data, at + BEGIN_TIME) + PG_EPOCH_US
                    begun = be64(data, at + BEGIN_LSN), be32(data, at + BEGIN_XID), micros
                    starts, kinds = starts[first[0] :], kinds[first[0] :]
                elif any(be64(data, int(start) + KEEPALIVE_END) >= end for start in part.keepalives[-1:]):
                    return None
            if begun is None:
                continue
            commits = np.flatnonzero(kinds == COMMIT)
            upto = int(commits[0]) if len(commits) else len(kinds)
            chosen = np.flatnonzero(np.isin(kinds[:upto], CHANGES))
            places = starts[chosen]
            wide = data[places[:, None] + WAL_LSN + np.arange(8)]
            lsns.append(np.ascontiguousarray(wide).view(">u8").astype(np.int64).ravel())
            types.append(kinds[chosen])
            whole = kinds[chosen] == UPDATE
            whole[whole] = data[places[whole] + PAYLOAD + CHANGE_TUPLE_KIND] == NEW_TUPLE
            single.append(whole | np.isin(kinds[chosen], (INSERT, MESSAGE)))
            if len(commits):
                commit_end = be64(data, int(starts[commits[0]]) + WAL_LSN)
                commit, xid, micros = begun
                changes = np.concatenate(lsns), np.concatenate(types), np.concatenate(single)
                return Transaction(commit, commit_end, xid, micros, *changes)
        buffer.drop_framed()
    raise ConnectError(f"PostgreSQL sent nothing for {SILENCE_S:.0f} s, though its log has a transaction to send.")


def make_handover(options: PostgresOptions) -> Handover:
    """Return what takes a source's log over."""
    return PostgresHandover(options)
