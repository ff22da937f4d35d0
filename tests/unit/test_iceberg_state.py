"""What an Iceberg table tells of the queries that have written it, and what a query makes of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.errors import CheckpointError, TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.iceberg.admission import Admission
from floodmark.sinks.iceberg.columns import fitted, new_columns
from floodmark.sinks.iceberg.layout import name_of, stored
from floodmark.sinks.iceberg.state import DELETES, KEY, OWNER, TABLE, Done, Snapshot, TableState, done_property
from floodmark.sinks.options import MirrorOptions

OPTIONS = {"format": "iceberg", "engine": "spark", "catalog.schema": "lake.shop"}
DONE = Done(3, 77, 30, 3)


def admission(**options: str) -> Admission:
    return Admission("db.t", "me", MirrorOptions.parse({**OPTIONS, **options}))


def state(head: int | None = 30, has_rows: bool = True, /, **properties: str) -> TableState:
    line = None if head is None else Snapshot(head, head - 10, head // 10)
    return TableState(properties, pa.schema([("id", pa.int64())]), line, has_rows)


def mine(head: int | None = 30, has_rows: bool = True) -> TableState:
    name, value = done_property("me", DONE)
    return state(head, has_rows, **{OWNER: "me", name: value})


@given(st.integers(0), st.integers(0), st.integers(-(2**63), 2**63 - 1), st.integers(0))
def test_what_is_done_is_kept_as_text(batch: int, mark: int, snapshot: int, sequence: int) -> None:
    done = Done(batch, mark, snapshot, sequence)
    assert Done.from_property(done.to_property()) == done


@pytest.mark.parametrize("text", ["", "{}", "7", '{"batch": "1"}', '{"batch": 1, "mark": 1, "snapshot": 1}'])
def test_damaged_properties(text: str) -> None:
    with pytest.raises(CheckpointError):
        state(**{"floodmark.done.me": text}).done("me")


def line(*numbers: int, first: int | None = None) -> list[Snapshot]:
    """Return snapshots, the newest first, whose sequence is their number; the oldest has a parent unless it's none."""
    parents: list[int | None] = [*numbers[1:], first]
    return [Snapshot(number, parent, number) for number, parent in zip(numbers, parents, strict=True)]


@pytest.mark.parametrize(
    ("snapshots", "complete", "lacks"),
    [
        (line(3, first=2), False, False),
        (line(5, 4, 3, first=2), False, False),
        # Compacted and expired: nothing tells that it isn't among what was before.
        (line(6, 5, first=4), False, False),
        # Brought back, and written since.
        (line(6, 2, first=1), False, True),
        (line(2, first=1), False, True),
        # Replaced: what is first has nothing before.
        (line(6, 5), True, True),
        ([], True, True),
    ],
)
def test_a_table_that_was_brought_back(snapshots: list[Snapshot], complete: bool, lacks: bool) -> None:
    head = snapshots[0] if snapshots else None
    found = TableState({}, pa.schema([]), head, True, snapshots[1:], complete)
    assert found.lacks(Done(1, 1, 3, 3)) == lacks


def test_whose_table_it_is() -> None:
    assert admission().is_own(mine())
    assert admission().is_own(state(30, False, **{OWNER: "me"}))
    assert not admission().is_own(state(**{OWNER: "me"}))
    assert not admission().is_own(state())
    assert not admission().is_own(state(**{OWNER: "other"}))
    name, value = done_property("me", DONE)
    with pytest.raises(TargetChangedError, match="Another query has emptied"):
        admission().is_own(state(**{OWNER: "other", name: value}))


@pytest.mark.parametrize(
    ("properties", "has_rows", "options", "expected"),
    [
        ({}, False, {}, False),
        ({OWNER: "other"}, False, {}, True),
        ({}, True, {}, TargetChangedError),
        ({OWNER: "other"}, True, {}, TargetChangedError),
        ({OWNER: "other"}, True, {"existing.tables": "empty"}, True),
        ({}, True, {"existing.tables": "empty"}, True),
        ({TABLE: "db_t"}, False, {"existing.tables": "empty"}, TargetError),
    ],
)
def test_tables_that_are_made_again(
    properties: dict[str, str], has_rows: bool, options: dict[str, str], expected: Any
) -> None:
    found = state(30, has_rows, **properties)
    if isinstance(expected, bool):
        assert admission(**options).must_be_replaced(found) == expected
    else:
        with pytest.raises(expected):
            admission(**options).must_be_replaced(found)


