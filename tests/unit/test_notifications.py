"""Notifications: their records, their way through the offset, and the channels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import CapturingLogger

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.notifications import channels as channels
from floodmark.notifications.records import (
    IncrementalSnapshotNotifications,
    InitialSnapshotNotifications,
    Notification,
    notification_batch,
)
from tests.support.options import REQUIRED

WITH_SINK = {**REQUIRED, "notification.sink.topic.name": "notifications"}
TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT, TEXT, st.integers(0, 1 << 60))
def test_any_text_survives(name: str, detail: str, timestamp: int) -> None:
    made = IncrementalSnapshotNotifications(detail, lambda: timestamp).started(name, [detail])
    assert Notification.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert json.loads(made.value_text(False)) == made.to_json()
    assert json.loads(made.value_text(True))["payload"] == made.to_json()
    assert json.loads(made.key_text(False)) == {"id": name}


def test_keys_without_values() -> None:
    made = IncrementalSnapshotNotifications("shop").in_progress("s", ["a.b"], "a.b", None, ["1", None])
    assert made.additional_data["maximum_key"] == '"<null>"'
    assert made.additional_data["last_processed_key"] == "1,<null>"


def test_what_debezium_was_not_seen_to_send() -> None:
    make = InitialSnapshotNotifications("shop", lambda: 7)
    assert make.aborted().to_json() | {"id": ""} == {
        "id": "",
        "type": "ABORTED",
        "aggregate_type": "Initial Snapshot",
        "additional_data": {"connector_name": "shop"},
        "timestamp": 7,
    }
    failed = {"scanned_collection": "a.b", "connector_name": "shop", "status": "SQL_EXCEPTION"}
    assert make.table_failed("a.b").additional_data == failed
    assert make.started().id != make.started().id


@pytest.mark.parametrize("with_schemas", [False, True])
def test_batch_has_the_columns_of_events(with_schemas: bool) -> None:
    options = load_options({**WITH_SINK, "schemas.enable": str(with_schemas)})
    make = InitialSnapshotNotifications("shop")
    made = [make.started(), make.completed()]
    batch = notification_batch(made, options, "p1")
    assert batch.schema == EVENT_SCHEMA
    rows = batch.to_pylist()
    assert [row["value"] for row in rows] == [one.value_text(with_schemas) for one in made]
    assert [row["key"] for row in rows] == [one.key_text(with_schemas) for one in made]
    assert {(row["topic"], row["position"], row["op"], row["table"]) for row in rows} == {
        ("notifications", "p1", None, None)
    }
    assert notification_batch([], options).equals(pa.RecordBatch.from_pylist([], schema=EVENT_SCHEMA))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(channels, "log", logger)
    return logger


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = []

    def fail(fields: dict[str, Any]) -> None:
        raise ValueError(fields["type"])

    module = ModuleType("listeners")
    vars(module).update(take=got.append, fail=fail, text="text")
    monkeypatch.setitem(sys.modules, "listeners", module)
    return got


def test_channels_get_every_notification(log: CapturingLogger, received: list[dict[str, Any]]) -> None:
    names = "log,sink,jmx,listeners:fail,listeners:take"
    made = InitialSnapshotNotifications("shop").started()
    for channel in channels.notification_channels(load_options({**WITH_SINK, "notification.enabled.channels": names})):
        channel.notify(made)
    assert received == [made.to_json()]
    assert [(call.method_name, call.args[0]) for call in log.calls] == [
        ("info", "notification_channel_without_effect"),
        ("info", "notification"),
        ("warning", "notification_function_failed"),
    ]
    assert log.calls[1].kwargs == made.to_json()
    assert log.calls[2].kwargs["error"] == "ValueError: STARTED"


def test_a_function_that_is_missing_is_named(
    received: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_listener.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("no_such_module:take", "listeners:nothing", "listeners:text", "broken_listener:take"):
        options = load_options({**WITH_SINK, "notification.enabled.channels": name})
        with pytest.raises(ConfigError, match=name):
            channels.notification_channels(options)
