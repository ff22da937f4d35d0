"""Snapshots of a notebook and what follows them, in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.applying import Event, apply, event, time_travel
from tests.support.inprocess import InProcess
from tests.toy.conftest import Start
from tests.toy.notebook.database.notebook import Notebook

Rows = list[dict[str, Any]]


def applied(rows: Sequence[dict[str, Any]], table: str = "t") -> list[tuple[Any, ...]]:
    """Return the rows of a table that events make, sorted."""
    found = apply(events_of(rows)).get(f"notebook.{table}", {})
    return sorted(tuple(row.values()) for row in found.values())


def events_of(rows: Sequence[dict[str, Any]]) -> list[Event]:
    return [event(0, row) for row in rows if row["table"] != "signals" and row["table"]]


def facts(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return sorted((row["position"], row["op"], row["key"]) for row in rows)


def streaming(query: InProcess) -> Rows:
    """Deliver what there is, and go on as a query that doesn't end by itself; return the rows."""
    rows = query.drain()
    query.restart()
    return rows


def follow(query: InProcess, notebook: Notebook, rows: Rows, table: str = "t") -> None:
    """Run micro-batches, up to a limit, until the events give the table's rows."""
    for _ in range(200):
        rows += query.step()
        if query.offset["snapshot"] is None and applied(rows, table) == notebook.rows(table):
            return
    raise AssertionError("The query doesn't catch up.")


def test_a_snapshot_and_changes_before_during_and_after(start: Start, notebook: Notebook) -> None:
    with notebook.page() as page:
        page.update("t", {"id": 1}, v=1)
    query = start(snapshot_chunk_bytes="8192", max_batch_bytes="1")
    rows = query.step()
    for v in range(2, 6):
        with notebook.page() as page:
            page.update("t", {"id": 1}, v=v)
            page.insert("t", {"id": 100 + v, "v": v})
        rows += query.step()
    follow(query, notebook, rows)
    with notebook.page() as page:
        page.delete("t", id=2)
        page.update("t", {"id": 3}, id=300)
    follow(query, notebook, rows)
    assert not time_travel(events_of(rows))
    read = [row for row in rows if row["op"] == "r"]
    assert len(read) == 20
    assert json.loads(read[0]["value"])["source"]["snapshot"] == "true"
    streamed = [row for row in rows if row["op"] != "r"]
    # A delete and a changed key are each followed by a tombstone.
    assert [row["op"] for row in streamed[-5:]] == ["d", "d", "d", "d", "c"]


def test_an_event_has_all_fields(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data", schemas_enable="true")
    streaming(query)
    with notebook.page() as page:
        page.insert("t", {"id": 50, "v": None, "pad": 'quotes "\t\u0001" and 漢字 🙂'})
    (row,) = query.drain()
    value = json.loads(row["value"])["payload"]
    assert value["after"] == {"id": 50, "v": None, "pad": 'quotes "\t\u0001" and 漢字 🙂'}
    assert value["source"] == {
        **value["source"],
        "connector": "notebook",
        "name": "toy",
        "db": "notebook",
        "snapshot": "false",
        "table": "t",
        "transaction": 2,
    }
    assert (row["topic"], row["position"], row["txid"]) == ("toy.notebook.t", "000000000002-00000001-00", "2")
    names = {field["field"] for field in json.loads(row["value"])["schema"]["fields"][2]["fields"]}
    assert names == set(value["source"])


def test_it_goes_on_from_each_offset_with_an_empty_state_directory(start: Start, notebook: Notebook) -> None:
    query = start(max_batch_rows="2", segment_bytes="65536", snapshot_chunk_bytes="8192")
    offsets = [query.offset]
    batches: list[Rows] = []
    for v in range(6):
        with notebook.page() as page:
            page.update("t", {"id": v}, v=v + 1)
            page.delete("t", id=19 - v)
        batches.append(query.step())
        offsets.append(query.offset)
    rest: Rows = []
    delivered = [row for rows in batches for row in rows]
    follow(query, notebook, rest := list(delivered))
    expected = facts([row for row in rest if row["op"] != "r"])
    for number, offset in enumerate(offsets[1:], 1):
        before = [row for rows in batches[:number] for row in rows]
        again = start(offset, max_batch_rows="2")
        rows = list(before)
        follow(again, notebook, rows)
        assert not time_travel(events_of(rows))
        if number > 1:
            # The first offset lies in the snapshot, which goes on at a later read point: other changes follow it.
            assert facts([row for row in rows if row["op"] != "r"]) == expected


def test_a_planned_micro_batch_has_the_same_rows_in_another_process(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data")
    query.drain()
    begin = query.offset
    with notebook.page() as page:
        page.update("t", {"v": 0}, v=1)
    rows = query.drain()
    assert len(rows) == 20
    again = start(begin, snapshot_mode="no_data")
    assert facts(again.run(query.offset)) == facts(rows)


def test_a_large_transaction_comes_in_several_micro_batches(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data", segment_bytes="65536", max_batch_rows="1000")
    streaming(query)
    with notebook.page() as page:
        page.insert("t", *({"id": 1000 + number, "v": 1, "pad": "x" * 40} for number in range(10_000)))
        page.update("t", {"v": 1}, v=2)
    with notebook.page() as page:
        page.update("t", {"id": 1000}, v=3)
    first = query.step()
    while not first:
        first = query.step()
    offset = query.offset
    assert 0 < len(first) < 10_000
    assert int(offset["log"].split("-")[1]) > 0
    rows = first + query.drain()
    assert query.batches > 10
    assert len(rows) == 20_001
    positions = [row["position"] for row in rows]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)
    inserted = [row for row in notebook.rows("t") if row[0] >= 1000]
    assert applied(rows) == inserted
    # Inside the transaction, another process goes on.
    assert facts(first + start(offset, snapshot_mode="no_data").drain()) == facts(rows)


def test_tables_without_key_and_with_a_key_of_several_columns(start: Start, notebook: Notebook) -> None:
    notebook.create("bare", {"a": "integer", "b": "text?"}, key=())
    notebook.create("pairs", {"a": "text", "b": "integer", "v": "integer"}, key=("a", "b"))
    with notebook.page() as page:
        page.insert("bare", {"a": 1}, {"a": 1})
        page.insert("pairs", *({"a": "xyz"[number % 3], "b": number, "v": 0} for number in range(300)))
    query = start(snapshot_chunk_bytes="8192", max_batch_bytes="1")
    rows: Rows = []
    follow(query, notebook, rows, "pairs")
    assert [(row["key"], row["op"]) for row in rows if row["table"] == "bare"] == [(None, "r")] * 2
    assert len([row for row in rows if row["table"] == "pairs"]) == 300


def test_a_new_table_is_captured(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_new_tables="blocking")
    rows = query.drain()
    notebook.create("later", {"id": "integer", "v": "integer"})
    with notebook.page() as page:
        page.insert("later", *({"id": number, "v": number} for number in range(5)))
    # New tables are looked for at each start.
    again = start(query.offset, snapshot_new_tables="blocking")
    follow(again, notebook, rows, "later")


def test_typed_rows(start: Start, notebook: Notebook) -> None:
    query = start(format="rows", table_include_list=r"notebook\.t", signal_enabled_channels="file")
    rows = query.drain()
    assert len(rows) == 20
    assert rows[7]["after"] == {"id": 7, "v": 0, "pad": "row 7"}
    with notebook.page() as page:
        page.update("t", {"id": 7}, pad=None)
    (row,) = query.drain()
    assert (row["before"]["pad"], row["after"]["pad"]) == ("row 7", None)
