"""What every writer of a mirror's tables must do: Floodmark's own, and Spark's ``MERGE``."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake
from deltalake.schema import PrimitiveType

from floodmark.errors import TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.parts import Part
from tests.support.delta_mirror import EMPTY, WHAT, Mirror, by_spark, in_order, more, typed
from tests.support.delta_spark import DeltaSpark
from tests.support.merging import Target, merge
from tests.support.readers import read_by_duckdb
from tests.unit.test_last_changes import KINDS, Source

BY_FLOODMARK = [
    (None, key, seed, tasks, compact)
    for key in KINDS
    for seed in range(6)
    for tasks, compact in ((1, "0"), (4, "0"), (1, "2"), (4, "3"))
]


@pytest.mark.parametrize(
    ("engine", "key", "seed", "tasks", "compact"), [*BY_FLOODMARK, by_spark(("b", "a"), 2, 3, "3")], indirect=["engine"]
)
def test_a_table_follows(
    tmp_path: Path, engine: DeltaSpark | None, key: tuple[str, ...], seed: int, tasks: int, compact: str
) -> None:
    vectors = "off" if seed % 3 == 2 else "on"
    chance = random.Random(seed)
    source = Source(key)
    mirror = Mirror(tmp_path / "t", key, engine, **{"compact.files": compact, "deletion.vectors": vectors})
    expected: Target = {}
    for batch in range(12 if engine is None else 6):
        first = len(source.told)
        for _ in range(chance.randrange(30)):
            source.change(
                chance.choice(WHAT if chance.random() < (0.99 if engine is None else 0.97) else ["truncate"]),
                chance.randrange(40),
                chance.randrange(40),
                chance.randrange(100),
                chance.random() < 0.5,
            )
        told = source.told[first:]
        merge(expected, told)
        assert mirror.write(batch, told, tasks) or not told
        if chance.random() < 0.3:
            mirror.start()
        if chance.random() < 0.3:
            assert not mirror.write(batch, told, tasks)
        if chance.random() < 0.2:
            DeltaTable(mirror.path).optimize.compact()
        if chance.random() < 0.2:
            DeltaTable(mirror.path).create_checkpoint()
        assert mirror.rows() == in_order(expected.values())
    assert pl.read_delta(mirror.path).drop(POSITION).height == len(expected)
    found = read_by_duckdb(Path(mirror.path)).drop_columns([POSITION]).to_pylist()
    assert in_order(found) == in_order(expected.values())
    if vectors == "off":
        assert DeltaTable(mirror.path).to_pyarrow_table().num_rows == len(expected)


def test_earlier_changes_move_no_row_back(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for what, number, value in [("insert", 1, 1), ("insert", 2, 2), ("update", 1, 3), ("delete", 2, 0), ("read", 3, 4)]:
        source.change(what, number, 0, value, False)
    assert mirror.write(1, source.told)
    rows = mirror.rows()
    assert mirror.write(2, source.told[:1])
    assert mirror.rows() == rows


def test_a_checkpoint_that_is_older_than_the_table(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    assert mirror.write(2, source.told[1:2])
    for batch, told in [(1, source.told[:1]), (2, source.told[1:3])]:
        mirror.start()
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Delta table"):
            mirror.write(batch, told)
    assert not mirror.write(2, source.told[1:2])
    assert mirror.write(3, source.told[2:])
    assert len(mirror.rows()) == 4


@pytest.mark.parametrize("key", [("id",), ()])
def test_a_micro_batch_that_comes_again_without_rows_that_a_snapshot_has_read(
    tmp_path: Path, engine: DeltaSpark | None, key: tuple[str, ...]
) -> None:
    """A query that was killed between the target's commit and Spark's can't read them again as they were."""
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), engine)
    for what, number in [("insert", 1), ("read", 2), ("read", 3), ("read", 4), ("read", 5)]:
        source.change(what, number, 0, number, False)
    told = [{**row, "key": list(key)} for row in source.told]
    # Rows that are read at a time have one position.
    told[3]["position"] = told[2]["position"]
    assert mirror.write(1, told[:2])
    mirror.start()
    assert not mirror.write(1, told[:1])
    assert mirror.write(2, told[2:4])
    mirror.start()
    assert not mirror.write(2, told[3:4])
    with pytest.raises(TargetChangedError, match="The checkpoint is older than the Delta table"):
        mirror.write(2, told[4:])
    assert mirror.write(3, told[4:])
    assert len(mirror.rows()) == 5
    source.change("insert", 6, 0, 6, False)
    source.change("read", 7, 0, 7, False)
    source.change("read", 8, 0, 8, False)
    *_, change, read, other = ({**row, "key": list(key)} for row in source.told)
    assert mirror.write(4, [change, read])
    # A checkpoint that was restored in the middle of a snapshot: the log goes as far, but other rows were read.
    for rows in ([change, other], [other]):
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Delta table"):
            mirror.write(4, rows)


