"""PostgreSQL's replication stream from bytes made by hand, without a server: what becomes of messages."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.capture.log_stream import Cut
from floodmark.changes.table_version import EventVersions
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.postgres.capture.receive_buffer import SLACK
from floodmark.connectors.postgres.continuity.bookmark import Commit
from floodmark.connectors.postgres.decode.decoder import PostgresDecoder
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import position
from floodmark.errors import ConnectError, DecodeError, LogGoneError, SourceStateError
from tests.support.options import REQUIRED
from tests.support.pgoutput import FIRST_LSN, Log
from tests.support.received import (
    COMMIT_US,
    LEVELS,
    MOODS,
    RELATIONS,
    SIGNALS,
    TABLE,
    fed,
    insert,
    is_record,
    lsn_of,
    messages_of,
    opened,
    raw,
    records_of,
)

AFTER, UPTO = position(0), position((1 << 63) - 1)
MISSING = b'SNOTICE\0C42704\0Mpublication "p" does not exist\0RLoadPublications\0\0'

# What a transaction is made of: a letter, and a number that it uses as it likes.
Step = tuple[str, int]
STEPS = st.tuples(st.sampled_from("IIIUDTMRKNS"), st.integers(0, 99))
TRANSACTIONS = st.lists(st.lists(STEPS, max_size=8), min_size=1, max_size=6)
PIECES = st.lists(st.integers(1, 400), max_size=60)


def made(transactions: list[list[Step]], ended: bool = True) -> Log:
    """Return the log of transactions, the last of which may lack its end."""
    log = Log()
    known: set[int] = set()
    for number, steps in enumerate(transactions):
        if number % 3 == 2:
            log.message(b"said", b"outside", inside=False, lsn=lsn_of(number) - 500)
        log.begin(lsn_of(number), 700 + number)
        if number % 2:
            log.origin(b"elsewhere")
        for letter, value in steps:
            _step(log, known, letter, value, lsn_of(number))
        if ended or number < len(transactions) - 1:
            log.commit(lsn_of(number))
            log.keepalive(lsn_of(number) + 50, reply=number % 2 == 0)
    return log


def _step(log: Log, known: set[int], letter: str, value: int, lsn: int) -> None:
    oid = (TABLE, MOODS, LEVELS, SIGNALS)[value % 4]
    row = [str(value), "d" * value, "{}"][: 3 if oid == SIGNALS else 2]
    if letter == "R" or (letter in "IUDT" and oid not in known):
        log.relation(RELATIONS[oid])
        known.add(oid)
    if letter in "IU":
        log.change(letter, oid, ("N", row))
    elif letter == "D":
        log.change("D", oid, ("O", row))
    elif letter == "T":
        log.truncate(oid)
    elif letter == "M":
        log.message(b"said", b"i" * value, inside=True)
    elif letter == "K":
        log.keepalive(lsn - 1, reply=value % 2 == 0)
    elif letter == "N":
        log.other(b"N", b"SNOTICE\0C00000\0Mlook\0\0")
    elif letter == "S":
        log.other(b"S", b"TimeZone\0UTC\0")


def shown(cut: Cut) -> tuple[Any, ...]:
    """Return all of a cut that doesn't depend on how its bytes came: keepalives may be part of it, or not."""
    header = json.dumps(cut.data.header)
    return records_of(cut.data), header, cut.after, cut.upto, cut.rows, cut.last_commit_s, list(cut.signals)


def events_of(cuts: list[Cut]) -> list[str]:
    options = PostgresOptions.parse({**REQUIRED, "skipped.operations": "none"})
    decoder = PostgresDecoder(options, EventVersions(options))
    return [
        _timeless(value)
        for cut in cuts
        for batch in decoder.decode(DecodeRequest(cut.data, AFTER, UPTO), DecodeProblems())
        for value in batch.column("value").to_pylist()
    ]


def _timeless(value: str | None) -> str:
    event = json.loads(value) if value is not None else {}
    return json.dumps({**event, "ts_ms": 0, "ts_us": 0, "ts_ns": 0})


