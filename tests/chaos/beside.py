"""A query that keeps tables, and a command that works on these beside it; both are killed at random points."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.folders import table_name
from tests.chaos.killing import Place
from tests.integration.test_mirror import rows_of
from tests.support.driver import Driver
from tests.support.jdbc import Target
from tests.support.patience import within
from tests.support.planting import Planter
from tests.support.workload import Workload, held_rows

SURPLUS = -7
"""The key of a row that the source hasn't."""
COMPARED = {"plain": ("v", "note"), "toasted": ("v", "big")}


class Kept(Protocol):
    """What a query keeps tables in."""

    @property
    def sink(self) -> Mapping[str, Any]:
        """Arguments of ``Driver``."""

    @property
    def target(self) -> str | Mapping[str, str]:
        """The target, as for ``floodmark.verify``."""

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return rows of a table, whose name is the source's without its schema."""

    def add_surplus(self) -> None:
        """Add a row to the table ``plain`` that only a rebuilding removes, unless it is there."""

    def left_behind(self) -> list[str]:
        """Return what a rebuilding that has ended should have removed."""


class DeltaTables:
    """Delta tables of a mirror (``Kept``)."""

    def __init__(self, schema: str, work: Path, mirrors: Mapping[str, str]) -> None:
        self.target = str(work / "out")
        self.sink = {"mirrors": dict(mirrors)}
        self._schema = schema

    def folder(self, table: str) -> Path:
        return Path(self.target) / f"{self._schema}.{table}"

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in rows_of(self.folder(table), ", ".join(columns))]

    def add_surplus(self) -> None:
        ids = [number for (number,) in self.rows("plain", ["id"])]
        # Planting needs deletion vectors.
        if SURPLUS not in ids and "deletion.vectors" not in self.sink["mirrors"]:
            Planter(self.folder("plain")).add(ids[0], id=SURPLUS)

    def left_behind(self) -> list[str]:
        return list(RebuildMarks(self.target).all())


class IcebergTables:
    """Iceberg tables of a mirror that commits to a catalogue itself (``Kept``)."""

    def __init__(self, schema: str, work: Path) -> None:
        self.target = str(work / "out")
        catalogue = {"type": "sql", "uri": f"sqlite:///{work}/lake.db", "warehouse": f"file://{work}/lake"}
        named = {f"catalog.{name}": value for name, value in catalogue.items()}
        self.sink = {"mirrors": {"format": "iceberg", "catalog.schema": "lake.shop", **named}}
        self._schema = schema
        self._catalogue = load_catalog("lake", **catalogue)
        self._catalogue.create_namespace("shop")

    def table(self, name: str) -> Table:
        return self._catalogue.load_table(("shop", table_name(f"{self._schema}.{name}")))

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        found = self.table(table).scan(selected_fields=tuple(columns)).to_arrow().select(list(columns))
        return [tuple(row.values()) for row in found.to_pylist()]

    def add_surplus(self) -> None:
        table = self.table("plain")
        kept = table.scan(limit=1).to_arrow()
        if (SURPLUS,) not in self.rows("plain", ["id"]):
            # A killed query may still be about to commit; what it commits first, this comes after.
            with suppress(CommitFailedException):
                table.append(pa.Table.from_pylist([{**kept.to_pylist()[0], "id": SURPLUS}], kept.schema))

    def left_behind(self) -> list[str]:
        return list(RebuildMarks(self.target).all())


class RelationalTables:
    """Tables of another database (``Kept``)."""

    def __init__(self, schema: str, target: Target) -> None:
        self._schema = schema
        self._database = target
        self.target = target.options
        # Rows go through the driver as well as through staging tables.
        self.sink = {"jdbc": {**target.options, "stage.bytes": "20000"}}

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._database.rows(f"SELECT {', '.join(columns)} FROM {self._schema}_{table}")]

    def add_surplus(self) -> None:
        if (SURPLUS,) not in self.rows("plain", ["id"]):
            row = f"VALUES ({SURPLUS}, 0, 'surplus', '0')"
            self._database.execute(f"INSERT INTO {self._schema}_plain (id, v, note, _position) {row}")

    def left_behind(self) -> list[str]:
        marked = [name for (name,) in self._database.rows("SELECT target FROM floodmark_rebuilds")]
        return [*marked, *(name for name in self._database.tables() if "shadow" in name)]


class Work:
    """A source that is written to, a query that keeps its tables, and a command.

    Args:
        place: the source.
        kept: what the tables are kept in.
        folder: for the query's files, and the command's output.
        script: Python that gets the source's options and the target as JSON, the checkpoint, and further arguments.
    """

    def __init__(self, place: Place, kept: Kept, folder: Path, script: str) -> None:
        self.database, given = place
        self.kept = kept
        self._folder = folder
        self._script = script
        needed = {"format": "arrow", "skipped.operations": "none", "signal.poll.interval.ms": "200"}
        self.options = {**given, **needed}
        small = {"snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "2000"}
        self._small = {**self.options, **small, "incremental.snapshot.chunk.size": "200"}
        self.workload = Workload(self.database, 3, alters=False)
        self.workload.create(6000)
        self.catch_up()

    def catch_up(self) -> None:
        """Let the query come to the end of the log."""
        query = Driver(self.options, self._folder, available_now=True, **self.kept.sink)
        assert query.wait(within(120)) == 0, query.log()[-4000:]

    def query(self) -> Driver:
        """Start the query, with many small micro-batches."""
        return Driver(self._small, self._folder, **self.kept.sink)

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the command."""
        given = [json.dumps(self.options), json.dumps(self.kept.target), str(self._folder / "checkpoint"), *arguments]
        with (self._folder / "command.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-c", self._script, *given], stdout=log, stderr=log)

    def told(self) -> str:
        """Return what the command has told last."""
        return (self._folder / "command.log").read_text(encoding="utf-8")[-4000:]

    def judge(self) -> None:
        """Let the query come to the end, and compare the rows with the source's."""
        self.catch_up()
        for name, columns in COMPARED.items():
            expected = [(*key, *values) for key, values in held_rows(self.database, name, columns).items()]
            assert sorted(self.kept.rows(name, ("id", *columns)), key=str) == sorted(expected, key=str), name
