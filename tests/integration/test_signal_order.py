"""Signals by several channels: of a pause and a resume the one that was sent last holds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.connectors.load import load_options
from floodmark.signals.records import Signal, in_order_of_time
from floodmark.snapshots import control
from tests.conftest import Source, drop, make_source
from tests.integration.test_incremental import SIGNALS, signal
from tests.support.inprocess import InProcess
from tests.support.kafka import Broker
from tests.support.patience import within

CHANNELS = ("source", "file", "in-process", "kafka")
PAUSE, RESUME = "pause-snapshot", "resume-snapshot"
GAP_S = 0.03
"""Longer than what a file system's and a server's clock may differ by."""


class Sender:
    """A query that reads a table slowly, and the ways to send it signals."""

    def __init__(self, source: Source, directory: Path, broker: Broker) -> None:
        self._source = source
        self._file = directory / "signals.txt"
        self._broker = broker
        self.options = {
            **source.options,
            "topic.prefix": source.dbname,
            "snapshot.mode": "no_data",
            "signal.data.collection": "public.signals",
            "signal.enabled.channels": "source,file",
            "signal.file": str(self._file),
            "signal.kafka.bootstrap.servers": broker.servers,
            # After the start only signals themselves have the channels looked at.
            "signal.poll.interval.ms": "3600000",
            "signal.kafka.poll.timeout.ms": "10000",
            "incremental.snapshot.chunk.size": "1",
            "max.batch.rows": "2",
        }

    def send(self, channel: str, kind: str) -> int:
        """Send a signal; return a time before it, in milliseconds, which is after the signal that was sent before."""
        # A file system's clock may be behind this one.
        before = time.time_ns() // 1_000_000 - round(GAP_S * 500)
        content = {"id": f"{kind} by {channel}", "type": kind, "data": {}}
        if channel == "source":
            signal(self._source, kind)
        elif channel == "file":
            with self._file.open("a") as file:
                file.write(json.dumps(content) + "\n")
        elif channel == "kafka":
            self._broker.send(f"{self._source.dbname}-signal", self._source.dbname, json.dumps(content))
        else:
            floodmark.signal(self.options, kind)
        time.sleep(GAP_S)
        return before

    def use_kafka(self, *channels: str) -> None:
        """Listen to the topic, which takes a while at each start, if it is one of the channels."""
        if "kafka" in channels:
            self.options["signal.enabled.channels"] = "source,file,kafka"

    def start(self, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
        return InProcess({**self.options, **{name.replace("_", "."): value for name, value in options.items()}}, offset)

    def start_until(self, sent_ms: int, offset: dict[str, Any]) -> InProcess:
        """Return a query that has carried out the pause or resume that was sent last."""
        query = self.start(offset, signal_poll_interval_ms="1")
        deadline = time.monotonic() + within(60)
        while (query.offset["incremental"] or {}).get("switched_ms", 0) < sent_ms:
            assert time.monotonic() < deadline, query.offset["incremental"]
            query.step()
        return query

    def reading(self) -> InProcess:
        """Return a query that has begun to read the table."""
        query = self.start()
        query.drain()
        query.restart()
        signal(self._source, "execute-snapshot", data_collections=["public.t"])
        for _ in range(100):
            query.step()
            if query.offset["incremental"] is not None:
                return query
        raise AssertionError("no snapshot has begun")


@pytest.fixture
def sender(pg18: Any, tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sender]:
    # All run on one machine here.
    monkeypatch.setattr(control, "CLOCKS_MS", 0)
    source = make_source(pg18, tmp_path / "state")
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 5000)")
    broker.create(f"{source.dbname}-signal")
    yield Sender(source, tmp_path, broker)
    drop(source)


def paused(query: InProcess) -> bool:
    assert query.offset["incremental"] is not None, "the snapshot is over"
    return bool(query.offset["incremental"]["paused"])


@pytest.mark.parametrize(("first", "second"), list(permutations(CHANNELS, 2)))
def test_signals_of_the_time_when_the_query_did_not_run(sender: Sender, first: str, second: str) -> None:
    sender.use_kafka(first, second)
    query = sender.reading()
    query.stop()
    sender.send(first, PAUSE)
    query = sender.start_until(sender.send(second, RESUME), query.offset)
    assert not paused(query)
    query.stop()
    if first < second:
        sender.send(first, RESUME)
        query = sender.start_until(sender.send(second, PAUSE), query.offset)
        assert paused(query)
        query.stop()


@pytest.mark.parametrize("first", ["file", "in-process"])
def test_a_signal_that_would_be_found_later_comes_first(sender: Sender, first: str) -> None:
    query = sender.reading()
    sender.send(first, PAUSE)
    sender.send("source", RESUME)
    for _ in range(6):
        query.step()
    assert not paused(query)
    assert query.offset["taken"] or query.offset["incremental"]["switched_ms"]
    query.stop()


@pytest.mark.parametrize("channel", ["file", "in-process", "kafka"])
def test_a_pause_that_is_found_after_a_later_resume_is_outdated(
    sender: Sender, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resume was taken by a process that couldn't see the other channel."""
    sender.use_kafka(channel)
    query = sender.reading()
    query.stop()
    sender.send(channel, PAUSE)
    sender.send("source", RESUME)
    blind = InProcess({**sender.options, "signal.enabled.channels": "source"}, query.offset)
    with monkeypatch.context() as patch:
        patch.setattr("floodmark.signals.files.InboxChannel._refresh", lambda _: None)
        while not (blind.offset["incremental"] or {}).get("switched_ms"):
            blind.step()
    blind.stop()
    resumed = blind.offset["incremental"]["switched_ms"]
    query = sender.start(blind.offset, signal_poll_interval_ms="1")
    for _ in range(4):
        query.step()
    assert query.offset["incremental"]["switched_ms"] == resumed
    assert not paused(query)
    query.stop()
    query = sender.start_until(sender.send(channel, PAUSE), query.offset)
    assert paused(query)
    query.stop()


def test_a_clock_that_is_fast_does_not_outdate_what_follows(sender: Sender) -> None:
    query = sender.reading()
    query.stop()
    inbox = Path(sender.options["state.dir"]) / load_options(sender.options).owner / "signals"
    inbox.mkdir(exist_ok=True)
    hours = time.time_ns() + 7200 * 10**9
    (inbox / f"{hours:020d}-x.json").write_text(json.dumps({"id": "x", "type": PAUSE, "data": ""}))
    query = sender.start_until(time.time_ns() // 1_000_000, query.offset)
    assert paused(query)
    query.stop()
    time.sleep(GAP_S)
    query = sender.start_until(sender.send("source", RESUME), query.offset)
    assert not paused(query)
    query.stop()


def test_the_order_of_one_channel_stays() -> None:
    one = [Signal("1", PAUSE, millis=50), Signal("2", RESUME, millis=10), Signal("3", PAUSE, millis=60)]
    other = [Signal("a", PAUSE, millis=55), Signal("b", PAUSE)]
    assert "".join(found.id for found in in_order_of_time([one, other])) == "12ab3"
