"""Reads the replication stream and cuts its pgoutput messages into segments.

Capture moves bytes and examines only what it must: where messages begin, where transactions end, and
Relation messages. It processes whole bursts at once.

Source: PostgreSQL documentation, "Streaming Replication Protocol" (XLogData, Primary keepalive message,
Standby status update) and "Logical Replication Message Formats" (Begin, Commit).
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.capture.stream_settings import stream_settings
from floodmark.connectors.postgres.continuity.bookmark import Commit
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.continuity.published import lacks_publication, publication_was_missing
from floodmark.connectors.postgres.decode.event_order import event_counter
from floodmark.connectors.postgres.decode.records import outside, truncated
from floodmark.connectors.postgres.decode.relation import (
    follows_catalog,
    from_header,
    parse_relation,
    raw_of,
    to_header,
)
from floodmark.connectors.postgres.decode.relation_names import as_of
from floodmark.connectors.postgres.decode.signal_rows import signals_in
from floodmark.connectors.postgres.decode.tuples import terminated
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_position, position
from floodmark.connectors.postgres.server.catalog import structures
from floodmark.connectors.postgres.server.connection import connect, run, server_version
from floodmark.connectors.postgres.server.slots import TRUSTING, check_position, check_slot, find_slot
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.wire.channel import CopyChannel, messages, open_channel, parse_error, server_error
from floodmark.connectors.postgres.wire.frames import COPY_DATA, MAX_FRAME_BYTES, be_view, find_frames
from floodmark.connectors.postgres.wire.messages import (
    BEGIN,
    CHANGES,
    COMMIT,
    DELETE,
    FRAME_KIND,
    INSERT,
    KEEPALIVE,
    KEEPALIVE_BYTES,
    KEEPALIVE_END,
    KEEPALIVE_REPLY,
    ORIGIN,
    PAYLOAD,
    PG_EPOCH_US,
    RELATION,
    TRUNCATE,
    UPDATE,
    WAL_DATA,
)
from floodmark.errors import ConnectError, DecodeError, SlotBusyError, SourceStateError

RECEIVE_BUFFER = 64 << 10
SLACK = 64 << 10
BURST_PAUSE_S = 0.004
LAST_WORDS_S = 1.0

_ENDS = (b"c", b"C", b"Z")
_MESSAGES = (*_ENDS, b"E", b"N", b"S", b"A")
"""The messages that can come besides CopyData: ends, an error, a notice, a parameter's status, a notification."""

_STATUS = struct.Struct(">cQQQqB")


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction whose commit hasn't been received yet.

    Attributes:
        lsn: the LSN of its commit record.
        commit_us: commit time, microseconds since the Unix epoch.
        changes: how many of its changes were received.
        origin: name and commit LSN of its replication origin; None if it began here.
        events: how many events of each table its changes make; None if they aren't counted.
    """

    lsn: int
    commit_us: int
    xid: int
    changes: int
    origin: tuple[str, int] | None = None
    events: dict[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it for a segment's header."""
        return asdict(self)


