"""Large compressed transactions: in pieces, in bounded memory, with the positions that they have as a whole."""

from __future__ import annotations

import os
import resource
import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.capture.log_stream import Cut
from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.binlog.segments import places
from floodmark.connectors.mysql.capture import stream as stream_module
from floodmark.connectors.mysql.capture.stream import CaptureSettings, MysqlStream
from floodmark.connectors.mysql.continuity.check import Dump, Start
from floodmark.connectors.mysql.decode.events import segment_events
from floodmark.connectors.mysql.decode.row_changes import place_columns
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.reading import receiver as receiver_module
from floodmark.connectors.mysql.reading.channel import DumpStart
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.server.identity import ServerIdentity
from floodmark.errors import DecodeError, StateDirError
from tests.support.binlog import CountingStructures
from tests.support.binlog_events import CannedChannel, Log, packets, payload_body

BEGIN = str(Position(0, 1, 4))


def run(
    log: Log,
    after: str = BEGIN,
    whole: int = 200,
    piece: int = 1 << 30,
    segment_bytes: int = 1000,
    scratch: Callable[[], BinaryIO] = tempfile.TemporaryFile,
) -> list[Cut]:
    """Return the cuts of a log of which transactions that are larger than ``whole`` become records."""
    return list(each_cut(log, after, whole, piece, segment_bytes, scratch))


def each_cut(
    log: Log, after: str, whole: int, piece: int, segment_bytes: int, scratch: Callable[[], BinaryIO]
) -> Iterator[Cut]:
    """Yield the cuts of a log."""
    place = Position.parse(after)
    with pytest.MonkeyPatch.context() as patch:
        start = Start(DumpStart("binlog.000001", place.transaction), 0, True)
        channel = CannedChannel(packets(log.events), piece)
        receiver = Receiver(segment_bytes, 0, place.file, place.transaction, None, None, scratch)
        dump = Dump(channel, receiver, start, ServerIdentity("server", "host", "1"))
        patch.setattr(stream_module, "open_dump", lambda *_: dump)
        patch.setattr(stream_module, "BURST_PAUSE_S", 0.0)
        patch.setattr(receiver_module, "WHOLE_BYTES", whole)
        connect: Any = lambda: None  # noqa: E731
        settings = CaptureSettings("mysql", 1, segment_bytes)
        stream = MysqlStream(connect, settings, CountingStructures(), lambda _: None, scratch=scratch)
        stream.open(after)
        try:
            while stream.read(0.0):
                while stream.full and (cut := stream.cut(force=True)):
                    yield cut
            if cut := stream.cut(force=False):
                yield cut
        finally:
            stream.close()


def inside(*ids: int, statement: str = "INSERT") -> list[bytes]:
    """Return the events of a transaction as a payload has them: without GTID and checksums."""
    log = Log(checksum=False)
    log.query("BEGIN")
    for number in ids:
        log.add(types.ROWS_QUERY, bytes([len(statement) & 0xFF]) + statement.encode())
        log.table_map(5, "items")
        log.rows(5, [number])
    log.add(types.XID, bytes(8))
    return log.events


Seen = tuple[int, int, int, int, str, bytes]


def seen(cuts: list[Cut], after: str = BEGIN) -> list[Seen]:
    """Return what there is to see of all events: places, transactions and bodies."""
    found: list[Seen] = []
    for cut in cuts:
        events = segment_events(cut.data)
        chosen = events.within(max(cut.after, after), cut.upto)
        # What a segment holds is what lies between its ends.
        assert chosen[events.kind != types.FORMAT_DESCRIPTION].all()
        thread = events.transactions.thread[events.transaction]
        gtid = events.transactions.gtid.take(pa.array(events.transaction)).to_pylist()
        for index in range(len(events)):
            if events.kind[index] in types.OF_THE_FILE:
                continue
            place = int(events.offset[index]), int(events.inner[index]), int(events.kind[index])
            # A GTID's segment may end before what says the session.
            session = 0 if events.kind[index] in types.GTIDS else int(thread[index])
            found.append((*place, session, gtid[index] or "", events.body(index)))
    return found


