"""The decoder on broken logs: a clear error or the right events; never a wrong value, a hang or a crash.

Small segments are mutated, mostly where the protocol's structure stands, and decoded; a strict reader of one message at
a time says what is right. ``FLOODMARK_FUZZ_INPUTS`` sets how many inputs there are.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import EventVersions, TableVersion
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.postgres.capture import stream as stream_module
from floodmark.connectors.postgres.capture.replication import Replication
from floodmark.connectors.postgres.capture.stream import PostgresStream
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.decode.decoder import PostgresDecoder
from floodmark.connectors.postgres.decode.relation import parse_relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.server.catalog import Conn
from floodmark.connectors.postgres.server.structure import CurrentStructure
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.errors import DecodeError, FloodmarkError
from floodmark.events.columns import EventGroup
from tests.support.options import REQUIRED
from tests.support.patience import within
from tests.support.pgoutput import (
    FIRST_LSN,
    KEEP,
    BrokenError,
    Event,
    Log,
    header_entry,
    read_events,
    read_frames,
    read_relation,
    relation_message,
)

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
SEED = int(os.environ.get("FLOODMARK_FUZZ_SEED", "1"))
SLOWEST_S = within(10.0)
pytestmark = pytest.mark.timeout(max(300, INPUTS // 20))
MEMORY_KB = 400 << 10

NARROW, WIDE = 16400, 16401
RELATIONS = {
    NARROW: relation_message(NARROW, "narrow", ["id", "v"]),
    WIDE: relation_message(WIDE, "wide", ["id", "a", "b", "c"], "f", 4),
}
KNOWN = {oid: read_relation(raw)[1] for oid, raw in RELATIONS.items()}
AFTER, UPTO = position(0), position((1 << 63) - 1)
SPECIAL = (0, 1, 2, 3, 4, 5, 22, 23, 29, 30, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
LETTERS = b"BCORYIUDTMNOKtnubdwkES\0"


@dataclass
class Base:
    """An intact log: frames, their structural fields, and the records from which relations are in force."""

    log: Log
    announced: dict[int, int]


def transaction(fill: Callable[[Log], None], *inside: int) -> Base:
    """Return a log of one transaction; the relations ``inside`` are announced in it, the others before."""
    log = Log()
    log.begin(FIRST_LSN + 100)
    for oid in inside:
        log.relation(RELATIONS[oid])
    fill(log)
    log.commit(FIRST_LSN + 100)
    return Base(log, {oid: 1 + inside.index(oid) if oid in inside else -1 for oid in RELATIONS})


def _mixed(log: Log) -> None:
    log.change("I", NARROW, ("N", ["1", "one"]))
    log.keepalive()
    log.change("U", WIDE, ("O", ["k", "x", None, "z"]), ("N", ["k", KEEP, "y", None]))
    log.commit(FIRST_LSN + 100)
    log.begin(FIRST_LSN + 900)
    log.change("D", NARROW, ("K", ["1", None]))
    log.commit(FIRST_LSN + 900)
    log.keepalive()
    log.keepalive()
    log.begin(FIRST_LSN + 100)


def _many(log: Log) -> None:
    for number in range(12):
        log.change("I", NARROW, ("N", [str(number), "v" * number]))


def _messages(log: Log) -> None:
    log.origin(b"elsewhere")
    log.message(b"said", b"inside", inside=True)
    log.change("I", NARROW, ("N", ["1", "one"]))
    log.commit(FIRST_LSN + 100)
    log.message(b"said", b"\xff outside", inside=False)
    log.begin(FIRST_LSN + 100)


BASES = (
    transaction(lambda log: log.change("I", NARROW, ("N", ["1", "one"]))),
    transaction(lambda log: log.change("I", WIDE, ("N", ["1", "", None, "last"]))),
    transaction(lambda log: log.change("U", NARROW, ("N", ["1", KEEP]))),
    transaction(lambda log: log.change("U", NARROW, ("K", ["1", None]), ("N", ["2", "two"]))),
    transaction(lambda log: log.change("U", WIDE, ("O", ["1", "a", "b", None]), ("N", ["1", KEEP, "bb", "c"]))),
    transaction(lambda log: log.change("D", NARROW, ("K", ["1", None]))),
    transaction(lambda log: log.change("D", WIDE, ("O", ["1", "a", None, "ü"]))),
    transaction(lambda log: log.change("I", NARROW, ("N", ["1", "one"])), NARROW),
    transaction(lambda log: log.truncate(NARROW, WIDE)),
    transaction(_mixed),
    transaction(_messages),
    transaction(_many),
)


class Memo:
    """Makes each table version once."""

    def __init__(self, options: PostgresOptions) -> None:
        self._make = EventVersions(options)
        self._made: dict[str, TableVersion] = {}

    def __call__(self, structure: Structure) -> TableVersion:
        look = repr(structure)
        if look not in self._made:
            self._made[look] = self._make(structure)
        return self._made[look]

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        return self._make.assemble(groups)


@pytest.fixture(scope="module")
def decoder() -> PostgresDecoder:
    options = PostgresOptions.parse({**REQUIRED, "skipped.operations": "none"})
    return PostgresDecoder(options, Memo(options))


def segment(frames: Sequence[bytes], announced: dict[int, int]) -> SegmentData:
    """Return a segment of whole frames."""
    sizes = np.array([len(frame) for frame in frames], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    records = [start for start, frame in zip(starts.tolist(), frames, strict=True) if frame[5:6] == b"w"]
    header = {
        "transaction": None,
        "last_commit": None,
        "relations": [header_entry(RELATIONS[oid], record) for oid, record in announced.items()],
    }
    return SegmentData(np.frombuffer(b"".join(frames), np.uint8), np.array(records, np.uint32), header)


def events_of(decoder: PostgresDecoder, data: SegmentData) -> list[Event]:
    """Return the events without truncates, tombstones and messages."""
    found = []
    for batch in decoder.decode(DecodeRequest(data, AFTER, UPTO), DecodeProblems()):
        for value in batch.column("value").to_pylist():
            if value is not None:
                event = json.loads(value)
                if event["op"] not in ("t", "m"):
                    found.append((event["op"], event["before"], event["after"]))
    return found


def mutate_frames(base: Base, dice: random.Random) -> list[bytes]:
    """Return frames of which one or a few are broken, each still as long as it says unless that is what is broken."""
    frames = [bytearray(frame) for frame in base.log.frames]
    for _ in range(1 if dice.random() < 0.8 else dice.randrange(2, 5)):
        number = dice.randrange(len(frames))
        frame = frames[number]
        fields = base.log.fields[number] if number < len(base.log.fields) else [(0, 1)]
        what = dice.random()
        if what < 0.45:
            at, size = dice.choice(fields)
            if at + size <= len(frame):
                frame[at : at + size] = _other(frame[at : at + size], dice)
        elif what < 0.6 and len(frame) > 31:
            cut = dice.randrange(1, len(frame) - 30)
            at = dice.randrange(30, len(frame) - cut + 1)
            del frame[at : at + cut]
            _fix_length(frame, dice)
        elif what < 0.75:
            at = dice.randrange(min(30, len(frame)), len(frame) + 1)
            frame[at:at] = dice.randbytes(dice.choice((1, 1, 2, 4, 9)))
            _fix_length(frame, dice)
        elif what < 0.9:
            at = dice.randrange(len(frame))
            frame[at] = dice.choice((frame[at] ^ (1 << dice.randrange(8)), dice.choice(LETTERS), dice.randrange(256)))
        elif what < 0.94:
            del frames[number]
        elif what < 0.97:
            frames.insert(number, bytearray(dice.choice(frames)))
        else:
            other = dice.randrange(len(frames))
            frames[number], frames[other] = frames[other], frames[number]
        if not frames:
            break
    return [bytes(frame) for frame in frames]


def _other(raw: bytes | bytearray, dice: random.Random) -> bytes:
    """Return another value for a structural field."""
    size = len(raw)
    if size == 1:
        return bytes([dice.choice((dice.choice(LETTERS), dice.randrange(256)))])
    old = int.from_bytes(raw, "big")
    new = dice.choice(
        (dice.choice(SPECIAL), old + 1, old - 1, old + dice.randrange(-9, 10), dice.getrandbits(8 * size))
    )
    return (new % (1 << 8 * size)).to_bytes(size, "big")


def _fix_length(frame: bytearray, dice: random.Random) -> None:
    """Let a frame say its length, mostly."""
    if dice.random() < 0.9:
        frame[1:5] = struct.pack(">I", len(frame) - 1)


class Watch:
    """Fails if an input takes too long or too much memory."""

    def __init__(self) -> None:
        self.slowest = 0.0
        self._memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __call__(self, action: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return action()
        except FloodmarkError:
            return None
        finally:
            self.slowest = max(self.slowest, time.perf_counter() - start)

    def check(self) -> None:
        assert self.slowest < SLOWEST_S
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._memory < MEMORY_KB


def test_intact_logs(decoder: PostgresDecoder) -> None:
    for base in BASES:
        data = segment(base.log.frames, base.announced)
        assert events_of(decoder, data) == read_events(bytes(data.payload), KNOWN)


def test_broken_messages(decoder: PostgresDecoder) -> None:
    watch = Watch()
    for number in range(INPUTS):
        dice = random.Random(f"{SEED} messages {number}")
        base = dice.choice(BASES)
        frames = mutate_frames(base, dice)
        data = segment(frames, base.announced) if frames else None
        if data is None:
            continue
        expected = right_events(data, base)
        got = watch(partial(events_of, decoder, data))
        assert got == expected, f"input {number}: {frames}"
    watch.check()


def right_events(data: SegmentData, base: Base) -> list[Event] | None:
    """Return what a segment's events are, or None if it is broken."""
    payload = bytes(data.payload)
    known = {oid: table for oid, table in KNOWN.items() if base.announced[oid] < 0}
    try:
        found = read_frames(payload)
        events = read_events(payload, known)
    except BrokenError:
        return None
    inside = [(number, message) for number, (_, message) in enumerate(found) if message[:1] == b"R"]
    header = [(record, RELATIONS[oid]) for oid, record in base.announced.items() if record >= 0]
    if inside != header or [start for start, _ in found] != data.starts.tolist():
        return None
    return events


