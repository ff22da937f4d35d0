"""Planted differences are always found, and equal tables never differ."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.verification.candidates import differing_keys, refined
from floodmark.verification.conditions import MOST_KEYS, key_conditions, listed, named
from floodmark.verification.recheck import judged
from floodmark.verification.sums import bits_for, limited, sums_of

COLUMNS = pa.schema([("id", pa.int32()), ("part", pa.string()), ("v", pa.string())])
KEY = ("id", "part")
Row = tuple[int, str, str | None]
KEYS = st.tuples(st.integers(0, 40), st.sampled_from(["", "a", "b"]))


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS)


def parts(rows: list[Row], seed: int) -> list[pa.Table]:
    mixed = random.Random(seed)
    rows = mixed.sample(rows, len(rows))
    cut = mixed.randrange(len(rows) + 1)
    return [table(rows[:cut]), table(rows[cut:])]


def compared(source: list[Row], target: list[Row], bits: int) -> set[tuple[int, str]]:
    left, right = (sums_of(parts(rows, seed), KEY, bits) for seed, rows in enumerate((source, target)))
    wanted = left.differing(right)
    if not wanted.any():
        return set()
    sides = [refined(parts(rows, 7), COLUMNS, KEY, bits, wanted) for rows in (source, target)]
    return {(row["id"], row["part"]) for row in differing_keys(*sides).to_pylist()}


@given(
    st.dictionaries(KEYS, st.none() | st.text(max_size=3)),
    st.dictionaries(KEYS, st.sampled_from(["missing", "surplus", "differs", "doubled"])),
    st.integers(0, 6),
)
def test_exactly_the_planted_differences_are_found(
    held: dict[tuple[int, str], str | None], planted: dict[tuple[int, str], str], bits: int
) -> None:
    source = {key: value for key, value in held.items() if planted.get(key) != "surplus"}
    target = [(*key, value) for key, value in source.items() if planted.get(key) != "missing"]
    expected = {key for key, kind in planted.items() if kind == "missing" and key in source}
    for key, kind in planted.items():
        if kind == "surplus":
            target.append((*key, "x"))
            expected.add(key)
        elif key in source and kind == "doubled":
            target.append((*key, source[key]))
            expected.add(key)
        elif key in source and kind == "differs":
            target.remove((*key, source[key]))
            target.append((*key, f"{source[key]}!"))
            expected.add(key)
    assert compared([(*key, value) for key, value in source.items()], target, bits + 1) == expected


def test_sums_of_many_rows_are_exact() -> None:
    rows = pa.table({"id": np.arange(100_000, dtype=np.int64), "v": np.arange(100_000, dtype=np.int64) // 7})
    whole = sums_of([rows], ("id",), 4)
    cut = sums_of([rows.slice(at, 313) for at in range(0, 100_000, 313)], ("id",), 4)
    assert whole.rows == 100_000
    assert not whole.differing(cut).any()
    assert bits_for(0) == 4
    assert bits_for(10**9) == 18


def test_ranges_are_limited() -> None:
    mask = np.array([True, False, True, True])
    counts = np.array([5, 100, 5, 5])
    assert limited(mask, counts, 10).tolist() == [True, False, True, False]
    assert limited(mask, counts, 1).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("before", "target", "after", "position", "verdict"),
    [
        ([1], [1], [1], "1", "equal"),
        ([], [], [], "", "equal"),
        ([1], [2], [2], "9", "equal"),
        ([1], [2], [1], "1", "differs"),
        ([1], [2], [1], "9", "open"),
        ([], [2], [], "1", "surplus"),
        ([], [2], [], "9", "open"),
        ([1], [], [1], "", "missing"),
        ([1], [], [2], "", "open"),
        ([1], [], [], "", "equal"),
        ([1], [1, 1], [1], "1", "doubled"),
        ([1, 1], [1], [1], "1", "ambiguous"),
    ],
)
def test_what_a_round_proves(
    before: list[int], target: list[int], after: list[int], position: str, verdict: str
) -> None:
    assert judged(before, target, after, position, "5") == verdict


def test_conditions_name_all_keys() -> None:
    keys = pa.table({"a": list(range(2500)), "b": ["it's\\"] * 2500})
    found = list(key_conditions(keys, False))
    assert sum(chosen.num_rows for _, chosen in found) == 2500
    assert all(chosen.num_rows <= MOST_KEYS and len(text) < 65_536 for text, chosen in found)
    assert found[0][0].startswith("(\"a\" = 0 AND \"b\" = 'it''s\\') OR (")
    one = pa.table({"a b": [1, 2]})
    assert [text for text, _ in key_conditions(one, True)] == ["`a b` IN (1, 2)"]
    assert next(key_conditions(pa.table({"a": ["\\"]}), True))[0] == "`a` IN ('\\\\')"


@pytest.mark.parametrize("value", [None, float("nan"), 1.5, "a\0", "x" * 10_000, [1]])
def test_some_keys_have_no_condition(value: Any) -> None:
    assert named(pa.table({"a": [value]}), False) == [False]


def test_dates_that_python_lacks() -> None:
    keys = pa.table({"a": pa.array([-800_000, 0], pa.int32()).cast(pa.date32())})
    assert named(keys, False) == [False, False]
    assert [str(value) for value in listed(keys)["a"]][1] == "1970-01-01"