@settings(max_examples=150)
@given(TRANSACTIONS, PIECES, st.booleans(), st.booleans())
def test_any_split_gives_the_same_cuts(
    transactions: list[list[Step]], pieces: list[int], ended: bool, counted: bool
) -> None:
    data = raw(made(transactions, ended))
    options = {"provide.transaction.metadata": str(counted).lower()}
    whole, split = fed(options=options), fed(options=options)
    whole.feed(data)
    split.feed(data, pieces)
    for one in (whole, split):
        one.cut()
        one.cut(force=True)
    assert list(map(shown, split.cuts)) == list(map(shown, whole.cuts))
    assert [one.commit for one in split.finished] == [one.commit for one in whole.finished]
    assert split.begun == whole.begun
    assert split.catalog.requests == whole.catalog.requests
    assert split.idle() == whole.idle()
    assert split.receiver.received == whole.receiver.received
    assert (split.idle() is not None) == ended


@settings(max_examples=100)
@given(TRANSACTIONS, PIECES, st.lists(st.sampled_from([None, False, True]), max_size=60))
def test_any_cuts_hold_the_same_records(
    transactions: list[list[Step]], pieces: list[int], forced: list[bool | None]
) -> None:
    log = made(transactions)
    one, whole = fed(), fed()
    when = iter(forced)

    def cut() -> None:
        force = next(when, None)
        if force is not None:
            one.cut(force)

    one.feed(raw(log), pieces, cut)
    one.cut()
    whole.feed(raw(log))
    whole.cut()
    assert [record for cut in one.cuts for record in records_of(cut.data)] == messages_of(log)
    assert sum(cut.rows for cut in one.cuts) == len(messages_of(log))
    assert all(before.upto == after.after for before, after in pairwise(one.cuts))
    assert one.cuts[-1].upto == whole.cuts[-1].upto == one.receiver.received
    assert [place for cut in one.cuts for place in cut.signals] == list(whole.cuts[0].signals)
    assert events_of(one.cuts) == events_of(whole.cuts)


def test_a_message_that_is_cut_off_waits_for_its_end() -> None:
    log = made([[("I", 1), ("K", 0), ("N", 0), ("M", 3)], [("T", 4)]])
    data = raw(log)
    ends = [sum(map(len, log.frames[: number + 1])) for number in range(len(log.frames))]
    places = [end for end, frame in zip(ends, log.frames, strict=True) if is_record(frame)]
    messages = messages_of(log)
    for size in range(1, len(data) + 1):
        one = fed()
        one.feed(data[:size])
        one.cut()
        one.cut(force=True)
        arrived = messages[: sum(end <= size for end in places)]
        complete = max((number for number, record in enumerate(arrived, 1) if record[:1] == b"C"), default=0)
        # A forced cut needs a change.
        forced = any(record[:1] in b"IUDTM" for record in arrived[complete:])
        expected = arrived if forced else arrived[:complete]
        assert [record for cut in one.cuts for record in records_of(cut.data)] == expected
        one.feed(data[size:])
        one.cut()
        assert [record for cut in one.cuts for record in records_of(cut.data)] == messages


def test_a_record_that_is_larger_than_the_buffer() -> None:
    log = opened(lambda log: log.change("I", TABLE, ("N", ["2", "x" * (3 * SLACK)])))
    log.commit(lsn_of(0))
    one = fed(segment_bytes=1000)
    one.feed(raw(log), [5000] * 100)
    assert one.full()
    cut = one.cut()
    assert cut is not None
    assert records_of(cut.data) == messages_of(log)
    assert not one.full()
    assert len(one.receiver.space()) == 1000 + SLACK


def test_keepalives_report_the_idle_log() -> None:
    one = fed()
    assert one.idle() == one.receiver.received == position(FIRST_LSN)
    idle = Log()
    idle.keepalive(FIRST_LSN + 500)
    one.feed(raw(idle) * 10_000)
    assert one.receiver.lsn == FIRST_LSN + 500
    assert one.idle() == position(FIRST_LSN + 500)
    assert one.replies == 0
    assert not one.full()
    # Keepalives don't fill the buffer.
    assert len(one.receiver.space()) > SLACK
    assert one.cut(force=True) is None


