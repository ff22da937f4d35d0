"""Delta tables in an object store that enforces conditional writes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from obstore.exceptions import AlreadyExistsError
from obstore.store import from_url
from pyarrow import fs

from floodmark.demo.embedded import free_port
from floodmark.errors import ConfigError
from floodmark.sinks.delta.access import prove_usable, unusable_tables
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DeltaLog
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vacuum import vacuum
from floodmark.sinks.delta.parts import make_parts
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.replacing import Replacement
from floodmark.sinks.delta.stores import FolderMarks, TableFolder, prove_location, table_folder
from floodmark.sinks.delta.upkeep import AtOnce
from floodmark.sinks.delta.verifiable import DeltaTarget
from floodmark.sinks.delta.writer import DeltaWriter, own_writers
from floodmark.sinks.folders import folder_name
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced
from tests.support.delta_mirror import Listener
from tests.support.patience import within
from tests.unit.test_last_changes import Source, schema

KEY = ("id",)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[TableFolder]:
    # In a process of its own, as delta-rs lets no other thread of Python run while it reads.
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    endpoint = settings["AWS_ENDPOINT_URL"]
    deadline = time.monotonic() + within(60)
    while not answers(port):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    filesystem = fs.S3FileSystem(endpoint_override=endpoint, region="us-east-1", allow_bucket_creation=True)
    filesystem.create_dir("lake")
    yield table_folder("s3://lake/tables", "db.t")
    service.kill()
    service.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def writer_of(folder: TableFolder) -> DeltaWriter:
    return DeltaWriter(folder, "test", "db.t", MirrorOptions.parse({}), KeptRows(), Listener(), AtOnce())


def rows_of(folder: TableFolder) -> list[dict[str, Any]]:
    query = QueryBuilder().register("t", DeltaTable(folder.uri)).execute("SELECT id, v FROM t ORDER BY id")
    rows: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    return rows


def test_the_store_enforces_what_commits_rely_on(folder: TableFolder) -> None:
    obstore.put(folder.store, "once", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(folder.store, "once", b"2", mode="create")
    assert bytes(obstore.get(folder.store, "once").bytes()) == b"1"


def slower(log: DeltaLog) -> Callable[[int, Iterable[Action]], bool]:
    """Return a way to commit before which another writer is faster once."""
    commit, raced = log.commit, False

    def slow(version: int, actions: Iterable[Action]) -> bool:
        nonlocal raced
        if version and not raced:
            raced = True
            assert commit(version, [{"commitInfo": {"operation": "nothing"}}])
        return commit(version, actions)

    return slow


def test_a_table_follows(folder: TableFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    source, writer = Source(KEY), writer_of(folder)
    for batch in range(60):
        first = len(source.told)
        source.change("insert", batch, 0, batch, False)
        source.change("update", batch - 2, 0, 1000 + batch, True)
        source.change("delete", batch - 5, 0, 0, False)
        events = pa.Table.from_pylist(source.told[first:], schema(KEY))
        monkeypatch.setattr(writer._log, "commit", slower(writer._log))
        assert writer.write(batch, make_parts(DataFiles(folder.store, "db.t"), [events]))
        if batch % 20 == 19:
            writer = writer_of(folder)
    assert rows_of(folder) == [{name: row[name] for name in ("id", "v")} for _, row in sorted(source.rows.items())]


@pytest.mark.parametrize(
    "table",
    ["s.a/b", "s.ü ß'\"", "s.%41~2F", "../../s.t", "s.a?b#c", "s.tschüß=1, 2", "s.\n", "..x....", "s.a[b]{c}^`d"],
)
@pytest.mark.parametrize("local", [True, False])
def test_names_of_tables(folder: TableFolder, tmp_path: Path, table: str, local: bool) -> None:
    location = str(tmp_path / "lake") if local else "s3://lake/named"
    target = table_folder(location, table)
    source = Source(KEY)
    source.change("insert", 1, 0, 5, False)
    events = pa.Table.from_pylist(source.told, schema(KEY))
    writer = DeltaWriter(target, "test", table, MirrorOptions.parse({}), KeptRows(), Listener(), AtOnce())
    assert writer.write(1, make_parts(DataFiles(target.store, table), [events]))
    assert rows_of(target) == [{"id": 1, "v": 5}]
    if local:
        assert [entry.name for entry in tmp_path.iterdir()] == ["lake"]
        assert [entry.name for entry in (tmp_path / "lake").iterdir()] == [folder_name(table)]
    else:
        store = from_url("s3://lake")
        names = {str(one["path"]).split("/")[1] for one in obstore.list(store, "named").collect()}
        assert folder_name(table) in names


@pytest.mark.parametrize("table", ["db.t", "s.a/b", "s.ü ß'\"", "s.%41~2F"])
def test_a_table_is_rebuilt(folder: TableFolder, table: str) -> None:
    location, query = "s3://lake/rebuilt", "floodmark-query"
    target = table_folder(location, table)
    writer = own_writers(location, MirrorOptions.parse({}))(table, target, query, Listener(), None)
    source, marks, mark = Source(KEY), RebuildMarks(location), RebuildMark("one", table, "signal", -1)

    def write(batch: int, first: int) -> None:
        events = pa.Table.from_pylist(source.told[first:], schema(KEY))
        writer.write(batch, make_parts(DataFiles(target.store, table), [events]))

    for number in range(20):
        source.change("insert", number, 0, number, False)
    write(0, 0)
    # What the source doesn't tell of.
    del source.rows[3]
    assert marks.add(mark)
    assert not marks.add(mark)
    begin = len(source.told)
    for row in list(source.rows.values()):
        source.tell("r", None, row, [])
    source.change("update", 5, 0, 500, False)
    write(1, begin)
    replacement = Replacement(location, mark, query)
    assert replacement.attempt(False) is Replaced.DONE
    marks.remove(table)
    marks.remove_shadows(table)
    assert marks.all() == {}
    begin = len(source.told)
    source.change("delete", 7, 0, 0, False)
    write(2, begin)
    # Not by delta-rs, which finds no deletion vector in a store's folder whose name it escapes.
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    parts = DeltaTarget(location, table).view().parts()
    rows = pa.concat_tables([rows for part in parts for rows in part.rows(columns)]).sort_by("id")
    assert rows.to_pylist() == [{name: row[name] for name in ("id", "v")} for _, row in sorted(source.rows.items())]
    left = [str(one["path"]) for one in obstore.list(target.store).collect()]
    assert not [path for path in left if path.startswith("_floodmark")]


@pytest.mark.parametrize("table", ["s.t", "s.a/b", "s.ü ß'\"", "s.%41~2F"])
@pytest.mark.parametrize("local", [True, False])
def test_marks(folder: TableFolder, tmp_path: Path, table: str, local: bool) -> None:
    location = str(tmp_path / "lake") if local else "s3://lake/marked/"
    marks, store = FolderMarks(location), table_folder(location, table).store
    assert marks.get(table) is None
    assert marks.is_removed(table)
    obstore.put(store, "_delta_log/0.json", b"{}")
    assert not marks.is_removed(table)
    marks.put(table, b"why")
    marks.put(table, b"why not")
    assert marks.get(table) == b"why not"
    assert sorted(str(one["path"]) for one in obstore.list(store).collect()) == [
        "_delta_log/0.json",
        "_floodmark/set_aside.json",
    ]
    obstore.delete(store, "_delta_log/0.json")
    assert not marks.is_removed(table)
    obstore.delete(store, "_floodmark/set_aside.json")
    assert marks.is_removed(table)
    assert marks.is_removed("s.other")


def test_files_that_are_not_needed_are_removed(folder: TableFolder) -> None:
    source, writer, log = Source(KEY), writer_of(folder), DeltaLog(folder.store)
    for batch in range(4):
        source.change("insert" if batch == 0 else "update", 1, 0, batch, False)
        rows = [pa.Table.from_pylist(source.told[-1:], schema(KEY))]
        assert writer.write(batch, make_parts(DataFiles(folder.store, "db.t"), rows))
    orphan = "a=%2F/part-1.parquet"
    obstore.put(folder.store, orphan, b"")
    found = [vacuum(folder.store, log, log.state(), 1, int((time.time() + s) * 1000)) for s in (3500, 3700)]
    assert found == [0, 4]
    assert rows_of(folder) == [{"id": 1, "v": 3}]
    assert sorted(str(one["path"])[:5] for one in obstore.list(folder.store).collect()) == ["_delt"] * 5 + ["part-"]


def test_the_place_is_tried(folder: TableFolder) -> None:
    prove_usable("s3://lake/tables")
    DeltaLog(folder.store).commit(0, [])
    assert unusable_tables("s3://lake/tables") == {}
    assert obstore.list(folder.store).collect()[0]["path"] == "_delta_log/00000000000000000000.json"
    assert len(obstore.list(from_url("s3://lake")).collect()) == 1
    with pytest.raises(ConfigError, match="Nothing can be written to the mirror's path 's3://missing/tables': "):
        prove_usable("s3://missing/tables")


@pytest.mark.parametrize("location", ["hdfs://host/lake", "s3:/lake", "dbfs:/lake"])
def test_places_that_can_not_be_used(location: str) -> None:
    with pytest.raises(ConfigError, match="The mirror's path"):
        table_folder(location, "db.t")


@pytest.mark.parametrize("location", ["/lake/[a", "s3://lake/a]", "/lake/a^b", "/lake/a|b", "/lake\\a"])
def test_places_where_no_table_can_be_opened(location: str) -> None:
    with pytest.raises(ConfigError, match="with which no Delta table can be opened"):
        prove_location(location)