def test_rows_of_another_query(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for number in range(3):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told)
    rows = mirror.rows()
    mirror.writer = mirror.another("other")
    with pytest.raises(TargetChangedError, match="has rows that this query has not written"):
        mirror.write(0, source.told[:1])
    assert mirror.rows() == rows
    mirror.writer = mirror.another("other", **EMPTY)
    assert mirror.write(0, source.told[:1])
    assert mirror.write(1, source.told[1:2])
    assert mirror.rows() == rows[:2]


@pytest.mark.parametrize(
    ("engine", "version", "again"),
    [*((None, version, again) for version in (0, 1) for again in (False, True)), by_spark(1, True)],
    indirect=["engine"],
)
@pytest.mark.parametrize("checkpoint", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_table_that_is_restored(
    tmp_path: Path, engine: DeltaSpark | None, version: int, again: bool, checkpoint: bool
) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    assert mirror.write(2, source.told[1:2])
    DeltaTable(mirror.path).restore(version)
    if checkpoint:
        DeltaTable(mirror.path).create_checkpoint()
    if again:
        mirror.start()
    for batch, told in ((2, source.told[1:2]), (3, source.told[2:3])):
        with pytest.raises(TargetChangedError, match="was restored to an earlier version"):
            mirror.write(batch, told)
    mirror.writer = mirror.another("new", **EMPTY)
    assert mirror.write(0, source.told)
    assert mirror.write(1, source.told[3:])
    assert len(mirror.rows()) == 4


@pytest.mark.parametrize("what", ["moved", "no rows"])
def test_what_must_be_in_a_table_is_there(tmp_path: Path, engine: DeltaSpark | None, what: str) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine, **{"compact.files": "0"})
    for number in range(3):
        source.change("insert", number, 0, number, False)
    source.change("delete", 0, 0, 0, False)
    # A micro-batch that changes nothing is in the table's log, too.
    for batch, told in enumerate([source.told[3:] if what == "no rows" else source.told[:2], source.told[:1]]):
        assert mirror.write(batch, told)
    shutil.copytree(mirror.path, tmp_path / "copy")
    shutil.rmtree(mirror.path)
    shutil.copytree(tmp_path / "copy", mirror.path)
    mirror.written = 1
    mirror.start()
    assert mirror.write(2, source.told[2:])
    assert [row["id"] for row in mirror.rows()] == ([1, 2] if what == "moved" else [2])


@pytest.mark.parametrize("how", ["backup", "another table", "removed rows"])
def test_a_table_that_lacks_what_was_written(tmp_path: Path, engine: DeltaSpark | None, how: str) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    shutil.copytree(mirror.path, tmp_path / "copy")
    assert mirror.write(2, source.told[1:2])
    shutil.rmtree(mirror.path)
    if how == "backup":
        shutil.copytree(tmp_path / "copy", mirror.path)
    else:
        rows = pa.table({"id": pa.array([7] if how == "another table" else [], pa.int64())})
        write_deltalake(mirror.path, rows)
    before = DeltaTable(mirror.path).version()
    mirror.written = 2
    for options in ({}, EMPTY):
        mirror.writer = mirror.another("test", **options)
        with pytest.raises(TargetChangedError, match=r"'db\.t' lacks micro-batch 2, which this query has written"):
            mirror.write(3, source.told[2:3])
    assert DeltaTable(mirror.path).version() == before
    # It is removed, as the error says, and made again.
    shutil.rmtree(mirror.path)
    Path(mirror.path).mkdir()
    mirror.start()
    assert mirror.write(3, source.told)
    assert mirror.rows() == in_order(source.rows.values())


