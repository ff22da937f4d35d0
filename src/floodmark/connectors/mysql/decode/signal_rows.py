"""Finds signals: rows that were inserted into the signal table."""

from __future__ import annotations

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.decode.events import segment_events
from floodmark.connectors.mysql.decode.row_columns import image_columns
from floodmark.connectors.mysql.decode.row_events import row_events
from floodmark.connectors.mysql.decode.tables import SegmentTables
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position, within_payload
from floodmark.connectors.mysql.values.row_images import image_of, split_events
from floodmark.signals.records import MOST_CHARACTERS

FIELDS = ("id", "type", "data")


class SignalRows:
    """Finds the signals in segments.

    Args:
        options: the source's options, which name the signal tables.
    """

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options

    def is_signal_table(self, database: str, table: str) -> bool:
        """Return whether the rows of a table are signals."""
        return self._options.takes_signals(database, table)

    def signals(self, data: SegmentData, after: str, upto: str) -> list[tuple[str, dict[str, str]]]:
        """Return the rows in ``(after, upto]`` with their positions; columns are taken by their order, as in Debezium.

        Args:
            data: a segment.
            after: position to begin after.
            upto: position to end with.
        """
        events = segment_events(data)
        tables = SegmentTables(events)
        wanted = [
            self.is_signal_table(one.schema, one.table) and len(one.columns) >= len(FIELDS) for one in tables.relations
        ]
        chosen = events.of("rows") & np.isin(events.kind, kinds.WRITES) & events.within(after, upto)
        chosen &= np.append(np.array(wanted, bool), False)[tables.relation]
        found = row_events(events, np.flatnonzero(chosen))
        result: list[tuple[str, dict[str, str]]] = []
        for index in range(len(found)):
            one = found.select(slice(index, index + 1))
            event = int(one.event[0])
            relation = int(tables.relation[event])
            layouts = tables.layouts(relation)
            split = split_events(one.buf, one.begin, one.end, None, image_of(layouts, one.bitmaps()[0][0]))
            assert split.after is not None
            columns = tables.relations[relation].columns
            # MariaDB logs no commit time, only the seconds in the event's header.
            micros = int(events.transactions.commit_us[events.transaction[event]])
            millis = micros // 1000 if micros > 0 else int(events.timestamp[event]) * 1000
            rows = image_columns(one.buf, split.after, columns, layouts, len(split.number), None)
            texts = [column.values.to_pylist() for column in rows[: len(FIELDS)]]
            for number, values in zip(split.number.tolist(), zip(*texts, strict=True), strict=True):
                offset, inner = within_payload(events.offset[[event]], events.inner[[event]] + number)
                place = Position(
                    events.epoch,
                    int(events.file[event]),
                    int(events.transactions.start[events.transaction[event]]),
                    int(offset[0]),
                    int(inner[0]),
                )
                named = {
                    name: str(value or "")[: MOST_CHARACTERS + 1] for name, value in zip(FIELDS, values, strict=True)
                }
                result.append((str(place), {**named, "millis": str(millis)}))
        return result
