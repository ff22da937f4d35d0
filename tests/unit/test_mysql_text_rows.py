"""Rows of queries as raw columns."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from floodmark.connectors.mysql.snapshot.text_rows import select_expression, split_text_rows
from floodmark.connectors.mysql.structures.table import Column
from floodmark.errors import DecodeError

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
COLUMNS = [
    Column("i", "int", unsigned=True, zerofill=True),
    Column("t", "text", charset="utf8mb4"),
    Column("f", "float"),
    Column("d", "double"),
    Column("b", "blob"),
    Column("n", "decimal", 8, 3, zerofill=True),
]


def text(value: bytes | None) -> bytes:
    """Return a value as the server sends it."""
    if value is None:
        return b"\xfb"
    size = len(value)
    for mark, width in ((b"", 1), (b"\xfc", 2), (b"\xfd", 3)):
        if size < (0xFB if width == 1 else 1 << 8 * width):
            return mark + size.to_bytes(width, "little") + value
    return b"\xfe" + size.to_bytes(8, "little") + value


def split(rows: list[bytes], columns: list[Column] | None = None) -> list[list[Any]]:
    data = b"".join(b"head" + row for row in rows)
    ends = np.cumsum([len(row) + 4 for row in rows], dtype=np.int64)
    starts = ends - np.array([len(row) for row in rows], np.int64)
    found = split_text_rows(np.frombuffer(data, np.uint8), starts, ends, columns or COLUMNS)
    for column in found:
        column.values.validate(full=True)
    return [column.values.to_pylist() for column in found]


def row(*values: bytes | None) -> bytes:
    return b"".join(map(text, values))


def test_values() -> None:
    rows = [
        row(b"0000042", "é".encode() * 200, b"0.1", b"1e20", b"\0\xff", b"00001.500"),
        row(None, None, None, None, None, None),
        row(b"0000000", b"", b"16777217", b"-0", b"x" * 70000, b"00000.125"),
    ]
    assert split(rows) == [
        ["42", None, "0"],
        ["é" * 200, None, ""],
        [np.float32(0.1).item(), None, 16777216.0],
        [1e20, None, -0.0],
        [b"\0\xff", None, b"x" * 70000],
        ["1.500", None, "0.125"],
    ]
    assert split([]) == [[]] * 6


def test_large_values() -> None:
    value = b"y" * (1 << 24)
    assert split([row(value)], [COLUMNS[4]]) == [[value]]


@pytest.mark.parametrize(
    "broken",
    [
        row(b"1", b"a", b"1", b"1", b""),
        row(b"1", b"a", b"1", b"1", b"", b"1", b"1"),
        row(b"1", b"a", b"word", b"1", b"", b"1"),
        row(b"1", b"a", b"1", b"1", b"", b"1")[:-1],
        b"\xff" * 6,
        b"\xfe" + b"\xff" * 8,
        b"",
    ],
)
def test_rows_that_are_none(broken: bytes) -> None:
    good = row(b"1", b"a", b"1", b"1", b"", b"1")
    for rows in ([broken], [good, broken], [broken, good]):
        with pytest.raises(DecodeError):
            split(rows)


def test_broken_rows() -> None:
    rng = random.Random(3)
    good = row(b"12", b"text" * 70, b"1.5", b"2", b"bytes", b"1.0") * 1
    for _ in range(INPUTS // 3):
        rows = [bytearray(good) for _ in range(3)]
        for _ in range(rng.randint(1, 3)):
            one = rng.choice(rows)
            one[rng.randrange(len(one))] = rng.choice([0, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, rng.randrange(256)])
        try:
            found = split([bytes(one) for one in rows])
        except (DecodeError, ValueError, UnicodeDecodeError):
            continue
        assert all(len(values) == 3 for values in found)


def test_expressions() -> None:
    assert select_expression(Column("a`b", "int")) == "`a``b`"
    assert select_expression(Column("f", "float")) == "`f` * 1e0"
