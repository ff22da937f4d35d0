"""Hashes of rows are equal exactly where the values are, whatever Arrow's layout is."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.verification.hashes import column_hashes, row_hashes

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats(allow_nan=False).map(lambda number: number + 0.0)),
    (pa.float32(), st.floats(width=32, allow_nan=False).map(lambda number: number + 0.0)),
    (pa.decimal128(10, 2), st.integers(-(10**10) + 1, 10**10 - 1).map(lambda number: Decimal(number).scaleb(-2))),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=40)),
    (pa.binary(), st.binary(max_size=40)),
    (pa.date32(), st.dates()),
    (
        pa.timestamp("us", "UTC"),
        st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)),
    ),
    (pa.timestamp("us"), st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1))),
    (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=9), max_size=4)),
    (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=4)),
    (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(-3, 3), "b": st.none() | st.text(max_size=3)}),
    ),
]


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind[0]), st.lists(st.none() | kind[1]))))
def test_hashes_are_equal_exactly_where_values_are(case: tuple[pa.DataType, list[Any]]) -> None:
    kind, values = case
    hashes = column_hashes(pa.table({"c": pa.array(values, kind)}), "c")
    found = pa.array(values, kind).to_pylist()
    for at, value in enumerate(found):
        for other in range(at):
            assert (hashes[at] == hashes[other]) == (value == found[other])


@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.lists(st.none() | kind[1], max_size=30))
    ),
    st.integers(0, 30),
    st.lists(st.integers(1, 30), max_size=3),
)
def test_the_layout_does_not_matter(case: tuple[pa.DataType, list[Any]], begin: int, cuts: list[int]) -> None:
    kind, values = case
    whole = pa.array(values, kind)
    expected = column_hashes(pa.table({"c": whole}), "c")
    begin = min(begin, len(values))
    np.testing.assert_array_equal(column_hashes(pa.table({"c": whole.slice(begin)}), "c"), expected[begin:])
    bounds = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    chunks = [whole.slice(low, high - low) for low, high in itertools.pairwise(bounds)]
    cut = pa.table({"c": pa.chunked_array(chunks, kind)})
    np.testing.assert_array_equal(column_hashes(cut, "c"), expected)


def test_texts_and_their_encodings() -> None:
    texts = ["", "a", "b", None, "x" * 7, "x" * 8, "x" * 9, "y" * 5_000_000, "a\0", "a\0\0"]
    plain = pa.array(texts)
    expected = column_hashes(pa.table({"c": plain}), "c")
    assert len(set(expected.tolist())) == len(texts)
    for other in (plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.string_view())):
        np.testing.assert_array_equal(column_hashes(pa.table({"c": other}), "c"), expected)


def test_floats_are_equal_as_in_sql() -> None:
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    values = pa.array([0.0, -0.0, math.nan, payload, math.inf, -math.inf, 1.5])
    zero, minus, nan, other, *rest = column_hashes(pa.table({"c": values}), "c").tolist()
    assert zero == minus
    assert nan == other
    assert len({zero, nan, *rest}) == 5


def test_columns_count_by_their_names() -> None:
    rows = pa.table({"a": [1, 2], "b": [2, 1]})
    swapped = pa.table({"b": [2, 1], "a": [1, 2]})
    np.testing.assert_array_equal(row_hashes(rows, ["a", "b"]), row_hashes(swapped, ["b", "a"]))
    first, second = row_hashes(rows, ["a", "b"])
    assert first != second


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.list_(pa.int32())])
def test_no_rows(kind: pa.DataType) -> None:
    assert not len(row_hashes(pa.table({"c": pa.array([], kind)}), ["c"]))