def test_broken_segment_files(decoder: PostgresDecoder) -> None:
    watch = Watch()
    made = [segment(base.log.frames, base.announced) for base in BASES]
    files = [(b"".join(bytes(part) for part in data.to_parts("x.seg")), 4 * len(data.starts)) for data in made]
    for number in range(INPUTS // 4):
        dice = random.Random(f"{SEED} files {number}")
        raw, index = dice.choice(files)
        broken = bytearray(raw)
        what = dice.choice(("cut", "grown", "index", "header"))
        if what == "cut":
            del broken[dice.randrange(len(broken)) :]
        elif what == "grown":
            broken += dice.randbytes(dice.choice((1, 2, 3, 4, 8)))
        else:
            end = 20 + struct.unpack("<I", raw[12:16])[0]
            at = dice.randrange(len(raw) - index, len(raw)) if what == "index" else dice.randrange(end)
            broken[at] = dice.choice((broken[at] ^ (1 << dice.randrange(8)), dice.randrange(256)))
        # With a checksum that is right, so that what comes after it is tested.
        broken[8:12] = struct.pack("<I", zlib.crc32(broken[12:], zlib.crc32(b"x.seg")))

        def decode(broken: bytearray = broken) -> int:
            data = SegmentData.from_buffer(memoryview(bytes(broken)), "x.seg")
            return sum(batch.num_rows for batch in decoder.decode(DecodeRequest(data, AFTER, UPTO), DecodeProblems()))

        got = watch(decode)
        # The header's own values have nothing that they could be compared with.
        assert got is None or what == "header" or broken == raw, f"input {number}"
    watch.check()


def test_broken_relations() -> None:
    watch = Watch()
    raws = [*RELATIONS.values(), relation_message(1, "t" * 60, [f"column_{i}" for i in range(30)])]
    for number in range(INPUTS // 2):
        dice = random.Random(f"{SEED} relations {number}")
        raw = bytearray(dice.choice(raws))
        for _ in range(dice.choice((1, 1, 1, 2, 4))):
            what, at = dice.random(), dice.randrange(len(raw))
            if what < 0.6:
                raw[at] = dice.choice((raw[at] ^ (1 << dice.randrange(8)), dice.randrange(256), 0, 255))
            elif what < 0.8:
                del raw[at : at + dice.choice((1, 2, 8, 10_000))]
            else:
                raw[at:at] = dice.randbytes(dice.choice((1, 2, 8)))
            if not raw:
                break
        try:
            expected = read_relation(bytes(raw))
        except BrokenError:
            expected = None
        relation = watch(partial(parse_relation, bytes(raw)))
        got = relation and (
            relation.oid,
            (relation.replica_identity, [(column.name, column.identity) for column in relation.columns]),
        )
        assert got == expected, f"input {number}: {bytes(raw)!r}"
    watch.check()


class Channel:
    """A connection that yields given bytes in pieces."""

    def __init__(self, data: bytes, dice: random.Random) -> None:
        self._data = data
        self._dice = dice

    def read_into(self, area: memoryview, timeout: float) -> int:
        size = min(self._dice.choice((1, 7, 100, 10_000)), len(self._data), len(area))
        area[:size] = self._data[:size]
        self._data = self._data[size:]
        return size

    def room(self) -> int:
        return 1 << 20

    def send(self, data: bytes) -> None:
        """Take a status update."""

    def close(self) -> None:
        """There is nothing to close."""


def test_broken_streams(decoder: PostgresDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "structures", lambda _, wanted: dict.fromkeys(wanted, CurrentStructure()))
    monkeypatch.setattr(stream_module, "PAUSE_S", 0)
    options = PostgresOptions.parse({**REQUIRED, "skipped.operations": "none", "segment.bytes": "65536"})
    watch = Watch()
    for number in range(INPUTS // 4):
        dice = random.Random(f"{SEED} streams {number}")
        base = dice.choice([base for base in BASES if NARROW in base.announced])
        frames = mutate_frames(base, dice) if number else base.log.frames
        raw = b"".join(frames)
        channel = Channel(raw, dice)
        monkeypatch.setattr(Replication, "begin", lambda *_, channel=channel: channel)

        def run(dice: random.Random = dice) -> Cut | None:
            stream = PostgresStream(options, lambda: cast(Conn, None), CommitLog(), Continuity(options), AcceptedGaps())
            stream.open(position(0))
            while stream.read(0):
                pass
            cut = stream.cut(force=dice.random() < 0.2)
            if cut is not None:
                list(decoder.decode(DecodeRequest(cut.data, AFTER, UPTO), DecodeProblems()))
            return cut

        watch(run)
    watch.check()


def test_errors_name_the_change(decoder: PostgresDecoder) -> None:
    frames = list(BASES[-1].log.frames)
    broken = bytearray(frames[8])
    broken[-1] = 0xFF
    frames[8] = bytes(broken)
    with pytest.raises(DecodeError) as raised:
        events_of(decoder, segment(frames, BASES[-1].announced))
    assert position(FIRST_LSN + 100, 8) in str(raised.value)
    assert "public.narrow" in str(raised.value)
    assert "'v'" in str(raised.value)
    assert "UTF8" in str(raised.value)
