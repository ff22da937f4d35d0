"""What a segment of the binlog holds, and where its records lie in the log.

The payload holds packets as they came: header (4 bytes), a zero byte, a binlog event. ``starts`` names those whose
events are in the server's files, in order; what else the server sent (heartbeats, events that it made for
this connection) lies between them and is no record. An event's size is in its own header: a packet's length is
not, once a packet of 16 MiB and more was put together.

The header:

- ``flavor``, ``server_version``; ``base``: the files' name without number;
- ``epoch``, ``file``, ``at``, ``checksum``: number of the file of the first record, its offset, and whether events
  end with a CRC32;
- ``moves``: ``[record, file, offset, checksum]`` for each record that begins another file;
- ``payloads``: ``[record, count, offset, begin]`` for each run of records that come from a compressed transaction:
  offset of its event in the file, and where the first of them begins in the decompressed transaction. They follow
  each other there, have no checksums, and no packet header: their starts lie in the record before;
- ``gtids``: the GTIDs of all transactions before the segment; null if they are not known;
- ``tables``: for each TABLE_MAP event that begins to be in force ``record``, ``table_id``, ``database``, ``table``
  and ``structure`` (null: not known, or not captured). An entry holds for rows events behind its record until
  the next entry of the same id. Tables of compressed transactions have their payload's record. Those of a
  statement that began in an earlier segment have the record -1 and ``map``, the TABLE_MAP event;
- ``shown``: ``[record, behind, offset]`` for each run of records whose events tell another offset than their own: the
  changes of an XA transaction, which lie where it is committed (see ``branches``);
- ``transaction``: null, or of the transaction that is open at the begin: ``start``, the offset of its first event,
  and the events ``gtid``, ``begin`` (null if there is none) and ``statement`` (the text of the statement that goes
  on, or null). These events are in base64, from the event's header, without checksum.
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
        statement: text of the statement that goes on, as an event.
        maps: TABLE_MAP events of that statement.
        events: how many events of each table it has made so far; None if nobody counts.
    """

    start: int
    gtid: bytes
    begin: bytes | None = None
    statement: bytes | None = None
    maps: tuple[bytes, ...] = ()
    events: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it for a segment's header; the tables of its statement are said elsewhere."""
        events = {"gtid": self.gtid, "begin": self.begin, "statement": self.statement}
        encoded = {name: _encoded(event) for name, event in events.items()}
        return {"start": self.start, **encoded, "events": None if self.events is None else dict(self.events)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OpenTransaction:
        """Return what a segment's header tells; ``maps`` stays empty."""
        gtid = base64.b64decode(data["gtid"])
        return cls(data["start"], gtid, _decoded(data["begin"]), _decoded(data["statement"]))

    def without_statement(self) -> OpenTransaction:
        """Return the transaction between two statements."""
        return replace(self, statement=None, maps=())


@dataclass(frozen=True)
class Places:
    """Where records lie in the log.

    Attributes:
        file: number of each record's file, shape (records,).
        offset: in that, shape (records,); that of the payload for those of a compressed transaction.
        checksum: bytes of each event's checksum, shape (records,).
        inner: where each begins in a compressed transaction, shape (records,); 0 for others.
        bare: which ones come from a compressed transaction, shape (records,).
    """

    file: NDArray[np.int64]
    offset: NDArray[np.int64]
    checksum: NDArray[np.int64]
    inner: NDArray[np.int64]
    bare: NDArray[np.bool_]


def places(data: SegmentData) -> Places:
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
        inner[run] = begin + np.cumsum(sizes) - sizes
        offset[run] = place
        bare[run] = True
    for (record, number, at, checked), end in zip(moves, ends, strict=True):
        file[record:end] = number
        checksum[record:end] = CHECKSUM_BYTES if checked else 0
        own = record + np.flatnonzero(~bare[record:end])
        offset[own] = offsets_of(data.payload, starts[own], at)
    checksum[bare] = 0
    return Places(file, offset, checksum, inner, bare)


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
    for run in np.split(bare, np.flatnonzero((np.diff(bare) > 1) | (np.diff(upto[bare]) <= 0)) + 1):
        if len(run):
            first = int(run[0])
            size = int(le_view(buf, "<u4")[int(starts[first]) + AT_SIZE])
            found.append((first, len(run), int(offsets[first]), int(upto[first]) - size))
    return found


def offsets_of(buf: NDArray[np.uint8], starts: NDArray[np.int64], at: int) -> NDArray[np.int64]:
    """Return where events lie in their file, shape (records,).

    A header tells the lower 32 bits of its event's end. From version 11.4 on MariaDB writes 0 inside of transactions
    unless ``binlog_legacy_event_pos`` is on; there the events follow each other without gaps.

    Args:
        buf: the records.
        starts: where they start, shape (records,).
        at: an offset not behind the first one, and less than 4 GiB before it; the first one itself if its header
            doesn't tell.
    """
    words = le_view(buf, "<u4")
    ends, sizes = words[starts + AT_LOG_POS], words[starts + AT_SIZE]
    begin = (ends - sizes).astype(np.int64)
    untold = ends == 0
    if untold.any():
        before = np.cumsum(sizes, dtype=np.int64) - sizes
        last_told = np.maximum.accumulate(np.where(untold, -1, np.arange(len(starts))))
        from_start = last_told < 0
        begin = before + np.where(from_start, at, begin[last_told] - before[last_told])
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
