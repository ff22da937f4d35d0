"""Deletion vectors as the Delta protocol has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from floodmark.errors import TargetDamagedError
from floodmark.json_data import Json
from floodmark.sinks.delta.format.vectors import Descriptor, VectorFile, decoded, encoded, read_vector

ROWS = st.lists(st.integers(0, 1 << 40), unique=True).map(sorted)


class Files:
    """Reads from files that are in memory."""

    def __init__(self, **content: bytes) -> None:
        self.content = content

    def __call__(self, path: str, offset: int, size: int) -> bytes:
        return self.content[path][offset : offset + size]


def array(rows: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(rows, np.uint64)


@given(ROWS)
def test_rows_survive(rows: list[int]) -> None:
    assert decoded(encoded(BitMap64(rows))).tolist() == rows


@given(st.lists(ROWS, min_size=1))
def test_a_file_holds_the_vectors_of_a_commit(vectors: list[list[int]]) -> None:
    file = VectorFile()
    assert file.content == b""
    descriptors = [file.add(array(rows)) for rows in vectors]
    read = Files(**{file.path: file.content})
    for descriptor, rows in zip(descriptors, vectors, strict=True):
        again = Descriptor.from_json(descriptor.to_json())
        assert again == descriptor
        assert again.path == file.path
        assert read_vector(again, read).rows.tolist() == rows
    assert len({descriptor.identity for descriptor in descriptors}) == len(vectors)


@given(ROWS, ROWS)
def test_rows_are_added_to_a_vector(first: list[int], second: list[int]) -> None:
    file = VectorFile()
    descriptor = file.add(array(second), encoded(BitMap64(first)))
    assert descriptor.rows == len({*first, *second})
    found = read_vector(descriptor, Files(**{file.path: file.content}))
    assert found.rows.tolist() == sorted({*first, *second})
    assert decoded(found.content).tolist() == found.rows.tolist()


def test_the_protocol_s_examples() -> None:
    # PROTOCOL.md, "JSON Example 1" and "2" of deletion vectors: where the vectors are.
    relative: dict[str, Json] = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
    }
    found = Descriptor.from_json({**relative, "cardinality": 6})
    assert found.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert found.identity == "uab^-aqEH.-t@S}K{vb[*k^@4"
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    rows = read_vector(Descriptor.from_json({**inline, "sizeInBytes": 40, "cardinality": 6}), Files()).rows
    assert rows.tolist() == [3, 4, 7, 11, 18, 29]


def test_a_vector_elsewhere() -> None:
    file = VectorFile()
    made = file.add(array([1, 5]))
    uri = "s3://bucket/t/a%20b.bin"
    found = Descriptor("p", uri, made.offset, made.size, made.rows)
    assert read_vector(found, Files(**{uri: file.content})).rows.tolist() == [1, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "changed"),
        (lambda data: data[:10] + bytes([data[10] ^ 1]) + data[11:], "changed"),
    ],
)
def test_a_damaged_file_is_refused(change: object, message: str) -> None:
    file = VectorFile()
    made = file.add(array([1, 5]))
    assert callable(change)
    with pytest.raises(TargetDamagedError, match=message):
        read_vector(made, Files(**{file.path: change(file.content)}))


@pytest.mark.parametrize("vector", [b"", b"\0\0\0\0", encoded(BitMap64([1]))[:4], encoded(BitMap64([1]))[:-1]])
def test_what_is_no_vector_is_refused(vector: bytes) -> None:
    with pytest.raises(TargetDamagedError):
        decoded(vector)


@pytest.mark.parametrize(
    "change",
    [
        {"storageType": "x"},
        {"storageType": None},
        {"pathOrInlineDv": 5},
        {"offset": None},
        {"offset": "4"},
        {"sizeInBytes": None},
        {"cardinality": "6"},
    ],
)
def test_a_descriptor_that_is_not_understood(change: dict[str, Json]) -> None:
    good: dict[str, Json] = {
        "storageType": "u",
        "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    Descriptor.from_json(good)
    with pytest.raises(TargetDamagedError, match="deletion vector of the Delta log has no"):
        Descriptor.from_json({**good, **change})


def test_a_wrong_number_of_rows() -> None:
    file = VectorFile()
    made = file.add(array([1, 5]))
    other = Descriptor(made.storage, made.place, made.offset, made.size, 3)
    with pytest.raises(TargetDamagedError, match="has 2 rows where the Delta log says 3"):
        read_vector(other, Files(**{file.path: file.content}))
