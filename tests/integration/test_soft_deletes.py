"""Mirrors that keep deleted rows."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from floodmark.errors import TargetError
from floodmark.sinks.soft_deletes import DELETED
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.support.delta_spark import DeltaSpark
from tests.support.merging import Target, key_of
from tests.unit.test_last_changes import KINDS, Row, Source

SOFT = {"deletes": "soft"}


def follow(target: Target, told: Iterable[Row]) -> None:
    """Apply rows one after the other."""
    for event in told:
        old, new = (key_of(event, event[side]) for side in ("before", "after"))
        if event["op"] == "t":
            for row in target.values():
                row[DELETED] = True
            continue
        at, row = (old, event["before"]) if event["op"] == "d" else (new, event["after"])
        known = target.get((old if event["op"] == "c" else at) or (), {})
        lacking = {name: known.get(name) for name in event["unavailable"]}
        assert at is not None
        target[at] = {**row, **lacking, DELETED: event["op"] == "d"}


def with_bare_keys(event: Row) -> Row:
    """Return a delete of which the log holds the key only, as PostgreSQL's does."""
    if event["op"] != "d":
        return event
    bare = {name: value if name in event["key"] else None for name, value in event["before"].items()}
    return {**event, "before": bare, "unavailable": [name for name in bare if name not in event["key"]]}


def rows_of(mirror: Mirror) -> list[Row]:
    names = ", ".join(f'"{name}"' for name in (*KINDS[mirror.key].names, DELETED))
    query = QueryBuilder().register("t", DeltaTable(mirror.path)).execute(f"SELECT {names} FROM t")
    return in_order(pa.table(query.read_all()).to_pylist())


BY_FLOODMARK = [
    (None, key, seed, tasks, compact, bare)
    for key in KINDS
    for seed in range(4)
    for tasks, compact, bare in ((1, "0", True), (4, "0", False), (4, "2", True))
]


@pytest.mark.parametrize(
    ("engine", "key", "seed", "tasks", "compact", "bare"),
    [*BY_FLOODMARK, pytest.param("spark", ("id",), 1, 3, "0", True, marks=[pytest.mark.slow, pytest.mark.long])],
    indirect=["engine"],
)
def test_deleted_rows_stay(
    tmp_path: Path,
    engine: DeltaSpark | None,
    key: tuple[str, ...],
    seed: int,
    tasks: int,
    compact: str,
    bare: bool,
) -> None:
    chance = random.Random(seed)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine, **{"compact.files": compact, **SOFT})
    expected: Target = {}
    for batch in range(12 if engine is None else 5):
        first = len(source.told)
        for _ in range(chance.randrange(30)):
            what = chance.choice(WHAT if chance.random() < (0.97 if engine is None else 0.95) else ["truncate"])
            keeps = chance.random() < 0.5
            source.change(what, chance.randrange(40), chance.randrange(40), chance.randrange(100), keeps)
        told = [with_bare_keys(event) if bare else event for event in source.told[first:]]
        follow(expected, told)
        assert mirror.write(batch, told, tasks) or not told
        if chance.random() < 0.3:
            mirror.start()
            assert not mirror.write(batch, told, tasks)
        assert rows_of(mirror) == in_order(expected.values())
    assert {row["v"] for row in rows_of(mirror) if not row[DELETED]} == {row["v"] for row in source.rows.values()}
    assert any(row[DELETED] for row in expected.values())


@pytest.mark.parametrize(("first", "then"), [("soft", "hard"), ("hard", "soft")])
def test_the_way_of_deleting_can_not_change(tmp_path: Path, first: str, then: str) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), deletes=first)
    for number in range(2):
        source.change("insert", number, 0, 5, False)
    assert mirror.write(1, source.told[:1])
    mirror.options["deletes"] = then
    mirror.start()
    with pytest.raises(
        TargetError, match=f"was made with the mirror's option deletes={first}, but now it is deletes={then}"
    ):
        mirror.write(2, source.told[1:])


def test_a_column_with_the_name_of_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("id",)
    monkeypatch.setitem(KINDS, key, pa.struct([*KINDS[key], pa.field("_Deleted", pa.int32())]))
    told: list[dict[str, Any]] = [
        {"op": "c", "position": "1", "key": ["id"], "unavailable": [], "before": None, "after": {"id": 1}}
    ]
    with pytest.raises(TargetError, match=r"The column '_Deleted' .* can't be in a mirror"):
        Mirror(tmp_path / "soft", key, **SOFT).write(1, told)
    assert Mirror(tmp_path / "hard", key).write(1, told)
