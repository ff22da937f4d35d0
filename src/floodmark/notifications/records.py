"""Notifications: what a snapshot reports about itself, as Debezium's records.

A notification is created once, when the micro-batch that it belongs to is planned, and is stored in the
offset, so a batch that is delivered again has the same records.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.events.connect_schema import carrying_schema, field_schema, struct
from floodmark.events.json_text import escape
from floodmark.json_data import Json, JsonObject, damaged_checkpoint, stored_object
from floodmark.packing import pack, unpack

INITIAL = "Initial Snapshot"
INCREMENTAL = "Incremental Snapshot"
NULL = "<null>"
LONG = 10_000
"""Maximum number of characters of notifications that are stored uncompressed."""

ScanStatus = Literal["EMPTY", "NO_PRIMARY_KEY", "SKIPPED", "SQL_EXCEPTION", "SUCCEEDED", "UNKNOWN_SCHEMA"]
"""How the scan of a table ended; of an initial snapshot only SUCCEEDED, SQL_EXCEPTION and SKIPPED."""

_STRING = {"type": "string"}
_PACKAGE = "io.debezium.connector.common"
_ID = field_schema(_STRING, False, "id")
KEY_SCHEMA = struct([_ID], False, f"{_PACKAGE}.NotificationKey", 1)
VALUE_SCHEMA = struct(
    [
        _ID,
        field_schema(_STRING, False, "type"),
        field_schema(_STRING, False, "aggregate_type"),
        field_schema(
            {"type": "map", "keys": field_schema(_STRING, False), "values": field_schema(_STRING, False)},
            True,
            "additional_data",
        ),
        field_schema({"type": "int64"}, False, "timestamp"),
    ],
    False,
    f"{_PACKAGE}.Notification",
    1,
)
# Java's order of these keys in a hash map, which is the order in Debezium's text.
_ORDER = (
    "scanned_collection",
    "current_collection_in_progress",
    "connector_name",
    "maximum_key",
    "total_rows_scanned",
    "data_collections",
    "last_processed_key",
    "status",
)


@dataclass(frozen=True)
class Notification:
    """One notification.

    Attributes:
        id: of an incremental snapshot the id of its signal, otherwise of the notification alone.
        type: what happened, such as ``STARTED``.
        aggregate_type: to what: ``Initial Snapshot`` (blocking snapshots too) or ``Incremental Snapshot``.
        additional_data: details, by name.
        timestamp: when, milliseconds since the epoch.
        asked_by: ids of the signals that asked for the table whose scan has ended; not part of the record.
    """

    id: str
    type: str
    aggregate_type: str
    additional_data: Mapping[str, str]
    timestamp: int
    asked_by: tuple[str, ...] = field(default=(), compare=False)

    @property
    def succeeded(self) -> bool:
        """Whether it tells that all rows of a table have been read."""
        return self.additional_data.get("status") in ("SUCCEEDED", "EMPTY")

    def to_json(self) -> dict[str, Json]:
        """Return the notification as JSON data, with the record's fields."""
        return {
            "id": self.id,
            "type": self.type,
            "aggregate_type": self.aggregate_type,
            "additional_data": dict(self.additional_data),
            "timestamp": self.timestamp,
        }

    @staticmethod
    def from_json(content: Json) -> Notification:
        """Return the notification that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        one = stored_object(content, "A notification")
        return _notification(one, one.text_by_name("additional_data"))

    def key_text(self, with_schema: bool) -> str:
        """Return the record's key as JSON text."""
        return carrying_schema(f'{{"id":{_text(self.id)}}}', KEY_SCHEMA, with_schema)

    def value_text(self, with_schema: bool) -> str:
        """Return the record's value as JSON text."""
        details = ",".join(f"{_text(name)}:{_text(value)}" for name, value in self.additional_data.items())
        text = (
            f'{{"id":{_text(self.id)},"type":{_text(self.type)},"aggregate_type":{_text(self.aggregate_type)},'
            f'"additional_data":{{{details}}},"timestamp":{self.timestamp}}}'
        )
        return carrying_schema(text, VALUE_SCHEMA, with_schema)


