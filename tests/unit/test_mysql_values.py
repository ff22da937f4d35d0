"""Values of row events: what the servers of today no longer write, and the corners of what they do."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import zlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.values.charsets import KNOWN, UTF8
from floodmark.connectors.mysql.values.layouts import parse_layouts, with_structure
from floodmark.connectors.mysql.values.raw_columns import raw_column
from floodmark.connectors.mysql.values.row_images import Pieces
from floodmark.errors import DecodeError
from tests.support.binlog_values import datetime2, decimal, time2

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
NONE = None
CLOCKS = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))


def raw(kind: int, meta: bytes, column: Column, values: Sequence[bytes | None]) -> list[Any]:
    """Return values, each where its bytes begin, as a raw column."""
    data = b"~".join(value or b"" for value in values)
    lengths = np.array([len(value or b"") for value in values], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    valid = np.array([value is not None for value in values], bool)
    layout = with_structure(parse_layouts(bytes([kind]), meta), [column], False)[0]
    pieces = Pieces(starts, lengths, None if valid.all() else valid)
    array = raw_column(np.frombuffer(data, np.uint8), pieces, layout, column)
    array.validate(full=True)
    values_found: list[Any] = array.to_pylist()
    return values_found


def test_old_times() -> None:
    old = Column("t", "timestamp")
    assert raw(7, b"", old, [struct.pack("<I", 0), NONE, struct.pack("<I", 1_700_000_000)]) == [
        "0000-00-00 00:00:00",
        None,
        "2023-11-14 22:13:20",
    ]
    numbers = [20240229131415, 0, 99991231235959]
    assert raw(12, b"", Column("t", "datetime"), [struct.pack("<q", number) for number in numbers]) == [
        "2024-02-29 13:14:15",
        "0000-00-00 00:00:00",
        "9999-12-31 23:59:59",
    ]
    spans = [8385959, -8385959, 0, -1, 131415]
    assert raw(11, b"", Column("t", "time"), [struct.pack("<i", span)[:3] for span in spans]) == [
        "838:59:59",
        "-838:59:59",
        "00:00:00",
        "-00:00:01",
        "13:14:15",
    ]


def test_dates() -> None:
    days = [(2024, 2, 29), (0, 0, 0), (9999, 12, 31), (2024, 0, 0)]
    packed = [(year << 9 | month << 5 | day).to_bytes(3, "little") for year, month, day in days]
    assert raw(10, b"", Column("d", "date"), packed) == ["2024-02-29", "0000-00-00", "9999-12-31", "2024-00-00"]


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31), CLOCKS, st.integers(0, 999_999))),
)
@settings(max_examples=60, deadline=None)
def test_datetimes(digits: int, values: list[tuple[int, int, int, tuple[int, int, int], int]]) -> None:
    unit = 10 ** (6 - digits)
    cut = [(year, month, day, clock, micros - micros % unit) for year, month, day, clock, micros in values]
    found = raw(18, bytes([digits]), Column("d", "datetime", NONE, digits), [datetime2(*one, digits) for one in cut])
    assert found == [
        f"{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}" + (f".{micros:06}"[: digits + 1] if digits else "")
        for year, month, day, (h, m, s), micros in cut
    ]


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.booleans(), st.integers(0, 838), CLOCKS, st.integers(0, 999_999)), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_spans(digits: int, values: list[tuple[bool, int, tuple[int, int, int], int]]) -> None:
    encoded, expected = [], []
    for negative, hours, (_, minute, second), micros in values:
        cut = micros - micros % 10 ** (6 - digits)
        encoded.append(time2(negative, (hours, minute, second), cut, digits))
        sign = "-" if negative and (hours, minute, second, cut) != (0, 0, 0, 0) else ""
        fraction = f".{cut:06}"[: digits + 1] if digits else ""
        expected.append(f"{sign}{hours:02}:{minute:02}:{second:02}{fraction}")
    assert raw(19, bytes([digits]), Column("t", "time", NONE, digits), encoded) == expected


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_decimals(data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(30, precision)))
    digits = data.draw(st.lists(st.integers(-(10**precision) + 1, 10**precision - 1), min_size=1, max_size=6))
    numbers = [Decimal(f"{one}e-{scale}") for one in digits]
    column = Column("d", "decimal", precision, scale)
    found = raw(246, bytes([precision, scale]), column, [NONE, *(decimal(one, precision, scale) for one in numbers)])
    assert found == [None, *(f"{one:.{scale}f}" for one in numbers)]


@pytest.mark.parametrize(
    ("kind", "meta", "column", "value"),
    [
        (246, bytes([9, 0]), Column("d", "decimal", 9, 0), b"\xff\xff\xff\xff"),
        (18, b"\0", Column("d", "datetime"), datetime2(2024, 1, 1, (24, 0, 0), 0, 0)),
        (18, b"\0", Column("d", "datetime"), datetime2(2024, 1, 1, (0, 60, 0), 0, 0)),
        (18, b"\0", Column("d", "datetime"), b"\x7f\xff\xff\xff\xff"),
        (18, b"\6", Column("d", "datetime", NONE, 6), datetime2(2024, 1, 1, (0, 0, 0), 0, 0) + b"\xff\xff\xff"),
        (10, b"", Column("d", "date"), b"\xff\xff\xff"),
        (254, b"\xf7\x01", Column("e", "enum", values=("a",)), b"\x02"),
        (254, b"\xf8\x01", Column("s", "set", values=("a", "b")), b"\x04"),
        (15, b"\x05\0", Column("c", "varchar", 5, charset="gbk"), b"\x81"),
        (15, b"\x05\0", Column("c", "varchar", 5, charset="klingon"), b"\x81"),
        (140, b"\x02", Column("c", "blob"), b"\x81\x05nonsense"),
        (140, b"\x02", Column("c", "blob"), b"\x91\x05nonsense"),
        (140, b"\x02", Column("c", "blob"), b"\x81\x05" + zlib.compress(b"longer than it says")),
        (3, b"", Column("c", "blob"), b"\0\0\0\0"),
        (254, b"\xfe\x04", Column("c", "binary", 2), b"abc"),
        (245, b"\x04", Column("c", "json"), b"\x0c\x05abc"),
    ],
)
def test_values_that_are_none(kind: int, meta: bytes, column: Column, value: bytes) -> None:
    with pytest.raises(DecodeError):
        raw(kind, meta, column, [value])


def test_compressed_values() -> None:
    text = b"some text " * 30
    wrapped = b"\x82" + len(text).to_bytes(2, "big") + zlib.compress(text)
    engine = zlib.compressobj(wbits=-15)
    bare = b"\x8a" + len(text).to_bytes(2, "big") + engine.compress(text) + engine.flush()
    assert raw(140, b"\x02", Column("c", "blob"), [wrapped, NONE, b"", b"\0plain", bare]) == [
        text,
        None,
        b"",
        b"plain",
        text,
    ]


@pytest.mark.parametrize("charset", ["latin1", "gbk", "ucs2", "utf16le", "utf32", "swe7", "ujis", "utf8mb4"])
def test_character_sets_with_nulls_and_separators(charset: str) -> None:
    codec = {
        "ucs2": "utf-16-be",
        "utf16le": "utf-16-le",
        "utf32": "utf-32-be",
        "ujis": "euc_jp",
        "swe7": "ascii",
        "utf8mb4": "utf-8",
    }
    texts = ["abc", "", None, "\x01\x02", "".join(map(chr, range(1, 0x20))), "Mnt"]
    texts += [] if charset in ("swe7", "latin1") else ["漢字"]
    encoded = [None if text is None else text.encode(codec.get(charset, charset)) for text in texts]
    assert raw(15, b"\xff\0", Column("c", "varchar", 50, charset=charset), encoded) == texts


def test_only_nulls() -> None:
    assert raw(18, b"\6", Column("d", "datetime", NONE, 6), [None, None]) == [None, None]
    assert raw(5, b"\x08", Column("d", "double"), [None]) == [None]


EVERY = [
    *((code, b"", Column("c", kind)) for code, kind in ((1, "tinyint"), (2, "smallint"), (9, "mediumint"), (3, "int"))),
    (8, b"", Column("c", "bigint", unsigned=True)),
    (4, b"\x04", Column("c", "float")),
    (5, b"\x08", Column("c", "double")),
    (13, b"", Column("c", "year")),
    (10, b"", Column("c", "date")),
    (11, b"", Column("c", "time")),
    (12, b"", Column("c", "datetime")),
    (7, b"", Column("c", "timestamp")),
    *((code, b"", Column("c", kind, None, 4)) for code, kind in ((11, "time"), (12, "datetime"), (7, "timestamp"))),
    *((17, bytes([digits]), Column("c", "timestamp", None, digits)) for digits in range(7)),
    *((18, bytes([digits]), Column("c", "datetime", None, digits)) for digits in range(7)),
    *((19, bytes([digits]), Column("c", "time", None, digits)) for digits in range(7)),
    *((246, bytes(size), Column("c", "decimal", *size)) for size in ((10, 2), (65, 30), (3, 3), (18, 0), (1, 0))),
    (16, b"\x01\x01", Column("c", "bit", 9)),
    (254, b"\xf7\x02", Column("c", "enum", values=("a", "b") * 200)),
    (254, b"\xf8\x01", Column("c", "set", values=tuple("abcde"))),
    (245, b"\x04", Column("c", "json")),
    (254, b"\xfe\x10", Column("c", "uuid")),
    (254, b"\xfe\x10", Column("c", "inet6")),
    (140, b"\x02", Column("c", "text", charset="latin1")),
    *((15, b"\x10\0", Column("c", "varchar", 16, charset=name)) for name in sorted(KNOWN - UTF8)),
]


@pytest.mark.parametrize(("kind", "meta", "column"), EVERY)
def test_random_bytes(kind: int, meta: bytes, column: Column) -> None:
    """Whatever the bytes are: values that are right for Arrow, or a clear error."""
    rng = random.Random(f"{kind} {column}")
    size = with_structure(parse_layouts(bytes([kind]), meta), [column], False)[0].size
    for _ in range(INPUTS // 60):
        length = rng.randint(0, 16) if size < 0 else size
        data = [rng.choice([bytes(length), b"\xff" * length, rng.randbytes(length)]) for _ in range(rng.randint(1, 3))]
        with contextlib.suppress(DecodeError):
            raw(kind, meta, column, data)
