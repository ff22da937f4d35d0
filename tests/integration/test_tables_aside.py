"""A table that cannot be read or decoded: tried again, then set aside, while the others go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from floodmark.changes.table_version import EventVersions
from floodmark.errors import SourceStateError
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, read_rows, signal, told, until
from tests.support.inprocess import InProcess
from tests.support.undecodable import refused_tables

TOLD = {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}
FAILS = "1 / (id - 700) > -1000"


def aside(query: InProcess) -> dict[str, str]:
    """Return the tables that are set aside, and from what."""
    return {table["name"]: table["what"] for table in query.offset["aside"]}


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute(SIGNALS, "CREATE TABLE a (id integer PRIMARY KEY)", "CREATE TABLE b (id integer PRIMARY KEY)")
    source.execute("INSERT INTO a SELECT generate_series(1, 1000)", "INSERT INTO b SELECT generate_series(1, 1000)")
    return source


def ask(source: Source, *tables: str, fails: bool = False) -> None:
    conditions = [{"data-collection": "public.a", "filter": FAILS}] if fails else []
    signal(source, "execute-snapshot", data_collections=list(tables), additional_conditions=conditions)


def test_a_chunk_that_fails_sets_its_table_aside(shop: Source) -> None:
    query = query_of(shop, None, incremental_snapshot_chunk_size="100", snapshot_max_threads="2", **TOLD)
    query.drain()
    ask(shop, "public.a", "public.b", fails=True)
    rows = query.drain()
    shop.execute("INSERT INTO a VALUES (1001)")
    rows += query.drain()
    assert {event["after"]["id"] for event in read_rows(rows, "b")} == set(range(1, 1001))
    assert [row["op"] for row in rows if row["table"] == "a" and row["op"] != "r"] == ["c"]
    ends = {d["scanned_collection"]: d["status"] for kind, d in told(rows) if kind == "TABLE_SCAN_COMPLETED"}
    assert ends == {"public.a": "SQL_EXCEPTION", "public.b": "SUCCEEDED"}
    assert aside(query) == {"public.a": "incremental"}
    assert "division by zero" in query.offset["aside"][0]["error"]

    query.restart()
    assert aside(query) == {"public.a": "incremental"}
    ask(shop, "public.a")
    rows = query.drain()
    query.stop()
    assert {event["after"]["id"] for event in read_rows(rows, "a")} == set(range(1, 1002))
    assert aside(query) == {}


def test_chunks_that_fail_when_they_are_read_are_read_again(shop: Source) -> None:
    role = f"reader_{shop.dbname}"
    shop.execute(f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT SELECT ON signals, a, b TO {role}")
    shop.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    shop.options["database.user"] = role
    query = query_of(shop, None, incremental_snapshot_chunk_size="300", max_batch_rows="300")
    query.drain()
    query.restart()
    ask(shop, "public.a", "public.b")
    rows = until(query, lambda offset: offset["incremental"] is not None)
    for _ in range(3):
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        shop.execute(f"REVOKE SELECT ON a FROM {role}")
        rows += query.run(end)
        query.offset = end
        shop.execute(f"GRANT SELECT ON a TO {role}")
    assert query.offset["incremental"]["runs"][0]["failures"] == 2
    assert read_rows(rows, "a") == []
    rows += query.drain()
    query.stop()
    assert aside(query) == {}
    for table in ("a", "b"):
        assert sorted(event["after"]["id"] for event in read_rows(rows, table)) == list(range(1, 1001))


def test_a_table_that_can_be_read_again_in_time_is_not_set_aside(shop: Source) -> None:
    role = f"reader_{shop.dbname}"
    shop.execute(f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT SELECT ON signals, b TO {role}")
    shop.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    shop.options["database.user"] = role
    query = query_of(shop, None, snapshot_mode="initial", **TOLD)
    rows = query.step()
    assert query.offset["snapshot"] is not None
    shop.execute(f"GRANT SELECT ON a TO {role}")
    rows += query.drain()
    query.stop()
    assert aside(query) == {}
    for table in ("a", "b"):
        assert sorted(event["after"]["id"] for event in read_rows(rows, table)) == list(range(1, 1001))
    ends = {d["scanned_collection"]: d["total_rows_scanned"] for k, d in told(rows) if k == "TABLE_SCAN_COMPLETED"}
    assert ends == {"public.a": "1000", "public.b": "1000"}


def test_a_table_without_rights_is_set_aside_by_the_initial_snapshot(shop: Source) -> None:
    role = f"reader_{shop.dbname}"
    shop.execute(f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT SELECT ON signals, b TO {role}")
    shop.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    shop.options["database.user"] = role
    query = query_of(shop, None, snapshot_mode="initial", **TOLD)
    rows = query.drain()
    shop.execute("INSERT INTO a VALUES (1001)", "INSERT INTO b VALUES (1001)")
    query.restart()
    rows += query.drain()
    assert aside(query) == {"public.a": "initial"}
    reported = query.reader.reportLatestOffset()
    assert reported is not None
    assert (reported["tables_set_aside"], reported["set_aside"]) == (1, ["public.a"])
    assert "permission denied" in query.offset["aside"][0]["error"]
    assert read_rows(rows, "a") == []
    assert sorted(event["after"]["id"] for event in read_rows(rows, "b")) == list(range(1, 1001))
    assert [row["table"] for row in rows if row["op"] == "c"] == ["a", "b"]
    statuses = [d["status"] for k, d in told(rows) if k == "TABLE_SCAN_COMPLETED"]
    assert sorted(statuses) == ["SQL_EXCEPTION", "SUCCEEDED"]

    shop.execute(f"GRANT SELECT ON a TO {role}")
    ask(shop, "public.a")
    rows = query.drain()
    query.stop()
    assert sorted(event["after"]["id"] for event in read_rows(rows, "a")) == list(range(1, 1002))
    assert aside(query) == {}


def test_a_failure_can_end_the_query(shop: Source) -> None:
    query = query_of(shop, errors_tables="fail")
    query.drain()
    ask(shop, "public.a", fails=True)
    with pytest.raises(SourceStateError, match="division by zero"):
        query.drain()
    query.stop()


@pytest.fixture
def undecodable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of tables whose rows can't be made into events."""
    return refused_tables(monkeypatch, EventVersions)


