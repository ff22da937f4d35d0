"""What an offset takes in the checkpoint with ten thousand tables, and that nothing is lost by that."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from floodmark.cli.status.tables import table_progress
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.table_key import TableKey
from floodmark.notifications.records import InitialSnapshotNotifications
from floodmark.packing import table_number
from floodmark.snapshots.incremental.state import BatchRange, IncrementalState, KeyRange, TableRun
from floodmark.snapshots.reports import Report, TaskReports
from floodmark.snapshots.state import Found, SnapshotState, first_state, rebase, settle_batch, take_units
from floodmark.spark.stream.offsets import Offset

TABLES = 10_000
WORDS = (
    "orders",
    "customers",
    "invoices",
    "line_items",
    "payments",
    "products",
    "stock",
    "audit_log",
    "events",
    "roles",
)


def tenants() -> tuple[str, ...]:
    return tuple(sorted(f"tenant_{i // 10:04}.{WORDS[i % 10]}" for i in range(TABLES)))


def worded() -> tuple[str, ...]:
    choose = random.Random(1).choice
    return tuple(sorted(f"public.{choose(WORDS)}_{choose(WORDS)}_{i}" for i in range(TABLES)))


def arbitrary() -> tuple[str, ...]:
    choose = random.Random(2).choice
    return tuple(sorted("app." + "".join(choose(string.ascii_lowercase) for _ in range(16)) for _ in range(TABLES)))


NAMES = {"tenants": tenants, "worded": worded, "arbitrary": arbitrary}
STREAMING = {"tenants": 15_000, "worded": 40_000, "arbitrary": 150_000}
"""Most characters of an offset while nothing but the log is delivered."""
IN_A_SNAPSHOT = {"tenants": 110_000, "worded": 150_000, "arbitrary": 360_000}


def stored(offset: Offset) -> str:
    """Return an offset as PySpark writes it."""
    return json.dumps(offset.to_json())


def again(offset: Offset) -> Offset:
    return Offset.from_json(json.loads(stored(offset)))


def offset_with(names: tuple[str, ...], **parts: Any) -> Offset:
    return Offset({"system": "1"}, "0000000001E25730-00000000", known=names, batch="b" * 32, **parts)


def described(names: tuple[str, ...], numbered: bool) -> list[CapturedTable]:
    """Return tables as a connector describes them: with OIDs, or with numbers made of their names."""
    pick = random.Random(3)
    oid = 16384
    tables = []
    for name in names:
        oid += pick.choice((3, 5, 6))
        number = oid if numbered else table_number(*name.split("."))
        file = f"{oid}:{pick.getrandbits(128):032x}"
        units, rows = pick.randrange(1, 500), pick.randrange(100_000)
        tables.append(CapturedTable(name, name, number, number, file, units, rows))
    return tables


@pytest.mark.parametrize("kind", NAMES)
def test_streaming(kind: str) -> None:
    offset = offset_with(NAMES[kind]())
    assert len(stored(offset)) < STREAMING[kind]
    assert again(offset) == offset


@pytest.mark.parametrize(
    ("kind", "numbered"),
    [
        ("tenants", True),
        ("arbitrary", False),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("worded", True), ("worded", False))),
    ],
)
def test_initial_snapshot(kind: str, numbered: bool) -> None:
    """What goes on from the checkpoint after each micro-batch has as much left to read as what went on before it."""
    names = NAMES[kind]()
    tables = described(names, numbered)
    found = {table.oid: Found(table.units, table.file, table.rows) for table in tables}
    state = first_state("p0", {"visible": "1:1:"}, "1:1:", tables)
    sizes = []
    for step in range(8):
        take_units(state, 300_000)
        offset = offset_with(names, snapshot=state)
        sizes.append(len(stored(offset)))
        restored = again(offset).snapshot
        assert restored is not None
        assert restored.pending == state.pending
        assert restored.batch == state.batch
        shown = {table.name: table for table in table_progress(json.loads(stored(offset)))}
        assert list(shown) == list(names)
        # One chunk in seven counts as not read.
        reports = TaskReports(
            Report("consistent", (number, first), "complete", 10)
            for number, (_, (first, _, _)) in enumerate(state.batch)
            if (number + step) % 7
        )
        for one in (state, restored):
            settle_batch(one, reports, "consistent", 1 << 30)
            for table in one.tables:
                if not table.pending and not table.outcome:
                    table.outcome = "SUCCEEDED"
        moved = [rebase(one, "p1", {}, "2:2:", found).to_json() for one in (state, restored)]
        assert moved[0] == moved[1]
        # What waits is looked up at the next read point.
        state = rebase(restored, "p1", {"visible": "2:2:"}, "2:2:", found) if step % 2 else state
    assert max(sizes) < IN_A_SNAPSHOT[kind]


@pytest.mark.parametrize("numbered", [True, False])
def test_incremental_snapshot(numbered: bool) -> None:
    names = worded()
    runs = [
        TableRun(one.name, one.oid, one.file, TableKey(("id",), False), None, "", one.rows)
        for one in described(names, numbered)
    ]
    runs[3].condition, runs[9].surrogate, runs[7].failures = "id > 7", "other", 2
    runs[0].begun, runs[0].after, runs[0].top = True, ["5"], ["70"]
    runs[20].outcome = "NO_PRIMARY_KEY"
    state = IncrementalState(runs, "signal", False, [BatchRange(0, KeyRange(["4"], ["5"]))], "p", {"visible": "1:1:"})
    offset = offset_with(names, incremental=state)
    assert len(stored(offset)) < IN_A_SNAPSHOT["worded"]
    restored = again(offset).incremental
    assert restored is not None
    assert restored.batch == state.batch
    for before, after in zip(runs, restored.runs, strict=True):
        if after.described:
            assert after == before
        else:
            asked = (before.name, before.oid, before.surrogate, before.condition, before.estimate)
            assert (after.name, after.oid, after.surrogate, after.condition, after.estimate) == asked
    assert {index for index, run in enumerate(restored.runs) if run.described} == {0, 7, 20}
    assert len(table_progress(json.loads(stored(offset)))) == TABLES


def test_notifications_that_name_all_tables() -> None:
    names = worded()
    make = InitialSnapshotNotifications("test")
    told = tuple(make.table_completed(name, names, 7) for name in names[:100])
    offset = offset_with(names, notifications=told)
    assert len(stored(offset)) < STREAMING["worded"] + IN_A_SNAPSHOT["worded"]
    assert again(offset) == offset


def test_few_tables_are_plain_json() -> None:
    names = worded()[:20]
    state = first_state("p0", {}, "1:1:", described(names, True))
    data = offset_with(names, snapshot=state).to_json()
    assert data["known"] == list(names)
    assert data["snapshot"] == state.to_json()
    assert [table["name"] for table in state.progress()] == list(names)


def test_offsets_of_version_3() -> None:
    """What was written before lists of tables were packed is read."""
    names = [f"public.t{number}" for number in range(300)]
    table = ["public.t0", 5, "7:ab", 9, 10, [[3, 9, -1]], [[0, 3, 0]], "", 30, 0, "", {}]
    waiting = [
        [name, 6 + at, f"{at}:cd", 4, 10, [[0, 4, -1]], [], "", 0, 0, "", {}] for at, name in enumerate(names[1:])
    ]
    run = {
        "name": "public.t0", "oid": 5, "file": "7:ab", "key": {"columns": ["id"], "nulls": False}, "surrogate": None,
        "condition": "", "estimate": 10, "begun": True, "after": ["5"], "top": ["9"], "nulls": False, "rows": 5,
        "redo": [{"after": None, "upto": ["2"], "since": None}], "chunks": 1, "failures": 0, "outcome": "", "error": "",
    }  # fmt: skip
    progress = [{"name": name, "done": 0, "units": 4, "rows": 10, "read": 0, "outcome": ""} for name in names]
    data: dict[str, Any] = {
        "v": 3, "source": {"system": "1"}, "log": "00-00", "ended": False, "taken": ["r1"], "gap": False,
        "known": names,
        "snapshot": {"position": "p", "token": {}, "views": ["1:1:"], "tables": [table, *waiting], "blocking": False,
                     "batch": [[0, [0, 3, -1]]], "progress": progress},
        "incremental": {"runs": [run] * 300, "name": "s", "paused": False, "position": "p", "token": {},
                        "batch": [{"run": 0, "range": {"after": ["4"], "upto": ["5"], "since": None}}]},
        "notifications": [{"id": "n", "type": "STARTED", "aggregate_type": "Initial Snapshot", "timestamp": 5,
                           "additional_data": {"connector_name": "test"}}],
        "batch": "b", "aside": [], "lane": None, "blocking": [], "heartbeat": None, "xmin": None, "bookmark": None,
    }  # fmt: skip
    offset = Offset.from_json(json.loads(json.dumps(data)))
    assert offset.known == tuple(names)
    assert isinstance(offset.snapshot, SnapshotState)
    assert offset.snapshot.tables[0].done == [(0, 3, 0)]
    assert [table.file for table in offset.snapshot.tables[1:]] == [f"{at}:cd" for at in range(299)]
    assert offset.incremental is not None
    assert offset.incremental.runs[299].redo == [KeyRange(None, ["2"])]
    assert offset.notifications[0].additional_data == {"connector_name": "test"}
    assert len(table_progress(data)) == 600
