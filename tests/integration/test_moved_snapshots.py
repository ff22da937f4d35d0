"""``floodmark offsets`` in the middle of an incremental snapshot: what goes on, begins anew, and is refused."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.offsets.moving import Stores, export_offsets
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.offsets import find_offset
from floodmark.debezium.snapshot_state import AskedTable, DebeziumSnapshot, KeyValue
from floodmark.errors import OffsetError
from floodmark.snapshots.incremental.state import TableRun
from floodmark.spark.stream.offsets import Offset
from tests.conftest import Source
from tests.integration.test_moved_positions import Taken, debezium_offsets

Keys = tuple[KeyValue | None, ...]


@pytest.fixture
def taken(source: Source, tmp_path: Path) -> Taken:
    found = Taken(source, tmp_path)
    source.execute(
        "CREATE TABLE pairs (a numeric(6,2), b varchar(20), PRIMARY KEY (a, b))",
        "INSERT INTO pairs SELECT n % 3, 'k' || n FROM generate_series(1, 9) n",
        "CREATE TABLE dated (id date PRIMARY KEY)",
        "INSERT INTO dated SELECT date '2026-01-01' + n FROM generate_series(1, 4) n",
        "INSERT INTO other SELECT n FROM generate_series(1, 5) n",
        "INSERT INTO t VALUES (1, 'a')",
    )
    return found


def stored(taken: Taken, tables: Sequence[AskedTable], last: Keys | None = None, highest: Keys | None = None) -> None:
    """Write an offset with an incremental snapshot."""
    snapshot = DebeziumSnapshot(tuple(tables), "ask", last, highest)
    taken.store_offset({**debezium_offsets(taken.messages())[-1], **snapshot.to_fields()})


def reads(taken: Taken) -> list[Any]:
    """Let a query go on, and return the keys of what it reads."""
    return sorted(key for operation, key in taken.events() if operation == "r")


def test_each_table_goes_on_where_it_was(taken: Taken) -> None:
    stored(taken, [AskedTable("public.other"), AskedTable("public.t", "id > 0")], (3,), (5,))
    taken.take_over()
    assert reads(taken) == [1, 4, 5]


def test_what_comes_after_a_key_of_several_columns(taken: Taken, capsys: pytest.CaptureFixture[str]) -> None:
    stored(taken, [AskedTable("public.pairs")], (Decimal("1.00"), "k4"), (Decimal("2.00"), "k8"))
    taken.take_over()
    assert "public.pairs is read on after the key (1.00, k4), up to (2.00, k8)" in capsys.readouterr().out
    run = only_run(taken)
    assert (run.after, run.top, run.nulls) == (["1.00", "k4"], ["2.00", "k8"], False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "last", "highest", "reason"),
    [
        (AskedTable("public.dated"), (None,), (None,), "its key has a type"),
        (AskedTable("public.pairs"), (Decimal(1),), (Decimal(2),), "its key has a type"),
        (AskedTable("public.other"), ("3",), ("5",), "its key has a type"),
        (AskedTable("public.other"), (3,), None, "its key has a type"),
        (AskedTable("public.other", "", "id"), (3,), (5,), "its surrogate key"),
    ],
)
def test_a_table_is_read_anew(
    taken: Taken, table: AskedTable, last: Keys, highest: Keys, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(taken, [table], last, highest)
    taken.take_over()
    shown = capsys.readouterr().out
    assert f"{table.name} is read anew" in shown
    assert reason in shown
    run = only_run(taken)
    assert (run.begun, run.after, run.surrogate) == (False, None, table.surrogate)


def test_what_can_not_be_taken_over(taken: Taken, capsys: pytest.CaptureFixture[str]) -> None:
    stored(taken, [AskedTable("public.other", "id > (SELECT 1)")], (3,), (5,))
    with pytest.raises(OffsetError, match="has the condition"):
        taken.take_over()
    assert not taken.checkpoint.is_used()
    stored(taken, [AskedTable("public.gone")], (3,), (5,))
    taken.take_over()
    assert "public.gone, which is not a table that the query captures" in capsys.readouterr().out
    assert reads(taken) == []


def test_a_snapshot_is_handed_back_as_it_came(taken: Taken) -> None:
    tables = [AskedTable("public.pairs", signal="ask"), AskedTable("public.other", "id > 2", signal="ask")]
    stored(taken, tables, (Decimal("1.00"), "k4"), (Decimal("2.00"), "k8"))
    before = found(taken)
    taken.take_over()
    export_offsets(taken.file, None, Stores(str(taken.store)), True)
    assert found(taken) == before


def only_run(taken: Taken) -> TableRun:
    """Return the one table that the checkpoint's incremental snapshot has."""
    state = Offset.from_json(taken.checkpoint.delivered()).incremental
    assert state is not None
    (run,) = state.runs
    return run


def found(taken: Taken) -> DebeziumSnapshot | None:
    """Return the incremental snapshot in the store."""
    return DebeziumSnapshot.from_fields(find_offset(FileOffsets(taken.store), "test").fields)
