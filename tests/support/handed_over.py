"""A workload whose changes can be told apart, for what one reader has delivered before another goes on."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conformance.debezium.debezium import Record
from tests.conftest import drop, make_source
from tests.support.databases import Database, Mysql, Session
from tests.support.mysql import MysqlServer
from tests.support.worker import Worker

TABLE = "counted"
Change = tuple[int, int]
"""A row's key and the number of its change, which grows with each."""
Place = tuple[Database, dict[str, str]]
"""A database, and the options of a source that reads it."""


@contextmanager
def place_on(server: EmbeddedPostgres | MysqlServer, state: Path, *statements: str) -> Iterator[Place]:
    """Make a database that Debezium and a query can read; it needs whole rows in the binlog.

    Args:
        server: where to.
        state: the source's state directory.
        statements: what else MySQL and MariaDB need in the database ``handed``.
    """
    if isinstance(server, EmbeddedPostgres):
        source = make_source(server, state)
        yield source.database, source.options
        drop(source)
        return
    server.execute("CREATE DATABASE handed", *statements)
    options = {"topic.prefix": "test", "state.dir": str(state), "database.include.list": "handed"}
    yield Mysql(server, "handed", "FULL"), {**server.options(), **options}
    server.execute("DROP DATABASE handed")


class Counting(Worker):
    """Changes rows of one table in one session: each change has the next number.

    Args:
        database: what is changed.
        seed: decides how.
        keys: how many rows there are.
        pause_s: at most so long between two transactions.
    """

    def __init__(self, database: Database, seed: int, keys: int = 40, pause_s: float = 0.02) -> None:
        super().__init__(database)
        self._random = random.Random(seed)
        self._keys = keys
        self._pause_s = pause_s
        self._number = 0
        self.done: list[Change] = []

    def create(self, rows: int) -> None:
        """Create the table with some rows, whose keys the changes leave alone."""
        with self._database.session() as session:
            session.execute(f"CREATE TABLE {TABLE} (id integer PRIMARY KEY, n integer NOT NULL, note varchar(200))")
            session.execute(
                f"INSERT INTO {TABLE} SELECT 1000 + g, 0, 'first' FROM ({self._database.numbers}) n", [rows]
            )
            session.commit()

    def _transaction(self, session: Session) -> None:
        pick = self._random
        made: list[Change] = []
        for _ in range(pick.choice([1, 1, 2, 5, 60])):
            self._number += 1
            key = pick.randrange(self._keys)
            made.append((key, self._number))
            session.execute(
                f"INSERT INTO {TABLE} (id, n, note) VALUES (%s, %s, %s) {self._database.upsert(['id'], ('n', 'note'))}",
                [key, self._number, "x" * pick.randrange(100)],
            )
        session.commit()
        self.done += made
        self.transactions += 1
        self._stop.wait(pick.random() * self._pause_s)


@dataclass(frozen=True)
class Delivered:
    """What a reader has delivered, in order.

    Attributes:
        changes: the changes.
        reads: the rows of snapshots, each as its last change; number 0 for one that was never changed.
    """

    changes: list[Change]
    reads: list[Change]


def of_debezium(records: Sequence[Record]) -> Delivered:
    """Return what Debezium's records hold."""
    return _delivered(json.loads(one.value or "null") for one in records if one.topic.endswith(f".{TABLE}"))


def of_query(rows: Iterable[Mapping[str, Any]]) -> Delivered:
    """Return what a query's events hold."""
    return _delivered(json.loads(row["value"] or "null") for row in rows if row["topic"].endswith(f".{TABLE}"))


def _delivered(events: Iterable[Any]) -> Delivered:
    found = Delivered([], [])
    for event in events:
        if event is not None and event["after"] is not None:
            change = event["after"]["id"], event["after"]["n"]
            (found.reads if event["op"] == "r" else found.changes).append(change)
    return found


def missing_or_disordered(parts: Sequence[Delivered], expected: Sequence[Change]) -> str:
    """Return what is wrong with what several readers have delivered one after the other; empty: nothing.

    Changes may come again, but not before an earlier one of their key has come, and none may be missing that a snapshot
    doesn't include.
    """
    read: dict[int, int] = defaultdict(int)
    came: dict[int, list[int]] = defaultdict(list)
    for part in parts:
        for key, number in part.reads:
            read[key] = max(read[key], number)
        for key, number in part.changes:
            if not came[key] or number > came[key][-1]:
                came[key].append(number)
    wanted: dict[int, list[int]] = defaultdict(list)
    for key, number in expected:
        wanted[key].append(number)
    for key, numbers in wanted.items():
        lacking = set(numbers) - set(came[key]) - set(range(read[key] + 1))
        extra = set(came[key]) - set(numbers)
        if lacking or extra:
            return (
                f"key {key}: missing or too late {sorted(lacking)[:5]} ({len(lacking)}), not made {sorted(extra)[:5]}"
            )
    return ""


def going_back(delivered: Sequence[Change]) -> str:
    """Return where one reader's changes of a key are out of order, or come twice; empty: nowhere."""
    last: dict[int, int] = {}
    for key, number in delivered:
        if number <= last.get(key, 0):
            return f"key {key}: {number} after {last[key]}"
        last[key] = number
    return ""


def pipeline_file(directory: Path, options: Mapping[str, str]) -> Path:
    """Write a pipeline file with a checkpoint beside it, and return its path."""
    content = {"source": dict(options), "sink": {"type": "noop"}, "checkpoint": str(directory / "checkpoint")}
    file = directory / "pipeline.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file
