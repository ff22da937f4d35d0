"""Locates the row events of a segment, their bitmaps and their rows, before the rows are split.

Source: MySQL, ``libs/mysql/binlog/event/rows_event.h``, ``Rows_event``; MariaDB's documentation, "Rows_event_v1/v2".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.numbering import number_bytes, number_rows
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.compressed import decompressed
from floodmark.connectors.mysql.binlog.little_endian import numbers
from floodmark.connectors.mysql.decode.events import Events
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

_FIXED = 8
"""Bytes of table id and flags."""
_EXTRA_BYTES = 2
_LENGTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""Bytes of a length-encoded integer after its first byte; a smaller first byte is the value itself."""
_ROWS_QUERY_LENGTH = 1


@dataclass
class RowEvents:
    """Row events in the log's order.

    Attributes:
        buf: shape (bytes,).
        event: index of each one in the segment's events, shape (row events,).
        kind: shape (row events,).
        head: where the bitmaps of the present columns begin, shape (row events,).
        begin: where the rows begin, shape (row events,).
        end: where they end, shape (row events,).
        columns: how many columns the table has, shape (row events,).
        bitmap_id: a number that is equal for events with equal bitmaps, shape (row events,).
    """

    buf: NDArray[np.uint8]
    event: Numbers
    kind: NDArray[np.uint8]
    head: Numbers
    begin: Numbers
    end: Numbers
    columns: Numbers
    bitmap_id: Numbers

    def __len__(self) -> int:
        return len(self.event)

    @property
    def is_partial(self) -> bool:
        """Whether JSON values may be lists of diffs; for events of one kind."""
        return int(self.kind[0]) == kinds.PARTIAL_UPDATE_ROWS

    def select(self, index: Numbers | slice) -> RowEvents:
        """Return some of the events."""
        arrays = ("event", "kind", "head", "begin", "end", "columns", "bitmap_id")
        return replace(self, **{name: getattr(self, name)[index] for name in arrays})

    def slices(self, size: int) -> Iterator[RowEvents]:
        """Yield the events in pieces of about ``size`` bytes of rows."""
        running = np.cumsum(self.end - self.begin)
        low = 0
        while low < len(self):
            done = int(running[low - 1]) if low else 0
            high = max(int(np.searchsorted(running, done + size, "right")), low + 1)
            yield self.select(slice(low, high))
            low = high

    def alike(self, relation: Numbers, shape: Numbers) -> Iterator[Numbers]:
        """Yield the indices of events that can be split together: same layout group, kind and bitmaps."""
        if not len(relation):
            return
        owner = number_rows(shape[relation], self.kind.astype(np.int64), self.bitmap_id, self.columns).owner
        order = np.argsort(owner, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)

    def bitmaps(self) -> list[tuple[bytes, bool]]:
        """Return the bitmaps of events with the same kind and bitmaps, each with whether it is the last one."""
        size = (int(self.columns[0]) + 7) // 8
        count = 2 if int(self.kind[0]) in kinds.UPDATES else 1
        at = int(self.head[0])
        return [(self.buf[at + i * size : at + (i + 1) * size].tobytes(), i == count - 1) for i in range(count)]


def row_events(events: Events, index: Numbers) -> RowEvents:
    """Return the row events among a segment's events; MariaDB's compressed ones are decompressed.

    Args:
        events: the segment's events.
        index: indices of the row events.

    Raises:
        DecodeError: an event is truncated.
    """
    kind = events.kind[index]
    buf, at, end = events.buf, events.at[index], events.end[index]
    try:
        head = at + _FIXED
        extra = ~np.isin(kind, kinds.ROWS_V1)
        if extra.any():
            size = numbers(buf, head[extra], _EXTRA_BYTES)
            if (size < _EXTRA_BYTES).any():
                raise DecodeError("A row event's extra data are shorter than their length.")
            head[extra] += size
        columns, width = _packed_lengths(buf, head)
        head = head + width
        bitmap = (columns + 7) // 8
        images = np.where(np.isin(kind, kinds.UPDATES), 2, 1)
        begin = head + bitmap * images
        if (begin > end).any():
            raise DecodeError("A row event is cut off.")
        bitmap_id = _bitmap_ids(buf, head, begin - head)
    except IndexError:
        raise DecodeError("A row event is cut off.") from None
    packed = np.flatnonzero(np.isin(kind, kinds.COMPRESSED_ROWS))
    if len(packed):
        buf, begin, end = _decompressed(buf, begin, end.copy(), packed)
    return RowEvents(buf, index, kind, head, begin, end, columns, bitmap_id)


def _packed_lengths(buf: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    first = buf[at]
    value, width = first.astype(np.int64), np.ones(len(at), np.int64)
    for mark, size in _LENGTHS.items():
        longer = np.flatnonzero(first == mark)
        if len(longer):
            value[longer] = numbers(buf, at[longer] + 1, size)
            width[longer] += size
    if (value < 0).any() or (value > len(buf)).any():
        raise DecodeError("A row event has an impossible number of columns.")
    return value, width


def _bitmap_ids(buf: NDArray[np.uint8], at: Numbers, size: Numbers) -> Numbers:
    """Number the bitmaps: equal ones get the same number, shape (row events,)."""
    bitmap_id = np.empty(len(at), np.int64)
    first = 0
    for width in np.unique(size).tolist():
        chosen = np.flatnonzero(size == width)
        if width == 0:
            bitmap_id[chosen] = first
            first += 1
            continue
        found = number_bytes(buf[at[chosen][:, None] + np.arange(width)])
        bitmap_id[chosen] = first + found.owner
        first += len(found.first)
    return bitmap_id


def _decompressed(
    buf: NDArray[np.uint8], begin: Numbers, end: Numbers, packed: Numbers
) -> tuple[NDArray[np.uint8], Numbers, Numbers]:
    """Append the decompressed rows of some events to the buffer."""
    buffers, size = [buf], len(buf)
    for i in packed.tolist():
        plain = decompressed(buf[int(begin[i]) : int(end[i])].tobytes())
        buffers.append(np.frombuffer(plain, np.uint8))
        begin[i], end[i] = size, size + len(plain)
        size += len(plain)
    return np.concatenate(buffers), begin, end


def statements(events: Events, before: bytes | None) -> pa.StringArray:
    """Return the statement that each event comes from, null where the log doesn't hold it, shape (events,).

    Args:
        events: a segment's events.
        before: the event with the text of the unfinished statement at the segment's start; None if there is none.
    """
    found = np.flatnonzero(events.of("statements"))
    own = [_statement(events.event(i)) for i in found.tolist()]
    texts = pa.array([None if before is None else _statement(before), *own], pa.string())
    owners = np.concatenate([[0], events.transaction[found]])
    places = np.concatenate([[-1], found])
    last = np.searchsorted(places, np.arange(len(events)), "right") - 1
    # A statement only applies to later events of its own transaction.
    known = owners[last] == events.transaction
    return texts.take(pa.array(last, mask=~known))


def _statement(event: bytes) -> str:
    body = event[kinds.HEADER_BYTES :]
    # MySQL puts the text's length in one byte before it, which is too small for long texts: ignore it.
    text = body[_ROWS_QUERY_LENGTH:] if event[kinds.TYPE] == kinds.ROWS_QUERY else body
    return text.decode("utf-8", "replace")
