"""Tables that Floodmark writes, read by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from obstore.store import LocalStore

from floodmark.errors import TargetError
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.parts import make_parts
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.upkeep import AtOnce
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.options import MirrorOptions
from tests.support.delta_mirror import Listener, Mirror, folder_of, in_order
from tests.support.merging import Target, merge
from tests.unit.test_last_changes import KINDS, Source, schema

EMPTY = {"existing.tables": "empty"}


def test_files_stay_few_and_the_log_gets_checkpoints(tmp_path: Path) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key)
    expected: Target = {}
    for batch in range(130):
        first = len(source.told)
        for number in range(3):
            source.change("insert", batch * 3 + number, 0, batch, False)
            source.change("update", batch * 3 - 9 + number, 0, 7, True)
        merge(expected, source.told[first:])
        assert mirror.write(batch, source.told[first:])
    assert mirror.rows() == in_order(expected.values())
    assert len(DeltaTable(mirror.path).file_uris()) < 20
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    mirror.start()
    source.change("update", 5, 0, 99, True)
    assert mirror.write(130, source.told[-1:])
    assert {"id": 5, "v": 99, "big": "big1"} in mirror.rows()


def test_another_writer_is_faster_than_compaction(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **{"compact.files": "2"})
    for batch in range(6):
        commit = mirror.own._log.commit

        def slow(version: int, actions: Any, commit: Any = commit) -> bool:
            if "OPTIMIZE" in str(actions):
                DeltaTable(mirror.path).delete("id = 0")
            return bool(commit(version, actions))

        mirror.own._log.commit = slow  # type: ignore[method-assign]
        source.change("insert", batch, 0, batch, False)
        assert mirror.write(batch, source.told[-1:])
        mirror.own._log.commit = commit  # type: ignore[method-assign]
    assert [row["id"] for row in mirror.rows()] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("after", [False, True])
def test_a_truncate_of_files_without_statistics(tmp_path: Path, after: bool) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key)
    expected: Target = {}
    mirror.write(1, [])
    for batch in range(1, 6):
        first = len(source.told)
        if batch == 4:
            DeltaTable(mirror.path).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "0"})
            DeltaTable(mirror.path).optimize.compact()
        if batch == 4 + after:
            source.change("truncate", 0, 0, 0, False)
        for number in range(3):
            source.change("insert", 10 * batch + number, 0, number, False)
            source.change("update", 10 * batch - 10 + number, 0, 5, True)
        merge(expected, source.told[first:])
        assert mirror.write(batch, source.told[first:])
        assert mirror.rows() == in_order(expected.values())


def test_a_faster_writer(tmp_path: Path) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key)
    for number in range(3):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told)
    first = len(source.told)
    source.change("update", 1, 0, 7, True)
    commit = mirror.own._log.commit

    def slow(version: int, actions: Any) -> bool:
        mirror.own._log.commit = commit  # type: ignore[method-assign]
        DeltaTable(mirror.path).delete("id = 0")
        return commit(version, actions)

    mirror.own._log.commit = slow  # type: ignore[method-assign]
    assert mirror.write(2, source.told[first:])
    assert mirror.rows() == [{"id": 1, "v": 7, "big": "big1"}, {"id": 2, "v": 2, "big": "big2"}]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("delta.appendOnly", "true", "a mirror needs false"),
        ("delta.enableChangeDataFeed", "true", "changeDataFeed|a mirror needs false"),
        ("delta.enableDeletionVectors", "false", "has no deletion vectors"),
    ],
)
def test_tables_that_need_more_are_refused(tmp_path: Path, name: str, value: str, message: str) -> None:
    key = ("id",)
    columns = pa.schema([*KINDS[key], (POSITION, pa.string())])
    configuration = {"delta.enableDeletionVectors": "true", name: value}
    DeltaTable.create(str(tmp_path / "t"), Schema.from_arrow(columns), configuration=configuration)
    source = Source(key)
    source.change("insert", 1, 0, 1, False)
    writer = DeltaWriter(
        folder_of(str(tmp_path / "t")), "test", "db.t", MirrorOptions.parse({}), KeptRows(), Listener(), AtOnce()
    )
    with pytest.raises(TargetError, match=message):
        writer.write(
            1,
            make_parts(
                DataFiles(LocalStore(str(tmp_path / "t")), "db.t"), [pa.Table.from_pylist(source.told, schema(key))]
            ),
        )
