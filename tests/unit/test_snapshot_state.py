"""Spans: everything is read once, and after a loss what may have been missed is read again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.snapshots.state import ALL, Found, SnapshotState, first_state, rebase, take_units


def tables(*units: int) -> list[CapturedTable]:
    return [CapturedTable(f"t{i}", f"t{i}", i, i, "1", n, 0) for i, n in enumerate(units)]


def begin(*units: int) -> SnapshotState:
    return first_state("p0", {}, "view0", tables(*units))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(1, 20))
def test_every_unit_is_read_once(units: list[int], step: int) -> None:
    state = begin(*units)
    read: list[tuple[int, int]] = []
    while state.pending:
        take_units(state, step)
        assert sum(last - first for _, (first, last, _) in state.batch) <= step
        read += [(table, unit) for table, (first, last, _) in state.batch for unit in range(first, last)]
        state = SnapshotState.from_json(state.to_json())
    assert read == [(table, unit) for table, n in enumerate(units) for unit in range(n)]


@given(st.integers(1, 60), st.integers(1, 10), st.integers(1, 5), st.integers(0, 9))
def test_after_a_loss_the_rest_is_read_whole_and_the_old_part_by_change(
    units: int, step: int, batches: int, grown: int
) -> None:
    state = begin(units)
    for _ in range(batches):
        take_units(state, step)
    done = min(units, step * batches)
    again = rebase(state, "p1", {}, "view1", {0: Found(units + grown, "1")})
    spans = again.tables[0].pending
    whole = {unit for first, last, view in spans if view == ALL for unit in range(first, last)}
    changed = {unit for first, last, view in spans if view == 0 for unit in range(first, last)}
    if state.tables[0].pending or state.batch:
        assert whole == set(range(done, units + grown))
        assert changed == set(range(done))
    else:
        assert not spans


def test_a_finished_table_of_an_earlier_batch_is_left_alone() -> None:
    state = begin(2, 4)
    take_units(state, 2)
    take_units(state, 2)
    again = rebase(state, "p1", {}, "view1", {0: Found(2, "1"), 1: Found(4, "1")})
    assert again.tables[0].pending == []
    assert again.tables[1].pending == [(0, 2, 0), (2, 4, ALL)]


def test_a_rewritten_table_starts_again_and_a_dropped_one_ends() -> None:
    state = begin(2, 4)
    take_units(state, 3)
    again = rebase(state, "p1", {}, "view1", {1: Found(6, "2")})
    assert [(table.name, table.pending) for table in again.tables] == [("t0", []), ("t1", [(0, 6, ALL)])]


def test_a_second_loss_keeps_what_was_still_to_be_repaired() -> None:
    state = begin(10)
    take_units(state, 4)
    state = rebase(state, "p1", {}, "view1", {0: Found(10, "1")})
    take_units(state, 2)
    state = rebase(state, "p2", {}, "view2", {0: Found(10, "1")})
    assert state.tables[0].pending == [(0, 2, 1), (2, 4, 0), (4, 10, ALL)]
