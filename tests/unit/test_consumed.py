"""What is proven of a key's records finds what must not be there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.consumed import Record, rebuilt, verify_order


def event(op: str, lsn: int, v: int | None, **more: Any) -> Record:
    after = None if v is None else {"id": 1, "v": v}
    return Record({"op": op, "source": {"lsn": lsn}, "after": after, "ts_ms": id(object()), **more}, op)


R, A, B, C = event("r", 1, 0), event("c", 2, 1), event("u", 3, 2), event("u", 4, 3)
D, T = event("d", 5, None), Record(None, "")


@pytest.mark.parametrize(
    ("records", "rewinds"),
    [
        ([R, A, B, C], 0),
        ([A, B, A, B, C], 1),
        ([A, B, B, C], 1),
        ([A, B, C, A, B, C, D, T], 1),
        ([A, D, A, D, T], 1),
        ([A, D, T, D, T], 1),
        ([A, D, T, A, D, T, D, T], 2),
        # The row of the snapshot has changed meanwhile.
        ([A, event("r", 2, 1), A, B], 1),
        ([event("u", 3, 2), event("u", 3, 2)], 1),
    ],
)
def test_what_kills_may_leave(records: list[Record], rewinds: int) -> None:
    assert verify_order(records, 2) == rewinds


@pytest.mark.parametrize(
    "records",
    [
        [B, A],
        [A, B, C, A, C],
        [A, B, A, A, A, B],
        [A, event("c", 2, 7)],
        [A, D],
        [A, D, A],
        [A, D, event("c", 6, 9)],
        [A, T],
        [A, D, T, T],
    ],
)
def test_what_must_not_be(records: list[Record]) -> None:
    with pytest.raises(AssertionError):
        verify_order(records, 2)


def test_the_row_that_a_consumer_has() -> None:
    assert rebuilt([A, B]) == {"id": 1, "v": 2}
    assert rebuilt([A, D, T]) is None
    kept = event("u", 4, 3)
    assert kept.value is not None
    kept.value["after"]["big"] = "__debezium_unavailable_value"
    first = event("c", 2, 1)
    assert first.value is not None
    first.value["after"]["big"] = "x"
    assert rebuilt([first, kept]) == {"id": 1, "v": 3, "big": "x"}
