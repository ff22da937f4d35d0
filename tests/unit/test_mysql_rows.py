"""Splitting row events: all ways of finding rows, all images, and broken bytes."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.values import row_images
from floodmark.connectors.mysql.values.layouts import Layout, parse_layouts
from floodmark.errors import DecodeError
from tests.support.binlog_values import Kind, bitmap, image, json_document, sized, table_map
from tests.support.row_columns import RowColumns, row_columns

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
GAP = b"\xff" * 7

KINDS = (
    Kind(3),
    Kind(15, (40).to_bytes(2, "little")),
    Kind(15, (600).to_bytes(2, "little")),
    Kind(252, b"\x03"),
    Kind(1),
    Kind(254, b"\xfe\x10"),
    Kind(246, bytes([5, 2])),
    Kind(245, b"\x04"),
    Kind(8),
    Kind(252, b"\x01"),
)
COLUMNS = (
    Column("a", "int"),
    Column("b", "varchar", 10, charset="utf8mb4"),
    Column("c", "varchar", 150, charset="utf8mb4"),
    Column("d", "mediumblob"),
    Column("e", "tinyint"),
    Column("f", "char", 4, charset="utf8mb4"),
    Column("g", "decimal", 5, 2),
    Column("h", "json"),
    Column("i", "bigint", unsigned=True),
    Column("j", "tinytext", charset="latin1"),
)
Row = list[Any]


def layouts(kinds: Sequence[Kind] = KINDS) -> tuple[Layout, ...]:
    return parse_layouts(*table_map(kinds))


def encoded(column: int, value: Any) -> bytes | None:
    if value is None:
        return None
    if column in (0, 4, 8):
        return int(value).to_bytes({0: 4, 4: 1, 8: 8}[column], "little", signed=column != 8)
    if column == 6:
        raw = int(abs(value) // 100).to_bytes(2, "big") + int(abs(value) % 100).to_bytes(1, "big")
        raw = bytes(byte ^ 0xFF for byte in raw) if value < 0 else raw
        return bytes([raw[0] ^ 0x80]) + raw[1:]
    if column == 7:
        return sized(json_document(value), 4)
    data = value if column == 3 else value.encode("latin1" if column == 9 else "utf8")
    return sized(data, {1: 1, 2: 2, 3: 3, 5: 1, 9: 1}[column])


def shown(column: int, value: Any) -> Any:
    if value is None or column in (1, 2, 3, 5, 9):
        return value
    if column == 6:
        return f"{'-' if value < 0 else ''}{abs(value) // 100}.{abs(value) % 100:02}"
    return str(value)


def random_row(rng: random.Random) -> Row:
    values: Row = [
        rng.randint(-(1 << 31), (1 << 31) - 1),
        "x" * rng.randint(0, 10),
        "é" * rng.choice([0, 5, 150]),
        rng.randbytes(rng.choice([0, 3, 300])),
        rng.randint(-128, 127),
        "abcd"[: rng.randint(0, 4)],
        rng.randint(-99999, 99999),
        rng.randint(0, 30000),
        rng.getrandbits(64),
        "ÿ" * rng.randint(0, 20),
    ]
    return [None if rng.random() < 0.2 else value for value in values]


def joined(events: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = b"".join(GAP + event for event in events)
    ends = np.cumsum([len(GAP) + len(event) for event in events])
    return np.frombuffer(data, np.uint8), ends - [len(event) for event in events], ends


def same(bits: bytes, events: int) -> np.ndarray:
    return np.tile(np.frombuffer(bits, np.uint8), (events, 1))


def lists(columns: list[RawColumn] | None) -> list[list[Any]]:
    """Return columns as lists, ``...`` for what the log lacks."""
    assert columns is not None
    result = []
    for column in columns:
        column.values.validate(full=True)
        lacking = np.zeros(len(column.values), bool) if column.unchanged is None else column.unchanged
        result.append([... if gone else value for value, gone in zip(column.values.to_pylist(), lacking, strict=True)])
    return result


def written(events: Sequence[Sequence[Row]]) -> RowColumns:
    buf, begins, ends = joined([b"".join(image(list(map(encoded, range(10), row))) for row in rows) for rows in events])
    return row_columns(buf, begins, ends, "write", COLUMNS, layouts(), same(bitmap([True] * 10), len(events)))


@given(st.integers(0, 1 << 32), st.lists(st.integers(1, 40), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_rows_of_many_events(seed: int, counts: list[int]) -> None:
    rng = random.Random(seed)
    events = [[random_row(rng) for _ in range(count)] for count in counts]
    found = written(events)
    assert found.event.tolist() == [event for event, rows in enumerate(events) for _ in rows]
    assert found.number.tolist() == [number for rows in events for number in range(1, len(rows) + 1)]
    every = [row for rows in events for row in rows]
    assert lists(found.after) == [[shown(column, row[column]) for row in every] for column in range(10)]


def test_a_long_event_beside_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    waves = 0
    skip = row_images._Walker.skip

    def counted(walker: Any, at: np.ndarray) -> np.ndarray:
        nonlocal waves
        waves += 1
        return skip(walker, at)

    monkeypatch.setattr(row_images._Walker, "skip", counted)
    row = random_row(rng)
    events = [[row] * (2000 if index == 50 else 2) for index in range(100)]
    found = written(events)
    assert len(found.event) == 2198
    assert waves < 5


def updates(before: Sequence[bool], after: Sequence[bool], rows: Sequence[tuple[Row, Row]]) -> RowColumns:
    parts = []
    for old, new in rows:
        for present, row in ((before, old), (after, new)):
            parts.append(image([encoded(i, value) for i, value in enumerate(row) if present[i]]))
    buf, begins, ends = joined([b"".join(parts)])
    return row_columns(buf, begins, ends, "update", COLUMNS, layouts(), same(bitmap(before), 1), same(bitmap(after), 1))


def test_images_that_lack_columns() -> None:
    rng = random.Random(2)
    rows = [(random_row(rng), random_row(rng)) for _ in range(5)]
    before = [index in (0, 3) for index in range(10)]
    after = [index in (1, 3, 8) for index in range(10)]
    found = updates(before, after, rows)
    old, new = lists(found.before), lists(found.after)
    for column in range(10):
        first = [shown(column, row[column]) for row, _ in rows]
        second = [shown(column, row[column]) for _, row in rows]
        assert old[column] == (first if before[column] else [...] * 5)
        assert new[column] == (second if after[column] else first if before[column] else [...] * 5)


def test_events_of_different_images_stay_in_order() -> None:
    rng = random.Random(3)
    whole, part = [True] * 10, [index in (0, 2) for index in range(10)]
    shapes = [whole, part, part, whole, part]
    events = [[random_row(rng) for _ in range(count)] for count in (2, 1, 3, 1, 2)]
    buf, begins, ends = joined(
        [
            b"".join(image([encoded(i, value) for i, value in enumerate(row) if shape[i]]) for row in rows)
            for shape, rows in zip(shapes, events, strict=True)
        ]
    )
    present = np.vstack([same(bitmap(shape), 1) for shape in shapes])
    found = row_columns(buf, begins, ends, "delete", COLUMNS, layouts(), present)
    assert found.after is None
    assert found.event.tolist() == [0, 0, 1, 2, 2, 2, 3, 4, 4]
    assert found.number.tolist() == [1, 2, 1, 1, 2, 3, 1, 1, 2]
    every = [(row, shape) for rows, shape in zip(events, shapes, strict=True) for row in rows]
    for column, values in enumerate(lists(found.before)):
        assert values == [shown(column, row[column]) if shape[column] else ... for row, shape in every]


def test_rows_that_are_all_defaults() -> None:
    buf, begins, ends = joined([b"", b""])
    found = row_columns(buf, begins, ends, "write", COLUMNS, layouts(), same(bytes(2), 2))
    assert found.number.tolist() == [1, 1]
    assert lists(found.after) == [[None, None]] * 10
    columns = [replace(column, default="7", default_kind="literal") for column in COLUMNS[:2]]
    columns += [replace(column, optional=False) for column in COLUMNS[2:4]]
    columns += [replace(column, default="x()", default_kind="expression") for column in COLUMNS[4:]]
    found = row_columns(buf, begins, ends, "write", columns, layouts(), same(bytes(2), 2))
    assert lists(found.after) == [["7", "7"]] * 2 + [[..., ...]] * 8


def test_no_events() -> None:
    nowhere = np.zeros(0, np.int64)
    found = row_columns(
        np.zeros(0, np.uint8), nowhere, nowhere, "update", COLUMNS, layouts(), np.zeros((0, 2), np.uint8)
    )
    assert lists(found.after) == [[]] * 10


def test_another_number_of_columns() -> None:
    buf, begins, ends = joined([b"\0"])
    with pytest.raises(DecodeError, match="10 columns"):
        row_columns(buf, begins, ends, "write", COLUMNS[:3], layouts(), same(b"\xff\xff", 1))


@pytest.mark.parametrize("change", ["cut", "longer", "empty"])
@pytest.mark.parametrize("events", [1, 40])
def test_rows_that_end_elsewhere(change: str, events: int) -> None:
    rng = random.Random(4)
    parts = [image(list(map(encoded, range(10), random_row(rng)))) * 3 for _ in range(events)]
    parts[0] = {"cut": parts[0][:-1], "longer": parts[0] + b"\0", "empty": b""}[change]
    buf, begins, ends = joined(parts)
    with pytest.raises(DecodeError):
        row_columns(buf, begins, ends, "write", COLUMNS, layouts(), same(b"\xff\xff", events))


def test_broken_rows() -> None:
    """Whatever the bytes are: rows that fill the event, or a clear error."""
    rng = random.Random(5)
    good = [
        b"".join(image(list(map(encoded, range(10), random_row(rng)))) for _ in range(rng.randint(1, 4)))
        for _ in range(30)
    ]
    decoded = 0
    for _ in range(INPUTS // 10):
        chosen = [bytearray(rng.choice(good)) for _ in range(rng.choice([1, 3, 30]))]
        for _ in range(rng.randint(1, 3)):
            event = rng.choice(chosen)
            event[rng.randrange(len(event))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        buf, begins, ends = joined([bytes(event) for event in chosen])
        try:
            found = row_columns(buf, begins, ends, "write", COLUMNS, layouts(), same(b"\xff\xff", len(chosen)))
        except DecodeError:
            continue
        decoded += 1
        assert set(found.event.tolist()) == set(range(len(chosen)))
    assert decoded


@pytest.mark.parametrize(
    ("types", "meta", "message"),
    [
        (b"\x63", b"", "unknown type 99"),
        (b"\x0f", b"\x01", "too early"),
        (b"\x03", b"\x01", "too many"),
        (b"\xf6", b"\x02\x05", "2 digits"),
        (b"\x12", b"\x07", "7 digits"),
        (b"\xfc", b"\x05", "5 bytes"),
        (b"\xfe", b"\x35\x01", "unknown type"),
    ],
)
def test_broken_metadata(types: bytes, meta: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        parse_layouts(types, meta)
