"""The thin layer of PostgreSQL's stream, over a connection that yields given bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

import psycopg
import pytest

from floodmark.capture.gaps import AcceptedGaps
from floodmark.connectors.postgres.capture import stream as stream_module
from floodmark.connectors.postgres.capture.replication import Replication
from floodmark.connectors.postgres.capture.stream import PostgresStream
from floodmark.connectors.postgres.continuity.bookmark import LastEnd
from floodmark.connectors.postgres.continuity.check import Continuity
from floodmark.connectors.postgres.decode.segment_header import SegmentHeader
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from tests.support.options import REQUIRED
from tests.support.pgoutput import FIRST_LSN, Log
from tests.support.received import (
    Fed,
    catalog,
    lsn_of,
    opened,
    raw,
)


class CannedChannel:
    """A connection that yields given bytes, one piece a read, and keeps what is sent."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.sent: list[tuple[bytes, int, int, int, int]] = []

    def read_into(self, view: memoryview, timeout: float) -> int:
        piece = self._pieces.pop(0) if self._pieces else b""
        view[: len(piece)] = piece
        return len(piece)

    def room(self) -> int:
        return 1 << 20

    def send(self, data: bytes) -> None:
        kind, received, flushed, applied, _, reply = struct.unpack(">cQQQqB", data)
        self.sent.append((kind, received, flushed, applied, reply))

    def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> Callable[[CannedChannel], PostgresStream]:
    known = catalog()
    monkeypatch.setattr(stream_module, "structures", lambda _, wanted: known.answer(wanted))
    monkeypatch.setattr(stream_module, "PAUSE_S", 0)

    def run(channel: CannedChannel) -> PostgresStream:
        monkeypatch.setattr(Replication, "begin", lambda *_: channel)
        options = PostgresOptions.parse(REQUIRED)
        conn = cast(psycopg.Connection[tuple[Any, ...]], None)
        return PostgresStream(options, lambda: conn, CommitLog(), Continuity(options), AcceptedGaps())

    return run


def test_the_stream_sends_statuses(streaming: Callable[[CannedChannel], PostgresStream]) -> None:
    log = opened()
    log.commit(lsn_of(0))
    end = lsn_of(0) + 8
    log.keepalive(end + 100, reply=True)
    channel = CannedChannel(raw(log))
    stream = streaming(channel)
    stream.ping()
    stream.confirm(position(FIRST_LSN))
    assert (stream.received, stream.idle_position, stream.full) == ("", None, False)
    assert stream.cut(force=True) is None
    assert channel.sent == []  # it isn't open

    stream.open(position(FIRST_LSN))
    assert stream.read(0) == len(raw(log))
    assert channel.sent == [(b"r", FIRST_LSN, 0, 0, 1), (b"r", end + 100, 0, 0, 0)]
    cut = stream.cut(force=False)
    assert cut is not None
    assert cut.upto == position(end)
    assert stream.idle_position == position(end + 100)
    del channel.sent[:]
    stream.confirm(cut.upto)
    # The flush position is withdrawn at once.
    assert channel.sent == [(b"r", end + 100, end, end, 0), (b"r", end + 100, 0, 0, 0)]
    stream.close()
    stream.ping()
    assert len(channel.sent) == 2


def test_after_a_restart_the_last_transaction_before_is_known() -> None:
    options = PostgresOptions.parse(REQUIRED)
    before = Continuity(options)
    ends = [LastEnd(position(lsn), lsn, 1000 + lsn) for lsn in (100, 200, 300)]
    for end in ends:
        before.received(None, end)
    assert before.last_end(position(50)) is None
    assert before.last_end(position(200)) == ends[1]
    # Inside of a piece the log has ends that are not kept.
    assert before.last_end(position(250)) is None
    assert before.last_end(position(400)) == ends[2]
    stored = before.bookmark(position(200))
    planned = before.bookmark(position(300))
    after = Continuity(options)
    after.resume(position(200), stored)
    after.resume(position(300), planned)
    assert after.last_end(position(200)) == ends[1]
    # The log of the planned micro-batch is received again, in another piece.
    after.received(None, LastEnd(position(280), 280, None))
    assert after.last_end(position(280)) == LastEnd(position(280), 280, None)
    assert after.last_end(position(300)) == LastEnd(position(280), 280, None)


def test_a_stream_continues_with_the_transaction_before_it() -> None:
    log = opened()
    log.commit(lsn_of(0))
    assert ended(log, None) == [None]
    assert ended(log, LastEnd(position(FIRST_LSN), 77, 1)) == [77]


def ended(log: Log, end: LastEnd | None) -> list[int | None]:
    received = Fed(catalog=catalog(), end=end)
    received.feed(raw(log))
    received.cut()
    return [SegmentHeader.from_json(cut.data.header).last_commit for cut in received.cuts]


def test_a_backlog_is_read_with_longer_pauses_unless_the_server_would_wait() -> None:
    pause_s = stream_module._pause_s
    assert pause_s(1_000, 3 << 20) == stream_module.PAUSE_S
    assert pause_s(200_000, 3 << 20) == stream_module.BURST_PAUSE_S
    assert pause_s(60_000, 64 << 10) < 0.001