def test_what_is_done() -> None:
    assert admission().is_done(3, 77, mine())
    assert not admission().is_done(4, 78, mine())
    for batch, mark in ((2, 77), (3, 78)):
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
            admission().is_done(batch, mark, mine())


@pytest.mark.parametrize(("batch", "fits"), [(None, True), (2, True), (3, True), (4, False)])
def test_what_is_known_to_be_written(batch: int | None, fits: bool) -> None:
    if fits:
        admission().prove_written(mine(), batch)
        return
    with pytest.raises(TargetChangedError, match="lacks micro-batch 4, which this query has written"):
        admission().prove_written(mine(), batch)


def test_another_key() -> None:
    admission().prove_made_for(state(**{KEY: "a,b"}), ["a", "b"])
    with pytest.raises(TargetUnfitError):
        admission().prove_made_for(state(**{KEY: "a,b"}), ["a"])


def test_properties() -> None:
    found = admission(**{"table.properties": ".*:write.merge.mode=copy-on-write"}).properties(["id"])
    assert found["format-version"] == "3"
    assert found["write.delete.mode"] == "merge-on-read"
    assert found["write.merge.mode"] == "copy-on-write"
    assert {name: found[name] for name in (OWNER, KEY, TABLE, DELETES)} == {
        OWNER: "me",
        KEY: "id",
        TABLE: "db.t",
        DELETES: "hard",
    }
    found = admission(**{"deletion.vectors": "off"}).properties([])
    assert (found["format-version"], found["write.merge.mode"]) == ("2", "copy-on-write")


DECIMAL = pa.decimal128


@pytest.mark.parametrize(
    ("held", "source", "expected"),
    [
        (pa.int32(), pa.int16(), pa.int16()),
        (pa.int32(), pa.int64(), "wider"),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), "wider"),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.float64(), pa.int32(), pa.float64()),
        (DECIMAL(10, 2), DECIMAL(12, 2), "wider"),
        (DECIMAL(12, 2), DECIMAL(10, 2), DECIMAL(12, 2)),
        (DECIMAL(12, 2), DECIMAL(14, 3), None),
        (DECIMAL(12, 2), pa.int32(), DECIMAL(12, 2)),
        (pa.int32(), DECIMAL(12, 2), None),
        (pa.int32(), pa.string(), None),
        (pa.string(), pa.int32(), None),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int16())), pa.list_(pa.field("element", pa.int16()))),
    ],
)
def test_types(held: pa.DataType, source: pa.DataType, expected: Any) -> None:
    known, rows = pa.schema([("c", held)]), pa.schema([("c", source)])
    if expected is None:
        with pytest.raises(TargetUnfitError, match=r"The column 'c' of the Iceberg table 'db\.t' is "):
            fitted(known, rows, "db.t")
        return
    columns, wider = fitted(known, rows, "db.t")
    assert wider == ({"c": source} if expected == "wider" else {})
    assert expected == "wider" or columns.field("c").type == expected


def test_names_of_types() -> None:
    kinds = {
        "int": pa.int16(),
        "long": pa.int64(),
        "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp": pa.timestamp("us"),
        "list<int>": pa.list_(pa.int16()),
        "map<string, double>": pa.map_(pa.string(), pa.float64()),
        "struct<a: int, b: date>": pa.struct([("a", pa.int8()), ("b", pa.date32())]),
        "decimal(38, 10)": DECIMAL(38, 10),
        "binary": pa.binary(),
    }
    for name, kind in kinds.items():
        assert name_of(kind) == name
    assert stored(pa.struct([("a", pa.int8())])) == pa.struct([("a", pa.int32())])


def test_new_columns() -> None:
    known = pa.schema([pa.field("id", pa.int64()), pa.field("must", pa.string(), nullable=False)])
    rows = pa.schema([("id", pa.int64()), ("must", pa.string()), ("more", pa.string())])
    assert new_columns(known, rows, "db.t").names == ["more"]
    with pytest.raises(TargetUnfitError, match=r"'must' of the Iceberg table .* can't be null"):
        new_columns(known, pa.schema([("id", pa.int64())]), "db.t")
    with pytest.raises(TargetUnfitError, match="'ID' can't be added"):
        new_columns(pa.schema([("id", pa.int64())]), pa.schema([("ID", pa.int64())]), "db.t")
