"""Names in log records: texts that end with a zero byte."""

from __future__ import annotations

import numpy as np
import pytest

from floodmark.connectors.postgres.decode.tuples import LONGEST_NAME, terminated
from floodmark.errors import DecodeError


def found(data: bytes, *at: int) -> tuple[list[str], list[int]]:
    texts, ends = terminated(np.frombuffer(data, np.uint8), np.array(at, np.int64))
    return texts.to_pylist(), ends.tolist()


def test_short_empty_and_long_names() -> None:
    long = "é" * LONGEST_NAME
    data = b"ab\0\0" + long.encode() + b"\0x\0"
    assert found(data, 0, 3, 4, len(data) - 2) == (["ab", "", long, "x"], [2, 3, len(data) - 3, len(data) - 1])
    assert found(data) == ([], [])


@pytest.mark.parametrize(
    ("data", "at"),
    [(b"ab", [0]), (b"a" * 1000, [0]), (b"a\0" + b"b" * 1000, [0, 2]), (b"abcd\0", [0, 2]), (b"\xff\0", [0])],
)
def test_what_is_no_name(data: bytes, at: list[int]) -> None:
    with pytest.raises(DecodeError):
        found(data, *at)
