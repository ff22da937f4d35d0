"""What a micro-batch does, by where the last one ended and what was decided."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from floodmark.signals.records import ExecuteSnapshot
from floodmark.snapshots.state import SnapshotState
from floodmark.spark.stream.catch_up import CatchUpState
from floodmark.spark.stream.offsets import Offset
from floodmark.spark.stream.planning.ending import Ending
from floodmark.spark.stream.planning.notices import Notices
from floodmark.spark.stream.planning.phases import Phase, phase_of
from floodmark.spark.stream.planning.startup import Start

ACTION = ExecuteSnapshot("1", ("t",), True)
PLAIN = Offset({"system": "1"}, "10")
SNAPSHOT = replace(PLAIN, snapshot=SnapshotState("10", {}, [], [], []))
CATCHING_UP = replace(PLAIN, catch_up=CatchUpState(ACTION, "10"))
WITH_REQUEST = replace(PLAIN, blocking=(ACTION,))


@pytest.mark.parametrize(
    ("start", "decision", "streams", "waits", "expected"),
    [
        (PLAIN, Start.GO_ON, True, False, Phase.STREAM),
        (PLAIN, Start.GO_ON, False, False, Phase.ENDED),
        (PLAIN, Start.SNAPSHOT, True, False, Phase.BEGIN_SNAPSHOT),
        (PLAIN, Start.START_OVER, True, False, Phase.START_OVER),
        (PLAIN, Start.START_OVER, False, False, Phase.START_OVER),
        (SNAPSHOT, Start.GO_ON, True, False, Phase.SNAPSHOT),
        (SNAPSHOT, Start.GO_ON, False, False, Phase.SNAPSHOT),
        (SNAPSHOT, Start.START_OVER, True, False, Phase.START_OVER),
        (CATCHING_UP, Start.GO_ON, True, False, Phase.CATCH_UP),
        (replace(CATCHING_UP, blocking=(ACTION,)), Start.GO_ON, True, False, Phase.CATCH_UP),
        (WITH_REQUEST, Start.GO_ON, True, False, Phase.BEGIN_BLOCKING),
        (WITH_REQUEST, Start.GO_ON, True, True, Phase.STREAM),
        (replace(WITH_REQUEST, snapshot=SNAPSHOT.snapshot), Start.GO_ON, True, False, Phase.SNAPSHOT),
    ],
)
def test_the_phase_follows_from_the_offset(
    start: Offset, decision: Start, streams: bool, waits: bool, expected: Phase
) -> None:
    assert phase_of(start, decision, streams, waits) is expected


def test_every_offset_has_a_phase_and_every_phase_an_offset() -> None:
    """A snapshot that is given up leaves the offset before its phase is asked for."""
    decisions = [Start.GO_ON, Start.SNAPSHOT, Start.START_OVER]
    found = {
        phase_of(start, decision, streams, waits)
        for start, decision, streams, waits in itertools.product(
            (PLAIN, SNAPSHOT, CATCHING_UP, WITH_REQUEST), decisions, (True, False), (True, False)
        )
    }
    assert found == set(Phase)


def test_a_failed_attempt_leaves_no_notices() -> None:
    notices: Notices = Notices()
    first, second = object(), object()
    notices.add(first)  # type: ignore[arg-type]

    def fail() -> None:
        with notices.attempt():
            notices.add(second)  # type: ignore[arg-type]
            raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        fail()
    assert notices.all() == (first,)
    with notices.attempt():
        notices.add(second)  # type: ignore[arg-type]
    assert notices.all() == (first, second)
    notices.clear()
    assert not notices


class Log:
    """A log that grows each time it is asked for its end."""

    def __init__(self) -> None:
        self.asked = 0

    def end(self) -> str:
        self.asked += 1
        return str(self.asked)


def test_the_end_is_fixed_once_and_only_if_it_is_wanted() -> None:
    log = Log()
    ending = Ending(log)  # type: ignore[arg-type]
    ending.fix()
    assert (ending.target, log.asked) == (None, 0)
    ending.ask()
    ending.fix()
    ending.fix()
    assert (ending.target, log.asked) == ("1", 1)
    # Spark asks again at each start of the query in the same process.
    ending.ask()
    ending.fix()
    assert (ending.target, log.asked) == ("2", 2)
