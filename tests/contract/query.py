"""A query on a source under test, driven one step at a time, and what it has delivered."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.contract.under_test import ConnectorUnderTest, Row, SourceUnderTest
from tests.support.applying import Event, apply, event
from tests.support.inprocess import InProcess
from tests.support.patience import within

LIMIT_S = within(120)
PREFIX = "contract"
SIGNALS = "signals"
NOTIFICATIONS = "notifications"
SMALL = {
    # So small that every snapshot takes several micro-batches.
    "incremental.snapshot.chunk.size": "1",
    "max.batch.rows": "2",
    "snapshot.chunk.bytes": "8192",
    "snapshot.max.threads": "1",
    "max.batch.bytes": "8192",
    "segment.bytes": "65536",
    "snapshot.batch.target.ms": "1",
}
PAD = "x" * 1900
"""With it a page holds few rows."""
TIMES = ("ts_ms", "ts_us", "ts_ns")
Offset = dict[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Fact:
    """What must be the same whenever an event is delivered: all but the time of its delivery."""

    position: str
    op: str
    table: str
    key: str | None
    value: str


@dataclass(frozen=True)
class Batch:
    """A micro-batch that was delivered.

    Attributes:
        kept: a copy of what ``state.dir`` held then that is more than a cache.
    """

    start: Offset
    end: Offset
    rows: Rows
    kept: Path


class Query:
    """A query with a state directory of its own.

    Args:
        connector: the kind of source.
        source: the source.
        directory: for state and signals.
        tables: the tables that are captured, as regular expressions without a schema.
        offset: where to go on; None: a new query.
        options: more options.

    Attributes:
        batches: what was delivered.
        state: the state directory.
    """

    def __init__(
        self,
        connector: ConnectorUnderTest,
        source: SourceUnderTest,
        directory: Path,
        tables: Sequence[str],
        offset: Offset | None,
        options: Mapping[str, str],
    ) -> None:
        self.connector = connector
        self.source = source
        self.directory = directory
        self.state = directory / "state"
        self.batches: list[Batch] = []
        self.options = {
            **source.options,
            "topic.prefix": PREFIX,
            "table.include.list": ",".join(rf"{source.schema}\.{table}" for table in tables),
            "signal.poll.interval.ms": "1",
            "signal.enabled.channels": "source,file",
            "signal.file": str(directory / SIGNALS),
            "errors.retry.delay.initial.ms": "5",
            "errors.retry.delay.max.ms": "50",
            **options,
            "state.dir": str(self.state),
        }
        self.process = InProcess(self.options, offset)

    @property
    def offset(self) -> Offset:
        return self.process.offset

    @property
    def rows(self) -> Rows:
        """All rows that were delivered, in the order of delivery."""
        return [row for batch in self.batches for row in batch.rows]

    @property
    def events(self) -> list[Event]:
        """The events of tables that were delivered, each with the number of its micro-batch."""
        return events_of(self.batches)

    @property
    def snapshots(self) -> bool:
        """Whether a snapshot runs or waits."""
        return reads_tables(self.offset)

    def plan(self) -> Offset:
        """Plan a micro-batch; return its end."""
        reader = self.process.reader
        return reader.latestOffset(self.offset, reader.getDefaultReadLimit())

    def run(self, end: Offset) -> Rows:
        """Return the rows of a planned micro-batch, without taking them for delivered."""
        return self.process.run(end) if end != self.offset else []

    def deliver(self, end: Offset, commit: bool = True) -> Rows:
        """Run a planned micro-batch and deliver its rows.

        Args:
            end: where it ends.
            commit: whether the source may discard what was delivered; else each offset can be gone back to.
        """
        rows = self.run(end)
        self.take(end, rows)
        if commit:
            self.process.reader.commit(end)
        return rows

    def take(self, end: Offset, rows: Rows) -> None:
        """Take the rows of a planned micro-batch for delivered."""
        if end != self.offset:
            kept = self._keep(self.directory / f"kept{len(self.batches)}")
            self.batches.append(Batch(self.offset, end, rows, kept))
        self.process.offset = end

    def step(self, commit: bool = True) -> Rows:
        """Plan and deliver a micro-batch."""
        return self.deliver(self.plan(), commit)

    def until(self, reached: Callable[[], bool], commit: bool = True) -> None:
        """Run micro-batches until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert time.monotonic() < deadline, self.offset
            self.step(commit)

    def drain(self, commit: bool = True) -> Rows:
        """Run micro-batches until all that the source has by now was delivered; return the rows."""
        before = len(self.batches)
        self.process.reader.prepareForTriggerAvailableNow()
        while (end := self.plan()) != self.offset:
            self.deliver(end, commit)
        if commit:
            self.process.reader.commit(self.offset)
        self.process.restart()
        return [row for batch in self.batches[before:] for row in batch.rows]

    def die(self, empty: bool = False) -> None:
        """Go on in another process, with what is in the offset alone.

        Args:
            empty: whether ``state.dir`` has lost everything that it may lose.
        """
        self.process.stop()
        if empty:
            self.forget()
        self.process = InProcess(self.options, self.offset)

    def forget(self) -> None:
        """Remove all files from ``state.dir`` that are only a cache."""
        kept = self._keep(self.directory / "kept")
        shutil.rmtree(self.state, ignore_errors=True)
        if kept.exists():
            kept.rename(self.state)

    def _keep(self, directory: Path) -> Path:
        """Copy what ``state.dir`` holds that is more than a cache."""
        for name in self.connector.kept:
            for found in self.state.glob(f"*/{name}"):
                # A file that is being written has another name until it is whole.
                whole = shutil.ignore_patterns(".*")
                shutil.copytree(found, directory / found.relative_to(self.state), ignore=whole)
        return directory

    def resumed(self, directory: Path, number: int, planned: bool = False) -> Query:
        """Return another query that goes on after one of this query's micro-batches, with an empty ``state.dir``.

        Args:
            directory: of the other query.
            number: the micro-batch.
            planned: whether the other query goes on before the micro-batch, which has been planned.
        """
        batch = self.batches[number]
        directory.mkdir(parents=True)
        made = Query(self.connector, self.source, directory, (), batch.start if planned else batch.end, self.options)
        if batch.kept.exists():
            shutil.copytree(batch.kept, made.state)
        return made

    def stop(self) -> None:
        """Stop as Spark does at the end of a query."""
        self.process.stop()

    def signal(self, kind: str, data: dict[str, Any] | str | None = None) -> None:
        """Send a signal by the signal file of this query."""
        content = {"id": f"s{time.time_ns()}", "type": kind, "data": "" if data is None else data}
        with (self.directory / SIGNALS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def reads_tables(offset: Offset) -> bool:
    """Return whether a snapshot runs or waits at an offset."""
    return any(offset[name] is not None for name in ("snapshot", "incremental", "lane")) or bool(offset["blocking"])


def changes(rows: Rows) -> Rows:
    """Return the rows of tables among rows of the output: no gaps, notifications and changes of structures."""
    return [row for row in rows if row["op"] and row["table"]]


def events_of(batches: Sequence[Batch]) -> list[Event]:
    """Return the events of tables in micro-batches that were delivered in this order."""
    return [event(number, row) for number, batch in enumerate(batches) for row in changes(batch.rows)]


def facts(rows: Rows) -> list[Fact]:
    """Return the events of tables among rows of the output, in the order of their positions."""
    found = [_fact(row) for row in changes(rows)]
    return sorted(found, key=lambda fact: (fact.position, fact.table, str(fact.key)))


def _fact(row: dict[str, Any]) -> Fact:
    value = None if row["value"] is None else json.loads(row["value"])
    if value is not None:
        for name in TIMES:
            value.pop(name)
    return Fact(row["position"], row["op"], row["table"], row["key"], json.dumps(value))


def of_log(found: Sequence[Fact]) -> list[Fact]:
    """Return the events that come from the log."""
    return [fact for fact in found if fact.op != "r"]


def applied_rows(source: SourceUnderTest, table: str, events: Sequence[Event]) -> list[Row]:
    """Return the rows of a table that its events make, by key."""
    rows = apply(events).get(f"{source.schema}.{table}", {})
    return sorted((row["id"], row["v"], row["pad"]) for row in rows.values())


def reads(rows: Rows) -> list[tuple[str, int, int]]:
    """Return the rows that were read from tables: table, key and ``v``."""
    found = []
    for row in changes(rows):
        if row["op"] == "r":
            after = json.loads(row["value"])["after"]
            found.append((str(row["table"]), int(after["id"]), int(after["v"])))
    return sorted(found)
