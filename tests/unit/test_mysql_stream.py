"""Capture of binlogs made by hand: what real servers seldom send."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.capture.log_stream import Cut
from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.binlog.segments import event_at, places
from floodmark.connectors.mysql.capture import stream as stream_module
from floodmark.connectors.mysql.capture.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.continuity.check import Dump, ResumePoint, Start
from floodmark.connectors.mysql.gtid import MysqlGtids
from floodmark.connectors.mysql.position import ALL_ROWS, Position
from floodmark.connectors.mysql.reading.channel import DumpStart
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.errors import ConnectError, DecodeError, FloodmarkError, LogGoneError, SourceStateError
from tests.support.binlog import CountingStructures
from tests.support.binlog_events import UUID, CannedChannel, Log, packets

BEGIN = Position(0, 1, 4)
TAGGED_BODY = bytes.fromhex(
    "0276000000"
    "02c29902e103ad0399030422c50371022d0204f103000000020404060a6d7974616708080a140c7fdd4671c1d160061075041283120b"
)
Streaming = Callable[..., tuple[MysqlStream, list[Cut]]]


class TwoSignals:
    def is_signal_table(self, database: str, table: str) -> bool:
        return (database, table) == ("shop", "signals")

    def signals(self, data: Any, after: str, upto: str) -> list[tuple[str, dict[str, str]]]:
        return [(upto, {"id": "1", "type": "log", "data": after})]


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> Streaming:
    """Return what runs a stream over canned bytes until they end, and returns it with its cuts."""

    def run(
        data: bytes | Log,
        after: Position = BEGIN,
        dump: int | None = None,
        piece: int = 1 << 30,
        segment_bytes: int = 1 << 20,
        known: ResumePoint | None = None,
        signals: Any = None,
        flavor: str = "mysql",
    ) -> tuple[MysqlStream, list[Cut]]:
        sent = packets(data.events) if isinstance(data, Log) else data
        start = Start(DumpStart("binlog.000001", after.transaction if dump is None else dump), 0, True)
        skip_before = after.transaction if start.dump.offset < after.transaction else None
        receiver = Receiver(segment_bytes, 0, after.file, start.dump.offset, skip_before)
        dumped = Dump(CannedChannel(sent, piece), receiver, start, ServerIdentity("server", "host", "1"))
        monkeypatch.setattr(stream_module, "open_dump", lambda *_: dumped)
        monkeypatch.setattr(stream_module, "BURST_PAUSE_S", 0.0)
        settings = CaptureSettings(flavor, 1, segment_bytes)
        connect: Any = lambda: None  # noqa: E731
        stream = MysqlStream(connect, settings, CountingStructures(), lambda _: known, signals)
        stream.open(str(after))
        cuts = []
        while stream.read(0.0):
            while stream.full and (cut := stream.cut(force=True)):
                cuts.append(cut)
        if cut := stream.cut(force=False):
            cuts.append(cut)
        return stream, cuts

    return run


def ids(cuts: list[Cut]) -> list[int]:
    found = []
    for cut in cuts:
        where = places(cut.data)
        for start, checksum in zip(cut.data.starts.tolist(), where.checksum.tolist(), strict=True):
            event = event_at(cut.data.payload, start, checksum)
            if event[types.TYPE] == types.WRITE_ROWS:
                found += [struct.unpack_from("<i", event, at + 1)[0] for at in range(31, len(event), 5)]
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(20, 400),
    st.integers(100, 3000),
    st.booleans(),
    st.booleans(),
)
def test_any_pieces_give_the_same(
    sizes: list[int], piece: int, segment_bytes: int, checksum: bool, mariadb: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run = streaming.__wrapped__(patch)  # type: ignore[attr-defined]
        log = Log(checksum=checksum, mariadb=mariadb)
        log.begin_file()
        number = 0
        ends = []
        for index, size in enumerate(sizes):
            if index % 3 == 2:
                log.next_file()
            ends.append(str(Position(0, log.number, log.transaction(*range(number, number + size)))))
            number += size
        stream, cuts = run(log, piece=piece, segment_bytes=segment_bytes)
        assert ids(cuts) == list(range(number))
        assert stream.idle_position == ends[-1] == cuts[-1].upto
        assert all(before.upto == after.after for before, after in pairwise(cuts))
        assert {cut.upto for cut in cuts if not Position.parse(cut.upto).inside} <= set(ends)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(20, 400), st.integers(100, 3000))
def test_places_that_events_do_not_tell(sizes: list[int], piece: int, segment_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run = streaming.__wrapped__(patch)  # type: ignore[attr-defined]
        found = []
        for told in (True, False):
            log = Log(mariadb=True, told=told)
            log.begin_file()
            for size in sizes:
                log.transaction(*range(size))
            _, cuts = run(log, piece=piece, segment_bytes=segment_bytes)
            found.append([(cut.upto, ids([cut]), places(cut.data).offset.tolist()) for cut in cuts])
        assert found[0] == found[1]


@pytest.mark.parametrize("told", [True, False])
def test_offsets_beyond_4_gib(streaming: Streaming, told: bool) -> None:
    log = Log(offset=(1 << 32) - 300, told=told)
    log.begin_file(real=False)
    first = log.gtid()
    log.query("BEGIN")
    log.table_map(5, "items")
    inside = [log.rows(5, [number]) for number in range(20)]
    log.add(types.XID, bytes(8))
    after = Position(0, 1, first)
    _, cuts = streaming(log, after, segment_bytes=90, piece=70)
    assert ids(cuts) == list(range(20))
    assert cuts[-1].upto == str(Position(0, 1, log.offset))
    assert log.offset > 1 << 32
    uptos = [Position.parse(cut.upto) for cut in cuts[:-1]]
    assert len(uptos) > 3
    assert all(upto.transaction == first and upto.row == ALL_ROWS for upto in uptos)
    assert {upto.event for upto in uptos} <= {first, *range(first, log.offset)}
    assert inside[-1] > 1 << 32


def test_an_end_beyond_4_gib_is_reached_by_skipping(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    for gib in (0, 1, 1, 1):
        log.offset += gib << 30
        log.transaction(gib)
    log.offset = (1 << 32) - 60
    end = log.transaction(2)
    log.next_file()
    log.transaction(3)
    _, cuts = streaming(log, Position(0, 1, end), dump=4, piece=100, segment_bytes=300)
    assert ids(cuts) == [3]
    assert cuts[0].upto == str(Position(0, 2, log.offset))
    assert cuts[0].data.header["file"] == 2


def test_events_that_the_server_leaves_out_leave_no_trace(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    log.transaction(1)
    log.offset += 12345
    log.transaction(2)
    _, cuts = streaming(log)
    assert ids(cuts) == [1, 2]
    assert cuts[0].upto == str(Position(0, 1, log.offset))


@pytest.mark.parametrize("restart", range(1, 12))
def test_a_restart_inside_a_transaction(streaming: Streaming, restart: int) -> None:
    log = Log()
    log.begin_file()
    begin = log.gtid()
    log.query("BEGIN")
    log.add(types.ROWS_QUERY, b"\x06INSERT")
    log.table_map(5, "items")
    at = [log.rows(5, [number], last=number == 11) for number in range(12)]
    log.add(types.XID, bytes(8))
    again = Log(offset=begin)
    again.begin_file(real=False)
    again.events += log.events[2:]
    after = Position(0, 1, begin, at[restart - 1], ALL_ROWS)
    _, cuts = streaming(again, after, piece=77, segment_bytes=200)
    assert ids(cuts) == list(range(restart, 12))
    opened = cuts[0].data.header["transaction"]
    assert opened["start"] == begin
    assert opened["begin"]
    assert opened["statement"]
    assert cuts[0].data.header["tables"][0]["record"] == -1
    assert cuts[0].data.header["tables"][0]["map"]
    assert cuts[0].after == str(after)
    with pytest.raises(SourceStateError, match="where the checkpoint goes on"):
        streaming(again, Position(0, 1, begin, at[restart - 1] + 1, ALL_ROWS))


def test_an_event_of_more_than_16_mib(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    log.gtid()
    log.query("BEGIN")
    log.add(types.ROWS_QUERY, b"x" * (40 << 20))
    log.table_map(5, "items")
    log.rows(5, [1])
    log.add(types.XID, bytes(8))
    _, cuts = streaming(log, piece=5 << 20)
    assert ids(cuts) == [1]
    assert cuts[-1].upto == str(Position(0, 1, log.offset))


def test_damage_is_found(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    for number in range(50):
        log.transaction(number)
    at = log.gtid()
    log.query("BEGIN")
    for event in (3, 60, 200, len(log.events) - 1):
        damaged = list(log.events)
        damaged[event] = damaged[event][:25] + bytes([damaged[event][25] ^ 4]) + damaged[event][26:]
        offset = 4 + sum(map(len, log.events[1:event]))
        with pytest.raises(DecodeError, match=f"at offset {offset} of binlog.000001 is damaged"):
            streaming(packets(damaged))
    assert at < log.offset


def _error(code: int, text: str, number: int) -> bytes:
    payload = b"\xff" + struct.pack("<H", code) + b"#HY000" + text.encode()
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


@pytest.mark.parametrize(
    ("code", "text", "kind", "words"),
    [
        (1236, "Could not find first log file name in binary log index file", LogGoneError, "snapshot.mode"),
        (1236, "Cannot replicate because the source purged required binary logs. Replicate …", LogGoneError, "gone"),
        (
            1236,
            "A replica with the same server_uuid/server_id as this replica has …",
            ConnectError,
            "database.server.id",
        ),
        (
            1236,
            "Client requested source to start replication from position > file size",
            SourceStateError,
            "not the one",
        ),
        (1236, "log event entry exceeded max_allowed_packet; Increase …", SourceStateError, "max_allowed_packet"),
        (1236, "event read from binlog did not pass crc check; …", SourceStateError, "verify-binlog-checksum"),
        (1227, "Access denied; you need the REPLICATION SLAVE privilege", SourceStateError, "Grant"),
        (1236, "Binary log is not open", SourceStateError, "log_bin"),
        (1053, "Server shutdown in progress", ConnectError, "shutdown"),
    ],
)
@pytest.mark.parametrize("number", [0, None])
def test_what_the_server_ends_with(
    streaming: Streaming, code: int, text: str, kind: type[FloodmarkError], words: str, number: int | None
) -> None:
    log = Log()
    log.begin_file()
    log.transaction(1)
    sent = packets(log.events)
    with pytest.raises(kind, match=words):
        streaming(sent + _error(code, text, len(log.events) + 1 if number is None else number), piece=len(sent))


def test_the_end_of_the_stream_and_nonsense(streaming: Streaming) -> None:
    with pytest.raises(ConnectError, match="ended the binlog stream"):
        streaming(b"\x05\0\0\x01\xfe\0\0\0\0")
    for nonsense in (b"\0\0\0\x01", b"\x05\0\0\x01\0abcd", b"\x20\0\0\x01" + bytes(32), b"\x01\0\0\x09\0"):
        with pytest.raises(DecodeError):
            streaming(nonsense + bytes(40))


def test_special_events(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    log.transaction(1)
    log.add(types.HEARTBEAT, b"binlog.000001", real=False)
    log.add(99, b"abc", flags=types.IGNORABLE_FLAG)
    log.add(types.GTID_LIST, bytes(4), flags=types.ARTIFICIAL, real=False)
    log.transaction(2)
    _, cuts = streaming(log)
    assert ids(cuts) == [1, 2]
    kinds = [event_at(cuts[0].data.payload, start, 0)[4] for start in cuts[0].data.starts.tolist()]
    assert types.HEARTBEAT not in kinds
    assert kinds.count(99) == 1
    log.add(98, b"abc")
    with pytest.raises(DecodeError, match="type 98"):
        streaming(log)
    log.events.pop()
    log.add(types.INCIDENT, b"\x01\x00\x00")
    with pytest.raises(SourceStateError, match="incident"):
        streaming(log)


def test_a_heartbeat_moves_an_idle_stream(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    at = log.offset
    log.events.append(b"")
    log.events.pop()
    log.offset += 5000
    log.add(types.HEARTBEAT, b"binlog.000001")
    log.events[-1] = log.events[-1][:13] + struct.pack("<I", at + 5000) + log.events[-1][17:]
    stream, cuts = streaming(log)
    assert cuts == []
    assert stream.idle_position == str(Position(0, 1, at + 5000))


def test_a_crash_inside_a_transaction_drops_it(streaming: Streaming) -> None:
    log = Log()
    log.begin_file()
    end = log.transaction(1)
    log.gtid()
    log.query("BEGIN")
    log.table_map(5, "items")
    log.rows(5, range(40), last=False)
    log.next_file()
    log.transaction(2)
    _, cuts = streaming(log)
    assert ids(cuts) == [1, 2]
    assert end < log.number << 40
    with pytest.raises(SourceStateError, match="ends inside a transaction"):
        streaming(log, segment_bytes=250, piece=100)


def test_gtids_and_signals(streaming: Streaming) -> None:
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert bytes.fromhex(uuid.replace("-", "")) == UUID
    log = Log()
    log.begin_file()
    log.transaction(1)
    log.transaction(2, table="signals")
    log.gtid()
    log.query("CREATE TABLE other (id INT)")
    known = ResumePoint("server", f"{uuid}:5-7")
    stream, cuts = streaming(log, known=known, signals=TwoSignals(), segment_bytes=150, piece=90)
    assert cuts[0].data.header["gtids"] == f"{uuid}:5-7"
    assert stream.place.gtids == str(MysqlGtids.parse(f"{uuid}:1-3:5-7"))
    with_signals = [cut for cut in cuts if cut.signals]
    assert with_signals
    assert "signals" in str(with_signals[0].data.header["tables"])
    assert cuts[-1].last_commit_s == 1_700_000_000.123456
    statements = stream._structures.statements  # type: ignore[attr-defined]
    assert [sql for sql, _ in statements] == ["CREATE TABLE other (id INT)"]


@pytest.mark.parametrize("mariadb", [False, True])
def test_where_transactions_end(streaming: Streaming, mariadb: bool) -> None:
    log = Log(mariadb=mariadb)
    log.begin_file()
    ends = []

    def explicit(*texts: str) -> None:
        log.gtid()
        if not mariadb:
            log.query("BEGIN")
        for text in texts:
            log.query(text)
        ends.append(log.offset)

    def alone(text: str) -> None:
        log.gtid(standalone=True)
        log.query(text)
        ends.append(log.offset)

    alone("CREATE TABLE a (id INT)")
    explicit("CREATE TABLE b (id INT) START TRANSACTION", "SAVEPOINT x", "ROLLBACK TO SAVEPOINT x", "COMMIT")
    explicit("ROLLBACK")
    alone("DROP TABLE a")
    log.gtid()
    log.query("XA START 'a'")
    log.query("XA END 'a'")
    log.add(types.XA_PREPARE, bytes(13))
    ends.append(log.offset)
    alone("XA COMMIT 'a'")
    alone("xa rollback 'b'")
    explicit("INSERT INTO a VALUES (1)", "COMMIT")
    found = set()
    for count in range(1, len(log.events)):
        part = Log(events=log.events[: count + 1])
        _, cuts = streaming(part)
        found |= {Position.parse(cut.upto).transaction for cut in cuts}
    assert sorted(found) == ends


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), st.integers(60, 2000))
def test_damaged_events_without_checksums_give_clear_errors(
    data: st.DataObject, mariadb: bool, known: bool, segment_bytes: int
) -> None:
    log = Log(checksum=False, mariadb=mariadb)
    log.begin_file()
    log.transaction(1, 2)
    log.gtid(standalone=True)
    log.query("CREATE TABLE a (id INT)")
    log.add(types.TAGGED_GTID, TAGGED_BODY)
    log.query("BEGIN")
    inner = Log(checksum=False)
    inner.transaction(7)
    payload = b"".join(inner.events)
    log.add(
        types.TRANSACTION_PAYLOAD, b"\x02\x03\xfc\xff\0\x01\x03\xfc" + struct.pack("<HB", len(payload), 0) + payload
    )
    log.gtid()
    log.query("XA START 'a'")
    log.table_map(9, "items")
    log.rows(9, [1], last=False)
    log.rows(9, range(20))
    log.next_file()
    log.transaction(3)
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(log.events) - 1))
        event = bytearray(log.events[index])
        if data.draw(st.booleans()):
            del event[data.draw(st.integers(types.HEADER_BYTES, len(event))) :]
            event[types.SIZE : types.SIZE + 4] = struct.pack("<I", len(event))
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(event) - 1))
            event[at] = data.draw(st.sampled_from([0, 1, 255, 127, event[at] ^ 1]))
        log.events[index] = bytes(event)
    place = ResumePoint("server", "" if mariadb else "00010203-0405-0607-0809-0a0b0c0d0e0f:1-3") if known else None
    with pytest.MonkeyPatch.context() as patch:
        run = streaming.__wrapped__(patch)  # type: ignore[attr-defined]
        with contextlib.suppress(FloodmarkError):
            run(log, segment_bytes=segment_bytes, piece=150, known=place, flavor="mariadb" if mariadb else "mysql")
