"""A Delta table of a mirror, which either of its writers writes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from obstore.store import LocalStore

from floodmark.sinks.column_rules import columns_of
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import Part, make_parts
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.delta.upkeep import AtOnce
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.options import MirrorOptions
from tests.support.delta_spark import DeltaSpark
from tests.support.merging import Target, merge
from tests.unit.test_history import timed_schema
from tests.unit.test_last_changes import KINDS, Source, schema

EMPTY = {"existing.tables": "empty"}
WHAT = ["insert", "insert", "read", "update", "update", "update", "delete", "move"]


def folder_of(path: str) -> TableFolder:
    return TableFolder(LocalStore(path), path)


def by_spark(*values: object) -> Any:
    """Return parameters of a test in which Spark writes, after those in which Floodmark does: it takes seconds."""
    return pytest.param("spark", *values, marks=pytest.mark.slow)


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        self.told.append(("missing", table, "torn" if torn else str(keyed)))

    def exists(self, table: str) -> None:
        self.told.append(("exists", table))

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        self.told.append(("columns", table, *columns))


class Mirror:
    """A Delta table and what writes it.

    Args:
        folder: the table's; with Spark its name is ``FOLDER``.
        key: which of ``KINDS`` its columns are.
        spark: what writes it; None: Floodmark itself.
        options: the mirror's.

    Attributes:
        written: the last micro-batch that writers know the table to have.
    """

    def __init__(self, folder: Path, key: tuple[str, ...], spark: DeltaSpark | None = None, /, **options: str) -> None:
        self.path, self.key, self._spark = str(folder), key, spark
        self._engine = {} if spark is None else {"engine": "spark"}
        self.options = {**options, **self._engine}
        self.listener = Listener()
        self.written: int | None = None
        self.pool: Executor = AtOnce()
        folder.mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        """Begin as another process does."""
        self.writer: TableWriter = self.another("test", **self.options)

    def another(self, application: str, **options: str) -> TableWriter:
        """Return what writes the table for another query."""
        if self._spark is not None:
            lake, chosen = Path(self.path).parent, self._with_engine(options)
            return self._spark.writer(lake, application, chosen, self.listener, self.written)
        parsed, folder = MirrorOptions.parse(options), folder_of(self.path)
        return DeltaWriter(folder, application, "db.t", parsed, KeptRows(), self.listener, self.pool, self.written)

    def _with_engine(self, options: dict[str, str]) -> dict[str, str]:
        return options if self._spark is None else {**options, "engine": "spark"}

    @property
    def own(self) -> DeltaWriter:
        """What writes the table, if it is Floodmark itself."""
        assert isinstance(self.writer, DeltaWriter)
        return self.writer

    def write(self, batch: int, told: list[dict[str, Any]], tasks: int = 1) -> bool:
        """Write rows that are dealt out to tasks; parts come to the driver as messages."""
        # A row whose key changed makes two rows, which are one record of the log and so reach the same task.
        cuts = [at for at, row in enumerate(told) if at and not (row["op"] == "c" and row["before"] is not None)]
        chosen = sorted(random.Random(batch).sample(cuts, min(tasks - 1, len(cuts))))
        parts = []
        for begin, end in zip([0, *chosen], [*chosen, len(told)], strict=True):
            events = pa.Table.from_pylist(told[begin:end], timed_schema(self.key))
            if events.num_rows:
                parsed = MirrorOptions.parse(self._with_engine(self.options))
                made = make_parts(self.task_files(), [events], parsed.mode)
                parts += [Part.from_message({"error": None, **part.to_message("db.t")}) for part in made]
        random.Random(batch).shuffle(parts)
        return bool(parts) and self.writer.write(batch, parts)

    def task_files(self) -> DataFiles:
        """Return what a task writes files with."""
        parsed = MirrorOptions.parse(self._with_engine(self.options))
        return DataFiles(LocalStore(self.path), "db.t", columns_of("db.t", parsed.partition_by))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as delta-rs reads them."""
        names = ", ".join(f'"{name}"' for name in KINDS[self.key].names)
        query = QueryBuilder().register("t", DeltaTable(self.path)).execute(f"SELECT {names} FROM t")
        return in_order(pa.table(query.read_all()).to_pylist())


def follow(mirror: Mirror, seed: int, batches: int = 8) -> Target:
    """Write random changes in micro-batches, some of them twice and some by a new process; return the rows."""
    chance, source = random.Random(seed), Source(mirror.key)
    expected: Target = {}
    for batch in range(batches):
        first = len(source.told)
        for _ in range(chance.randrange(1, 30)):
            source.change(
                chance.choice(WHAT if chance.random() < 0.97 else ["truncate"]),
                chance.randrange(40),
                chance.randrange(40),
                chance.randrange(100),
                chance.random() < 0.5,
            )
        told = source.told[first:]
        merge(expected, told)
        assert mirror.write(batch, told, 3) or not told
        if chance.random() < 0.3:
            mirror.start()
        if chance.random() < 0.3:
            assert not mirror.write(batch, told, 3)
        assert mirror.rows() == in_order(expected.values())
    return expected


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        rows, key=lambda row: [str(float(row[name])) if name == "b" else str(row[name]) for name in sorted(row)]
    )


def more(mirror: Mirror, told: list[dict[str, Any]], kind: pa.DataType | None = None, name: str = "more") -> list[Part]:
    """Return the part of rows that have another column, in place of one whose name differs in case only."""
    key = mirror.key
    others = [one for one in KINDS[key] if one.name.casefold() != name.casefold()]
    row = pa.struct([*others, (name, kind or pa.int32())])
    columns = [pa.field(field.name, row) if field.name in ("before", "after") else field for field in schema(key)]
    return make_parts(mirror.task_files(), [pa.Table.from_pylist(told, pa.schema(columns))])


def typed(mirror: Mirror, told: list[dict[str, Any]], **kinds: pa.DataType) -> list[Part]:
    """Return the parts of rows whose columns have other types."""
    row = pa.struct([one.with_type(kinds.get(one.name, one.type)) for one in KINDS[mirror.key]])
    columns = [one.with_type(row) if one.name in ("before", "after") else one for one in schema(mirror.key)]
    return make_parts(mirror.task_files(), [pa.Table.from_pylist(told, pa.schema(columns))])