def test_a_table_that_cannot_be_decoded_is_set_aside(shop: Source, undecodable: set[str]) -> None:
    shop.execute("ALTER TABLE b ADD v text")
    query = query_of(shop)
    query.drain()
    undecodable.add("a")
    shop.execute("INSERT INTO a VALUES (1001)", "INSERT INTO b VALUES (1001)")
    rows = query.drain()
    query.restart()
    shop.execute("INSERT INTO a VALUES (1002)", "INSERT INTO b VALUES (1002)", "TRUNCATE a")
    rows += query.drain()
    assert [(row["table"], row["op"]) for row in rows] == [("b", "c"), ("b", "c")]
    assert aside(query) == {"public.a": "log"}
    assert "nobody knows this type" in query.offset["aside"][0]["error"]

    undecodable.clear()
    shop.execute("INSERT INTO a VALUES (1003)")
    ask(shop, "public.a")
    query.restart()
    rows = query.drain()
    shop.execute("INSERT INTO a VALUES (1004)")
    query.restart()
    rows += query.drain()
    query.stop()
    assert aside(query) == {}
    assert [json.loads(row["value"])["after"]["id"] for row in rows if row["table"] == "a"] == [1003, 1004]


def test_an_undecodable_table_can_end_the_query(shop: Source, undecodable: set[str]) -> None:
    query = query_of(shop, errors_tables="fail")
    query.drain()
    undecodable.add("a")
    shop.execute("INSERT INTO a VALUES (1001)")
    query.restart()
    with pytest.raises(ValueError, match="nobody knows"):
        query.drain()
    query.stop()


@pytest.mark.parametrize("mode", ["initial", "incremental"])
def test_lost_reports_cost_reading_again_and_no_row(shop: Source, mode: str) -> None:
    options = {"incremental_snapshot_chunk_size": "100", "max_batch_rows": "100", "snapshot_chunk_bytes": "8192"}
    query = query_of(shop, None, snapshot_mode="initial" if mode == "initial" else "no_data", **options)
    field = "snapshot" if mode == "initial" else "incremental"
    rows: list[dict[str, Any]] = []
    if mode == "incremental":
        query.drain()
        query.restart()
        ask(shop, "public.a", "public.b")
    rows += until(query, lambda offset: bool(offset[field] and offset[field]["batch"]))
    for folder in Path(shop.options["state.dir"]).glob("*/reports"):
        shutil.rmtree(folder)
    query.restart()
    rows += query.drain()
    query.stop()
    for table in ("a", "b"):
        assert {event["after"]["id"] for event in read_rows(rows, table)} == set(range(1, 1001))
    assert len(rows) > 2000


@pytest.mark.parametrize("mode", ["initial", "incremental"])
def test_what_is_reported_is_not_read_again(shop: Source, mode: str) -> None:
    options = {"incremental_snapshot_chunk_size": "100", "max_batch_rows": "100", "snapshot_chunk_bytes": "8192"}
    query = query_of(shop, None, snapshot_mode="initial" if mode == "initial" else "no_data", **options)
    field = "snapshot" if mode == "initial" else "incremental"
    rows: list[dict[str, Any]] = []
    if mode == "incremental":
        query.drain()
        query.restart()
        ask(shop, "public.a", "public.b")
    while query.offset["log"] == "" or query.offset[field] or not read_rows(rows, "b"):
        # The first one at a new read point of an initial snapshot holds the log up to it, and no chunks.
        for _ in range(3):
            rows += query.step()
        query.stop()
        query = query_of(shop, query.offset, snapshot_mode="initial" if mode == "initial" else "no_data", **options)
    query.stop()
    for table in ("a", "b"):
        assert sorted(event["after"]["id"] for event in read_rows(rows, table)) == list(range(1, 1001))


def test_status_names_the_cause_and_the_command(shop: Source, tmp_path: Path) -> None:
    from floodmark.cli.status.progress_from_offsets import TimedOffset, pipeline_progress

    query = query_of(shop, None, incremental_snapshot_chunk_size="1000")
    query.drain()
    ask(shop, "public.a", fails=True)
    query.drain()
    query.stop()
    found = pipeline_progress([TimedOffset(1, query.offset, 0.0)], 1, 0.0, 0.0)
    assert [(table.name, table.what) for table in found.excluded] == [("public.a", "incremental")]
