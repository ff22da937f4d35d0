"""Masks, hashes and cuts of columns' values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pytest
from pydantic import SecretStr

from floodmark.changes.transforms import Hash, Mask, Transform, Truncation
from floodmark.codecs.conversions import converted
from floodmark.errors import DecodeError
from floodmark.events.json_text import closed
from floodmark.extensions.converter import Conversion, Converter, SourceColumn
from tests.unit.test_types_helpers import codec, strings

TEXTS = ["", "ab", 'a"b\\', "é", "😀", "a😀b", "ab😀", None, "0123456789"]


def shown(transform: Transform, kind: str, *texts: str | None, binary: str = "bytes") -> list[Any]:
    made = transform.shown(codec(kind, binary_handling_mode=binary))
    return [json.loads(one) for one in closed(made.encode(strings(list(texts)))).to_pylist()]


def test_masks_hide_null_too() -> None:
    assert shown(Mask(3, True), "text", "a", None) == ["***", "***"]
    assert shown(Mask(0, True), "text", "a") == [""]
    assert shown(Mask(3, False), "int4", "1", None) == [1, None]
    made = Mask(3, True).shown(codec("text"))
    assert (made.zero, made.unavailable) == ('"***"', '"***"')
    assert made.schema["parameters"] == {"masked": "true"}
    assert made.to_arrow(strings(["a", None])).to_pylist() == ["***", "***"]


def test_hashes_are_of_salt_and_text() -> None:
    hashing = Hash("sha256", SecretStr("salt"), serialized=False, length=0, text=True)
    assert shown(hashing, "text", "é😀", None) == [hashlib.sha256("salté😀".encode()).hexdigest(), None]
    short = Hash("sha256", SecretStr("salt"), serialized=False, length=10, text=True)
    assert shown(short, "text", "é😀") == [hashlib.sha256("salté😀".encode()).hexdigest()[:10]]
    made = hashing.shown(codec("text"))
    assert json.loads(made.zero) == hashlib.sha256(b"salt").hexdigest()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("ab", b"t\0\2ab"),
        ("é", b"t\0\2\xc3\xa9"),
        ("😀", b"t\0\6\xed\xa0\xbd\xed\xb8\x80"),
        ("x" * 65536, b"|\0\0\0\0\0\1\0\0" + b"x" * 65536),
    ],
)
def test_the_first_hash_is_of_what_java_serialises(text: str, data: bytes) -> None:
    hashing = Hash("md5", SecretStr("s"), serialized=True, length=0, text=True)
    assert shown(hashing, "text", text) == [hashlib.md5(b"s\xac\xed\0\5" + data).hexdigest()]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 100])
def test_texts_are_cut_by_utf16_units(length: int) -> None:
    got = shown(Truncation(length, True), "text", *TEXTS)
    want = [
        None if text is None else text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "surrogatepass")
        for text in TEXTS
    ]
    assert got == want


def test_half_a_character_is_left_out_of_rows() -> None:
    made = Truncation(2, True).shown(codec("text"))
    assert made.to_arrow(strings(["a😀", "abc", None])).to_pylist() == ["a", "ab", None]
    assert closed(made.encode(strings(["a😀"]))).to_pylist() == [r'"a\uD83D"']


def test_bytes_are_cut_before_they_are_encoded() -> None:
    assert shown(Truncation(2, True), "bytea", r"\x00ff7f", r"\x", None) == ["AP8=", "", None]
    assert shown(Truncation(2, True), "bytea", r"\x00ff7f", binary="hex") == ["00"]
    made = Truncation(2, True).shown(codec("bytea"))
    assert made.unavailable == '"X18="'
    assert made.to_arrow(strings([r"\x00ff7f"])).to_pylist() == [b"\x00\xff"]


def test_other_types_are_not_cut() -> None:
    assert shown(Truncation(1, True), "int4", "123") == [123]
    assert Truncation(1, True).shown(codec("int4")).schema["parameters"] == {"truncateLength": "1"}
    assert "parameters" not in Truncation(1, False).shown(codec("int4")).schema


class Numbers(Converter):
    """Shows every column as what a function makes of it."""

    def __init__(self, kind: str, convert: Any) -> None:
        self.kind, self.convert = kind, convert

    def converter_for(self, column: SourceColumn) -> Conversion | None:
        return Conversion(self.kind, self.convert, name="x", parameters={"a": column.name})


COLUMN = SourceColumn("s", "t", "c", "text", 10, 0, True)


@pytest.mark.parametrize(
    ("kind", "values", "want"),
    [
        ("string", pa.array(['a"', None]), ['"a\\""', "null"]),
        ("int8", pa.array([1, None], pa.int8()), ["1", "null"]),
        ("int64", pa.array([1, -(2**63)], pa.int64()), ["1", "-9223372036854775808"]),
        ("boolean", pa.array([True, None]), ["true", "null"]),
        ("double", pa.array([1e20, float("nan")]), ["1.0E20", '"NaN"']),
        ("float", pa.array([0.1, 100.0], pa.float32()), ["0.1", "100.0"]),
        ("bytes", pa.array([b"\0", None]), ['"AA=="', "null"]),
    ],
)
def test_what_converters_make(kind: str, values: pa.Array, want: list[str]) -> None:
    made = converted(COLUMN, [Numbers(kind, lambda _: values)], "gone")
    assert made is not None
    assert closed(made.encode(strings(["1", "2"]))).to_pylist() == want
    assert made.schema == {"type": kind, "name": "x", "parameters": {"a": "c"}}
    assert made.to_arrow(strings(["1", "2"])).type == values.type


def test_masks_come_after_converters() -> None:
    def of(kind: str, convert: Any, transform: Transform) -> list[str]:
        made = converted(COLUMN, [Numbers(kind, convert)], "gone")
        assert made is not None
        found: list[str] = closed(transform.shown(made).encode(strings(["1", "2"]))).to_pylist()
        return found

    def quoted(_: pa.Array) -> pa.Array:
        return pa.array(['a"b', "c"])

    def number(text: pa.Array) -> pa.Array:
        return text.cast(pa.int32())

    hashing = Hash("md5", SecretStr("s"), serialized=False, length=0, text=True)
    assert of("string", quoted, Truncation(2, True)) == ['"a\\""', '"c"']
    assert of("string", quoted, hashing) == [f'"{hashlib.md5(one).hexdigest()}"' for one in (b'sa"b', b"sc")]
    assert of("string", quoted, Mask(1, True)) == ['"*"', '"*"']
    for transform in (Truncation(2, True), hashing, Mask(1, True)):
        assert of("int32", number, transform) == ["1", "2"]


@pytest.mark.parametrize(
    ("kind", "convert", "said"),
    [
        ("int32", lambda text: text, "2 values of int32; it returned 2 of string"),
        ("string", lambda text: text[:1], "returned 1 of string"),
        ("string", lambda _: None, "returned NoneType"),
        ("string", lambda text: text.cast(pa.int64()), "ArrowInvalid"),
    ],
)
def test_what_converters_do_wrong(kind: str, convert: Any, said: str) -> None:
    made = converted(COLUMN, [Numbers(kind, convert)], "gone")
    assert made is not None
    with pytest.raises(DecodeError, match=said):
        made.encode(strings(["x", "y"]))


def test_an_unknown_type_of_a_converter() -> None:
    with pytest.raises(DecodeError, match=r"'date' of s\.t\.c: it must be one of string"):
        converted(COLUMN, [Numbers("date", None)], "gone")