def _notification(one: JsonObject, details: Mapping[str, str]) -> Notification:
    return Notification(one.text("id"), one.text("type"), one.text("aggregate_type"), details, one.integer("timestamp"))


def pack_notifications(notifications: Sequence[Notification]) -> list[dict[str, Json]] | str:
    """Return notifications for an offset: as they are, or packed if they are long because they name many tables."""
    if sum(len(text) for one in notifications for text in one.additional_data.values()) <= LONG:
        return [one.to_json() for one in notifications]
    # Most of them name the same tables.
    texts = list(dict.fromkeys(text for one in notifications for text in one.additional_data.values()))
    numbers = {text: number for number, text in enumerate(texts)}
    data = [
        {**one.to_json(), "additional_data": {name: numbers[text] for name, text in one.additional_data.items()}}
        for one in notifications
    ]
    return pack([texts, data])


def unpack_notifications(data: Json) -> tuple[Notification, ...]:
    """Return the notifications that ``pack_notifications`` took.

    Raises:
        CheckpointError: the data is something else.
    """
    if isinstance(data, str):
        return _unpacked(unpack(data))
    if not isinstance(data, list):
        raise damaged_checkpoint("it holds something else in place of notifications")
    return tuple(Notification.from_json(item) for item in data)


def _unpacked(data: Json) -> tuple[Notification, ...]:
    if not isinstance(data, list) or len(data) != 2:
        raise damaged_checkpoint("its compressed data has something else in place of notifications")
    parts = stored_object(dict(zip(("texts", "notifications"), data, strict=True)), "The list of notifications")
    texts = parts.texts("texts")
    found = []
    for one in parts.members("notifications"):
        numbers = one.member("additional_data")
        details = {name: numbers.integer(name) for name in numbers}
        if not all(0 <= number < len(texts) for number in details.values()):
            raise one.wrong("additional_data", "a list of the texts that are there")
        found.append(_notification(one, {name: texts[number] for name, number in details.items()}))
    return tuple(found)


def notification_batch(
    notifications: Sequence[Notification], options: CommonOptions, position: str | None = None
) -> pa.RecordBatch:
    """Return notifications as events of the topic ``notification.sink.topic.name``.

    Args:
        notifications: in their order.
        options: the source's options.
        position: their position in the log.
    """
    with_schema = options.schemas_enable
    rows = len(notifications)
    columns = {
        "topic": pa.repeat(pa.scalar(options.notification_sink_topic_name, pa.string()), rows),
        "key": pa.array([one.key_text(with_schema) for one in notifications], pa.string()),
        "value": pa.array([one.value_text(with_schema) for one in notifications], pa.string()),
        "position": pa.repeat(pa.scalar(position, pa.string()), rows),
    }
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in EVENT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)


class _Maker:
    """Base of both makers of notifications.

    Args:
        connector_name: the option ``topic.prefix``.
        now_ms: returns the time in milliseconds since the epoch.
    """

    def __init__(self, connector_name: str, now_ms: Callable[[], int] | None = None) -> None:
        self._connector_name = connector_name
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)

    def _make(self, name: str, aggregate: str, kind: str, **details: str) -> Notification:
        details["connector_name"] = self._connector_name
        ordered = {key: details[key] for key in _ORDER if key in details}
        return Notification(name, kind, aggregate, ordered, self._now_ms())


