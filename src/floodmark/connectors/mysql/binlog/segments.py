"""Defines the contents of binlog segments, and locates their records in the log.

The payload holds packets as received: header (4 bytes), a zero byte, a binlog event. ``starts`` lists those whose
events are in the server's files, in order; anything else that the server sent (heartbeats, events that it made for
this connection) lies between them and is no record. Read an event's size from its own header: a packet's length is
wrong once packets have been joined to one of 16 MiB or more.

The header:

- ``flavor``, ``server_version``; ``base``: the files' name without number;
- ``epoch``, ``file``, ``at``, ``checksum``: epoch of the positions, number of the first record's file, the record's
  offset, and whether events end with a CRC32;
- ``moves``: ``[record, file, offset, checksum]`` for each record that begins another file;
- ``payloads``: ``[record, count, offset, begin]`` for each run of records that come from a compressed transaction:
  offset of its event in the file, and where the first of them begins in the decompressed transaction. They are
  contiguous there, and have no checksums and no packet headers: their starts lie in the record before;
- ``gtids``: the GTIDs of all transactions before the segment; null if they are not known;
- ``tables``: for each TABLE_MAP event that takes effect ``record``, ``table_id``, ``database``, ``table`` and
  ``structure`` (null: not known, or not captured). An entry applies to rows events after its record until the next
  entry with the same id. Tables of compressed transactions have their payload's record. Those of a statement that
  began in an earlier segment have the record -1 and ``map``, the TABLE_MAP event;
- ``statements``: ``record`` and further fields (``decode.ddl_events.Statement``) of each statement with an entry;
- ``shown``: ``[record, behind, offset]`` for each run of records whose change events report another offset than the
  records' own: the changes of an XA transaction, which count from its commit (see ``prepared.branches``);
- ``transaction``: null, or the transaction that is open at the start: ``start``, the offset of its first event;
  ``events``, see ``OpenTransaction``; and the events ``gtid``, ``begin`` (null if there is none) and ``statement``
  (the text of the unfinished statement, or null), in base64, from the event's header, without checksum.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.binlog.event_types import AT_LOG_POS, AT_SIZE, CHECKSUM_BYTES, PACKET
from floodmark.connectors.mysql.binlog.packets import le_view

WORD_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction whose end hasn't been received yet.

    Attributes:
        start: offset of its first event.
        gtid: its GTID event.
        begin: its BEGIN, if it has one.
        statement: event with the text of the unfinished statement.
        maps: TABLE_MAP events of that statement.
        events: how many events it has made so far, by table; None if they aren't counted.
    """

    start: int
    gtid: bytes
    begin: bytes | None = None
    statement: bytes | None = None
    maps: tuple[bytes, ...] = ()
    events: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it for a segment's header; the tables of its statement are in the header's ``tables``."""
        events = {"gtid": self.gtid, "begin": self.begin, "statement": self.statement}
        encoded = {name: _encoded(event) for name, event in events.items()}
        return {"start": self.start, **encoded, "events": None if self.events is None else dict(self.events)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OpenTransaction:
        """Return the transaction of a segment's header; ``maps`` and ``events`` are not restored."""
        gtid = base64.b64decode(data["gtid"])
        return cls(data["start"], gtid, _decoded(data["begin"]), _decoded(data["statement"]))

    def without_statement(self) -> OpenTransaction:
        """Return the transaction without an unfinished statement."""
        return replace(self, statement=None, maps=())


@dataclass(frozen=True)
class RecordLocations:
    """Locations of records in the log.

    Attributes:
        file: number of each record's file, shape (records,).
        offset: offset in the file, shape (records,); the payload's for those of a compressed transaction.
        checksum: bytes of each event's checksum, shape (records,).
        inner: where each begins in a compressed transaction, shape (records,); 0 for others.
        bare: which ones come from a compressed transaction, shape (records,).
    """

    file: NDArray[np.int64]
    offset: NDArray[np.int64]
    checksum: NDArray[np.int64]
    inner: NDArray[np.int64]
    bare: NDArray[np.bool_]


