"""Delta tables that are partitioned."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from obstore.store import LocalStore

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.delta.format import partitions
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.parts import Part, make_parts
from tests.integration import test_histories, test_soft_deletes
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.support.delta_spark import DeltaSpark
from tests.support.merging import Target, merge
from tests.support.readers import read_by_all, read_by_duckdb
from tests.unit.test_history import follow, timed
from tests.unit.test_last_changes import Row, Source, schema

COLUMNS = [(("id",), "v"), (("id",), "v,big"), (("b", "a"), "a"), (("b", "a"), "v,a"), (("id",), "id")]


def change(source: Source, chance: random.Random) -> None:
    """Change a row whose values are few."""
    what = chance.choice(WHAT if chance.random() < 0.98 else ["truncate"])
    source.change(what, chance.randrange(20), chance.randrange(20), chance.randrange(3), chance.random() < 0.5)


@pytest.mark.parametrize(("key", "columns"), COLUMNS)
@pytest.mark.parametrize(("tasks", "compact", "vectors"), [(1, "0", "on"), (4, "2", "on"), (3, "2", "off")])
def test_a_table_follows(
    tmp_path: Path, key: tuple[str, ...], columns: str, tasks: int, compact: str, vectors: str
) -> None:
    chance = random.Random(columns + compact)
    options = {"compact.files": compact, "deletion.vectors": vectors, "partition.by": rf"db\.t:{columns}"}
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **options)
    expected: Target = {}
    for batch in range(12):
        first = len(source.told)
        for _ in range(chance.randrange(1, 30)):
            change(source, chance)
        told = source.told[first:]
        merge(expected, told)
        assert mirror.write(batch, told, tasks)
        if chance.random() < 0.3:
            mirror.start()
            assert not mirror.write(batch, told, tasks)
        if chance.random() < 0.2:
            DeltaTable(mirror.path).optimize.compact()
        if chance.random() < 0.2:
            DeltaTable(mirror.path).create_checkpoint()
        assert mirror.rows() == in_order(expected.values())
    assert DeltaTable(mirror.path).metadata().partition_columns == columns.split(",")
    found = read_by_duckdb(Path(mirror.path)).drop_columns([POSITION]).to_pylist()
    assert in_order(found) == in_order(expected.values())


@pytest.mark.parametrize("seed", range(4))
def test_deleted_rows_stay(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = Source(("id",))
    mirror = Mirror(tmp_path / "t", ("id",), deletes="soft", **{"partition.by": ".*:big", "compact.files": "2"})
    expected: Target = {}
    for batch in range(10):
        first = len(source.told)
        for _ in range(chance.randrange(1, 30)):
            change(source, chance)
        told = [test_soft_deletes.with_bare_keys(event) for event in source.told[first:]]
        test_soft_deletes.follow(expected, told)
        assert mirror.write(batch, told, 3)
        assert test_soft_deletes.rows_of(mirror) == in_order(expected.values())


@pytest.mark.parametrize("seed", range(4))
def test_versions_follow(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    options = {
        "history": "on",
        "partition.by": ".*:v",
        "compact.files": "2",
        "deletion.vectors": ["on", "off"][seed % 2],
    }
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **options)
    expected: list[Row] = []
    for batch in range(10):
        first = len(source.told)
        for _ in range(chance.randrange(1, 30)):
            change(source, chance)
        told = timed(source.told[first:])
        follow(expected, told)
        assert mirror.write(batch, told, 3)
        assert test_histories.rows_of(mirror) == test_histories.in_order(expected)


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [None, -(2**63), 2**63 - 1, 0]),
    "small": (pa.int16(), [-5, None, 7, 0]),
    "text": (pa.string(), [None, "a b/c=ü%20", "'\"\\:?#[]{}^`", "\U0010ffffé"]),
    "day": (pa.date32(), [None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2026, 11, 26)]),
    "flag": (pa.bool_(), [True, False, None, True]),
}


def parts_of(
    mirror: Mirror, columns: str, kinds: dict[str, pa.DataType], rows: list[Row], start: int = 0
) -> list[Part]:
    row = pa.struct([("id", pa.int64()), *kinds.items()])
    told = [
        {"op": "c", "position": f"{start + number:09d}", "key": ["id"], "after": {"id": start + number, **row}}
        for number, row in enumerate(rows)
    ]
    wanted = [field.with_type(row) if field.name in ("before", "after") else field for field in schema(("id",))]
    files = DataFiles(LocalStore(mirror.path), "db.t", columns.split(","))
    return make_parts(files, [pa.Table.from_pylist(told, pa.schema(wanted))])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("columns", [*VALUES, "text,day,flag"])
def test_values_of_all_types(tmp_path: Path, delta_spark: DeltaSpark, columns: str) -> None:
    kinds = {name: kind for name, (kind, _) in VALUES.items()}
    rows = [{name: values[number] for name, (_, values) in VALUES.items()} for number in range(4)]
    mirror = Mirror(tmp_path / "t", ("id",), **{"partition.by": f".*:{columns}", "compact.files": "2"})
    for batch in range(3):
        assert mirror.writer.write(batch, parts_of(mirror, columns, kinds, rows, 4 * batch))
        if batch == 1:
            delta_spark.run(f"OPTIMIZE delta.`{mirror.path}`")
            delta_spark.run(f"UPDATE delta.`{mirror.path}` SET small = small WHERE id = 1")
    for reader, found in read_by_all(Path(mirror.path), delta_spark).items():
        got = sorted(found.drop_columns([POSITION]).to_pylist(), key=lambda row: row["id"])
        assert got == [{"id": 4 * batch + number, **row} for batch in range(3) for number, row in enumerate(rows)], (
            reader
        )


@pytest.mark.parametrize(
    ("name", "kind", "value", "message"),
    [
        ("text", pa.string(), "", "an empty text, which Delta can't tell from null"),
        ("text", pa.string(), "x" * 300, "a text that is too long"),
        ("text", pa.string(), "__HIVE_DEFAULT_PARTITION__", "which stands for null"),
        ("day", pa.date32(), pa.scalar(2_932_897, pa.int32()).cast(pa.date32()), "a date before year 1 or after"),
    ],
)
def test_rows_that_no_partition_takes(tmp_path: Path, name: str, kind: pa.DataType, value: Any, message: str) -> None:
    files = DataFiles(LocalStore(tmp_path), "db.t", [name])
    with pytest.raises(TargetUnfitError, match=message):
        files.write(pa.table({name: pa.array([value], kind), "id": [1], POSITION: ["1"]}), [])


def test_columns_of_other_types(tmp_path: Path) -> None:
    files = DataFiles(LocalStore(tmp_path), "db.t", ["at"])
    rows = pa.table({"at": pa.array([0], pa.timestamp("us")), "id": [1], POSITION: ["1"]})
    with pytest.raises(
        TargetError, match=r"partition\.by names the column 'at' of the table 'db\.t', by which no table"
    ):
        files.write(rows, [])


def test_too_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_MOST", 5)
    files = DataFiles(LocalStore(tmp_path), "db.t", ["id"])
    rows = pa.table({"id": range(6), "v": range(6), POSITION: ["1"] * 6})
    with pytest.raises(TargetError, match="belong to 6 partitions by id; a mirror writes up to 5"):
        files.write(rows, ["id"])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"partition.by": ".*:V"}, "no such column. Did you mean 'v'"),
        ({"partition.by": ".*:id,v,big"}, "names all columns of the table"),
        ({"partition.by": ".*:v", "cluster.by": r"db\.t:big"}, "which is clustered; Delta clusters no"),
    ],
)
def test_columns_that_no_table_can_be_partitioned_by(tmp_path: Path, rules: dict[str, str], message: str) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **rules)
    source.change("insert", 1, 0, 1, False)
    with pytest.raises(TargetError, match=message):
        mirror.write(1, source.told)
    assert not list((tmp_path / "t").glob("_delta_log/*.json"))


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (".*:v", ".*:big", "is partitioned by v, but the mirror's option partition.by names big"),
        (".*:v", "", "is partitioned by v, but the mirror's option partition.by names no column"),
        ("", ".*:v", "is not partitioned, but the mirror's option partition.by names v"),
    ],
)
def test_the_columns_can_not_change(tmp_path: Path, first: str, then: str, message: str) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **{"partition.by": first})
    for number in range(3):
        source.change("insert", number, 0, 1, False)
    assert mirror.write(1, source.told[:1])
    mirror.options = {"partition.by": then}
    mirror.start()
    with pytest.raises(TargetError, match=message):
        mirror.write(2, source.told[1:2])
    # A query that empties the table may partition it otherwise.
    mirror.options = {"partition.by": then, "existing.tables": "empty"}
    mirror.writer = mirror.another("other", **mirror.options)
    assert mirror.write(0, source.told)
    assert mirror.rows() == in_order(source.rows.values())
    assert DeltaTable(mirror.path).metadata().partition_columns == ([then[3:]] if then else [])


def test_a_clustered_table_is_not_partitioned_when_it_is_emptied(tmp_path: Path) -> None:
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **{"cluster.by": ".*:v"})
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    mirror.writer = mirror.another("other", **{"partition.by": ".*:v", "existing.tables": "empty"})
    with pytest.raises(TargetError, match="which is clustered; Delta clusters no"):
        mirror.write(0, source.told)
    assert mirror.rows() == in_order(source.rows.values())


def test_a_partition_column_that_gets_wider_or_is_dropped(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "t", ("id",), **{"partition.by": ".*:n", "compact.files": "0"})
    expected: list[Row] = []
    for batch, kind in enumerate([pa.int16(), pa.int32(), pa.decimal128(14, 1)]):
        rows: list[Row] = [{"n": None, "v": 1}, {"n": batch, "v": 2}, {"n": batch, "v": 3}]
        assert mirror.writer.write(batch, parts_of(mirror, "n", {"n": kind, "v": pa.int32()}, rows, 10 * batch))
        expected += [{"id": 10 * batch + number, **row} for number, row in enumerate(rows)]
    assert mirror.writer.write(3, parts_of(mirror, "n", {"v": pa.int32()}, [{"v": 1}, {"v": 2}], 30))
    expected += [{"id": 30, "n": None, "v": 1}, {"id": 31, "n": None, "v": 2}]
    found = read_by_duckdb(Path(mirror.path)).drop_columns([POSITION]).to_pylist()
    assert sorted(found, key=lambda row: int(row["id"])) == expected


def test_files_of_other_partitions_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("b", "a")
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **{"partition.by": ".*:a", "compact.files": "0"})
    for number in range(6):
        source.change("insert", number, 0, 1, False)
    assert mirror.write(1, source.told)
    mirror.start()
    read: list[str] = []
    columns = DataFiles.read_columns

    def noted(files: DataFiles, file: DataFile, wanted: pa.Schema) -> pa.Table:
        read.append(file.path)
        return columns(files, file, wanted)

    monkeypatch.setattr(DataFiles, "read_columns", noted)
    source.change("update", 2, 0, 9, False)
    assert mirror.write(2, source.told[-1:])
    assert read
    assert all(path.startswith("a=k0/") for path in read)
