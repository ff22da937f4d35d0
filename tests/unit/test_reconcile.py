"""The window rule: rows that were read between two marks, put beside what the log says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.snapshots.incremental.reconcile import Touches, key_texts, reconcile

KEYS = "abcd"
Row = tuple[int, int]
"""A small value, which every change sets, and a large one, which the log may lack."""
Rows = dict[str, Row]


@dataclass
class Change:
    """What the log says of one key. ``big`` is None if it lacks the large value; ``row`` is what the key has then."""

    key: str
    row: Row | None
    made: bool
    big: int | None


def play(rows: Rows, steps: list[tuple[str, str, str, bool]]) -> tuple[list[list[Change]], list[Rows]]:
    """Change rows step by step; return each step's changes, and the rows before and after each step."""
    states = [dict(rows)]
    log: list[list[Change]] = []
    for number, (action, key, other, lacking) in enumerate(steps, 1):
        now = dict(states[-1])
        changes: list[Change] = []
        big = None if lacking else number
        if action == "insert" and key not in now:
            now[key] = (number, number)
            changes = [Change(key, now[key], True, number)]
        elif action == "update" and key in now:
            now[key] = (number, now[key][1] if big is None else big)
            changes = [Change(key, now[key], False, big)]
        elif action == "delete" and key in now:
            del now[key]
            changes = [Change(key, None, False, None)]
        elif action == "rekey" and key in now and other not in now:
            old = now.pop(key)
            now[other] = (number, old[1] if big is None else big)
            changes = [Change(key, None, False, None), Change(other, now[other], True, big)]
        states.append(now)
        log.append(changes)
    return log, states


def touches_of(changes: list[Change], contained: list[bool], emptied: bool = False) -> Touches:
    return Touches(
        pa.array([change.key for change in changes], pa.string()),
        np.array([change.row is not None for change in changes], bool),
        np.array([change.made for change in changes], bool),
        np.array([change.row is not None and change.big is None for change in changes], bool),
        np.array(contained, bool),
        emptied,
    )


def delivered(read: Rows, touches: Touches, changes: list[Change]) -> Rows:
    """Return the rows that are delivered at the window's end."""
    names = list(read)
    found = reconcile(pa.array(names, pa.string()), touches)
    result = {names[index]: read[names[index]] for index in found.kept.tolist()}
    for index, applied in found.completed:
        big = read[names[index]][1]
        for change in (changes[i] for i in applied):
            assert change.row is not None
            big = big if change.big is None else change.big
            result[names[index]] = (change.row[0], big)
        result.setdefault(names[index], read[names[index]])
    return result


steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "update", "delete", "rekey"]),
        st.sampled_from(KEYS),
        st.sampled_from(KEYS),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=1000)
@given(present=st.sets(st.sampled_from(KEYS)), script=steps, data=st.data(), known=st.booleans())
def test_what_is_delivered_is_right_at_the_end_and_nothing_is_lost(
    present: set[str], script: list[tuple[str, str, str, bool]], data: st.DataObject, known: bool
) -> None:
    log, states = play({key: (0, -ord(key)) for key in sorted(present)}, script)
    read_at = data.draw(st.integers(0, len(script)))
    changes = [change for step in log for change in step]
    contained = [known and number < read_at for number, step in enumerate(log) for _ in step]
    read, final = states[read_at], states[-1]
    found = delivered(read, touches_of(changes, contained), changes)

    assert all(final.get(key) == row for key, row in found.items())
    for key in read:
        own = [(change, seen) for change, seen in zip(changes, contained, strict=True) if change.key == key]
        if not own:
            assert found[key] == read[key]
            continue
        told = [change.big for change, _ in own]
        last_made = max((i for i, (change, _) in enumerate(own) if change.made or change.row is None), default=None)
        since = told if last_made is None else told[last_made:]
        if key in final and all(big is None for big in since):
            # Only what was read has the large value. It may be another row's if the row was inserted again after it was
            # read, or at a moment that isn't known.
            unclear = any(not seen and (change.made or change.row is None) for change, seen in own)
            assert unclear or found[key] == final[key]
        elif own[-1][0].big is not None or key not in final:
            assert key not in found


def test_a_table_that_was_emptied_gives_nothing() -> None:
    found = reconcile(pa.array(["a", "b"]), touches_of([], [], emptied=True))
    assert (found.kept.tolist(), found.completed) == ([], [])


def test_no_log_keeps_all() -> None:
    found = reconcile(pa.array(["a", "b"]), touches_of([], []))
    assert (found.kept.tolist(), found.completed) == ([0, 1], [])


def test_texts_of_composite_keys_are_all_different() -> None:
    first = pa.array(["a", "ab", "", "abc", "a b"], pa.string())
    second = pa.array(["bc", "c", "abc", "", "c"], pa.string())
    texts = key_texts([first, second]).to_pylist()
    assert len(set(texts)) == len(texts)
    assert key_texts([first]) == first
