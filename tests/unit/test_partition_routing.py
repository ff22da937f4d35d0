"""The transform that decides on partitions: its options, its errors, and hashes as Java computes them."""

from __future__ import annotations

import base64
import json
import struct as binary
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.connect_schema import field_schema, struct
from floodmark.events.json_text import Fragment, string
from floodmark.transforms.debezium.java_hashes import (
    decoded_base64,
    hash_bytes,
    hash_decimals,
    hash_doubles,
    hash_longs,
    hash_texts,
    murmur_hashes,
    murmur_texts,
)
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct
from tests.support.records import chain, changes

ROUTING = "io.debezium.transforms.partitions.PartitionRouting"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
BITS = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"partition.topic.num": "3"}, ("transforms.one.partition.payload.fields", "required")),
        ({"partition.payload.fields": "op"}, ("transforms.one.partition.topic.num", "required")),
        ({"partition.payload.fields": "op", "partition.topic.num": "0"}, ("partition.topic.num", "at least 1")),
        ({"partition.payload.fields": "a..b", "partition.topic.num": "1"}, ("'a..b'", "side of a dot")),
        ({"partition.payload.fields": " ", "partition.topic.num": "1"}, ("must not be empty",)),
        (
            {"partition.payload.fields": "op", "partition.topic.num": "1", "partition.hash.function": "md5"},
            ("java, murmur",),
        ),
    ],
)
def test_wrong_options(own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(ROUTING, own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def placed(records: Records, fields: str = "change.v", partitions: int = 1 << 30) -> list[int | None]:
    own = {"partition.payload.fields": fields, "partition.topic.num": str(partitions)}
    found: list[int | None] = chain(ROUTING, own).columns(records)["partition"].to_pylist()
    return found


def test_partitions_of_rows() -> None:
    # "x".hashCode() is 120, as the documentation of Java's String has it.
    assert placed(changes("t", "x", None)) == [120, None]
    assert placed(changes("t", "x", op="d")) == [120]
    assert placed(changes("t", "x"), "before.v,op.v,v, change . v ") == [120]
    assert placed(changes("t", "x"), "op,change.n,nothing") == [ord("c")]
    assert placed(changes("t", "x", op="t")) == [None]
    assert placed(replace(changes("t", "x"), value=None)) == [None]
    assert placed(changes("t", "x"), partitions=7) == [120 % 7]


def test_an_earlier_decision_stays_where_there_is_none() -> None:
    records = replace(changes("t", "x", None), partition=pa.array([5, 6], pa.int32()))
    assert placed(records) == [120, 6]
    assert records.take(np.array([1])).partition == pa.array([6], pa.int32())


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "bytes", "name": "io.debezium.data.Bits"}])
def test_values_without_a_hash(schema: dict[str, str]) -> None:
    records = changes("t", "x")
    row = struct([field_schema(schema, True, "v")], True, "t.Value")
    value = records.value
    assert isinstance(value, Struct)
    members = [
        (name, row, Struct(row, [Fragment(pa.array(["[]"]))])) if name == "after" else (name, *rest)
        for name, *rest in value.members()
    ]
    with pytest.raises(SourceStateError, match=r"'change\.v' is of the type .* differs from run to run"):
        placed(replace(records, value=value.with_members(members)))  # type: ignore[arg-type]


def java_text(text: str) -> int:
    data = text.encode("utf-16-le")
    found = 0
    for at in range(0, len(data), 2):
        found = (31 * found + int.from_bytes(data[at : at + 2], "little")) & BITS
    return found


@given(st.lists(TEXTS, min_size=1, max_size=8), st.booleans())
def test_hashes_of_texts(rows: list[str], sliced: bool) -> None:
    column = pa.array([*rows, *rows])
    column = column[len(rows) :] if sliced else column[: len(rows)]
    assert hash_texts(column).tolist() == list(map(java_text, rows))
    assert murmur_texts(column).tolist() == [murmur(text.encode()) for text in rows]


