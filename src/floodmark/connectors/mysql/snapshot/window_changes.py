"""Reconciles rows of a table that were read in a window with the window's log.

That is needed only where a view's exact position in the log is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.raw_column import RawColumn, take_columns, with_old_values
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.decode.events import segment_events
from floodmark.connectors.mysql.decode.row_events import RowEvents, row_events
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.decode.tables import SegmentTables
from floodmark.connectors.mysql.schema.logged_statement import LoggedStatement
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.connectors.mysql.values.raw_columns import raw_column, raw_type
from floodmark.connectors.mysql.values.row_images import Pieces, image_of, split_events
from floodmark.errors import SourceStateError
from floodmark.packing import table_number
from floodmark.snapshots.incremental.reconcile import Touches, key_texts, reconcile

_ROW_BITS = 28


@dataclass
class _Part:
    """Changes of one kind and one version of the table.

    Attributes:
        order: the changes' order in the window, shape (changes,).
        values: the rows as they are afterwards, by the columns' names; None if they are gone.
        lacking: whether the log lacks a value of the row, shape (changes,).
    """

    order: NDArray[np.int64]
    keys: pa.StringArray
    made: bool
    values: dict[str, RawColumn] | None
    lacking: NDArray[np.bool_]


def key_strings(values: Sequence[pa.Array]) -> pa.StringArray:
    """Return one text for each key; no two keys have the same.

    Args:
        values: the key's columns, raw.
    """
    texts = []
    for column in values:
        if pa.types.is_binary(column.type):
            texts.append(encode_base64(column))
        else:
            texts.append(column if pa.types.is_string(column.type) else column.cast(pa.string()))
    return key_texts(texts)


class WindowChanges:
    """The changes of one table in a window.

    Args:
        structure: the table as it was read.
        low: position at which the window begins.
        high: position at which it ends.
    """

    def __init__(self, structure: TableStructure, low: str, high: str) -> None:
        self._structure = structure
        self._low = low
        self._high = high
        self._parts: list[_Part] = []
        self._events = 0
        self._emptied = False

    def add(self, data: SegmentData, after: str, upto: str) -> None:
        """Add the changes of a segment that are in the window and in ``(after, upto]``; segments come in order."""
        events = segment_events(data)
        tables = SegmentTables(events)
        number = self._structure.number
        # Events without a relation have the index -1, and so the last element.
        own = np.array([relation.number == number for relation in tables.relations] + [False])
        wanted = events.of("rows") & own[tables.relation]
        inside = events.within(max(after, self._low), min(upto, self._high))
        for statement in events.header.statements:
            tables_emptied = LoggedStatement.from_json(statement.statement).emptied
            emptied = {table_number(table.database, table.name) for table in tables_emptied}
            at = int(np.searchsorted(events.record, statement.record))
            self._emptied |= number in emptied and bool(inside[at])
        wanted &= inside
        found = row_events(events, np.flatnonzero(wanted))
        relation = tables.relation[found.event]
        for chosen in found.alike(relation, np.arange(len(tables.relations))):
            one = int(relation[chosen[0]])
            self._add(found.select(chosen), tables.relations[one], tables.layouts(one))
        self._events += len(events)

    def _add(self, events: RowEvents, structure: TableStructure, layouts: Sequence[Layout]) -> None:
        if structure.key != self._structure.key:
            raise SourceStateError(
                f"The key of the table {structure.schema}.{structure.table} was altered while it was read.",
                "Start the query again: the rows are read once more.",
            )
        kind = int(events.kind[0])
        images = [image_of(layouts, present, events.is_partial and last) for present, last in events.bitmaps()]
        old = None if kind in kinds.WRITES else images[0]
        new = images[-1] if kind in kinds.WRITES or kind in kinds.UPDATES else None
        split = split_events(events.buf, events.begin, events.end, old, new)
        # By event, then by row. The factor leaves a place before each new row for the old one, if its key changed.
        order = ((self._events + events.event[split.event]) << _ROW_BITS | split.number) * 2
        count = len(order)
        before = None if split.before is None else _columns(events.buf, split.before, structure, layouts, count)
        after = None if split.after is None else _columns(events.buf, split.after, structure, layouts, count)
        if before is None or after is None:
            self._append(structure, order, before if after is None else after, after is None, before is None)
            return
        keyed = self._at_key(structure, with_old_values(after, before))
        moved = np.asarray(pc.not_equal(self._keys(structure, before), key_strings(keyed)).fill_null(True))
        for index, made in ((np.flatnonzero(~moved), False), (np.flatnonzero(moved), True)):
            rows = with_old_values(take_columns(after, index), take_columns(before, index))
            self._append(structure, order[index] + 1, rows, False, made)
        gone = np.flatnonzero(moved)
        self._append(structure, order[gone], take_columns(before, gone), True, False)

    def _append(
        self,
        structure: TableStructure,
        order: NDArray[np.int64],
        columns: Sequence[RawColumn] | None,
        gone: bool,
        made: bool,
    ) -> None:
        assert columns is not None
        if not len(order):
            return
        lacking = np.zeros(len(order), bool)
        for column in columns:
            if column.unchanged is not None and not gone:
                lacking |= column.unchanged
        values = {info.name: column for info, column in zip(structure.columns, columns, strict=True)}
        self._parts.append(_Part(order, self._keys(structure, columns), made, None if gone else values, lacking))

    def _keys(self, structure: TableStructure, columns: Sequence[RawColumn]) -> pa.StringArray:
        return key_strings(self._at_key(structure, columns))

    def _at_key(self, structure: TableStructure, columns: Sequence[RawColumn]) -> list[pa.Array]:
        names = [column.name for column in structure.columns]
        return [columns[names.index(name)].values for name in self._structure.key]

    def _touches(self) -> tuple[Touches, NDArray[np.int64]]:
        """Return what the changes do to the table's rows, and for each its part and its index there."""
        if not self._parts:
            none = np.empty(0, bool)
            touches = Touches(pa.array([], pa.string()), none, none, none, none, self._emptied)
            return touches, np.empty((0, 2), np.int64)
        order = np.concatenate([part.order for part in self._parts])
        sort = np.argsort(order, kind="stable")
        sizes = [len(part.order) for part in self._parts]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        within = np.concatenate([np.arange(size) for size in sizes])
        touches = Touches(
            pa.concat_arrays([part.keys for part in self._parts]).take(pa.array(sort)),
            np.array([part.values is not None for part in self._parts])[owner][sort],
            np.array([part.made for part in self._parts])[owner][sort],
            np.concatenate([part.lacking for part in self._parts])[sort],
            # Which of them the view contains isn't known.
            np.zeros(len(sort), bool),
            self._emptied,
        )
        return touches, np.stack([owner, within], axis=1)[sort]

    def still_right(self, columns: Sequence[RawColumn]) -> list[RawColumn]:
        """Return the rows that are to be delivered, as they are at the window's end.

        Args:
            columns: the rows that were read, as raw columns in the structure's order.
        """
        touches, places = self._touches()
        names = [column.name for column in self._structure.columns]
        found = reconcile(key_strings([columns[names.index(name)].values for name in self._structure.key]), touches)
        kept = list(columns)
        if len(found.kept) != len(columns[0].values):
            kept = take_columns(columns, found.kept)
        if not found.completed:
            return kept
        rows = [self._completed(columns, index, places[changes].tolist()) for index, changes in found.completed]
        return [
            RawColumn(pa.concat_arrays([column.values, pa.array([row[info.name] for row in rows], raw_type(info))]))
            for column, info in zip(kept, self._structure.columns, strict=True)
        ]

    def _completed(
        self, columns: Sequence[RawColumn], index: int, changes: Sequence[Sequence[int]]
    ) -> Mapping[str, Any]:
        """Return a row with changes applied; there are few such rows."""
        row = {
            info.name: column.values[index].as_py()
            for info, column in zip(self._structure.columns, columns, strict=True)
        }
        for number, at in changes:
            values = self._parts[number].values
            assert values is not None
            for name, column in values.items():
                if name in row and (column.unchanged is None or not column.unchanged[at]):
                    row[name] = column.values[at].as_py()
        return row


def _columns(
    buf: NDArray[np.uint8],
    pieces: Mapping[int, Pieces],
    structure: TableStructure,
    layouts: Sequence[Layout],
    rows: int,
) -> list[RawColumn]:
    """Return raw columns; columns that the image doesn't hold are marked as unchanged."""
    result = []
    for index, (column, layout) in enumerate(zip(structure.columns, layouts, strict=True)):
        found = pieces.get(index)
        if found is None:
            result.append(RawColumn(pa.nulls(rows, raw_type(column)), np.ones(rows, bool)))
        else:
            result.append(RawColumn(raw_column(buf, found, layout, column)))
    return result
