"""Segments of Oracle's log: which rows lie up to a position."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.decode.segment import Part, SegmentRows, segment_of
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.position import Position

TRANSACTIONS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=5)
"""The numbers of changes in the parts of transactions."""


def rows_of(scn: int, xid: str, count: int) -> pa.Table:
    rows = [{"SCN": scn, "XID": xid.lower(), "OPERATION_CODE": 1, "TIMESTAMP": 0, "THREAD#": 1} for _ in range(count)]
    return pa.Table.from_pylist(rows, ROWS)


@given(TRANSACTIONS, st.integers(0, 3), st.integers(0, 2))
def test_each_position_divides_the_rows(transactions: list[list[int]], before: int, pair: int) -> None:
    parts, rows, places = [], [], []
    for number, counts in enumerate(transactions):
        # Several commits may have one number.
        commit = Position(100 + number // (pair + 1), 1, f"{number:016X}")
        done = before if number == 0 else 0
        for at, count in enumerate(counts):
            parts.append(Part(commit, 0, 1, 0, done, count, at == len(counts) - 1))
            rows.append(rows_of(commit.scn, commit.transaction, count))
            places += [commit.at(done + one + 1) for one in range(count)]
            done += count
    segment = SegmentRows(segment_of(parts, rows, {}))
    assert [segment.rows.place(row) for row in range(len(places))] == list(map(str, places))
    first, last = parts[0].after, parts[-1].upto
    for number, place in enumerate(places, 1):
        assert segment.within(str(first), str(place)) == slice(0, number)
        assert segment.within(str(place), str(last)) == slice(number, len(places))
    assert segment.within(str(Position(99)), str(Position(1000))) == slice(0, len(places))
    for part in parts:
        if part.ends:
            whole = sum(place.commit <= part.commit.commit for place in places)
            assert segment.within(str(first), str(part.upto)) == slice(0, whole)
