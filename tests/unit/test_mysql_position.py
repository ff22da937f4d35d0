"""Positions in a binlog: text, order, whole columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.mysql.position import ALL_ROWS, Position, event_places, positions
from floodmark.errors import CheckpointError

PLACES = st.builds(
    Position,
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, ALL_ROWS),
)


@given(PLACES, PLACES)
def test_text_sorts_as_the_log(one: Position, other: Position) -> None:
    assert Position.parse(str(one)) == one
    assert (str(one) < str(other)) == (one < other)


@given(st.lists(PLACES, max_size=5), st.integers(0, 255))
def test_columns_are_as_single_texts(places: list[Position], sub: int) -> None:
    places = [Position(7, p.file, p.transaction, p.event, p.row) for p in places]
    file, transaction, event, row = (
        np.array([getattr(p, name) for p in places], np.int64) for name in ("file", "transaction", "event", "row")
    )
    made = positions(event_places(7, file, transaction, event), row, sub).to_pylist()
    assert made == [f"{place}-{sub:02X}" for place in places]
    assert [Position.parse(text) for text in made] == places


def test_the_end_of_a_transaction_lies_between_it_and_the_next() -> None:
    last = Position(0, 1, 200, 300, 5)
    end = Position(0, 1, 400)
    assert str(last) + "-00" < str(Position(0, 1, 200, 300, ALL_ROWS)) < str(end) < str(Position(0, 1, 400, 450, 1))
    assert str(end) < str(Position(0, 2, 4)) < str(Position(1, 1, 4))


@pytest.mark.parametrize("text", ["", "0000000001-0-0-0", "0/16B3748", "0" * 53])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="not a position"):
        Position.parse(text)
