"""Signals in the log: rows inserted into the signal table."""

from __future__ import annotations

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.log.frames import be_view
from floodmark.connectors.postgres.log.messages import INSERT, PAYLOAD
from floodmark.connectors.postgres.log.records import find_changes
from floodmark.connectors.postgres.log.tuples import last_tuples
from floodmark.connectors.postgres.lsn import position

FIELDS = ("id", "type", "data")


def signals_in(data: SegmentData, after: str, upto: str, tables: set[int]) -> list[tuple[str, dict[str, str]]]:
    """Return the signals of a segment, each with its position.

    Whatever their names, the first three columns are ``id``, ``type`` and ``data``, as in Debezium.

    Args:
        data: the segment.
        after: position just before it.
        upto: position of its end.
        tables: OIDs of the signal tables.
    """
    starts = data.starts.astype(np.int64)
    inserts = starts[data.payload[starts + PAYLOAD] == INSERT]
    if not np.isin(be_view(data.payload, ">u4")[inserts + PAYLOAD + 1], list(tables)).any():
        return []
    changes = find_changes(data, after, upto)
    result = []
    for index in np.flatnonzero(changes.kind == INSERT).tolist():
        relation = changes.relations[int(changes.relation[index])]
        if relation.oid not in tables or len(relation.columns) < len(FIELDS):
            continue
        one = changes.select(slice(index, index + 1))
        columns = last_tuples(one.payload, one.at + 6, len(relation.columns), one.ends)
        values = [column.values[0].as_py() or "" for column in columns[: len(FIELDS)]]
        lsn = int(changes.transactions.lsn[changes.transaction[index]])
        place = position(lsn, int(changes.ordinal[index]))
        result.append((place, dict(zip(FIELDS, values, strict=True))))
    return result
