"""What the capture thread does when its log can't be read on, with log streams that are made up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from floodmark.capture.log_stream import Cut
from floodmark.capture.retry import RetryPolicy
from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.capture.thread import Capture
from floodmark.errors import FloodmarkError, LogGoneError, UnreadableLogError

UNREADABLE = UnreadableLogError("The server can't read its log.", "Repair it.")


class MadeStream:
    """A ``LogStream`` of positions.

    Args:
        refuses: raised when it is opened.
        upto: the last position that can be read; what follows is unreadable.
    """

    full = False
    spooled_bytes = 0
    idle_position = None

    def __init__(self, refuses: FloodmarkError | None, upto: int) -> None:
        self._refuses = refuses
        self._upto = upto
        self._cut = self._read = 0

    def open(self, position: str) -> None:
        if self._refuses is not None:
            raise self._refuses
        self._cut = self._read = int(position or 0)

    def read(self, timeout: float) -> int:
        if self._read > self._cut:
            return 0
        if self._read == self._upto:
            raise UNREADABLE
        self._read += 1
        return 1

    def tend(self) -> None:
        pass

    def cut(self, force: bool) -> Cut | None:
        if self._read == self._cut:
            return None
        after, self._cut = self._cut, self._read
        data = SegmentData(np.zeros(1, np.uint8), np.zeros(1, np.uint32))
        return Cut(data, f"{after:02}", f"{self._cut:02}", 1, 0.0, ())

    @property
    def received(self) -> str:
        return f"{self._read:02}"

    def confirm(self, position: str) -> None:
        pass

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> SegmentStore:
    made = SegmentStore(str(tmp_path), "owner", "run")
    made.create()
    return made


def captured(store: SegmentStore, streams: Iterator[MadeStream]) -> tuple[str, FloodmarkError]:
    """Capture until it fails; return up to where it came, and with which error."""
    capture = Capture(lambda: next(streams), store, 1 << 20, RetryPolicy(0, 1, 1))
    capture.start("00")
    upto = "00"
    try:
        while True:
            capture.wait(upto, 1.0, urgent=True)
            upto = capture.end(upto)
    except FloodmarkError as exc:
        return capture.end(upto), exc  # the error may be told before the last segment was
    finally:
        capture.stop()


def test_a_log_that_was_replaced_while_it_was_read_is_told_as_that(store: SegmentStore) -> None:
    other = LogGoneError("It is another log.")
    assert captured(store, iter([MadeStream(None, 3), MadeStream(other, 3)])) == ("03", other)


def test_a_log_that_stays_unreadable_is_an_error(store: SegmentStore) -> None:
    streams = [MadeStream(None, 3), MadeStream(None, 5), MadeStream(None, 5)]
    assert captured(store, iter(streams)) == ("05", UNREADABLE)


def test_a_run_that_waits_for_the_log_has_its_directory_when_it_is_its_turn(
    store: SegmentStore, tmp_path: Path
) -> None:
    SegmentStore(str(tmp_path), "owner", "the run before").take_over()
    upto, error = captured(store, iter([MadeStream(None, 3), MadeStream(None, 3)]))
    assert (upto, error) == ("03", UNREADABLE)
    assert [path.name for path in (tmp_path / "owner").iterdir()] == ["run"]


def test_a_run_begins_while_another_one_takes_over(tmp_path: Path) -> None:
    other, ended = SegmentStore(str(tmp_path), "owner", "other"), threading.Event()

    def take_over() -> None:
        while not ended.is_set():
            other.take_over()

    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(take_over)
        try:
            for number in range(300):
                SegmentStore(str(tmp_path), "owner", str(number)).create()
        finally:
            ended.set()
        taking.result()
