"""Decodes log segments into events, and finds the signals in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import DELETE, INSERT, OPERATIONS, UPDATE, Rows
from floodmark.changes.isolation import Isolation
from floodmark.changes.layout_groups import LayoutGroups
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.codecs.arrays import text_of
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.events.columns import EventGroup
from floodmark.signals.records import MOST_CHARACTERS
from floodmark.signals.table import FIELDS
from tests.toy.notebook.decode.records import LogRecords, NotebookChanges, row_columns
from tests.toy.notebook.decode.source_block import block
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.position import position

SLICE_CHANGES = 16_384
"""Changes that are decoded together."""


class NotebookDecoder:
    """A ``LogDecoder``."""

    def __init__(self, options: NotebookOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._events = ChangeEvents(options, by_part=False)

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Yield the events of the changes in ``(after, upto]``.

        Raises:
            DecodeError: a record is not what a notebook writes.
        """
        records = LogRecords(request.data, request.after, request.upto)
        layouts = LayoutGroups(records.relations, self._options)
        isolation = Isolation(records.relations, request.excluded, request.only, problems)
        versions = [isolation.version(self._make_version, layouts, number) for number in range(len(layouts.first))]
        for first in range(records.begin, records.end, SLICE_CHANGES):
            changes = records.changes(first, min(first + SLICE_CHANGES, records.end))
            batch = self._make_version.assemble(list(self._groups(changes, layouts, versions, isolation)))
            if batch is not None:
                yield batch

    def _groups(
        self,
        changes: NotebookChanges,
        layouts: LayoutGroups,
        versions: Sequence[TableVersion | None],
        isolation: Isolation,
    ) -> Iterator[EventGroup]:
        makers = {INSERT: self._inserts, UPDATE: self._updates, DELETE: self._deletes}
        layout = layouts.shape[changes.relation]
        for number, version in enumerate(versions):
            for kind, make in makers.items():
                index = np.flatnonzero((layout == number) & (changes.kind == kind))
                if version is None or not len(index) or self._options.skips(OPERATIONS[kind]):
                    continue
                part = changes.select(index)
                names = layouts.names(part.relation)
                micros = text_of(part.micros)
                pieces = block(
                    self._options.topic_prefix,
                    "false",
                    text_of(part.micros // 1000),
                    micros,
                    names.source[0],
                    text_of(part.transaction),
                )
                yield from isolation.run(make, Rows(part, version, names, pieces, {}))

    def _inserts(self, rows: Rows[NotebookChanges]) -> Iterator[EventGroup]:
        return self._events.inserts(rows, _columns(rows, rows.changes.after))

    def _updates(self, rows: Rows[NotebookChanges]) -> Iterator[EventGroup]:
        old, new = _columns(rows, rows.changes.before), _columns(rows, rows.changes.after)
        return self._events.updates(rows, old, new, complete=True)

    def _deletes(self, rows: Rows[NotebookChanges]) -> Iterator[EventGroup]:
        return self._events.deletes(rows, _columns(rows, rows.changes.before), complete=True)


def _columns(rows: Rows[NotebookChanges], images: pa.ListArray) -> list[RawColumn]:
    return row_columns(images, len(rows.version.names))


def signals_in(data: SegmentData, after: str, upto: str, options: NotebookOptions) -> list[tuple[str, dict[str, str]]]:
    """Return the rows that a segment inserts into signal tables, each with its position.

    Args:
        data: the segment.
        after: position just before the segment.
        upto: position of the segment's end.
        options: the source's options, which name the signal tables.
    """
    records = LogRecords(data, after, upto)
    wanted = [
        options.takes_signals(one.schema, one.table) and len(one.columns) >= len(FIELDS) for one in records.relations
    ]
    if not any(wanted):
        return []
    changes = records.changes(records.begin, records.end)
    chosen = changes.select(np.flatnonzero(np.array(wanted)[changes.relation] & (changes.kind == INSERT)))
    return [
        (position(transaction, number), {**_signal(row), "millis": str(micros // 1000)})
        for transaction, number, micros, row in zip(
            chosen.transaction.tolist(),
            chosen.number.tolist(),
            chosen.micros.tolist(),
            chosen.after.to_pylist(),
            strict=True,
        )
    ]


def _signal(row: Sequence[str | None]) -> dict[str, str]:
    return {name: (value or "")[: MOST_CHARACTERS + 1] for name, value in zip(FIELDS, row, strict=False)}
