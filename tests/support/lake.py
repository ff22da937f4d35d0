"""Targets of a mirror that micro-batches are written to without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from floodmark.config.common import CommonOptions
from floodmark.connectors.load import load_options
from floodmark.sinks.delta.parts import MESSAGE
from floodmark.sinks.delta.targets import Targets
from floodmark.sinks.delta.writer import own_writers
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.sinks.mirror import _messages
from tests.support.delta_mirror import in_order
from tests.support.merging import Target, merge
from tests.support.options import REQUIRED
from tests.unit.test_history import timed_schema
from tests.unit.test_last_changes import Source

KEY = ("id",)
TABLES = ("db.a", "db.b")


class Lake:
    """The targets of two tables that have the same rows.

    Args:
        folder: for them and for the state directory.
        state_dir: the option of that name; None: below ``folder``.

    Attributes:
        path: the folder with the targets.
        state: the state directory.
        options: the mirror's.
        expected: the rows.
        told: what the last micro-batch has.
    """

    def __init__(self, folder: Path, state_dir: str | None = None) -> None:
        self.path = folder / "lake"
        self.state = folder / "state"
        self._state_dir = state_dir or str(self.state)
        self.path.mkdir()
        self.source = Source(KEY)
        self.expected: Target = {}
        self.options: dict[str, str] = {}
        self.told: list[dict[str, Any]] = []

    def change(self, *changes: tuple[str, int]) -> None:
        """Begin the rows of a micro-batch."""
        first = len(self.source.told)
        for what, number in changes:
            self.source.change(what, number, 0, len(self.source.told), what == "update")
        self.told = self.source.told[first:]
        merge(self.expected, self.told)

    def write(self, batch: int, tables: tuple[str, ...] = TABLES, tasks: Path | None = None) -> None:
        """Write the last rows as a query does that has just been started.

        Args:
            tasks: the directory in which tasks write, if it is another one.
        """
        mirrors = MirrorOptions.parse(self.options)
        targets = Targets(str(self.path), self.source_options, mirrors, "query", own_writers(str(self.path), mirrors))
        sent: dict[str, list[dict[str, Any]]] = {table: [] for table in tables}
        for row in self.sent(tables, tasks).to_pylist():
            sent[row["table"]].append(row)
        targets.write(batch, sent)

    def sent(self, tables: tuple[str, ...] = TABLES, tasks: Path | None = None) -> pa.Table:
        """Return what tasks send of the last rows.

        Args:
            tasks: the directory in which tasks write, if it is another one.
        """
        rows, place = [pa.Table.from_pylist(self.told, timed_schema(KEY))], str(tasks or self.path)
        mirrors = MirrorOptions.parse(self.options)
        messages = [message for table in tables for message in _messages(place, table, rows, mirrors, {})]
        return pa.Table.from_pylist(messages, MESSAGE)

    @property
    def source_options(self) -> CommonOptions:
        """The source's options."""
        wanted = {"format": "arrow", "skipped.operations": "none", "state.dir": self._state_dir}
        return load_options({**REQUIRED, **wanted})

    def rows(self, table: str, version: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of a target that the source has.

        Args:
            version: the target's; the newest one if not given.
        """
        living = " WHERE NOT _deleted" if self.options.get("deletes") == "soft" else ""
        target = QueryBuilder().register("t", DeltaTable(str(self.path / table), version))
        found = target.execute(f"SELECT id, v, big FROM t{living}")
        return in_order(pa.table(found.read_all()).to_pylist())
