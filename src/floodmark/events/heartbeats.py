"""Makes heartbeats: events that show that the stream is alive.

A heartbeat is added when its micro-batch is planned, and its time is stored in the offset, so a batch that is delivered
again has the same heartbeat.
"""

from __future__ import annotations

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.events.columns import EVENT_SCHEMA
from floodmark.events.connect_schema import carrying_schema, field_schema, struct
from floodmark.events.json_text import dumps

_PACKAGE = "io.debezium.connector.common"
KEY_SCHEMA = struct([field_schema({"type": "string"}, False, "serverName")], False, f"{_PACKAGE}.ServerNameKey", 1)
VALUE_SCHEMA = struct([field_schema({"type": "int64"}, False, "ts_ms")], False, f"{_PACKAGE}.Heartbeat", 1)


def heartbeat_batch(time_ms: int, options: CommonOptions, position: str) -> pa.RecordBatch:
    """Return a heartbeat as an event.

    Args:
        time_ms: its time, milliseconds since the epoch.
        options: the source's options.
        position: its position in the log.
    """
    key = f'{{"serverName":{dumps(options.topic_prefix)}}}'
    value = f'{{"ts_ms":{time_ms}}}'
    row = {
        "topic": options.heartbeat_topic,
        "key": carrying_schema(key, KEY_SCHEMA, options.schemas_enable),
        "value": carrying_schema(value, VALUE_SCHEMA, options.schemas_enable),
        "position": position,
    }
    return pa.RecordBatch.from_pylist([row], schema=EVENT_SCHEMA)
