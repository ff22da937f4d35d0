"""Makes gap events, which mark where changes are missing from the stream because an option accepts that.

A gap is found when the source's log is opened. It is stored in the offset of the micro-batch that announces it, at the
log position where the changes continue, so a batch that is delivered again has the same event.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from floodmark.capture.gaps import Gap
from floodmark.config.common import CommonOptions
from floodmark.events.connect_schema import carrying_schema, field_schema, struct
from floodmark.events.json_text import dumps

GAP = "gap"
"""The ``op`` of a gap event."""

_STRING = {"type": "string"}
KEY_SCHEMA = struct([field_schema(_STRING, False, "position")], False, "floodmark.GapKey", 1)
VALUE_SCHEMA = struct(
    [field_schema(_STRING, False, name) for name in ("server_name", "after", "upto", "reason", "option")],
    False,
    "floodmark.Gap",
    1,
)


def gap_batch(gaps: Sequence[Gap], options: CommonOptions, schema: pa.Schema) -> pa.RecordBatch:
    """Return gaps as rows of the output.

    The position of each is ``upto`` without a suffix, which sorts before the rows of a snapshot at that position.

    Args:
        gaps: those that the micro-batch announces.
        options: the source's options.
        schema: the columns of events, or those of typed rows, of which only ``op`` and ``position`` are set.
    """
    rows = []
    for gap in gaps:
        row = {"op": GAP, "position": gap.upto}
        if options.format == "events":
            key = f'{{"position":{dumps(gap.upto)}}}'
            fields = {"server_name": options.topic_prefix, **gap.to_json()}
            value = "{" + ",".join(f"{dumps(name)}:{dumps(text)}" for name, text in fields.items()) + "}"
            row |= {
                "topic": options.gap_topic,
                "key": carrying_schema(key, KEY_SCHEMA, options.schemas_enable),
                "value": carrying_schema(value, VALUE_SCHEMA, options.schemas_enable),
            }
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=schema)
