"""Delta tables as targets that can be verified: their rows, the rows of keys, and guarded deletes."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from floodmark.errors import TargetError
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.verifiable import DeltaTarget, DeltaView
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.unit.test_last_changes import KINDS, Row, Source


def made(folder: Path, key: tuple[str, ...], seed: int, **options: str) -> tuple[Source, Mirror]:
    """Return a table after many changes, with several files and deletion vectors."""
    chance = random.Random(seed)
    source, mirror = Source(key), Mirror(folder / "t", key, **{"compact.files": "0", **options})
    for batch in range(6):
        first = len(source.told)
        for _ in range(40):
            source.change(chance.choice(WHAT), chance.randrange(30), chance.randrange(30), chance.randrange(99), False)
        mirror.write(batch, source.told[first:])
    return source, mirror


def rows_in(view: DeltaView, key: tuple[str, ...]) -> list[Row]:
    columns = pa.schema(list(KINDS[key]))
    return in_order(row for part in view.parts() for table in part.rows(columns) for row in table.to_pylist())


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("options", [{}, {"deletes": "soft"}, {"deletion.vectors": "off"}])
def test_the_rows_are_those_of_the_source(tmp_path: Path, key: tuple[str, ...], options: dict[str, str]) -> None:
    source, _ = made(tmp_path, key, 3, **options)
    view = DeltaTarget(str(tmp_path), "t").view()
    assert list(view.key) == list(key)
    assert view.query is None
    expected = in_order(source.rows.values())
    assert rows_in(view, key) == expected
    columns = view.fitted(pa.schema(list(KINDS[key])))
    wanted = pa.Table.from_pylist(list(source.rows.values())[::3], pa.schema(list(KINDS[key]))).select(list(key))
    found = view.with_keys(wanted.cast(pa.schema([columns.field(name) for name in key])), columns)
    assert in_order(found.drop_columns([POSITION]).to_pylist()) == in_order(list(source.rows.values())[::3])
    assert not found[POSITION].null_count


def test_only_rows_that_are_as_they_were_found_are_deleted(tmp_path: Path) -> None:
    key = ("id",)
    source, mirror = made(tmp_path, key, 5)
    target = DeltaTarget(str(tmp_path), "t")
    view = target.view()
    columns = view.fitted(pa.schema(list(KINDS[key])))
    first, second = list(source.rows)[:2]
    keys = pa.table({"id": pa.array([first, second], pa.int64())})
    found = view.with_keys(keys, columns).select(["id", POSITION])
    # One of them is written again before the delete.
    source.change("update", second, 0, 1000, False)
    mirror.write(6, source.told[-1:])
    assert target.delete(found) == 1
    assert target.delete(found) == 0
    del source.rows[first]
    assert mirror.rows() == in_order(source.rows.values())
    # The mirror goes on.
    source.change("insert", 77, 0, 1, False)
    assert mirror.write(7, source.told[-1:])
    assert mirror.rows() == in_order(source.rows.values())


def test_targets_that_are_not_there(tmp_path: Path) -> None:
    target = DeltaTarget(str(tmp_path), "t")
    assert not target.exists()
    with pytest.raises(TargetError, match="no Delta table"):
        target.view()
    assert not (tmp_path / "t").exists()


def test_rows_that_are_kept_are_only_marked(tmp_path: Path) -> None:
    source, mirror = made(tmp_path, ("id",), 1, deletes="soft")
    target = DeltaTarget(str(tmp_path), "t")
    number = next(iter(source.rows))
    columns = pa.schema(list(KINDS["id",]))
    found = target.view().with_keys(pa.table({"id": pa.array([number], pa.int64())}), columns)
    assert target.delete(found.select(["id", POSITION])) == 1
    known = source.rows.pop(number)
    assert rows_in(target.view(), ("id",)) == in_order(source.rows.values())
    assert known in mirror.rows()


def test_versions_are_not_deleted(tmp_path: Path) -> None:
    made(tmp_path, ("id",), 1, history="on")
    with pytest.raises(TargetError, match=r"missing\.tables=read"):
        DeltaTarget(str(tmp_path), "t").delete(pa.table({"id": [1], POSITION: ["x"]}))


def test_files_of_other_writers(tmp_path: Path) -> None:
    source, mirror = made(tmp_path, ("id",), 2)
    DeltaTable(mirror.path).optimize.compact()
    assert rows_in(DeltaTarget(str(tmp_path), "t").view(), ("id",)) == in_order(source.rows.values())
