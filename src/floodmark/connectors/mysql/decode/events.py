"""Reads the binlog events of a segment into arrays: kinds, offsets in the files, transactions.

Decompressed transactions are appended to the segment's own bytes in one buffer, so that code that reads events
needn't know where they came from.

Source: MySQL's documentation, "Binlog Event", "Gtid_event", "Query_event"; MariaDB's, "GTID_EVENT".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.compressed import payload_events
from floodmark.connectors.mysql.binlog.gtid_events import gtids
from floodmark.connectors.mysql.binlog.little_endian import numbers
from floodmark.connectors.mysql.binlog.queries import POST_HEADER_BYTES, parse_query
from floodmark.connectors.mysql.binlog.segments import RecordLocations, SegmentHeader, record_locations
from floodmark.connectors.mysql.position import Position, event_places, within_payload
from floodmark.errors import DecodeError

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_ARRAYS = ("at", "end", "kind", "timestamp", "server", "file", "offset", "transaction", "inner", "record")
_OF_KIND = {name: np.zeros(256, bool) for name in ("rows", "gtids", "statements")}
_OF_KIND["rows"][list(kinds.ROWS)] = True
_OF_KIND["gtids"][list(kinds.GTIDS)] = True
_OF_KIND["statements"][list(kinds.STATEMENTS)] = True


@dataclass
class Transactions:
    """The transactions of a segment.

    Attributes:
        start: offset of each one's first event, shape (transactions,).
        file: number of its file, shape (transactions,).
        gtid: its GTID; null without, shape (transactions,).
        commit_us: when it was committed on its original server, microseconds since the epoch; -1 where not logged.
        thread: thread id of its session; -1 where not logged.
        begin: offset of the statement that begins it, where that lies before the segment, shape (transactions,).
    """

    start: Numbers
    file: Numbers
    gtid: pa.StringArray
    commit_us: Numbers
    thread: Numbers
    begin: Numbers


@dataclass
class Events:
    """Events in the log's order.

    Attributes:
        buf: shape (bytes,).
        at: where each event's body begins, shape (events,).
        end: where it ends, without the checksum, shape (events,).
        kind: its type, shape (events,).
        timestamp: seconds since the epoch, shape (events,).
        server: id of the server that made it, shape (events,).
        file: number of its file, shape (events,).
        offset: its offset in the file, shape (events,); that of the payload for one of a compressed transaction.
        transaction: index into ``transactions``, shape (events,).
        inner: where it begins in a decompressed transaction, shape (events,); 0 for others.
        record: number of its record in the segment, shape (events,).
        header: the segment's header.
    """

    buf: Bytes
    at: Numbers
    end: Numbers
    kind: NDArray[np.uint8]
    timestamp: Numbers
    server: Numbers
    file: Numbers
    offset: Numbers
    transaction: Numbers
    inner: Numbers
    record: Numbers
    transactions: Transactions
    header: SegmentHeader

    def __len__(self) -> int:
        return len(self.at)

    @property
    def epoch(self) -> int:
        """The epoch of all positions."""
        return self.header.epoch

    @property
    def base(self) -> str:
        """The name of the binlog files before the dot and their number."""
        return self.header.base

    def select(self, index: Numbers | slice) -> Events:
        """Return some of the events."""
        return replace(self, **{name: getattr(self, name)[index] for name in _ARRAYS})

    def of(self, what: str) -> NDArray[np.bool_]:
        """Return which events are ``rows``, ``gtids`` or ``statements``, shape (events,)."""
        return _OF_KIND[what][self.kind]

    def within(self, after: str, upto: str) -> NDArray[np.bool_]:
        """Return which events lie in ``(after, upto]``, shape (events,)."""
        start = self.transactions.start[self.transaction]
        low, high = (Position.parse(text) for text in (after, upto))
        return self._beyond(start, low) & ~self._beyond(start, high)

    def _beyond(self, start: Numbers, place: Position) -> NDArray[np.bool_]:
        """Return which events lie after a position, shape (events,)."""
        if place.epoch != self.epoch:
            return np.full(len(self), self.epoch > place.epoch)
        same = self.file == place.file
        # If nothing of a transaction is done (event 0), its first event lies after the position, too.
        event, row = within_payload(self.offset, self.inner + 1)
        behind = (event > place.event) | ((event == place.event) & (row > place.row))
        later = (start > place.transaction) | ((start == place.transaction) & behind)
        beyond: NDArray[np.bool_] = (self.file > place.file) | (same & later)
        return beyond

    def event(self, index: int) -> bytes:
        """Return one event from its header, without its checksum."""
        return self.buf[int(self.at[index]) - kinds.HEADER_BYTES : int(self.end[index])].tobytes()

    def body(self, index: int) -> bytes:
        """Return one event's body."""
        return self.buf[int(self.at[index]) : int(self.end[index])].tobytes()

    @cached_property
    def shown_offset(self) -> Numbers:
        """The offsets that change events report, shape (events,)."""
        if not self.header.shown:
            return self.offset
        offset = self.offset.copy()
        for shown in self.header.shown:
            low, high = np.searchsorted(self.record, (shown.record, shown.behind))
            offset[low:high] = shown.offset
        return offset

    @cached_property
    def places(self) -> Bytes:
        """The common beginning of the positions of each event's rows, shape (events, bytes)."""
        return event_places(self.epoch, self.file, self.transactions.start[self.transaction], self.offset)


