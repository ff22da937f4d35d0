"""Binary JSON as the server prints it, and diffs."""

from __future__ import annotations

import json
import os
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.connectors.mysql.types.json_values import compact
from floodmark.connectors.mysql.values.json_diffs import apply_diffs
from floodmark.connectors.mysql.values.json_scalars import double_text
from floodmark.connectors.mysql.values.json_text import json_texts
from floodmark.connectors.mysql.values.row_images import Pieces
from floodmark.errors import DecodeError
from tests.support.binlog_values import Opaque, decimal, json_document

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(-40000, 70000)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=15
)


def texts(documents: list[bytes | None]) -> list[Any]:
    data = b"".join(document or b"" for document in documents)
    lengths = np.array([len(document or b"") for document in documents], np.int64)
    valid = np.array([document is not None for document in documents], bool)
    array = json_texts(np.frombuffer(data, np.uint8), Pieces(np.cumsum(lengths) - lengths, lengths, valid))
    array.validate(full=True)
    found: list[Any] = array.to_pylist()
    return found


def printed(value: Any) -> str:
    """Return a document as the server prints it."""
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return "{" + ", ".join(f"{printed(name)}: {printed(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(printed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.lists(DOCUMENTS | st.just(...), max_size=6), st.booleans())
@settings(max_examples=200, deadline=None)
def test_documents(values: list[Any], large: bool) -> None:
    encoded = [None if value is ... else json_document(value, large) for value in values]
    expected = [None if value is ... else printed(value) for value in values]
    assert texts(encoded) == expected
    compacted = compact(pa.array(expected, pa.string()))
    compacted.validate(full=True)
    for value, shown in zip(values, compacted.to_pylist(), strict=True):
        if value is not ...:
            assert json.loads(shown) == json.loads(printed(value))
            dense = json.dumps(json.loads(shown), ensure_ascii=False, separators=(",", ":"))
            assert shown.lower() == dense.lower() or "e" in shown + dense


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e15, "1e15"),
        (1e14, "100000000000000.0"),
        (123456789012345.0, "123456789012345.0"),
        (1234567890123456.0, "1.234567890123456e15"),
        (1234567890123456.7, "1234567890123456.8"),
        (12345678901234567.0, "1.2345678901234568e16"),
        (0.0001, "0.0001"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (1.5e-7, "0.00000015"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
        (1e22, "1e22"),
        (-123.25, "-123.25"),
    ],
)
def test_doubles(number: float, text: str) -> None:
    assert double_text(number) == text
    assert texts([json_document([number])]) == [f"[{text}]"]


def packed(year: int, month: int, day: int, clock: tuple[int, int, int], micros: int) -> bytes:
    hour, minute, second = clock
    number = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    return (number << 24 | micros).to_bytes(8, "little")


def test_opaque_values() -> None:
    values = [
        Opaque(246, bytes([5, 2]) + decimal(Decimal("-0.50"), 5, 2)),
        Opaque(10, packed(2015, 1, 15, (0, 0, 0), 0)),
        Opaque(12, packed(2015, 1, 15, (23, 24, 25), 120000)),
        Opaque(11, (-((12 << 12 | 13 << 6 | 14) << 24 | 500000)).to_bytes(8, "little", signed=True)),
        Opaque(15, b"\0\xff"),
        Opaque(252, b"x" * 60),
    ]
    base64 = "eHh4" * 19
    assert texts([json_document(values)]) == [
        '[-0.50, "2015-01-15", "2015-01-15 23:24:25.120000", "-12:13:14.500000", "base64:type15:AP8=", '
        f'"base64:type252:{base64}\\neHh4"]'
    ]


def test_depth_and_emptiness() -> None:
    deep: Any = []
    for _ in range(99):
        deep = [deep]
    assert texts([json_document(deep), None, b"", json_document({})]) == ["[" * 100 + "]" * 100, None, "null", "{}"]
    for _ in range(5):
        deep = [deep]
    with pytest.raises(DecodeError, match="deep"):
        texts([json_document(deep)])


def test_large_documents() -> None:
    big = {"list": list(range(30000)), "text": "x" * 70000, "n": 70000}
    assert texts([json_document(big)]) == [printed(big)]


def test_broken_documents() -> None:
    """Whatever the bytes are: some document, or a clear error; never an endless one."""
    rng = random.Random(7)
    good = [
        json_document(value)
        for value in ({"a": [1, 2.5, "x"], "bb": {"c": None}}, [[[]], {}, "text", 1 << 40], {"k" * 5: [True] * 9})
    ]
    good += [json_document(value, True) for value in ({"a": {"b": [1]}}, [1, [2, [3]]])]
    decoded = 0
    for _ in range(INPUTS // 3):
        document = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            document[rng.randrange(len(document))] = rng.choice([0, 1, 2, 3, 12, 0xFF, rng.randrange(256)])
        try:
            (found,) = texts([bytes(document)])
        except DecodeError:
            continue
        decoded += 1
        json.loads(found, strict=False)
    assert decoded


def diff(operation: int, path: str, value: Any = ...) -> bytes:
    raw = bytes([operation, len(path)]) + path.encode()
    if value is ...:
        return raw
    document = json_document(value)
    size = bytes([len(document)]) if len(document) < 251 else b"\xfc" + len(document).to_bytes(2, "little")
    return raw + size + document


@pytest.mark.parametrize(
    ("diffs", "expected"),
    [
        (diff(0, "$.a", "x"), '{"a": "x", "bb": [1, 2.50, 1e20]}'),
        (diff(1, "$.c", None), '{"a": 1.0, "c": null, "bb": [1, 2.50, 1e20]}'),
        (diff(2, "$.a"), '{"bb": [1, 2.50, 1e20]}'),
        (diff(0, "$.bb[1]", {"z": 1, "y": []}), '{"a": 1.0, "bb": [1, {"y": [], "z": 1}, 1e20]}'),
        (diff(1, "$.bb[0]", True), '{"a": 1.0, "bb": [true, 1, 2.50, 1e20]}'),
        (diff(1, "$.bb[9]", True), '{"a": 1.0, "bb": [1, 2.50, 1e20, true]}'),
        (diff(2, "$.bb[last]"), '{"a": 1.0, "bb": [1, 2.50]}'),
        (diff(2, "$.bb[last-2]"), '{"a": 1.0, "bb": [2.50, 1e20]}'),
        (diff(0, "$.a[0]", 2), '{"a": 2, "bb": [1, 2.50, 1e20]}'),
        (diff(0, "$", [1]), "[1]"),
        (diff(1, '$."odd \\" name"', 1) + diff(2, "$.bb"), '{"a": 1.0, "odd \\" name": 1}'),
        (diff(0, "$.a", "long " * 100), '{"a": "' + "long " * 100 + '", "bb": [1, 2.50, 1e20]}'),
    ],
)
def test_diffs(diffs: bytes, expected: str) -> None:
    assert apply_diffs('{"a": 1.0, "bb": [1, 2.50, 1e20]}', diffs) == expected


@pytest.mark.parametrize(
    "diffs",
    [
        b"\x00",
        b"\x00\x09$.a",
        diff(0, "$.missing", 1),
        diff(2, "$.bb[7]"),
        diff(0, "$.a.b", 1),
        diff(7, "$.a", 1),
        diff(0, "$.a", 1)[:-1],
        diff(0, "nonsense", 1),
    ],
)
def test_broken_diffs(diffs: bytes) -> None:
    with pytest.raises(DecodeError):
        apply_diffs('{"a": 1.0, "bb": [1, 2.50, 1e20]}', diffs)