def test_tables_get_properties(tmp_path: Path, engine: DeltaSpark | None) -> None:
    rules = r".*:delta.checkpointInterval=20; other\.t:x=1; db\.(t|u):delta.checkpointInterval=30;db.*:owner=some: one"
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), engine, **{"table.properties": rules})
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    found = DeltaTable(mirror.path).metadata().configuration
    assert (found["delta.checkpointInterval"], found["owner"]) == ("30", "some: one")
    assert "x" not in found


def test_two_queries_with_one_path(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)

    for number in range(4):
        source.change("insert", number, 0, number, False)
    source.change("delete", 0, 0, 0, False)
    assert mirror.write(1, source.told[:1])
    assert mirror.write(2, source.told[4:])
    first, second = mirror.writer, mirror.another("other", **EMPTY)
    # The table has no rows at the moment.
    mirror.writer = second
    assert mirror.write(0, source.told[1:2])
    for writer in (first, mirror.another("test", **EMPTY)):
        mirror.writer = writer
        with pytest.raises(TargetChangedError, match="Another query has emptied the Delta table"):
            mirror.write(3, source.told[2:3])
    mirror.writer = second
    assert mirror.write(1, source.told[3:4])
    assert [row["id"] for row in mirror.rows()] == [1, 3]


@pytest.mark.parametrize(
    ("engine", "vectors", "listed"),
    [*((None, vectors, listed) for vectors in ("on", "off") for listed in (False, True)), by_spark("off", True)],
    indirect=["engine"],
)
def test_a_column_that_needs_a_feature_is_added(
    tmp_path: Path, engine: DeltaSpark | None, vectors: str, listed: bool
) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine, **{"deletion.vectors": vectors})
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    source.change("insert", 2, 0, 2, False)
    value, kind = dt.datetime(2026, 1, 1), pa.timestamp("us")
    after = {**source.told[1]["after"], "more": [value] if listed else value}
    kind = pa.list_(pa.field("element", kind)) if listed else kind
    assert mirror.writer.write(2, more(mirror, [{**source.told[1], "after": after}], kind))
    protocol = DeltaTable(mirror.path).protocol()
    assert "timestampNtz" in (protocol.reader_features or [])
    assert "timestampNtz" in (protocol.writer_features or [])
    assert ("deletionVectors" in (protocol.writer_features or [])) == (vectors == "on")


def test_a_column_is_added(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for number in range(3):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told)
    first = len(source.told)
    source.change("update", 1, 0, 5, True)
    source.change("delete", 2, 0, 0, False)
    told = source.told[first:]
    told[0]["after"]["more"] = 7
    assert mirror.writer.write(2, more(mirror, told))
    assert mirror.listener.told == [("missing", "db.t", "True"), ("exists", "db.t"), ("columns", "db.t", "more")]
    found = pa.table(QueryBuilder().register("t", DeltaTable(mirror.path)).execute("SELECT * FROM t").read_all())
    assert sorted(map(str, found.drop_columns([POSITION]).to_pylist())) == [
        "{'id': 0, 'v': 0, 'big': 'big0', 'more': None}",
        "{'id': 1, 'v': 5, 'big': 'big1', 'more': 7}",
    ]
    # A value that the log lacks may be one of a file from before the column.
    first = len(source.told)
    source.change("update", 0, 0, 6, True)
    told = source.told[first:]
    told[0]["unavailable"] = ["big", "more"]
    assert mirror.writer.write(3, more(mirror, told))
    assert {"id": 0, "v": 6, "big": "big0"} in mirror.rows()
    # A query that began before the column goes on.
    first = len(source.told)
    source.change("update", 1, 0, 8, False)
    assert mirror.write(4, source.told[first:])
    assert {"id": 1, "v": 8, "big": "big8"} in mirror.rows()


