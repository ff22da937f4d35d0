"""Notifications: each once to listeners, whatever is planned again, and once in the sink."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.postgres.source.tables import PostgresTables
from floodmark.errors import ConnectError
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, signal, told

HEARD: list[dict[str, Any]] = []


def hear(notification: dict[str, Any]) -> None:
    HEARD.append(notification)


def test_a_listener_hears_once_what_is_planned_twice(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.execute(SIGNALS, "CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query = query_of(source, notification_enabled_channels=f"{__name__}:hear", errors_retry_delay_initial_ms="10")
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    query.drain()
    query.restart()
    query.step()
    HEARD.clear()

    # The connection is lost when the signal has been taken already.
    outcomes = iter([None, ConnectError("The connection is lost.")])
    captured = PostgresTables.captured

    def failing(tables: PostgresTables) -> list[CapturedTable]:
        found = captured(tables)
        error = next(outcomes, None)
        if error is not None:
            raise error
        return found

    source.execute(
        "INSERT INTO signals VALUES ('1', 'execute-snapshot', '{\"data-collections\": [\"public.t\"]}'), "
        "('2', 'pause-snapshot', ''), ('3', 'execute-snapshot', '{\"data-collections\": [\"public.none\"]}')"
    )
    monkeypatch.setattr(PostgresTables, "captured", failing)
    query.step()
    query.drain()
    query.stop()
    assert next(outcomes, None) is None
    kinds = [notification["type"] for notification in HEARD]
    assert kinds.count("STARTED") == 1, kinds
    assert kinds.count("PAUSED") == 1, kinds


def test_a_restart_with_other_tables_tells_nothing_again(source: Source) -> None:
    options = {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}
    source.execute("CREATE TABLE a (id integer PRIMARY KEY)", "CREATE TABLE b (id integer PRIMARY KEY)")
    query = query_of(source, None, table_include_list="public.a", **options)
    query.step()
    end = query.offset
    query.stop()
    assert [item["type"] for item in end["notifications"]] == ["SKIPPED"]
    query = query_of(source, end, table_include_list="public.a,public.b", **options)
    rows = query.drain()
    query.stop()
    assert told(rows) == []
    assert query.offset["known"] == ["public.a", "public.b"]
