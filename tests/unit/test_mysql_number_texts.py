"""Numbers as the servers write them into columns of texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.mysql.structures.number_texts import number_text

NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(np.float64)


@given(NUMBERS)
def test_a_text_with_room_identifies_its_number(number: np.float64) -> None:
    assert np.float64(number_text(number)) == number


@given(NUMBERS.filter(lambda number: abs(number) < 1e300), st.integers(9, 30))
def test_a_text_is_near_its_number_where_there_is_little_room(number: np.float64, width: int) -> None:
    text = number_text(number, width)
    assert len(text) <= width
    assert np.float64(text) == pytest.approx(number, rel=0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("number", "width", "expected"),
    [
        (-1000, 5, "-1000"),
        (-1000, 4, "-1e3"),
        (1.27, 3, "1.3"),
        (9.99, 3, "10"),
        (1e14, 30, "100000000000000"),
        (1e15, 30, "1e15"),
        (-0.2, 1, "0"),
    ],
)
def test_examples(number: float, width: int, expected: str) -> None:
    assert number_text(np.float64(number), width) == expected