def signed(number: int, bits: int) -> int:
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def murmur(data: bytes) -> int:
    """Return MurmurHash3 as Debezium has it, of one value."""
    word = (1 << 64) - 1
    h1, h2, c1, c2 = 0x9368E53C2F6AF274 ^ 9001, 0x586DCD208F7CD3FD ^ 9001, 0x87C37B91114253D5, 0x4CF5AD432745937F

    def rotated(number: int, bits: int) -> int:
        return (number << bits | number >> (64 - bits)) & word

    def mixed(k1: int, k2: int) -> None:
        nonlocal h1, h2, c1, c2
        h1 = ((h1 ^ rotated(k1 * c1 & word, 23) * c2 & word) + h2) & word
        h2 = ((rotated(h2, 41) ^ rotated(k2 * c2 & word, 23) * c1 & word) + h1) & word
        h1, h2 = (h1 * 3 + 0x52DCE729) & word, (h2 * 3 + 0x38495AB5) & word
        c1, c2 = (c1 * 5 + 0x7B7D159C) & word, (c2 * 5 + 0x6BCE6396) & word

    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        mixed(*binary.unpack_from("<QQ", data, at))
    if tail := data[whole:]:
        keys = [0, 0]
        for place, byte in enumerate(tail):
            keys[place // 8] ^= signed(byte, 8) << 8 * (place % 8) & word
        mixed(*keys)
    h2 ^= len(data)
    h1 = (h1 + h2) & word
    h2 = (h2 + h1) & word

    def finished(k: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            k = (k ^ k >> 33) * factor & word
        return k ^ k >> 33

    return (finished(h1) + finished(h2) & word) >> 32


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1))
def test_hashes_of_numbers(numbers: list[int]) -> None:
    hashes = hash_longs(np.array(numbers, np.int64))
    assert hashes.tolist() == [(one ^ (one % (1 << 64)) >> 32) & BITS for one in numbers]
    assert murmur_hashes(hashes).tolist() == [murmur(int(one).to_bytes(4, "little")) for one in hashes]


def test_hashes_of_floats() -> None:
    # 2146959360 is the hash that Java's documentation gives all NaNs by their bits.
    assert hash_doubles(np.array([float("nan"), 0.0, -0.0, 1.5])).tolist() == [2146959360, 0, 1 << 31, 1073217536]


@given(st.lists(st.binary(max_size=20), min_size=1))
def test_hashes_of_bytes(rows: list[bytes]) -> None:
    text = pa.array([base64.b64encode(one).decode() for one in rows])
    content = decoded_base64(text)
    assert content.to_pylist() == rows
    expected = []
    for one in rows:
        found = 1
        for byte in reversed(one):
            found = (31 * found + signed(byte, 8)) & BITS
        expected.append(found)
    assert hash_bytes(content).tolist() == expected


@given(st.lists(st.integers(-(1 << 70), 1 << 70) | st.integers(-(1 << 63), 1 << 63), min_size=1), st.integers(0, 9))
def test_hashes_of_decimals(numbers: list[int], scale: int) -> None:
    raw = [one.to_bytes((one if one >= 0 else ~one).bit_length() // 8 + 1, "big", signed=True) for one in numbers]
    expected = []
    for one in numbers:
        found = 0
        for at in range(((abs(one).bit_length() + 31) // 32 or 1) * 32 - 32, -1, -32):
            found = (31 * found + ((abs(one) >> at) & BITS)) & BITS
        expected.append((31 * (-found if one < 0 else found) + scale) & BITS)
    assert hash_decimals(pa.array(raw, pa.binary()), scale).tolist() == expected


def test_texts_with_escapes_are_read() -> None:
    assert json.loads('"\\n"') == "\n"
    assert string(pa.array(["\n"])).text.to_pylist() == ["\\n"]
    assert placed(changes("t", "\n")) == [10]
