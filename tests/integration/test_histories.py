"""Mirrors that keep every version of a row."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, QueryBuilder
from deltalake.schema import PrimitiveType

from floodmark.errors import ConfigError, TargetError, TargetUnfitError
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.history import CURRENT, VALIDITY
from floodmark.sinks.options import MirrorOptions
from tests.support.delta_mirror import WHAT, Mirror
from tests.unit.test_history import follow, timed
from tests.unit.test_last_changes import KINDS, Row, Source

HISTORY = {"history": "on"}


def rows_of(mirror: Mirror) -> list[Row]:
    names = ", ".join(f'"{name}"' for name in (*KINDS[mirror.key].names, *VALIDITY.names, POSITION))
    query = QueryBuilder().register("t", DeltaTable(mirror.path)).execute(f"SELECT {names} FROM t")
    return in_order(pa.table(query.read_all()).to_pylist())


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row[POSITION]))


@pytest.mark.parametrize("key", list(KINDS))
@pytest.mark.parametrize(("tasks", "compact"), [(1, "0"), (4, "0"), (4, "2")])
@pytest.mark.parametrize("seed", range(6))
def test_versions_follow(tmp_path: Path, key: tuple[str, ...], seed: int, tasks: int, compact: str) -> None:
    chance = random.Random(seed)
    vectors = "off" if seed % 3 == 2 else "on"
    options = {"compact.files": compact, "deletion.vectors": vectors, **HISTORY}
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **options)
    expected: list[Row] = []
    for batch in range(12):
        first = len(source.told)
        only = chance.choice([WHAT, WHAT, ["insert", "read"]])
        for _ in range(chance.randrange(30)):
            what = chance.choice(only if chance.random() < 0.98 else ["truncate"])
            keeps = chance.random() < 0.5
            source.change(what, chance.randrange(40), chance.randrange(40), chance.randrange(100), keeps)
        told = timed(source.told[first:])
        follow(expected, told)
        assert mirror.write(batch, told, tasks) or not told
        if chance.random() < 0.3:
            mirror.start()
            assert not mirror.write(batch, told, tasks)
        if chance.random() < 0.2:
            # Versions that have ended get among the others so.
            DeltaTable(mirror.path).optimize.compact()
        assert rows_of(mirror) == in_order(expected)
    current = sorted(row["v"] for row in rows_of(mirror) if row[CURRENT])
    assert current == sorted(row["v"] for row in source.rows.values())
    assert not all(row[CURRENT] for row in expected)


def test_a_version_that_ends_keeps_what_only_the_target_has(tmp_path: Path) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **HISTORY)
    source.change("insert", 1, 0, 5, False)
    assert mirror.write(1, timed(source.told))
    DeltaTable(mirror.path).alter.add_columns([Field("only_here", PrimitiveType("integer"))])
    DeltaTable(mirror.path).update({"only_here": "7"})
    source.change("update", 1, 0, 6, False)
    assert mirror.write(2, timed(source.told[1:]))
    table = DeltaTable(mirror.path)
    rows = pa.table(QueryBuilder().register("t", table).execute("SELECT v, only_here, is_current FROM t").read_all())
    assert sorted(rows.to_pylist(), key=str) == [
        {"v": 5, "only_here": 7, "is_current": False},
        {"v": 6, "only_here": None, "is_current": True},
    ]


def test_ended_versions_are_in_files_that_are_left_alone(tmp_path: Path) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **HISTORY, **{"compact.files": "0"})
    for number in range(5):
        source.change("insert", number, 0, 5, False)
    assert mirror.write(1, timed(source.told))
    for batch in range(2, 5):
        source.change("update", 1, 0, batch, False)
        assert mirror.write(batch, timed(source.told[-1:]))
    # One for each insert and update, and one for each version that has ended.
    assert len(DeltaTable(mirror.path).file_uris()) == 5
    (removed,) = [one for one in mirror.own._log.state().files.values() if one.vector is not None]
    assert removed.statistics["numRecords"] == 5


@pytest.mark.parametrize("other", [{"deletes": "soft"}, {}])
def test_the_option_can_not_change(tmp_path: Path, other: dict[str, str]) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **HISTORY)
    for number in range(2):
        source.change("insert", number, 0, 5, False)
    assert mirror.write(1, timed(source.told[:1]))
    mirror.options = other
    mirror.start()
    now = "deletes=soft" if other else "deletes=hard"
    with pytest.raises(TargetError, match=f"was made with the mirror's option history=on, but now it is {now}"):
        mirror.write(2, timed(source.told[1:]))


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="Options 'history' and 'deletes' exclude each other"):
        MirrorOptions.parse({"history": "on", "deletes": "soft"})


def test_a_column_with_a_name_of_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = pa.struct([*KINDS["id",], pa.field("Valid_To", pa.string())])
    monkeypatch.setitem(KINDS, ("id",), kind)
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **HISTORY)
    source.change("insert", 1, 0, 5, False)
    with pytest.raises(TargetUnfitError, match=r"'Valid_To' of the table 'db\.t' can't be in a mirror"):
        mirror.write(1, timed(source.told))
