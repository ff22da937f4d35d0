"""Equal rows get equal numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from floodmark.codecs.numbering import Numbering, number_bytes, number_rows

FEW = st.sampled_from((0, 1, 7, -1, 2**63 - 1, -(2**63)))


@given(arrays.arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(0, 30)), elements=FEW))
def test_rows_of_integers(columns: np.ndarray) -> None:
    prove(number_rows(*columns), list(map(tuple, columns.T.tolist())))


@given(arrays.arrays(np.uint8, st.tuples(st.integers(0, 30), st.integers(1, 3)), elements=st.integers(0, 2)))
def test_rows_of_bytes(matrix: np.ndarray) -> None:
    prove(number_bytes(matrix), list(map(tuple, matrix.tolist())))


def prove(found: Numbering, rows: list[tuple[int, ...]]) -> None:
    distinct = list(dict.fromkeys(rows))
    assert found.owner.tolist() == [distinct.index(row) for row in rows]
    assert found.first.tolist() == [rows.index(row) for row in distinct]