def places(data: SegmentData) -> RecordLocations:
    """Return where a segment's records lie in the log."""
    header = data.header
    starts = data.starts.astype(np.int64)
    moves = [[0, header["file"], header["at"], header["checksum"]], *header["moves"]]
    ends = [*(move[0] for move in moves[1:]), len(starts)]
    file, offset, checksum = (np.empty(len(starts), np.int64) for _ in range(3))
    inner, bare = np.zeros(len(starts), np.int64), np.zeros(len(starts), bool)
    for record, count, place, begin in header["payloads"]:
        run = slice(record, record + count)
        sizes = le_view(data.payload, "<u4")[starts[run] + AT_SIZE].astype(np.int64)
        # The sum of the sizes before each record: the records are contiguous in the decompressed transaction.
        inner[run] = begin + np.cumsum(sizes) - sizes
        offset[run] = place
        bare[run] = True
    for (record, number, at, checked), end in zip(moves, ends, strict=True):
        file[record:end] = number
        checksum[record:end] = CHECKSUM_BYTES if checked else 0
        own = record + np.flatnonzero(~bare[record:end])
        offset[own] = offsets_of(data.payload, starts[own], at)
    checksum[bare] = 0
    return RecordLocations(file, offset, checksum, inner, bare)


def payload_runs(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], offsets: NDArray[np.int64], upto: NDArray[np.int64]
) -> list[tuple[int, int, int, int]]:
    """Return the header's ``payloads``.

    Args:
        buf: the records.
        starts: where the records start, shape (records,).
        offsets: in the file, shape (records,).
        upto: where each ends in its compressed transaction, shape (records,); negative for others.
    """
    found = []
    bare = np.flatnonzero(upto >= 0)
    # A run ends at a gap, or where the end doesn't grow: another transaction begins.
    for run in np.split(bare, np.flatnonzero((np.diff(bare) > 1) | (np.diff(upto[bare]) <= 0)) + 1):
        if len(run):
            first = int(run[0])
            size = int(le_view(buf, "<u4")[int(starts[first]) + AT_SIZE])
            found.append((first, len(run), int(offsets[first]), int(upto[first]) - size))
    return found


def offsets_of(buf: NDArray[np.uint8], starts: NDArray[np.int64], at: int) -> NDArray[np.int64]:
    """Return the offsets of events in their file, shape (records,).

    An event's header holds the lower 32 bits of the event's end. From version 11.4 on MariaDB writes 0 inside of
    transactions unless ``binlog_legacy_event_pos`` is on; there the events follow each other without gaps.

    Args:
        buf: the records.
        starts: where they start, shape (records,).
        at: an offset not after the first one, and less than 4 GiB before it; the first one itself if its header
            holds 0.
    """
    words = le_view(buf, "<u4")
    ends, sizes = words[starts + AT_LOG_POS], words[starts + AT_SIZE]
    begin = (ends - sizes).astype(np.int64)
    untold = ends == 0
    if untold.any():
        # Count an offset that isn't logged from the last one that is, or from ``at`` if there is none.
        before = np.cumsum(sizes, dtype=np.int64) - sizes
        last_told = np.maximum.accumulate(np.where(untold, -1, np.arange(len(starts))))
        from_start = last_told < 0
        begin = before + np.where(from_start, at, begin[last_told] - before[last_told])
    # Differences modulo 2**32 restore the upper bits: consecutive events are less than 4 GiB apart.
    steps = np.diff(begin, prepend=at) & WORD_MASK
    offsets: NDArray[np.int64] = at + np.cumsum(steps)
    return offsets


def event_at(buf: NDArray[np.uint8], start: int, checksum: int) -> bytes:
    """Return the event of a record, from its header, without checksum.

    Args:
        start: where the record starts.
        checksum: size of checksums.
    """
    begin = start + PACKET
    size = int.from_bytes(bytes(buf[start + AT_SIZE : start + AT_SIZE + 4]), "little")
    return bytes(buf[begin : begin + size - checksum])


def _encoded(event: bytes | None) -> str | None:
    return None if event is None else base64.b64encode(event).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
