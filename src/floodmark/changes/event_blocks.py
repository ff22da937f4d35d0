"""Events in blocks: a row of the stream holds many events, so that Spark doesn't convert each (``event.blocks``).

Each block has events of keys that no other part of the same micro-batch has; if one task reads all of it, in the log's
order, there is one part. A sink that takes the blocks of a part in the order of their positions has the events of each
key in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.arrow_tables import packed, unpacked
from floodmark.events.columns import PARTITION

BLOCK_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("count", pa.int64()),
        ("first", pa.string()),
        ("last", pa.string()),
        ("events", pa.binary()),
    ]
)
_KEPT = ("topic", "key", "value", "headers", "position", PARTITION)
"""The columns of events that are in blocks, if there are such."""
IN_SERIES = -1
"""The part of all blocks where one task reads a micro-batch in the log's order."""
_HASHED = 256
"""How many bytes of a key decide on its part, counted from its end: a key's schema comes before its values."""
_WORD = 8
_WEIGHTS: NDArray[np.uint64] = np.random.default_rng(1).integers(0, 1 << 63, _HASHED // _WORD, np.uint64) * 2 + 1
_MIX = np.uint64(0x9E3779B97F4A7C15)


def kept_columns(schema: pa.Schema) -> pa.Schema:
    """Return those of the columns of events that are in blocks."""
    return pa.schema([schema.field(name) for name in _KEPT if name in schema.names])


def blocks_of(events: pa.RecordBatch, parts: int | None) -> pa.RecordBatch:
    """Return events as blocks, those of a key in the same part of any batch.

    Args:
        events: with the columns of events, or those of them that are kept.
        parts: how many parts there are; a row of the result is a part's. None: the task reads all of the micro-batch,
            in the log's order.
    """
    if not events.num_rows:
        return pa.RecordBatch.from_pylist([], schema=BLOCK_SCHEMA)
    rows = pa.Table.from_batches([_in_order(events.select(kept_columns(events.schema).names))])
    numbers, pieces = [IN_SERIES if parts is None else 0], [rows]
    if parts is not None and parts > 1:
        owner = part_of(rows, parts)
        counts = np.bincount(owner, minlength=parts)
        numbers = np.flatnonzero(counts).tolist()
        rows = rows.take(pa.array(np.argsort(owner, kind="stable")))
        ends = np.cumsum(counts)
        pieces = [rows.slice(ends[number] - counts[number], counts[number]) for number in numbers]
    found = [
        {
            "part": number,
            "count": piece.num_rows,
            "first": piece["position"][0].as_py(),
            "last": piece["position"][-1].as_py(),
            "events": packed(piece),
        }
        for number, piece in zip(numbers, pieces, strict=True)
    ]
    return pa.RecordBatch.from_pylist(found, schema=BLOCK_SCHEMA)


def part_of(events: pa.Table, parts: int) -> NDArray[np.uint16]:
    """Return the part that each event belongs to, shape (events,): that of its key, or of its topic if it has none."""
    owner = pc.coalesce(events["key"], events["topic"]).combine_chunks().cast(pa.large_binary())
    _, offsets, data = owner.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(owner) + 1, owner.offset * 8)
    begin, end = int(bounds[0]), int(bounds[-1])
    # A word may begin before the first key.
    content = np.zeros(_WORD + end - begin, np.uint8)
    if data is not None:
        content[_WORD:] = np.frombuffer(data, np.uint8)[begin:end]
    words = np.ndarray(len(content) - _WORD + 1, np.dtype("<u8"), content, strides=(1,))
    ends, lengths = bounds[1:] - begin, np.minimum(np.diff(bounds), _HASHED)
    whole = int(lengths.min()) // _WORD
    sums = np.zeros(len(owner), np.uint64)
    for number in range(-(-int(lengths.max()) // _WORD)):
        if number < whole:
            word = words[ends - _WORD * number]
        else:
            missing = np.clip(_WORD * (number + 1) - lengths, 0, _WORD).astype(np.uint64)
            # Shifted by all of its bits, a word is 0.
            word = words[np.maximum(ends - _WORD * number, 0)] >> (missing * np.uint64(8))
        weighed = word * _WEIGHTS[number]
        sums += weighed ^ (weighed >> np.uint64(32))
    found: NDArray[np.uint16] = (((sums * _MIX) >> np.uint64(33)) % np.uint64(parts)).astype(np.uint16)
    return found


def in_order(blocks: Iterable[tuple[str, str, pa.Buffer]]) -> Iterator[pa.Table]:
    """Yield the events of a part in the order of their positions.

    Args:
        blocks: the part's, in the order of their first positions: first and last position, and the events.
    """
    waiting: list[pa.Table] = []
    upto = ""
    for first, last, events in blocks:
        # Rows of a snapshot have the position of its read point, all of them.
        if waiting and first >= upto:
            yield _merged(waiting)
            waiting, upto = [], ""
        waiting.append(unpacked(events))
        upto = max(upto, last)
    if waiting:
        yield _merged(waiting)


def _merged(blocks: list[pa.Table]) -> pa.Table:
    if len(blocks) == 1:
        return blocks[0]
    events = pa.concat_tables(blocks)
    return events.take(pc.sort_indices(events["position"]))


def _in_order(events: pa.RecordBatch) -> pa.RecordBatch:
    positions = events["position"]
    if pc.all(pc.less_equal(positions[:-1], positions[1:]), min_count=0).as_py():
        return events
    return events.take(pc.sort_indices(positions))