def log_of(sizes: list[int], *, checksum: bool = True) -> Log:
    log = Log(checksum=checksum)
    log.begin_file()
    number = 0
    for size in sizes:
        if size < 3:
            log.transaction(*range(number, number + size + 1))
        else:
            log.gtid()
            log.payload(inside(*range(number, number + size)))
        number += size + 1
    return log


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8),
    st.integers(20, 5000),
    st.integers(100, 5000),
    st.sampled_from([0, 300, 1000, 1 << 20]),
    st.booleans(),
)
def test_pieces_are_what_the_whole_is(
    sizes: list[int], piece: int, segment_bytes: int, whole: int, checksum: bool
) -> None:
    log = log_of(sizes, checksum=checksum)
    expected = seen(run(log, whole=1 << 20, segment_bytes=1 << 20))
    cuts = run(log, whole=whole, piece=piece, segment_bytes=segment_bytes)
    assert seen(cuts) == expected
    assert [cut.after for cut in cuts[1:]] == [cut.upto for cut in cuts[:-1]]
    assert cuts[-1].upto == str(Position(0, 1, log.offset))
    # One transaction that is small enough to stay compressed may be larger than a segment.
    most = max([segment_bytes, *([whole] if whole < 1 << 20 else [4000])]) + segment_bytes + 600
    assert all(len(cut.data.payload) + cut.inflated < most + segment_bytes for cut in cuts)


@pytest.mark.parametrize("segment_bytes", [150, 400, 1500])
def test_a_restart_at_each_cut(segment_bytes: int) -> None:
    log = log_of([1, 25, 2, 12])
    whole = seen(run(log, segment_bytes=1 << 20))
    for cut in run(log, segment_bytes=segment_bytes):
        place = Position.parse(cut.upto)
        # As a server does: from the transaction on.
        again = Log(offset=place.transaction)
        again.begin_file(real=False)
        at = 4
        for event in log.events[1:]:
            again.events += [event] if at >= place.transaction else []
            at += len(event)
        cuts = run(again, cut.upto, segment_bytes=700)
        rest = seen(cuts, cut.upto) if cuts else []
        assert rest == whole[len(whole) - len(rest) :]
        before = seen([one for one in run(log, segment_bytes=segment_bytes) if one.upto <= cut.upto])
        assert before + rest == whole


def test_a_payload_that_comes_in_many_packets() -> None:
    noise = np.random.default_rng(1).bytes(40 << 20)
    inner = Log(checksum=False)
    inner.query("BEGIN")
    for begin in range(0, len(noise), 4 << 20):
        inner.add(types.ROWS_QUERY, b"\1" + noise[begin : begin + (4 << 20)])
    inner.add(types.XID, bytes(8))
    log = Log()
    log.begin_file()
    log.transaction(1)
    log.gtid()
    log.payload(inner.events)
    log.transaction(2)
    opened: list[BinaryIO] = []

    def scratch() -> BinaryIO:
        opened.append(tempfile.TemporaryFile())  # noqa: SIM115
        return opened[-1]

    cuts = run(log, piece=3 << 20, segment_bytes=8 << 20, scratch=scratch)
    assert len(opened) == 1
    assert opened[0].closed
    assert max(len(cut.data.payload) for cut in cuts) < 14 << 20
    bodies = [body for *_, kind, _, _, body in seen(cuts) if kind == types.ROWS_QUERY]
    assert b"".join(body[1:] for body in bodies) == noise
    assert cuts[-1].upto == str(Position(0, 1, log.offset))
    log.events[-6] = log.events[-6][:-9] + bytes(9)
    with pytest.raises(DecodeError, match=r"offset \d+ of binlog\.000001 is damaged: its CRC32 is wrong"):
        run(log, piece=3 << 20, segment_bytes=8 << 20)


def test_a_full_disk_under_a_large_payload() -> None:
    log = Log()
    log.begin_file()
    log.gtid()
    log.payload([], 1 << 30, np.random.default_rng(1).bytes(20 << 20))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(StateDirError, match="Free some space"):
            run(log, piece=3 << 20, segment_bytes=1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def a_bomb(size: int) -> bytes:
    return pa.compress(bytes(size), "zstd", asbytes=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("whole", [0, 1 << 20])
@pytest.mark.parametrize(
    ("packed", "announced", "message"),
    [
        (a_bomb(200 << 20), 5000, "cannot be read|longer|event of 0 bytes"),
        (a_bomb(5000), 200 << 20, "event of 0 bytes"),
        (a_bomb(5000)[:-5], 5000, "cannot be read|shorter"),
        (b"", 5000, "cannot be read|shorter"),
        (b"no frame at all", 5000, "cannot be read"),
        (a_bomb(10), 1 << 45, "cannot be read|shorter|event of 0"),
        (a_bomb(10), 1 << 47, "announces"),
        (a_bomb(10), (1 << 64) - 1, "announces"),
    ],
)
def test_hostile_payloads(packed: bytes, announced: int, message: str, whole: int) -> None:
    log = Log()
    log.begin_file()
    log.transaction(1)
    log.gtid()
    log.payload([], announced, packed)
    with pytest.raises(DecodeError, match=rf"({message}).* offset \d+ of binlog\.000001"):
        run(log, whole=whole)


def raw(kind: int, size: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1, kind, 7, size, 0, 0) + body


@pytest.mark.parametrize("whole", [0, 1 << 20])
@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([raw(types.TABLE_MAP, 0, b"x" * 300)], "event of 0 bytes"),
        ([raw(types.TABLE_MAP, 0xFFFFFFFF, b"x" * 300)], "event of 4294967295 bytes"),
        ([raw(types.TABLE_MAP, 900 << 20, b"x" * 300)], "cut off"),
        ([raw(types.TRANSACTION_PAYLOAD, 319, b"x" * 300)], "event of type 40"),
        ([raw(types.WRITE_ROWS_COMPRESSED_V1, 319, b"x" * 300)], "event of type 166"),
        ([raw(types.GTID, 319, b"x" * 300)], "event of type 33"),
        ([raw(types.FORMAT_DESCRIPTION, 319, b"x" * 300)], "event of type 15"),
        ([raw(99, 319, b"x" * 300)], "event of type 99"),
        ([*inside(1, 2, 3), b"x" * 7], "cut off|shorter"),
    ],
)
def test_payloads_that_hold_what_they_must_not(events: list[bytes], message: str, whole: int) -> None:
    log = Log()
    log.begin_file()
    log.gtid()
    log.payload(events)
    with pytest.raises(DecodeError, match=rf"({message}).* offset \d+ of binlog\.000001"):
        run(log, whole=whole)


