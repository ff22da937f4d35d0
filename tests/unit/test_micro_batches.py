"""Micro-batches that come again, and others with the same number."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from floodmark.sinks.micro_batches import Extent, comes_again, mark_of

POSITIONS = st.sampled_from(["", "0A-00", "0B-01", "0C-00"])
EXTENTS = st.builds(Extent, POSITIONS, POSITIONS)


def test_how_far_rows_go() -> None:
    rows = pa.table({"op": ["r", "c", "u", "r", "d"], "position": ["09", "03", "05", "09", "04"]})
    assert Extent.of(rows) == ("05", "09")
    assert Extent.of(rows.slice(0, 1)) == ("", "09")
    assert Extent.of(rows.slice(1, 2)) == ("05", "")


@given(st.lists(EXTENTS, min_size=1, max_size=4), st.lists(EXTENTS, min_size=1, max_size=4))
def test_which_micro_batches_come_again(written: list[Extent], found: list[Extent]) -> None:
    """Positions alone count, whatever parts they are in; rows of snapshots may be missing, but not others be there."""
    first, second = (Extent(*map(max, zip(*extents, strict=True))) for extents in (written, found))
    expected = first.logged == second.logged and second.read in ("", first.read)
    marks = mark_of(written), mark_of(found)
    assert comes_again(*marks) == expected
    assert all(0 <= mark < 1 << 63 for mark in marks)