def segment_events(data: SegmentData) -> Events:
    """Return the events of a segment, with compressed transactions replaced by their events.

    Raises:
        DecodeError: a record is malformed, or the header is incomplete.
    """
    try:
        return _expanded(_outer_events(data))
    except (KeyError, TypeError, ValueError, IndexError) as exc:
        raise DecodeError(f"A log segment cannot be read: {type(exc).__name__}: {exc}.") from None


def _outer_events(data: SegmentData) -> Events:
    header, buf = SegmentHeader.from_json(data.header), data.payload
    starts = data.starts.astype(np.int64)
    if len(starts) and int(starts[-1]) + kinds.AT_BODY > len(buf):
        raise DecodeError("A log segment's last record is cut off.")
    at = starts + kinds.AT_BODY
    size = numbers(buf, starts + kinds.AT_SIZE, 4)
    place = record_locations(data, (header.begin, *header.moves), header.payloads)
    ends = starts + kinds.PACKET + size
    # The start of a record from a compressed transaction lies in the record before.
    limits = np.append(starts[1:] + kinds.PACKET * place.bare[1:], len(buf))
    if (size < kinds.HEADER_BYTES + place.checksum).any() or (ends > limits).any():
        raise DecodeError("A binlog event is longer than its record, or shorter than its header.")
    ends -= place.checksum
    kind = buf[starts + kinds.AT_TYPE]
    transaction, transactions = _transactions(header, buf, kind, at, ends, place)
    return Events(
        buf,
        at,
        ends,
        kind,
        numbers(buf, starts + kinds.AT_TIMESTAMP, 4),
        numbers(buf, starts + kinds.AT_SERVER_ID, 4),
        place.file,
        place.offset,
        transaction,
        place.inner,
        np.arange(len(starts)),
        transactions,
        header,
    )


def _transactions(
    header: SegmentHeader, buf: Bytes, kind: NDArray[np.uint8], at: Numbers, end: Numbers, place: RecordLocations
) -> tuple[Numbers, Transactions]:
    begins = np.flatnonzero(_OF_KIND["gtids"][kind])
    gtid, commit_us = gtids(buf, kind[begins], at[begins], end[begins])
    transaction = np.cumsum(_OF_KIND["gtids"][kind])
    thread = _threads(buf, kind, at, end, transaction, len(begins) + 1)
    # Transaction 0 began before the segment; without an open transaction, its events belong to none.
    start = begin = header.begin.offset
    first, first_us = pa.nulls(1, pa.string()), np.full(1, -1, np.int64)
    opened = header.transaction
    if opened is not None:
        event = np.frombuffer(opened.gtid, np.uint8)
        one = np.array([kinds.HEADER_BYTES])
        first, first_us = gtids(event, event[[kinds.TYPE]], one, np.array([len(event)]))
        start = begin = opened.start
        if opened.begin is not None:
            thread[0] = parse_query(opened.begin).thread
            begin = opened.start + len(opened.gtid) + kinds.CHECKSUM_BYTES * header.begin.checksum
    return transaction, Transactions(
        np.concatenate([[start], place.offset[begins]]),
        np.concatenate([[header.begin.file], place.file[begins]]),
        pa.concat_arrays([first, gtid]),
        np.concatenate([first_us, commit_us]),
        thread,
        np.concatenate([[begin], place.offset[begins]]),
    )