class PostgresStream:
    """A ``LogStream`` over one replication connection."""

    def __init__(
        self,
        options: PostgresOptions,
        catalog: Callable[[], Any],
        commits: CommitLog,
        continuity: Continuity,
        gaps: AcceptedGaps,
    ) -> None:
        """Initialize the stream without opening a connection.

        Args:
            options: the source's options.
            catalog: returns an ordinary connection for catalog queries by the capture thread.
            commits: records the transactions that are received.
            continuity: verifies that a connection leads to the log that is read.
            gaps: collects the changes that are left out.
        """
        self._options = options
        self._commits = commits
        self._continuity = continuity
        self._gaps = gaps
        self._catalog = catalog
        self._channel: CopyChannel | None = None
        self._lock = threading.Lock()
        self._buffer = np.empty(options.segment_bytes + SLACK, np.uint8)
        self._filled = 0
        self._framed = 0
        self._starts: list[NDArray[np.int64]] = []
        self._records = 0
        self._cut_records = 0
        self._cut_bytes = 0
        self._cut_lsn = 0
        self._cut_commit_us = 0
        self._transaction: OpenTransaction | None = None
        self._in_transaction = False
        self._last_commit: int | None = None
        self._last_commit_us: int | None = None
        self._event_counter = event_counter(options)
        self._relations: dict[int, dict[str, Any]] = {}
        self._signal_tables: set[int] = set()
        self._altering: set[int] = set()
        self._after = ""
        self._received = 0
        self._confirmed = 0
        self._last_status = 0.0

    def open(self, position: str) -> None:
        """Connect, verify that this is still the log that the position belongs to, and start replication after it."""
        lsn, _ = parse_position(position)
        conn = connect(self._options, replication=True)
        try:
            self._continuity.prove(conn, position)
            settings = stream_settings(self._options, server_version(conn))
            walsender = int(run(conn, "SELECT pg_backend_pid()", "the walsender's process")[0][0])
        except BaseException:
            conn.close()
            raise
        channel = open_channel(conn, RECEIVE_BUFFER)
        try:
            self._start(channel, lsn, settings)
            # The slot is checked only now, since nothing else can drop or advance it while this connection holds it.
            self._prove_slot(lsn, walsender, channel)
        except BaseException:
            channel.close()
            raise
        # Confirmations of micro-batches advance the slot, so they are sent only from here on, after all checks.
        self._channel = channel
        self._after = f"{lsn:016X}-00000000"
        self._received = lsn
        self._confirmed = 0
        self._send_status(reply=True)

    def _start(self, channel: CopyChannel, lsn: int, settings: str) -> None:
        command = f'START_REPLICATION SLOT "{self._options.slot_name}" LOGICAL {format_lsn(lsn)} ({settings})'
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
        slot = find_slot(self._catalog(), self._options.slot_name)
        if slot is not None:
            check_slot(slot, self._options)
            if walsender is not None and slot.active_pid != walsender:
                if channel is not None and slot.active_pid is None:
                    # A walsender that can't go on ends right after it has begun: raise its error, if there is one.
                    for _ in messages(channel, LAST_WORDS_S):
                        pass
                raise ConnectError("The connections to PostgreSQL lead to different servers.")
        check_position(slot, self._options, max(lsn, self._continuity.delivered), self._gaps)

    def read(self, timeout: float) -> int:
        """Read what has arrived and find the messages in it; return the number of bytes."""
        assert self._channel is not None
        self.tend()
        if self._filled == len(self._buffer):
            self._grow()
        count = self._channel.read_into(self._buffer.data[self._filled :], timeout)
        if count:
            self._filled += count
            self._scan()
            if not self._records:
                self._forget_framed()
            # While the socket accepts every message at once, the server sends each one separately. A short
            # pause lets the small receive window fill, and the server batches: cheaper for both.
            time.sleep(BURST_PAUSE_S)
        return count

    def tend(self) -> None:
        """Send a status update if one is due."""
        if time.monotonic() - self._last_status > min(self._options.status_update_interval_ms / 1000, 10.0):
            self._send_status()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of messages has been received."""
        return self._framed >= self._options.segment_bytes

    @property
    def spooled_bytes(self) -> int:
        """Always 0: the server sends transactions when they are committed."""
        return 0

    @property
    def received(self) -> str:
        """Position of the last commit that was received."""
        return position(self._cut_lsn) if self._cut_records else self._after

    @property
    def idle_position(self) -> str | None:
        """Position up to which the server has nothing for this source beyond what was cut; None if messages wait."""
        if self._records or self._in_transaction:
            return None
        return position(self._received)

    def confirm(self, position: str) -> None:
        """Let the server discard the log up to a position."""
        confirmed = parse_position(position)[0]
        self._continuity.deliver(confirmed)
        if confirmed > self._confirmed and self._options.flushes:
            self._confirmed = confirmed
            self._send_status(flushed=confirmed)
        # Withdraws the flush position, which must not stay in effect: see `_send_status`.
        self._send_status()

    def ping(self) -> None:
        """Request a keepalive from the server."""
        self._send_status(reply=True)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def cut(self, force: bool) -> Cut | None:
        """Return the messages up to the last commit as a segment; without a commit, with ``force``, all of them."""
        inside = False
        if self._cut_records:
            records, size, upto = self._cut_records, self._cut_bytes, position(self._cut_lsn)
        elif force and self._records:
            inside = True
            records, size = self._records, self._framed
            upto = ""
        else:
            return None
        starts = np.concatenate(self._starts)
        kept, rest = starts[:records], starts[records:]
        payload = self._buffer[:size]
        kinds = payload[kept + PAYLOAD]
        header = {
            "transaction": self._transaction.to_json() if self._transaction else None,
            "last_commit": self._last_commit,
            "last_commit_us": self._last_commit_us,
            "relations": self._header_relations(payload, kept, kinds),
        }
        data = SegmentData(payload, kept.astype(np.uint32), header)
        if inside:
            opened = self._open_transaction(payload, kept, kinds)
            if not opened.changes:
                return None  # a position inside a transaction needs a change
            if self._event_counter is not None:
                opened = replace(opened, events=self._event_counter(data))
            self._transaction = opened
            upto = position(opened.lsn, opened.changes)
            commit_us = opened.commit_us
        else:
            self._transaction = None
            self._last_commit = self._cut_lsn
            commit_us = self._cut_commit_us
            self._last_commit_us = commit_us or None
        signals = signals_in(data, self._after, upto, self._signal_tables) if self._signal_tables else []
        begins = np.flatnonzero(kinds == BEGIN)
        if len(begins):
            begin = int(kept[begins[-1]]) + PAYLOAD
            lsn, ordinal = parse_position(upto)
            micros = _be64(payload, begin + 9) + PG_EPOCH_US
            commit = Commit(_be64(payload, begin + 1), micros, lsn + (ordinal > 0))
            self._continuity.received(commit)
        cut = Cut(data, self._after, upto, records, commit_us / 1e6, signals)
        self._after = upto
        self._start_buffer(size, rest - size)
        return cut

    def _start_buffer(self, done: int, rest: NDArray[np.int64]) -> None:
        """Move what was not cut to the start of a new buffer; the old one belongs to the segment."""
        tail = self._buffer[done : self._filled]
        fresh = np.empty(max(self._options.segment_bytes + SLACK, 2 * len(tail)), np.uint8)
        fresh[: len(tail)] = tail
        self._buffer = fresh
        self._filled = len(tail)
        self._framed -= done
        self._starts = [rest] if len(rest) else []
        self._records = len(rest)
        self._cut_records = self._cut_bytes = 0

    def _forget_framed(self) -> None:
        """Drop keepalives while no record waits, so that an idle stream doesn't fill the buffer."""
        tail = self._buffer[self._framed : self._filled].copy()
        self._buffer[: len(tail)] = tail
        self._filled = len(tail)
        self._framed = 0

    def _grow(self) -> None:
        """Make room for a record that is larger than the buffer."""
        larger = np.empty(2 * len(self._buffer), np.uint8)
        larger[: self._filled] = self._buffer[: self._filled]
        self._buffer = larger

    def _scan(self) -> None:
        """Frame what has arrived since the last scan."""
        while self._framed < self._filled:
            area = self._buffer[self._framed : self._filled]
            starts, end = find_frames(area)
            if len(starts):
                self._note(starts + self._framed)
                self._framed += end
            elif area[0] == COPY_DATA or not self._skip_message(area):
                return

    def _skip_message(self, area: NDArray[np.uint8]) -> bool:
        """Handle a message that isn't CopyData; return False if it is incomplete."""
        head = bytes(area[:5])
        if len(head) < 5:
            return False
        kind, size = head[:1], 1 + int.from_bytes(head[1:], "big")
        if kind not in _MESSAGES or not len(head) <= size <= MAX_FRAME_BYTES:
            raise DecodeError("PostgreSQL sent something that is no replication message.")
        if len(area) < size:
            return False
        if kind in b"EN":
            fields = parse_error(bytes(area[5:size]))
            if lacks_publication(fields):
                self._note_missing_publication(kind)
            if kind == b"E":
                raise server_error(fields)
        if kind in _ENDS:
            raise ConnectError("PostgreSQL ended the replication stream.")
        # Cut the message out, so that the payload holds nothing but frames.
        start = self._framed
        remaining = self._filled - start - size
        self._buffer[start : start + remaining] = self._buffer[start + size : self._filled].copy()
        self._filled -= size
        return True

    def _note_missing_publication(self, kind: bytes) -> None:
        """Raise an error, unless it is a notice and gaps are accepted: the server goes on without those changes."""
        missing = publication_was_missing(self._options, self.received)
        strategy = self._options.offset_mismatch_strategy
        if kind == b"E" or strategy not in TRUSTING:
            raise missing
        self._gaps.add(Gap(self.received, self.received, missing.what, f"offset.mismatch.strategy={strategy}"))

    def _note(self, starts: NDArray[np.int64]) -> None:
        buffer = self._buffer
        kinds = buffer[starts + FRAME_KIND]
        alive = kinds == KEEPALIVE
        records = starts[~alive]
        sizes = be_view(buffer, ">u4")[starts + 1]
        if (kinds[~alive] != WAL_DATA).any() or (sizes < np.where(alive, KEEPALIVE_BYTES - 1, PAYLOAD)).any():
            raise DecodeError("PostgreSQL sent something that is no replication message.")
        if len(records):
            self._note_records(records)
        if alive.any():
            last = int(starts[alive][-1])
            if not self._in_transaction and (not len(records) or last > records[-1]):
                self._received = max(self._received, _be64(buffer, last + KEEPALIVE_END))
            if buffer[last + KEEPALIVE_REPLY]:
                self._send_status()

    def _note_records(self, records: NDArray[np.int64]) -> None:
        buffer = self._buffer
        kinds = buffer[records + PAYLOAD]
        alone = outside(buffer, records, kinds)
        commits = np.flatnonzero(kinds == COMMIT)
        ends = np.flatnonzero((kinds == COMMIT) | alone)
        begins = np.flatnonzero(kinds == BEGIN)
        if len(commits):
            self._cut_commit_us = _be64(buffer, int(records[commits[-1]]) + PAYLOAD + 18) + PG_EPOCH_US
        if len(ends):
            last = int(ends[-1])
            at = int(records[last])
            self._cut_records = self._records + last + 1
            self._cut_bytes = at + 1 + _be32(buffer, at + 1)
            # The end of the record: a message's LSN, or the end LSN of a Commit.
            self._cut_lsn = _be64(buffer, at + PAYLOAD + (2 if alone[last] else 10))
            self._received = max(self._received, self._cut_lsn)
        if len(begins):
            messages = records[begins] + PAYLOAD
            lsn = be_view(buffer, ">i8")[messages + 1].astype(np.int64)
            self._commits.add(lsn, be_view(buffer, ">u4")[messages + 17].astype(np.int64))
        if len(begins) or len(commits):
            self._in_transaction = bool(len(begins) and (not len(commits) or begins[-1] > commits[-1]))
        self._starts.append(records)
        self._records += len(records)

    def _open_transaction(
        self, payload: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]
    ) -> OpenTransaction:
        """Return the transaction that a forced cut splits, with the changes that lie before the cut."""
        begins = np.flatnonzero(kinds == BEGIN)
        first = int(begins[-1]) if len(begins) else 0
        changes = int(np.isin(kinds[first:], CHANGES).sum())
        if len(begins):
            at = int(starts[first]) + PAYLOAD + 1
            commit_us = _be64(payload, at + 8) + PG_EPOCH_US
            opened = OpenTransaction(_be64(payload, at), commit_us, _be32(payload, at + 16), changes)
        elif self._transaction is None:
            raise DecodeError("PostgreSQL sent a change outside of a transaction.")
        else:
            opened = replace(self._transaction, changes=self._transaction.changes + changes)
        origins = starts[first:][kinds[first:] == ORIGIN] + PAYLOAD
        if not len(origins):
            return opened
        names, _ = terminated(payload, origins[:1] + 9)
        return replace(opened, origin=(names[0].as_py(), _be64(payload, int(origins[0]) + 1)))

    def _header_relations(
        self, payload: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]
    ) -> list[dict[str, Any]]:
        """Return the relation versions that the records need: those from before, then those inside."""
        dml = (kinds == INSERT) | (kinds == UPDATE) | (kinds == DELETE)
        try:
            used = set(np.unique(be_view(payload, ">u4")[starts[dml] + PAYLOAD + 1]).tolist())
        except IndexError:
            raise DecodeError("PostgreSQL sent a change that is cut off.") from None
        for at in starts[kinds == TRUNCATE].tolist():
            used.update(truncated(payload, at + PAYLOAD))
        self._follow_types(used)
        entries = [{**entry, "record": -1} for oid, entry in self._relations.items() if oid in used]
        inside = np.flatnonzero(kinds == RELATION)
        return entries + self._read_relations(payload, starts, inside) if len(inside) else entries

    def _follow_types(self, used: set[int]) -> None:
        """Query the catalog again for tables of types that can be altered without a new Relation message."""
        known = {oid: raw_of(self._relations[oid]) for oid in used & self._altering}
        if not known:
            return
        fresh = structures(self._catalog(), _types_of(known.values()))
        for oid, raw in known.items():
            now = as_of(raw, fresh[oid])
            entry = self._relations[oid]
            structure = {**entry["structure"], "required": now["required"], "types": now["types"]}
            self._relations[oid] = {**entry, "structure": structure}

    def _read_relations(
        self, payload: NDArray[np.uint8], starts: NDArray[np.int64], records: NDArray[np.int64]
    ) -> list[dict[str, Any]]:
        raws: list[tuple[int, bytes]] = []
        for record in records.tolist():
            at = int(starts[record])
            end = at + 1 + _be32(payload, at + 1)
            raws.append((record, bytes(payload[at + PAYLOAD : end])))
        known = structures(self._catalog(), _types_of(raw for _, raw in raws))
        entries = []
        for record, raw in raws:
            oid = parse_relation(raw).oid
            entry = to_header(raw, as_of(raw, known[oid]), record)
            relation, _ = from_header(entry)
            if follows_catalog(relation, self._options.schemas_enable):
                self._altering.add(oid)
            if self._options.takes_signals(relation.schema, relation.table):
                self._signal_tables.add(oid)
            self._relations[oid] = entry
            entries.append(entry)
        return entries

    def _send_status(self, reply: bool = False, flushed: int = 0) -> None:
        """Report to the server what was received and, if ``flushed`` isn't 0, what it may discard.

        A server that shuts down waits for a walsender whose last known flush position lies behind; without
        one it waits for the received position only. So a flush position never stays in effect: it would keep the
        server from stopping until a micro-batch confirms the end of the log.
        """
        with self._lock:
            if self._channel is None:
                return
            now = time.time_ns() // 1000 - PG_EPOCH_US
            self._channel.send(_STATUS.pack(b"r", self._received, flushed, flushed, now, int(reply)))
            self._last_status = time.monotonic()


def _types_of(raws: Iterable[bytes]) -> dict[int, set[int]]:
    """Return the type OIDs of the columns in Relation messages, by table OID."""
    relations = map(parse_relation, raws)
    return {relation.oid: {column.type_oid for column in relation.columns} for relation in relations}


def _be32(buffer: NDArray[np.uint8], at: int) -> int:
    return int.from_bytes(bytes(buffer[at : at + 4]), "big")


def _be64(buffer: NDArray[np.uint8], at: int) -> int:
    return int.from_bytes(bytes(buffer[at : at + 8]), "big")