def test_a_keepalive_in_a_transaction_reports_nothing_received() -> None:
    one = fed()
    log = opened(lambda log: log.keepalive(lsn_of(7), reply=True), insert)
    one.feed(raw(log))
    assert one.replies == 1
    assert one.receiver.lsn == FIRST_LSN
    assert one.idle() is None
    late = Log()
    late.keepalive(lsn_of(8))
    one.feed(raw(late))
    assert one.receiver.lsn == FIRST_LSN
    end = Log()
    end.commit(lsn_of(0))
    one.feed(raw(end))
    assert one.receiver.lsn == lsn_of(0) + 8
    assert one.receiver.received == position(lsn_of(0) + 8)
    assert one.idle() is None
    cut = one.cut()
    assert cut is not None
    assert (cut.upto, cut.last_commit_s) == (position(lsn_of(0) + 8), COMMIT_US / 1e6)
    assert one.finished[0].commit == Commit(lsn_of(0), COMMIT_US, lsn_of(0) + 8)
    assert one.idle() == position(lsn_of(0) + 8)
    one.feed(raw(late))
    assert one.idle() == position(lsn_of(8))


def test_messages_that_are_no_frames_are_no_records() -> None:
    notices = Log()
    notices.other(b"N", b"SNOTICE\0C00000\0Mlook\0\0")
    notices.other(b"S", b"TimeZone\0UTC\0")
    notices.other(b"A", struct.pack(">I", 1) + b"channel\0\0")
    log = opened(insert, insert)
    log.commit(lsn_of(0))
    between = raw(notices).join(log.frames)
    for pieces in ([], [1] * len(between), [len(log.frames[0]) + 7] * 100):
        one = fed()
        one.feed(between, pieces)
        cut = one.cut()
        assert cut is not None
        assert cut.data.payload.tobytes() == raw(log)
        assert not one.gaps


@pytest.mark.parametrize("pieces", [[], [1] * 10_000])
def test_an_error_comes_after_the_records_before_it(pieces: list[int]) -> None:
    log = opened()
    log.other(b"E", b"SFATAL\0C57P01\0Mterminating connection\0\0")
    one = fed()
    with pytest.raises(ConnectError, match="terminating connection"):
        one.feed(raw(log), pieces)
    assert one.begun == [(lsn_of(0), 700)]
    assert one.cut(force=True) is not None


@pytest.mark.parametrize("kind", [b"c", b"C", b"Z"])
def test_the_end_of_the_stream(kind: bytes) -> None:
    log = opened()
    log.other(kind, b"COPY 0\0")
    with pytest.raises(ConnectError, match="ended the replication stream"):
        fed().feed(raw(log))


@pytest.mark.parametrize(
    "broken",
    [
        b"X\0\0\0\x05.",
        b"N\0\0\0\x03",
        b"N\xff\xff\xff\xff",
        b"d\0\0\0\x1dx" + bytes(24),
        b"d\0\0\0\x1dw" + bytes(24),
        b"d\0\0\0\x15k" + bytes(16),
    ],
)
def test_bytes_that_are_no_replication_messages(broken: bytes) -> None:
    one = fed()
    one.feed(raw(opened()))
    with pytest.raises(DecodeError, match="no replication message"):
        one.feed(broken)
    assert one.begun == [(lsn_of(0), 700)]


def test_a_missing_publication() -> None:
    log = opened()
    log.commit(lsn_of(0))
    log.other(b"N", MISSING)
    error = Log()
    error.other(b"E", MISSING)
    with pytest.raises(LogGoneError, match="did not exist"):
        fed().feed(raw(log))
    accepting = fed(options={"offset.mismatch.strategy": "trust_slot"})
    accepting.feed(raw(log))
    place = position(lsn_of(0) + 8)
    assert [(gap.after, gap.upto, gap.option) for gap in accepting.gaps] == [
        (place, place, "offset.mismatch.strategy=trust_slot")
    ]
    assert accepting.cut() is not None
    with pytest.raises(LogGoneError, match="did not exist"):
        accepting.feed(raw(error))
    other = Log()
    other.other(b"E", b"SERROR\0C42P01\0Mno such table\0\0")
    with pytest.raises(SourceStateError, match="no such table"):
        fed().feed(raw(other))