_DATABASE_SIZE, _VARIABLES_SIZE = 8, 11
"""Offsets in a Query event's body."""


def _threads(
    buf: Bytes, kind: NDArray[np.uint8], at: Numbers, end: Numbers, transaction: Numbers, count: int
) -> Numbers:
    """Return each transaction's thread id, from its BEGIN; standalone statements have none and get -1."""
    thread = np.full(count, -1, np.int64)
    begun = np.flatnonzero(begins(buf, kind, at, end))
    thread[transaction[begun]] = numbers(buf, at[begun], 4)
    return thread


def begins(buf: Bytes, kind: NDArray[np.uint8], at: Numbers, end: Numbers) -> NDArray[np.bool_]:
    """Return which events are statements that begin a transaction, XA ones included, shape (events,)."""
    plain = queries_of(buf, kind, at, end, b"BEGIN")
    if plain.sum() == np.count_nonzero(kind == kinds.QUERY):
        return plain
    return plain | queries_of(buf, kind, at, end, b"XA START ", whole=False)


def queries_of(
    buf: Bytes, kind: NDArray[np.uint8], at: Numbers, end: Numbers, word: bytes, whole: bool = True
) -> NDArray[np.bool_]:
    """Return which events are Query events whose text is, or begins with, a given one, shape (events,).

    Args:
        buf: shape (bytes,).
        kind: their event types, shape (events,).
        at: where their bodies begin, shape (events,).
        end: where they end, shape (events,).
        word: the text.
        whole: whether the whole text must be equal, not only its beginning.
    """
    result: NDArray[np.bool_] = kind == kinds.QUERY
    index = np.flatnonzero(result)
    begin = at[index]
    text = begin + POST_HEADER_BYTES + numbers(buf, begin + _VARIABLES_SIZE, 2) + buf[begin + _DATABASE_SIZE] + 1
    size = end[index] - text
    like = size == len(word) if whole else size >= len(word)
    letters = buf[text[like, None] + np.arange(len(word))]
    like[like] = (letters == np.frombuffer(word, np.uint8)).all(axis=1)
    result[index] = like
    return result


def _shifted(events: Events, by: int) -> Events:
    """Return events that lie so many bytes further back in the buffer."""
    return replace(events, at=events.at + by, end=events.end + by)


def _expanded(events: Events) -> Events:
    """Replace compressed transactions by the events inside of them."""
    holders = np.flatnonzero(events.kind == kinds.TRANSACTION_PAYLOAD).tolist()
    if not holders:
        return events
    parts: list[Events] = []
    buffers: list[Bytes] = []
    last = cut = shift = 0
    for holder in holders:
        inner, starts = payload_events(events.body(holder))
        lengths = numbers(inner, starts + kinds.SIZE, 4)
        # What is inside comes right behind the payload, so that places in the buffer follow the log's order.
        end = int(events.end[holder])
        buffers += [events.buf[cut:end], inner]
        place = end + shift
        # The events inherit file, offset, transaction and record of the payload.
        one = events.select(np.full(len(starts), holder))
        parts += [
            _shifted(events.select(slice(last, holder)), shift),
            replace(
                one,
                at=starts + kinds.HEADER_BYTES + place,
                end=starts + lengths + place,
                kind=inner[starts + kinds.TYPE],
                timestamp=numbers(inner, starts, 4),
                server=numbers(inner, starts + kinds.SERVER_ID, 4),
                inner=starts,
            ),
        ]
        shift += len(inner)
        last, cut = holder + 1, end
    parts.append(_shifted(events.select(slice(last, None)), shift))
    buf = np.concatenate([*buffers, events.buf[cut:]])
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
    result = replace(events, buf=buf, **joined)
    # The BEGINs of compressed transactions can only be seen now; that of transaction 0 may be before the segment.
    known = events.transactions
    thread = _threads(buf, result.kind, result.at, result.end, result.transaction, len(known.start))
    if known.thread[0] >= 0:
        thread[0] = known.thread[0]
    return replace(result, transactions=replace(known, thread=thread))
