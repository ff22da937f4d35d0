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
- ``statements``: ``record`` and further fields (``schema.logged_statement``) of each statement with an entry;
- ``shown``: ``[record, behind, offset]`` for each run of records whose change events report another offset than the
  records' own: the changes of an XA transaction, which count from its commit (see ``prepared.branches``);
- ``transaction``: null, or the transaction that is open at the start: ``start``, the offset of its first event;
  ``events``, see ``OpenTransaction``; and the events ``gtid``, ``begin`` (null if there is none) and ``statement``
  (the text of the unfinished statement, or null), in base64, from the event's header, without checksum.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.binlog.event_types import AT_LOG_POS, AT_SIZE, CHECKSUM_BYTES, HEADER_BYTES, PACKET
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.errors import DecodeError
from floodmark.json_data import Json, JsonObject

FLAVORS = ("mysql", "mariadb")
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

    def to_json(self) -> dict[str, Json]:
        """Return it for a segment's header; the tables of its statement are in the header's ``tables``."""
        events = {"gtid": self.gtid, "begin": self.begin, "statement": self.statement}
        encoded = {name: _encoded(event) for name, event in events.items()}
        return {"start": self.start, **encoded, "events": None if self.events is None else dict(self.events)}

    @classmethod
    def from_json(cls, data: JsonObject) -> OpenTransaction:
        """Return the transaction of a segment's header; ``maps`` are not restored."""
        counted = data.optional_member("events")
        return cls(
            data.integer("start"),
            _event(data, "gtid"),
            _optional_event(data, "begin"),
            _optional_event(data, "statement"),
            events=None if counted is None else {name: counted.integer(name) for name in counted},
        )

    def without_statement(self) -> OpenTransaction:
        """Return the transaction without an unfinished statement."""
        return replace(self, statement=None, maps=())


@dataclass(frozen=True)
class FileStart:
    """Where a file begins in a segment.

    Attributes:
        record: its first record.
        file: its number.
        offset: the record's offset in it.
        checksum: whether its events end with a CRC32.
    """

    record: int
    file: int
    offset: int
    checksum: bool


@dataclass(frozen=True)
class PayloadRun:
    """Consecutive records that come from a compressed transaction.

    Attributes:
        record: the first one.
        count: how many they are.
        offset: of the compressed transaction's event in its file.
        begin: where the first one begins in the decompressed transaction.
    """

    record: int
    count: int
    offset: int
    begin: int


@dataclass(frozen=True)
class ShownOffset:
    """Records whose change events report another offset than the records' own.

    Attributes:
        record: the first one.
        behind: the one after the last.
        offset: what their change events report.
    """

    record: int
    behind: int
    offset: int


