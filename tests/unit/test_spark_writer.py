"""What the writer by Spark does where Spark fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from floodmark.errors import TargetChangedError, TargetError
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import make_parts
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.delta.writer import SparkWriter
from tests.unit.test_last_changes import Source, schema

KEY = ("id",)
CONFLICT = AnalysisException("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.")


class Settings:
    """The settings of a session."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}

    def get(self, name: str, default: str | None) -> str | None:
        return self.now.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.now[name] = value

    def unset(self, name: str) -> None:
        del self.now[name]


class FakeTable:
    """Appends nothing, and fails first.

    Args:
        failures: what it raises, one after the other.
    """

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.settings: list[dict[str, str]] = []

    def prove_names(self, columns: pa.Schema) -> None:
        pass

    def register(self, session: Any, identity: str) -> None:
        pass

    def append(self, session: Any, files: list[str], columns: pa.Schema) -> None:
        self.settings.append(dict(session.conf.now))
        if self.failures:
            raise self.failures.pop(0)


class World:
    """A writer and what it writes with."""

    def __init__(self, folder: Path, table: FakeTable) -> None:
        self.table, self.folder = table, table_folder(str(folder), "t")
        self.session: Any = SimpleNamespace(conf=Settings())
        sessions: Any = self
        listener: Any = SimpleNamespace(is_missing=lambda *_: None, exists=lambda *_: None)
        options = MirrorOptions.parse({"engine": "spark", "compact.files": "0"})
        spark_table: Any = table
        self.writer = SparkWriter(sessions, spark_table, self.folder, "query", "db.t", options, listener)

    @contextmanager
    def one(self) -> Iterator[Any]:
        yield self.session

    def write(self) -> bool:
        source = Source(KEY)
        source.change("insert", 1, 0, 1, False)
        rows = pa.Table.from_pylist(source.told, schema(KEY))
        return self.writer.write(7, make_parts(DataFiles(self.folder.store, "db.t"), [rows]))

    def files(self) -> list[Path]:
        return list(Path(self.folder.uri).glob("*.parquet"))


def test_a_commit_is_tried_again_after_another_writers(tmp_path: Path) -> None:
    world = World(tmp_path, FakeTable(CONFLICT, CONFLICT))
    assert world.write()
    assert len(world.table.settings) == 3
    prefix = "spark.databricks.delta."
    for given in world.table.settings:
        assert given[f"{prefix}write.txnAppId"] == "query"
        assert given[f"{prefix}write.txnVersion"] == "7"
        assert "floodmark.last" in given[f"{prefix}commitInfo.userMetadata"]
    assert world.session.conf.now == {}
    assert world.files() == []


def test_others_are_faster_each_time(tmp_path: Path) -> None:
    world = World(tmp_path, FakeTable(*[CONFLICT] * 20))
    with pytest.raises(TargetChangedError, match="Other writers changed the Delta table"):
        world.write()


def test_other_errors_end_the_query(tmp_path: Path) -> None:
    world = World(tmp_path, FakeTable(AnalysisException("[INSUFFICIENT_PERMISSIONS] Not allowed.")))
    with pytest.raises(TargetError, match=r"Spark can't write the Delta table 'db\.t': \[INSUFFICIENT_PERMISSIONS\]"):
        world.write()
    assert world.session.conf.now == {}
    # What is written again when it is delivered again would fill a disk that is full already.
    assert world.files() == []
