"""The last changes of a micro-batch leave a target as all of its rows do, one after the other."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.changes.typed_rows import NAMES
from floodmark.sinks.last_changes import LastChanges, last_changes
from tests.support.merging import Target, merge

KINDS = {
    ("id",): pa.struct([("id", pa.int64()), ("v", pa.int32()), ("big", pa.string())]),
    ("b", "a"): pa.struct([("a", pa.string()), ("v", pa.int32()), ("b", pa.decimal128(10, 2)), ("big", pa.string())]),
}
Row = dict[str, Any]


def schema(key: tuple[str, ...]) -> pa.Schema:
    row = KINDS[key]
    names = [("op", pa.string()), ("position", pa.string()), ("key", NAMES), ("unavailable", NAMES)]
    return pa.schema([*names, ("unrepresentable", NAMES), ("before", row), ("after", row)])


class Source:
    """A table, and the rows that tell its changes."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = key
        self.rows: dict[int, Row] = {}
        self.told: list[Row] = []

    def row(self, number: int, v: int, big: str) -> Row:
        keys = {"id": number} if self.key == ("id",) else {"a": f"k{number % 2}", "b": pa.scalar(number).as_py()}
        return {**keys, "v": v, "big": big}

    def tell(self, op: str, before: Row | None, after: Row | None, unavailable: list[str]) -> None:
        hidden = None if after is None else {n: None if n in unavailable else v for n, v in after.items()}
        position = f"{len(self.told):08d}"
        event = {"op": op, "position": position, "key": list(self.key), "unavailable": unavailable}
        self.told.append({**event, "before": before, "after": hidden})

    def change(self, what: str, number: int, other: int, value: int, keeps: bool) -> None:
        """Apply a change if it is possible."""
        known = self.rows.get(number)
        unavailable = ["big"] if keeps else []
        if what == "truncate":
            self.rows.clear()
            self.tell("t", None, None, [])
        elif known is None:
            self.rows[number] = self.row(number, value, f"big{value}")
            self.tell("c" if what == "insert" else "r", None, self.rows[number], [])
        elif what == "delete":
            self.tell("d", self.rows.pop(number), None, [])
        elif what == "move" and other not in self.rows:
            self.tell("d", self.rows.pop(number), None, [])
            self.rows[other] = self.row(other, value, known["big"] if keeps else f"big{value}")
            self.tell("c", known, self.rows[other], unavailable)
        else:
            self.rows[number] = self.row(number, value, known["big"] if keeps else f"big{value}")
            self.tell("u", None, self.rows[number], unavailable)


def apply(target: Target, changes: LastChanges, key: tuple[str, ...]) -> None:
    """Apply last changes as a writer does."""
    before = copy.copy(target)
    if changes.truncated:
        target.clear()
        before = {}
    rows, held = changes.rows.to_pylist(), changes.held.to_pylist()
    for number, row in enumerate(rows):
        at = tuple(row[name] for name in key)
        target.pop(at, None)
        if changes.deleted[number]:
            assert all(value is None for name, value in row.items() if name not in key)
            continue
        of = tuple(held[number][name] for name in key)
        for name, mask in changes.unavailable.items():
            if mask[number]:
                row[name] = before[of][name] if of in before else None
        target[at] = row
    assert len({tuple(row[name] for name in key) for row in rows}) == len(rows)


CHANGES = st.tuples(
    st.sampled_from(["insert", "read", "update", "update", "delete", "move", "move", "truncate"]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 99),
    st.booleans(),
)


@pytest.mark.parametrize("key", list(KINDS))
@given(st.lists(st.lists(CHANGES, max_size=12), max_size=5), st.randoms(use_true_random=False))
def test_a_target_follows(key: tuple[str, ...], batches: list[list[tuple[Any, ...]]], chance: Any) -> None:
    source = Source(key)
    target: Target = {}
    expected: Target = {}
    for batch in batches:
        first = len(source.told)
        for change in batch:
            source.change(*change)
        told = source.told[first:]
        merge(expected, told)
        shuffled = chance.sample(told, len(told))
        apply(target, last_changes(pa.Table.from_pylist(shuffled, schema(key)), key), key)
        assert target == expected
        shown = pa.Table.from_pylist(list(source.rows.values()), pa.schema(list(KINDS[key]))).to_pylist()
        assert sorted(target.values(), key=str) == sorted(shown, key=str)


def test_no_rows() -> None:
    changes = last_changes(schema(("id",)).empty_table(), ("id",))
    assert (changes.rows.num_rows, changes.truncated) == (0, False)
    assert changes.rows.column_names == ["id", "v", "big"]


def test_a_truncate_alone() -> None:
    source = Source(("id",))
    source.change("truncate", 0, 0, 0, False)
    changes = last_changes(pa.Table.from_pylist(source.told, schema(("id",))), ("id",))
    assert (changes.rows.num_rows, changes.truncated) == (0, True)


def test_positions_are_those_of_the_last_changes() -> None:
    source = Source(("id",))
    for change in [("insert", 1), ("insert", 2), ("update", 1), ("delete", 2)]:
        source.change(*change, 0, 5, False)
    changes = last_changes(pa.Table.from_pylist(source.told, schema(("id",))), ("id",))
    assert dict(zip(changes.rows["id"].to_pylist(), changes.positions.to_pylist(), strict=True)) == {
        1: "00000002",
        2: "00000003",
    }