@pytest.mark.parametrize("what", ["key", "types"])
def test_a_micro_batch_with_two_kinds_of_rows(tmp_path: Path, engine: DeltaSpark | None, what: str) -> None:
    """The way out that the error names must work, though Spark delivers the same micro-batch again."""
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    source.change("insert", 2, 0, 2, False)
    source.change("insert", 3, 0, 3, False)
    last = [{**source.told[2], "key": ["v"]}] if what == "key" else source.told[2:]

    def parts() -> list[Part]:
        later = typed(mirror, last, **({} if what == "key" else {"big": pa.int64()}))
        return [*typed(mirror, source.told[1:2]), *later]

    if what == "types":
        source.told[2]["after"]["big"] = 5
    with pytest.raises(TargetError, match=f"The {what} of the table 'db.t' changed within a micro-batch"):
        mirror.writer.write(2, parts())
    shutil.rmtree(mirror.path)
    Path(mirror.path).mkdir()
    for _ in range(2):
        mirror.start()
        mirror.writer.write(2, parts())
        assert [row["id"] for row in mirror.rows()] == [3]
    assert mirror.listener.told[2:] == [
        ("missing", "db.t", "torn"),
        ("missing", "db.t", "True"),
        ("exists", "db.t"),
        ("exists", "db.t"),
    ]


def test_types_get_wider(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    expected: Target = {}
    small, large, larger = pa.int32(), pa.int64(), pa.decimal128(25, 2)
    # One micro-batch has rows from before and after an ALTER; later ones come in types that the table outgrew.
    batches: list[list[dict[str, pa.DataType]]] = [
        [{"id": small, "v": pa.int16()}],
        [{"id": small, "v": small}, {"id": large, "v": large}],
        [{"id": small, "v": small}],
        [{"id": large, "v": larger}, {"id": small, "v": pa.int16()}],
    ]
    for batch, tasks in enumerate(batches):
        first, parts = len(source.told), []
        for kinds in tasks:
            begin = len(source.told)
            for number in range(4):
                source.change("insert", 10 * len(source.told) + number, 0, number, False)
            for number in list(source.rows)[:5]:
                source.change("update", number, 0, 100 + batch, True)
            source.change("delete", list(source.rows)[2], 0, 0, False)
            parts += typed(mirror, source.told[begin:], **kinds)
        merge(expected, source.told[first:])
        assert mirror.writer.write(batch, parts)
        assert mirror.rows() == in_order(expected.values())
    fields = {field.name: str(field.type) for field in DeltaTable(mirror.path).schema().fields}
    assert "decimal(25,2)" in fields["v"]
    assert "long" in fields["id"]
    kinds_of_files = {str(pq.read_schema(uri.removeprefix("file://")).field("v").type) for uri in files_of(mirror)}
    assert kinds_of_files == {"decimal128(25, 2)"}


def files_of(mirror: Mirror) -> list[str]:
    return DeltaTable(mirror.path).file_uris()


def test_columns_that_others_add(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    DeltaTable(mirror.path).alter.add_columns([Field("more", PrimitiveType("string"))])
    first = len(source.told)
    source.change("update", 1, 0, 2, False)
    assert mirror.write(2, source.told[first:])
    assert mirror.rows() == [{"id": 1, "v": 2, "big": "big2"}]
    source.change("insert", 2, 0, 2, False)
    with pytest.raises(TargetError, match=r"'more' of the Delta table 'db.t' is string, but the source's is integer\."):
        mirror.writer.write(3, more(mirror, source.told[-1:]))


def test_a_column_that_is_renamed_in_case_only(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    source.change("insert", 2, 0, 2, False)
    with pytest.raises(TargetUnfitError, match=r"'Big' can't be added to the Delta table 'db\.t', which has 'big'"):
        mirror.writer.write(2, more(mirror, source.told[1:], name="Big"))
    assert mirror.rows() == [source.rows[1]]


def test_a_table_that_is_removed_while_it_is_written(tmp_path: Path, engine: DeltaSpark | None) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, engine)
    for batch in range(3):
        source.change("insert", batch, 0, batch, False)
        assert mirror.write(batch, source.told[-1:])
    shutil.rmtree(mirror.path)
    source.change("insert", 3, 0, 3, False)
    (tmp_path / "t").mkdir()
    with pytest.raises(TargetChangedError, match=r"has no version \d any more"):
        mirror.write(3, source.told[-1:])
    assert not list((tmp_path / "t").glob("_delta_log/*"))
