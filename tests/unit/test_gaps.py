"""Which gaps an offset announces: each once, whatever restarts, and never before the log that precedes it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.spark.stream.gaps import with_gaps
from floodmark.spark.stream.offsets import Offset, following


def gap(after: int, upto: int) -> Gap:
    return Gap(f"{after:04d}", f"{upto:04d}", "The slot was moved.", "offset.mismatch.strategy=trust_slot")


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Gap], list[int]]:
    """Return gaps that don't overlap, and positions outside of them at which micro-batches end."""
    edges = sorted(draw(st.sets(st.integers(1, 60), min_size=2, max_size=10)))
    gaps = [gap(after, upto) for after, upto in zip(edges[::2], edges[1::2], strict=False)]
    ends = sorted(draw(st.lists(st.integers(1, 61), max_size=12)))
    return gaps, [end for end in ends if not any(int(one.after) < end < int(one.upto) for one in gaps)]


@given(logs(), st.data())
def test_each_gap_is_announced_once_and_in_its_place(log: tuple[list[Gap], list[int]], data: st.DataObject) -> None:
    gaps, ends = log
    met = AcceptedGaps()
    start = Offset({}, "0000")
    announced: list[tuple[Gap, str]] = []
    captured = 0
    for end in [*ends, 61]:
        if data.draw(st.booleans()):
            # A restart meets what lies behind the checkpoint again, and nothing before it.
            met, captured = AcceptedGaps(), int(start.log)
        # Capture is anywhere between the micro-batch and the end of the log.
        captured = max(captured, data.draw(st.integers(end, 61)))
        for one in gaps:
            if start.log <= one.after and int(one.after) <= captured:
                met.add(one)
        planned = following(start, log=f"{end:04d}")
        planned = Offset.from_json(replace(planned, gaps=with_gaps(start, planned, met.all())).to_json())
        announced += [(one, planned.log) for one in planned.gaps if one not in start.gaps]
        start = planned
    assert [one for one, _ in announced] == gaps
    assert all(one.after <= at for one, at in announced)


def test_nothing_is_planned_for_a_gap_that_is_announced() -> None:
    start = Offset({}, "0010", gaps=(gap(10, 20),))
    assert with_gaps(start, start, [gap(10, 20)]) == start.gaps


def test_an_offset_without_gaps_is_read() -> None:
    data = Offset({}, "0010").to_json()
    del data["gaps"]
    assert Offset.from_json(data).gaps == ()