@dataclass(frozen=True)
class SegmentTable:
    """A TABLE_MAP event that takes effect in a segment.

    Attributes:
        record: after which record it applies; -1: it was sent in an earlier segment.
        table_id: the table's id in row events.
        database: the table's database.
        table: its name there.
        structure: its structure as JSON data; None: not known, or the table is not captured.
        map: the event, if it was sent in an earlier segment.
    """

    record: int
    table_id: int
    database: str
    table: str
    structure: Json
    map: bytes | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the entry for a segment's header."""
        return {
            "record": self.record,
            "table_id": self.table_id,
            "database": self.database,
            "table": self.table,
            "structure": self.structure,
            **({} if self.map is None else {"map": _encoded(self.map)}),
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Return an entry of a segment's header."""
        return cls(
            data.integer("record"),
            data.integer("table_id"),
            data.text("database"),
            data.text("table"),
            data.value("structure"),
            _optional_event(data, "map"),
        )


@dataclass(frozen=True)
class StatementRecord:
    """A statement of a segment that has an entry in the header.

    Attributes:
        record: its record.
        statement: what is known of it, as JSON data (``schema.logged_statement``).
    """

    record: int
    statement: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the entry for a segment's header."""
        return {"record": self.record, **self.statement}

    @classmethod
    def from_json(cls, data: JsonObject) -> Self:
        """Return an entry of a segment's header."""
        return cls(data.integer("record"), {name: data.value(name) for name in data if name != "record"})


@dataclass(frozen=True)
class SegmentHeader:
    """A segment's header, whose members are described above.

    Attributes:
        begin: the file of the first record, with that record's offset.
        moves: the files that begin later.
    """

    flavor: str
    server_version: str
    base: str
    epoch: int
    begin: FileStart
    moves: tuple[FileStart, ...] = ()
    payloads: tuple[PayloadRun, ...] = ()
    gtids: str | None = None
    transaction: OpenTransaction | None = None
    tables: tuple[SegmentTable, ...] = ()
    statements: tuple[StatementRecord, ...] = ()
    shown: tuple[ShownOffset, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the header as JSON data."""
        return {
            "flavor": self.flavor,
            "server_version": self.server_version,
            "base": self.base,
            "epoch": self.epoch,
            "file": self.begin.file,
            "at": self.begin.offset,
            "checksum": self.begin.checksum,
            "moves": [[one.record, one.file, one.offset, one.checksum] for one in self.moves],
            "payloads": [[one.record, one.count, one.offset, one.begin] for one in self.payloads],
            "gtids": self.gtids,
            "transaction": None if self.transaction is None else self.transaction.to_json(),
            "tables": [table.to_json() for table in self.tables],
            "statements": [statement.to_json() for statement in self.statements],
            "shown": [[one.record, one.behind, one.offset] for one in self.shown],
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the header that ``to_json`` described.

        Raises:
            DecodeError: the data describes something else.
        """
        header = _header(data)
        if header.value("flavor") not in FLAVORS:
            raise header.wrong("flavor", "'mysql' or 'mariadb'")
        transaction = header.optional_member("transaction")
        return cls(
            header.text("flavor"),
            header.text("server_version"),
            header.text("base"),
            header.integer("epoch"),
            *_files(header),
            _payloads(header),
            header.optional_text("gtids"),
            None if transaction is None else OpenTransaction.from_json(transaction),
            segment_tables(data),
            tuple(StatementRecord.from_json(one) for one in header.members("statements")),
            tuple(ShownOffset(*_integers(run, 3)) for run in header.items("shown")),
        )


def damaged_segment(problem: str) -> DecodeError:
    """Return the error for a segment whose header isn't what capture writes.

    Args:
        problem: a sentence without its full stop.
    """
    return DecodeError(
        f"A log segment cannot be read: {problem}.",
        "Install the same version of Floodmark on the driver and on all executors, and restart the query, which reads "
        "the log again.",
    )


def segment_tables(data: Json) -> tuple[SegmentTable, ...]:
    """Return the tables of a segment's header.

    Raises:
        DecodeError: the data is not such a header.
    """
    return tuple(SegmentTable.from_json(one) for one in _header(data).members("tables"))


def _header(data: Json) -> JsonObject:
    return JsonObject(data, "its header", damaged_segment)


def _files(header: JsonObject) -> tuple[FileStart, tuple[FileStart, ...]]:
    """Return the file that a segment begins in, and those that begin later."""
    begin = FileStart(0, header.integer("file"), header.integer("at"), header.flag("checksum"))
    moves = []
    for move in header.items("moves"):
        if not isinstance(move, list) or len(move) != 4 or not isinstance(move[3], bool):
            raise header.wrong("moves", "a list of records with the files that begin there")
        record, file, offset = _integers(move[:3], 3)
        moves.append(FileStart(record, file, offset, move[3]))
    return begin, tuple(moves)


def _payloads(header: JsonObject) -> tuple[PayloadRun, ...]:
    return tuple(PayloadRun(*_integers(run, 4)) for run in header.items("payloads"))


def _integers(data: Json, count: int) -> list[int]:
    numbers = [one for one in data if type(one) is int] if isinstance(data, list) else []
    if not isinstance(data, list) or not len(data) == len(numbers) == count:
        raise damaged_segment(f"its header has {data!r} in place of {count} numbers")
    return numbers


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
    header = _header(data.header)
    begin, moves = _files(header)
    return record_locations(data, (begin, *moves), _payloads(header))


def record_locations(data: SegmentData, files: Sequence[FileStart], payloads: Sequence[PayloadRun]) -> RecordLocations:
    """Return where a segment's records lie in the log.

    Args:
        data: the segment.
        files: the files that its records lie in, in order.
        payloads: the records that come from compressed transactions.
    """
    starts = data.starts.astype(np.int64)
    ends = [*(one.record for one in files[1:]), len(starts)]
    file, offset, checksum = (np.empty(len(starts), np.int64) for _ in range(3))
    inner, bare = np.zeros(len(starts), np.int64), np.zeros(len(starts), bool)
    for payload in payloads:
        run = slice(payload.record, payload.record + payload.count)
        sizes = le_view(data.payload, "<u4")[starts[run] + AT_SIZE].astype(np.int64)
        # The sum of the sizes before each record: the records are contiguous in the decompressed transaction.
        inner[run] = payload.begin + np.cumsum(sizes) - sizes
        offset[run] = payload.offset
        bare[run] = True
    for one, end in zip(files, ends, strict=True):
        file[one.record : end] = one.file
        checksum[one.record : end] = CHECKSUM_BYTES if one.checksum else 0
        own = one.record + np.flatnonzero(~bare[one.record : end])
        offset[own] = offsets_of(data.payload, starts[own], one.offset)
    checksum[bare] = 0
    return RecordLocations(file, offset, checksum, inner, bare)


def payload_runs(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], offsets: NDArray[np.int64], upto: NDArray[np.int64]
) -> tuple[PayloadRun, ...]:
    """Return the runs of records that come from compressed transactions.

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
            found.append(PayloadRun(first, len(run), int(offsets[first]), int(upto[first]) - size))
    return tuple(found)


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
    unlogged = ends == 0
    if unlogged.any():
        # Count an offset that isn't logged from the last one that is, or from ``at`` if there is none.
        before = np.cumsum(sizes, dtype=np.int64) - sizes
        last_logged = np.maximum.accumulate(np.where(unlogged, -1, np.arange(len(starts))))
        from_start = last_logged < 0
        begin = before + np.where(from_start, at, begin[last_logged] - before[last_logged])
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


def _optional_event(data: JsonObject, name: str) -> bytes | None:
    return None if data.value(name) is None else _event(data, name)


def _event(data: JsonObject, name: str) -> bytes:
    try:
        event = base64.b64decode(data.text(name), validate=True)
    except ValueError:
        event = b""
    if len(event) < HEADER_BYTES:
        raise data.wrong(name, "an event in base64")
    return event