def test_methods_and_missing_fields() -> None:
    plain = b"".join(inside(*range(50)))
    for whole in (0, 1 << 20):
        log = Log()
        log.begin_file()
        log.gtid()
        log.add(types.TRANSACTION_PAYLOAD, payload_body(plain, len(plain), method=255))
        assert len(seen(run(log, whole=whole))) == 153
        for body in (payload_body(plain, len(plain), method=7), b"\0" + plain, b"\2\1\xff", b"", b"\1\1\xfc"):
            log = Log()
            log.begin_file()
            log.gtid()
            log.add(types.TRANSACTION_PAYLOAD, body)
            with pytest.raises(DecodeError, match=r"offset \d+ of binlog\.000001"):
                run(log, whole=whole)


def test_small_payloads_share_a_segment_only_as_far_as_they_fit_decompressed() -> None:
    log = Log()
    log.begin_file()
    for number in range(200):
        log.gtid()
        log.payload(inside(number, statement="x" * 3000))
    cuts = run(log, whole=1 << 20, segment_bytes=64 << 10)
    assert len(seen(cuts)) == 200 * 6
    assert all(cut.inflated + len(cut.data.payload) < 80 << 10 for cut in cuts)
    assert len(cuts) > 9


INFLATED_GIB = float(os.environ.get("FLOODMARK_INFLATED_GIB", "4.2"))
EVENT = raw(types.WRITE_ROWS, 19 + 8_000, bytes(8_000))
REPEATED = 1000


def test_more_than_4_gib_in_flat_memory() -> None:
    frames = int(INFLATED_GIB * (1 << 30) / len(EVENT) / REPEATED)
    plain = frames * REPEATED * len(EVENT)
    # One frame after the other is one stream, as if one transaction had the same event again and again.
    packed = pa.compress(EVENT * REPEATED, "zstd", asbytes=True) * frames
    log = Log()
    log.begin_file()
    begin = log.gtid()
    payload = log.add(types.TRANSACTION_PAYLOAD, payload_body(packed, plain))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done, last = 0, ""
    for cut in each_cut(log, BEGIN, 1 << 20, 1 << 30, 16 << 20, tempfile.TemporaryFile):
        assert len(cut.data.payload) + cut.inflated < 18 << 20
        assert last < cut.upto
        last = cut.upto
        begin_in, done = done, done + len(EVENT) * int(np.count_nonzero(places(cut.data).bare))
        if begin_in >> 32 != done >> 32 or not begin_in or done == plain:
            check_positions(cut, begin, payload)
    assert done == plain
    assert last == str(Position(0, 1, log.offset))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def check_positions(cut: Cut, begin: int, payload: int) -> None:
    """Check the positions of a segment's rows, and that the segment ends with its last one."""
    events = segment_events(cut.data)
    rows = np.flatnonzero(events.of("rows"))
    assert (events.inner[rows] % len(EVENT) == 0).all()
    found = place_columns(events, rows, np.ones(len(rows), np.int64), 0)["position"].to_pylist()
    assert found == sorted(set(found))
    row = int(events.inner[rows[-1]]) + 1
    assert found[-1] == f"{Position(0, 1, begin, payload + (row >> 32), row & 0xFFFFFFFF)}-00"
    assert cut.after < found[0]
    assert found[-1] < cut.upto
    chosen = events.within(cut.after, found[len(found) // 2][:-3])
    assert np.count_nonzero(chosen & events.of("rows")) == len(found) // 2 + 1
