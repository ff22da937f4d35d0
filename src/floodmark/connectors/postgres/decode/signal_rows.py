"""Reads signals from the log: rows inserted into the signal tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.decode.records import find_changes
from floodmark.connectors.postgres.decode.tuples import last_tuples
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.wire.frames import be_view
from floodmark.connectors.postgres.wire.messages import CHANGE_OID, CHANGE_TUPLE, INSERT, PAYLOAD
from floodmark.signals.records import MOST_CHARACTERS

FIELDS = ("id", "type", "data")


def signals_in(data: SegmentData, after: str, upto: str, tables: set[int]) -> list[tuple[str, dict[str, str]]]:
    """Return the signals of a segment, each with its position.

    Whatever their names, the first three columns are ``id``, ``type`` and ``data``, as in Debezium.

    Args:
        data: the segment.
        after: position just before the segment.
        upto: position of the segment's end.
        tables: OIDs of the signal tables.
    """
    starts = data.starts.astype(np.int64)
    inserts = starts[data.payload[starts + PAYLOAD] == INSERT]
    if not np.isin(be_view(data.payload, ">u4")[inserts + PAYLOAD + CHANGE_OID], list(tables)).any():
        return []
    changes = find_changes(data, after, upto)
    result = []
    for index in np.flatnonzero(changes.kind == INSERT).tolist():
        relation = changes.relations[int(changes.relation[index])]
        if relation.oid not in tables or len(relation.columns) < len(FIELDS):
            continue
        one = changes.select(slice(index, index + 1))
        columns = last_tuples(one.payload, one.at + CHANGE_TUPLE, len(relation.columns), one.ends)
        values = [_text(column.values[0])[: MOST_CHARACTERS + 1] for column in columns[: len(FIELDS)]]
        lsn = int(changes.transactions.lsn[changes.transaction[index]])
        place = position(lsn, int(changes.ordinal[index]))
        millis = int(changes.transactions.commit_us[changes.transaction[index]]) // 1000
        result.append((place, {**dict(zip(FIELDS, values, strict=True)), "millis": str(millis)}))
    return result


def _text(value: pa.Scalar) -> str:
    """Return a text; in a database whose encoding is SQL_ASCII it may not be UTF-8, which must not stop capture."""
    if not value.is_valid:
        return ""
    return bytes(value.as_buffer()).decode(errors="replace")
