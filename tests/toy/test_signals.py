"""Snapshots that signals ask for, by the table ``signals`` and by a file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.applying import time_travel
from tests.toy.conftest import Start
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.test_stream import Rows, events_of, follow, streaming


def signal(notebook: Notebook, **data: object) -> None:
    with notebook.page() as page:
        page.insert("signals", {"id": "s1", "type": "execute-snapshot", "data": json.dumps(data)})


def keys_read(rows: Rows) -> list[int]:
    return [json.loads(row["key"])["id"] for row in rows if row["op"] == "r"]


def test_an_incremental_snapshot_while_rows_change(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data", incremental_snapshot_chunk_size="3", max_batch_rows="3")
    rows = streaming(query)
    signal(notebook, **{"data-collections": ["notebook.t"]})
    for v in range(1, 6):
        rows += query.step()
        with notebook.page() as page:
            page.update("t", {"id": v}, v=v)
            page.delete("t", id=19 - v)
            page.insert("t", {"id": 100 + v, "v": v})
    follow(query, notebook, rows)
    for _ in range(50):
        rows += query.step()
        if query.offset["incremental"] is None:
            break
    assert not time_travel(events_of(rows))
    read = keys_read(rows)
    assert len(read) == len(set(read))
    assert query.batches > 3
    markers = {json.loads(row["value"])["source"]["snapshot"] for row in rows if row["op"] == "r"}
    assert markers == {"incremental"}


def test_an_incremental_snapshot_of_some_rows_goes_on_elsewhere(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data", incremental_snapshot_chunk_size="2", max_batch_rows="2")
    streaming(query)
    condition = {"data-collection": "notebook.t", "filter": "v = 0 AND (id BETWEEN 5 AND 8 OR pad IN ('row 1'))"}
    signal(notebook, **{"data-collections": ["notebook.t"], "additional-conditions": [condition]})
    rows = query.step()
    while not keys_read(rows):
        rows += query.step()
    rows += start(query.offset, snapshot_mode="no_data").drain()
    assert sorted(set(keys_read(rows))) == [1, 5, 6, 7, 8]


def test_a_blocking_snapshot(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data")
    rows = streaming(query)
    signal(notebook, type="BLOCKING", **{"data-collections": ["notebook.t"]})
    with notebook.page() as page:
        page.update("t", {"id": 1}, v=1)
    follow(query, notebook, rows)
    assert keys_read(rows) == list(range(20))
    assert not time_travel(events_of(rows))


def test_a_blocking_snapshot_with_a_statement(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data")
    streaming(query)
    condition = {"data-collection": "notebook.t", "filter": "SELECT * FROM notebook.t WHERE id > 17"}
    signal(notebook, type="BLOCKING", **{"data-collections": ["notebook.t"], "additional-conditions": [condition]})
    assert sorted(keys_read(query.drain())) == [18, 19]


def test_a_condition_that_is_not_allowed_reads_nothing(start: Start, notebook: Notebook) -> None:
    query = start(snapshot_mode="no_data", notification_enabled_channels="sink", notification_sink_topic_name="n")
    streaming(query)
    condition = {"data-collection": "notebook.t", "filter": "id = load_extension('x')"}
    signal(notebook, **{"data-collections": ["notebook.t"], "additional-conditions": [condition]})
    rows = streaming(query)
    assert not keys_read(rows)
    assert any("SQL_EXCEPTION" in row["value"] for row in rows if row["topic"] == "n")


def test_signals_by_file(start: Start, notebook: Notebook, tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    file.touch()
    query = start(snapshot_mode="no_data", signal_enabled_channels="file", signal_file=str(file))
    rows = streaming(query)
    line = {"id": "f1", "type": "execute-snapshot", "data": {"data-collections": ["notebook.t"]}}
    file.write_text(json.dumps(line) + "\n")
    follow(query, notebook, rows)
    assert sorted(keys_read(rows)) == list(range(20))
