"""Where the captured log waits."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from floodmark.errors import StateDirError
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.object_store import s3_bucket


def run_through(source: Source, state: str) -> list[str]:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, note text)", "INSERT INTO t VALUES (0, '')")
    query = InProcess({**source.options, "state.dir": state, "segment.bytes": "65536"})
    rows = query.drain()
    source.execute("INSERT INTO t SELECT g, repeat('n', 50) FROM generate_series(1, 3000) g")
    rows += query.drain()
    query.stop()
    return [row["op"] for row in rows]


def test_file_uri(source: Source, tmp_path: Path) -> None:
    assert run_through(source, (tmp_path / "by uri").as_uri()) == ["r"] + ["c"] * 3000
    assert not [path for path in (tmp_path / "by uri").rglob("*") if path.is_file()]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URI of a bucket of an S3 service."""
    with s3_bucket(monkeypatch, "segments") as uri:
        yield uri


def test_object_store(source: Source, bucket: str) -> None:
    filesystem, _ = fs.FileSystem.from_uri(bucket)
    assert run_through(source, bucket) == ["r"] + ["c"] * 3000
    left = filesystem.get_file_info(fs.FileSelector("segments", recursive=True))
    assert [info.path for info in left if info.type == fs.FileType.File] == []


def test_a_full_disk_ends_the_query_with_one_error(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, note text)")
    options = {**source.options, "snapshot.mode": "no_data"}
    query = InProcess(options)
    query.drain()
    # Segments are compressed: rows that repeat would fit.
    note = "(SELECT string_agg(md5(concat(g, ' ', i)), '') FROM generate_series(1, 4) i)"
    source.execute(f"INSERT INTO t SELECT g, {note} FROM generate_series(1, 3000) g")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(StateDirError, match=r"state\.dir.*free some space"):
            query.drain()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    query.stop()

    again = InProcess(options, query.offset)
    assert len(again.drain()) == 3000
    again.stop()


def test_a_full_disk_under_a_statement_that_alters_a_table(binlog_server: MysqlServer, tmp_path: Path) -> None:
    binlog_server.execute("CREATE DATABASE full_disk", "CREATE TABLE full_disk.t (id INT PRIMARY KEY)")
    options = {
        **binlog_server.options(),
        "topic.prefix": "p",
        "database.include.list": "full_disk",
        "state.dir": str(tmp_path / "state"),
        "include.schema.changes": "false",
    }
    query = InProcess(options)
    query.drain()
    binlog_server.execute(
        "INSERT INTO full_disk.t VALUES (1)",
        "ALTER TABLE full_disk.t ADD c INT",
        "INSERT INTO full_disk.t VALUES (2, 3)",
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(StateDirError, match=r"schema history cannot be written.*free some space"):
            query.drain()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    query.stop()

    again = InProcess(options, query.offset)
    assert [json.loads(row["value"])["after"] for row in again.drain()] == [{"id": 1}, {"id": 2, "c": 3}]
    again.stop()
    binlog_server.execute("DROP DATABASE full_disk")


def test_an_unknown_scheme(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    query = InProcess({**source.options, "state.dir": "ftp2://somewhere/state"})
    with pytest.raises(StateDirError, match=r"state\.dir"):
        query.drain()