class InitialSnapshotNotifications(_Maker):
    """Makes the notifications of initial and blocking snapshots."""

    def started(self) -> Notification:
        """Report that the snapshot begins."""
        return self._new("STARTED")

    def in_progress(self, table: str, tables: Sequence[str]) -> Notification:
        """Report that a table is read next.

        Args:
            table: its name.
            tables: the names of all tables of the snapshot.
        """
        return self._new("IN_PROGRESS", current_collection_in_progress=table, data_collections=_list(tables))

    def table_completed(self, table: str, tables: Sequence[str], rows: int) -> Notification:
        """Report that a table has been read.

        Args:
            table: its name.
            tables: the names of all captured tables; of a blocking snapshot, those that it reads.
            rows: how many rows it had.
        """
        return self._new(
            "TABLE_SCAN_COMPLETED",
            scanned_collection=table,
            total_rows_scanned=str(rows),
            data_collections=_list(tables),
            status="SUCCEEDED",
        )

    def table_failed(self, table: str) -> Notification:
        """Report that a table could not be read."""
        return self._new("TABLE_SCAN_COMPLETED", scanned_collection=table, status="SQL_EXCEPTION")

    def table_skipped(self, table: str) -> Notification:
        """Report that a table was gone before all of its rows were read."""
        return self._new("TABLE_SCAN_COMPLETED", scanned_collection=table, status="SKIPPED")

    def completed(self) -> Notification:
        """Report that all tables have been read."""
        return self._new("COMPLETED")

    def aborted(self) -> Notification:
        """Report that the snapshot ended before all tables were read."""
        return self._new("ABORTED")

    def skipped(self) -> Notification:
        """Report that there is no snapshot, since ``snapshot.mode`` requests none or one was taken before."""
        return self._new("SKIPPED")

    def _new(self, kind: str, **details: str) -> Notification:
        return self._make(str(uuid.uuid4()), INITIAL, kind, **details)


class IncrementalSnapshotNotifications(_Maker):
    """Makes the notifications of incremental snapshots; ``name`` is the id of the newest signal that requested one."""

    def started(self, name: str, tables: Sequence[str]) -> Notification:
        """Report that the snapshot begins; not if tables are added to a running one."""
        return self._new(name, "STARTED", data_collections=_list(tables))

    def paused(self, name: str, tables: Sequence[str]) -> Notification:
        """Report that the snapshot pauses, and which tables are still to be read."""
        return self._new(name, "PAUSED", data_collections=_list(tables))

    def resumed(self, name: str, tables: Sequence[str]) -> Notification:
        """Report that the snapshot goes on, and which tables are still to be read."""
        return self._new(name, "RESUMED", data_collections=_list(tables))

    def aborted(self, name: str, tables: Sequence[str]) -> Notification:
        """Report which tables were removed from the snapshot."""
        return self._new(name, "ABORTED", data_collections=_list(tables))

    def in_progress(
        self,
        name: str,
        tables: Sequence[str],
        table: str,
        maximum_key: Sequence[str | None] | None,
        last_key: Sequence[str | None],
    ) -> Notification:
        """Report that a part of a table has been read.

        Args:
            name: the signal's id.
            tables: the tables that are still to be read, this one first.
            table: the table that is being read.
            maximum_key: the largest key when reading began, as texts; None: the table had no rows.
            last_key: the last key of the part.
        """
        return self._new(
            name,
            "IN_PROGRESS",
            current_collection_in_progress=table,
            maximum_key=f'"{NULL}"' if maximum_key is None else _key(maximum_key),
            data_collections=_list(tables),
            last_processed_key=_key(last_key),
        )

    def table_completed(
        self, name: str, tables: Sequence[str], table: str, rows: int, status: ScanStatus = "SUCCEEDED"
    ) -> Notification:
        """Report that the scan of a table has ended.

        Args:
            name: the signal's id.
            tables: the tables that were still to be read, this one first.
            table: the table whose scan has ended.
            rows: how many rows of it were read.
            status: how it ended.
        """
        return self._new(
            name,
            "TABLE_SCAN_COMPLETED",
            scanned_collection=table,
            total_rows_scanned=str(rows),
            data_collections=_list(tables),
            status=status,
        )

    def completed(self, name: str) -> Notification:
        """Report that nothing is left to be read."""
        return self._new(name, "COMPLETED")

    def _new(self, name: str, kind: str, **details: str) -> Notification:
        return self._make(name, INCREMENTAL, kind, **details)


def _list(tables: Sequence[str]) -> str:
    return _joined(tuple(tables))


# Notifications that name the same tables share one text, which has some hundred kilobytes with thousands of them.
@lru_cache(maxsize=4)
def _joined(tables: tuple[str, ...]) -> str:
    return ",".join(tables)


def _key(values: Sequence[str | None]) -> str:
    return ",".join(NULL if value is None else value for value in values)


def _text(value: str) -> str:
    """Return a JSON string, escaped as Debezium's converter does."""
    return f'"{escape(pa.array([value], pa.string()))[0].as_py()}"'
