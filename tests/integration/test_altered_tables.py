"""Tables that are altered, renamed, emptied or dropped while a snapshot reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, signal
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.patience import within

LIMIT_S = within(15)
ROWS = 24
SMALL = {
    "incremental_snapshot_chunk_size": "1",
    "max_batch_rows": "8",
    "snapshot_chunk_bytes": "8192",
    "max_batch_bytes": "8192",
    "snapshot_batch_target_ms": "1",
    "skipped_operations": "none",
}
COPIED = "CREATE TABLE t (LIKE old INCLUDING ALL); INSERT INTO t SELECT id + 1000, v + 1000, note FROM old"
CHANGES = {
    "add a column": "ALTER TABLE t ADD extra integer NOT NULL DEFAULT 7",
    "add a column and rewrite": "ALTER TABLE t ADD extra double precision DEFAULT random()",
    "drop a column": "ALTER TABLE t DROP note",
    "change a type": "ALTER TABLE t ALTER v TYPE bigint",
    "change the key": "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (v)",
    "rename a column": "ALTER TABLE t RENAME note TO remark",
    "rename": "ALTER TABLE t RENAME TO renamed",
    "move": "CREATE SCHEMA elsewhere; ALTER TABLE t SET SCHEMA elsewhere",
    "swap": f"BEGIN; ALTER TABLE t RENAME TO old; {COPIED}; COMMIT",
    "truncate": "TRUNCATE t",
    "drop": "DROP TABLE t",
}
SOME = ("add a column and rewrite", "change the key", "rename", "truncate", "drop")
NOW = {"rename": "renamed", "move": "elsewhere.t", "swap": "old"}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


class Run:
    """A query, and what a consumer makes of its events: rows by ``id``, whatever the table is called."""

    def __init__(self, source: Source, mode: str, options: dict[str, str]) -> None:
        for name in ("t", "u"):
            source.execute(
                f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer NOT NULL, note text)",
                f"INSERT INTO {name} SELECT g, g, repeat('x', 1900) FROM generate_series(1, {ROWS}) g",
            )
        self.query: InProcess = query_of(source, None, **{**options, "snapshot_mode": mode})
        self.known: dict[str, dict[int, int]] = {"t": {}, "u": {}}

    def take(self, rows: list[dict[str, Any]]) -> None:
        """Apply the events of a micro-batch."""
        for row in sorted(rows, key=lambda row: str(row["position"])):
            name = "u" if row["table"] == "u" else "t"
            if row["table"] == "signals" or row["value"] is None:
                continue
            if row["op"] == "t":
                self.known[name].clear()
                continue
            after = json.loads(row["value"])["after"]
            if after is None:
                # The new key comes right after it.
                assert row["op"] == "d"
                continue
            self.known[name][after["id"]] = after["v"]

    def plan(self) -> dict[str, Any]:
        end: dict[str, Any] = self.query.reader.latestOffset(self.query.offset, self.query.reader.getDefaultReadLimit())
        return end

    def step(self) -> None:
        self.take(self.query.step())

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> None:
        """Run micro-batches until the offset is as wanted."""
        deadline = time.monotonic() + LIMIT_S
        while not reached(self.query.offset):
            assert time.monotonic() < deadline, self.query.offset
            self.step()


def over(offset: dict[str, Any]) -> bool:
    return not offset["snapshot"] and not offset["blocking"] and not offset["incremental"]


def begin(source: Source, kind: str, options: dict[str, str] = SMALL) -> Run:
    """Start a query and read some of the table ``t``."""
    source.execute(SIGNALS)
    run = Run(source, "initial" if kind == "initial" else "no_data", options)
    run.step()
    if kind != "initial":
        signal(source, "execute-snapshot", type=kind, data_collections=["public.t", "public.u"])
        place = "incremental" if kind == "incremental" else "snapshot"
        run.until(lambda offset: bool(offset[place] and offset[place]["batch"]))
    assert 0 < len(run.known["t"]) < ROWS
    assert not over(run.query.offset)
    return run


def change(source: Source, what: str) -> None:
    """Change the table, which nobody has locked."""
    source.execute("SET lock_timeout = '10s'; " + CHANGES[what])


def check(source: Source, run: Run, what: str) -> None:
    """Change rows once more, and compare."""
    name = NOW.get(what, "t")
    if what != "drop":
        source.execute(f"UPDATE {name} SET v = -v WHERE id = 1", f"INSERT INTO {name} (id, v) VALUES (5000, 5000)")
    source.execute("UPDATE u SET v = 0 WHERE id = 1", "INSERT INTO u VALUES (5000, 0)")
    run.until(lambda offset: over(offset) and run.known["u"].get(5000) == 0)
    run.query.stop()
    names = {"t": [name, *(["t"] if what == "swap" else [])], "u": ["u"]}
    with psycopg.connect(source.conninfo) as conn:
        for table, parts in names.items():
            if table == "t" and what == "drop":
                continue
            rows: dict[int, int] = {}
            for part in parts:
                rows |= dict(conn.execute(f"SELECT id, v FROM {part}").fetchall())
            assert run.known[table] == rows, table


@pytest.mark.parametrize("what", SOME)
@pytest.mark.parametrize("kind", ["initial", "blocking", "incremental"])
def test_a_change_between_micro_batches(source: Source, kind: str, what: str) -> None:
    run = begin(source, kind)
    change(source, what)
    run.until(over)
    check(source, run, what)


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("kind", ["initial", "blocking", "incremental"])
def test_a_change_after_the_tasks_were_made(source: Source, kind: str, what: str) -> None:
    run = begin(source, kind)
    end = run.plan()
    tasks = run.query.reader.partitions(run.query.offset, end)
    # Nothing locks the table until a task begins to read, or else they would wait for one another.
    change(source, what)
    run.take([row for task in tasks for batch in run.query.reader.read(task) for row in batch.to_pylist()])
    run.query.offset = end
    check(source, run, what)


@pytest.mark.parametrize("what", ["change a type", "drop a column", "rename", "truncate", "drop"])
def test_a_change_after_the_last_tasks_were_made(source: Source, what: str) -> None:
    run = Run(source, "initial", {"skipped_operations": "none"})
    end = run.plan()
    tasks = run.query.reader.partitions(run.query.offset, end)
    assert not any(table[5] for table in end["snapshot"]["tables"]), "something is left for other micro-batches"
    change(source, what)
    run.take([row for task in tasks for batch in run.query.reader.read(task) for row in batch.to_pylist()])
    run.query.offset = end
    check(source, run, what)


@pytest.mark.parametrize("what", SOME)
@pytest.mark.parametrize("kind", ["initial", "blocking", "incremental"])
def test_a_change_while_the_query_does_not_run(source: Source, kind: str, what: str) -> None:
    run = begin(source, kind)
    end = run.plan()
    run.query.restart()
    change(source, what)
    # The micro-batch was planned, so the next process delivers it.
    run.take(run.query.run(end))
    run.query.offset = end
    check(source, run, what)


@pytest.mark.parametrize("kind", ["initial", "blocking", "incremental"])
def test_a_table_renamed_to_what_the_filters_do_not_match(source: Source, kind: str) -> None:
    run = begin(source, kind, {**SMALL, "table_include_list": r"public\.[tu]"})
    end = run.plan()
    tasks = run.query.reader.partitions(run.query.offset, end)
    change(source, "rename")
    run.take([row for task in tasks for batch in run.query.reader.read(task) for row in batch.to_pylist()])
    run.query.offset = end
    run.until(over)
    run.query.stop()
    assert 0 < len(run.known["t"]) < ROWS
    assert len(run.known["u"]) == ROWS
