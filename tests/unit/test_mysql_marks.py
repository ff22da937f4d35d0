"""Marks of places in a binlog, and what is compared with them."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.continuity.check import _contradicts
from floodmark.connectors.mysql.reading.channel import error_of
from floodmark.connectors.mysql.reading.file_marks import MAX_BYTES, MAX_EVENTS, Mark, OtherLogError
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.errors import ConnectError, LogGoneError
from tests.support.binlog_events import Log, packets

TRANSACTIONS = 40


def made(mariadb: bool, checksum: bool = True, change: Callable[[Log, int], None] = lambda *_: None) -> Log:
    """Return a log of small transactions; one of them may be another one."""
    log = Log(mariadb=mariadb, checksum=checksum)
    log.begin_file()
    for number in range(TRANSACTIONS):
        change(log, number)
        log.transaction(number)
    return log


def received(log: Log, mark: Mark | None = None) -> Receiver:
    """Return what has taken a log."""
    receiver = Receiver(1 << 20, 0, 1, 4, None, mark)
    data = packets(log.events)
    receiver.space()[: len(data)] = data
    receiver.take(len(data))
    return receiver


def mark_of(log: Log) -> Mark:
    receiver = received(log)
    receiver.remember(receiver.waiting.cut_count)
    mark = receiver.tail.mark
    assert mark is not None
    return mark


@pytest.mark.parametrize("mariadb", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
def test_the_same_log_is_proven(mariadb: bool, checksum: bool) -> None:
    log = made(mariadb, checksum)
    mark = mark_of(log)
    assert 4 < mark.begin < mark.end == log.offset
    assert Mark.from_json(mark.to_json()) == mark
    assert received(log, mark).proof.done
    log.transaction(99)
    assert received(log, mark).proof.done


def test_what_comes_together_with_the_end_counts() -> None:
    log = made(False)
    receiver = Receiver(1 << 20, 0, 1, 4, None, None)
    data = packets(log.events)
    end = b"\xfe\0\0\2\0"
    data += len(end).to_bytes(3, "little") + bytes([(len(log.events) + 1) & 0xFF]) + end
    receiver.space()[: len(data)] = data
    with pytest.raises(ConnectError):
        receiver.take(len(data))
    receiver.remember(receiver.all_records().before(1, log.offset))
    assert receiver.tail.mark == mark_of(log)


def test_a_log_that_ends_before_is_not_proven() -> None:
    mark = mark_of(made(False))
    log = Log()
    log.begin_file()
    log.transaction(0)
    assert not received(log, mark).proof.done


@pytest.mark.parametrize("mariadb", [False, True])
def test_other_events_are_noticed(mariadb: bool) -> None:
    mark = mark_of(made(mariadb))

    def another_number(log: Log, number: int) -> None:
        log.gno += 0 if number < TRANSACTIONS - 3 else 1

    with pytest.raises(OtherLogError, match="not those that were delivered"):
        received(made(mariadb, change=another_number), mark)
    other = Log(mariadb=mariadb)
    other.begin_file()
    for number in range(TRANSACTIONS):
        other.transaction(number if number < TRANSACTIONS - 2 else 77)
    assert other.offset == made(mariadb).offset
    with pytest.raises(OtherLogError):
        received(other, mark)


def test_another_begin_of_the_file_is_noticed() -> None:
    log = made(False, checksum=False)
    mark = mark_of(log)
    for index, event in enumerate(log.events):
        if event[types.TYPE] == types.FORMAT_DESCRIPTION:
            log.events[index] = struct.pack("<I", 1_700_000_001) + event[4:]
    with pytest.raises(OtherLogError, match="begun as"):
        received(log, mark)


def test_a_mark_is_small_whatever_it_is_of() -> None:
    log = Log()
    log.begin_file()
    log.transaction(*range(50_000))
    mark = mark_of(log)
    assert mark.end - mark.begin < MAX_BYTES
    assert received(log, mark).proof.done
    # One event that is larger counts alone, by its begin and end.
    log.gtid()
    log.query("CREATE TABLE t (id INT) COMMENT '" + "x" * 200_000 + "'")
    mark = mark_of(log)
    assert mark.begin == log.offset - len(log.events[-1])
    assert received(log, mark).proof.done


def test_a_mark_is_of_the_file_that_the_last_record_lies_in() -> None:
    log = made(False)
    log.next_file()
    end = log.transaction(1)
    mark = mark_of(log)
    assert (mark.file, mark.end) == (2, end)
    assert end - mark.begin <= end
    assert len(log.events) > MAX_EVENTS


@pytest.mark.parametrize(
    "text",
    [
        "binlog truncated in the middle of event; consider out of disk space on source",
        "bogus data in log event; the first event 'b.000001' at 1365",
        "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source",
    ],
)
def test_a_place_inside_an_event_of_another_file_shows_that_it_is_another_file(text: str) -> None:
    """What the server reads there is no event, so it may find that one to be of any size."""
    error = error_of(1236, text)
    assert _contradicts(Receiver(1 << 20, 0, 1, 4, None, Mark(1, "birth", 1365, 2000, "ab")), error)
    # Without events to compare, the file may be the right one, and damaged.
    assert not _contradicts(Receiver(1 << 20, 0, 1, 4, None, Mark(1, "birth")), error)


def test_a_file_that_is_cut_off_is_a_lost_log() -> None:
    """So a new snapshot may replace it."""
    assert isinstance(
        error_of(1236, "binlog truncated in the middle of event; consider out of disk space"), LogGoneError
    )
