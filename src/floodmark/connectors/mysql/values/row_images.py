"""Splits the rows of many row events with the same columns into pieces, one vectorised pass per column.

The rows of an event form a chain: where a row ends is only known once it has been walked. So the k-th rows of all
events are walked in one pass (a wave), then the next ones. When only a few events have rows left (such as a large one
among small ones), these are followed row by row, which then costs less than passes over a few rows each. Waves find
where rows begin; the pieces of all rows are then found in one pass.

Source: MySQL, ``libs/mysql/binlog/event/rows_event.h``, ``Rows_event``; ``sql/log_event.cc``,
``print_verbose_one_row``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.mysql.binlog.column_types import JSON
from floodmark.connectors.mysql.binlog.little_endian import numbers
from floodmark.connectors.mysql.values.layouts import Layout
from floodmark.errors import DecodeError

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]

WRITE, UPDATE, DELETE, PARTIAL_UPDATE = "write", "update", "delete", "partial"

FEW_EVENTS = 24
"""Up to this many events are followed row by row: a wave over them would cost more."""

_PARTIAL_JSON = 1


class Pieces(NamedTuple):
    """Locations of the values of one column.

    Attributes:
        starts: shape (rows,), ascending.
        lengths: shape (rows,); 0 where there is no value.
        valid: shape (rows,), false where the value is NULL; None if nowhere.
        partial: shape (rows,), true where the value is a list of JSON diffs; None if nowhere.
    """

    starts: Positions
    lengths: Positions
    valid: Mask | None
    partial: Mask | None = None


@dataclass(frozen=True)
class Image:
    """The columns of a row image.

    Attributes:
        layouts: layouts of the columns that the image holds.
        columns: their indices in the table.
        json: for each of them, its number among the table's JSON columns; -1 for other columns.
        json_columns: how many JSON columns the table has if values may be partial, else -1.
    """

    layouts: tuple[Layout, ...]
    columns: tuple[int, ...]
    json: tuple[int, ...]
    json_columns: int = -1

    @property
    def null_bytes(self) -> int:
        """Size of the bitmap of NULL values, in bytes."""
        return (len(self.layouts) + 7) // 8


@dataclass
class SplitRows:
    """Rows of events that hold the same columns.

    Attributes:
        event: each row's event, ascending, shape (rows,).
        number: each row's number in the event, from 1, shape (rows,).
        before: the pieces of the old rows, by the column's index; None if the events have none.
        after: the pieces of the new rows, likewise.
    """

    event: Positions
    number: Positions
    before: dict[int, Pieces] | None
    after: dict[int, Pieces] | None


def image_of(layouts: Sequence[Layout], present: bytes, partial: bool = False) -> Image:
    """Return the image that a bitmap of the present columns describes.

    Args:
        layouts: layouts of all columns of the table.
        present: the event's bitmap, lowest bit first.
        partial: whether JSON values may be lists of diffs.

    Raises:
        DecodeError: the bitmap is too short.
    """
    if len(present) * 8 < len(layouts):
        raise DecodeError("A row event's bitmap of columns is too short.")
    columns = tuple(i for i in range(len(layouts)) if present[i // 8] >> i % 8 & 1)
    documents = [i for i, layout in enumerate(layouts) if layout.code == JSON]
    json = tuple(documents.index(i) if layouts[i].code == JSON else -1 for i in columns)
    return Image(tuple(layouts[i] for i in columns), columns, json, len(documents) if partial else -1)


def split_events(
    buf: Bytes, begins: Positions, ends: Positions, before: Image | None, after: Image | None
) -> SplitRows:
    """Split the rows of events that hold the same columns.

    Args:
        buf: holds the events, shape (bytes,).
        begins: where each event's rows begin, ascending, shape (events,).
        ends: where they end, shape (events,).
        before: the image of old rows; None if there is none.
        after: the image of new rows; None if there is none.

    Raises:
        DecodeError: rows go past the end of their event, or an event holds none.
    """
    walker = _Walker(buf, [image for image in (before, after) if image is not None])
    try:
        at, event, number, walks = _rows(walker, begins, ends)
        if walks is None:
            _, walks = walker.walk(at)
    except (IndexError, OverflowError):
        raise DecodeError("A row event is cut off.") from None
    pieces = [
        dict(zip(walk_image.columns, found, strict=True))
        for walk_image, found in zip(walker.images, walks, strict=True)
    ]
    return SplitRows(
        event,
        number,
        pieces[0] if before is not None else None,
        pieces[-1] if after is not None else None,
    )


def _rows(
    walker: _Walker, begins: Positions, ends: Positions
) -> tuple[Positions, Positions, Positions, list[list[Pieces]] | None]:
    """Return where rows begin, their events and numbers, and their pieces if these were found already."""
    if walker.empty:
        # Minimal images of rows that have only defaults.
        if (begins != ends).any():
            raise DecodeError("A row event holds values of no columns.")
        return begins, np.arange(len(begins)), np.ones(len(begins), np.int64), None
    if (begins >= ends).any():
        raise DecodeError("A row event holds no rows.")
    if len(begins) > FEW_EVENTS:
        stops, walks = walker.walk(begins)
        _check_end(stops, ends)
        if (stops == ends).all():
            return begins, np.arange(len(begins)), np.ones(len(begins), np.int64), walks
        starts, owners, ordinals = _waves(walker, begins, stops, ends)
    else:
        starts, owners, ordinals = _followed(walker, np.arange(len(begins)), begins, ends, 1)
    # Later rows and later events have higher offsets, so sorting by start restores the log's order.
    order = np.argsort(starts, kind="stable")
    return starts[order], owners[order], ordinals[order], None


def _waves(
    walker: _Walker, begins: Positions, stops: Positions, ends: Positions
) -> tuple[Positions, Positions, Positions]:
    """Return where the rows begin, their events and numbers, unordered; the events' first rows end at ``stops``."""
    live = np.arange(len(begins))
    starts, owners, ordinals = [begins], [live], [np.ones(len(begins), np.int64)]
    wave = 1
    while True:
        going = stops < ends[live]
        live, at = live[going], stops[going]
        wave += 1
        if len(live) <= FEW_EVENTS:
            break
        starts.append(at)
        owners.append(live)
        ordinals.append(np.full(len(live), wave))
        stops = walker.skip(at)
        _check_end(stops, ends[live])
    rest = _followed(walker, live, at, ends[live], wave)
    return (
        np.concatenate([*starts, rest[0]]),
        np.concatenate([*owners, rest[1]]),
        np.concatenate([*ordinals, rest[2]]),
    )


def _followed(
    walker: _Walker, events: Positions, at: Positions, ends: Positions, number: int
) -> tuple[Positions, Positions, Positions]:
    """Return where the rows of a few events begin, their events and numbers, found row by row."""
    found = [walker.follow(start, end) for start, end in zip(at.tolist(), ends.tolist(), strict=True)]
    counts = [len(rows) for rows in found]
    starts = np.array([start for rows in found for start in rows], np.int64)
    firsts = np.repeat(np.cumsum([0, *counts[:-1]]), counts) if counts else np.zeros(0, np.int64)
    return starts, np.repeat(events, counts), np.arange(len(starts)) - firsts + number


class _Walker:
    """Walks rows that consist of the same images."""

    def __init__(self, buf: Bytes, images: list[Image]) -> None:
        self.images = images
        self._buf = buf
        self._bytes = memoryview(buf.data)
        self._plans: list[dict[bytes, tuple[tuple[tuple[int, int], ...], int]]] = [{} for _ in images]

    @property
    def empty(self) -> bool:
        """Whether rows have no bytes."""
        return not any(image.layouts or image.json_columns >= 0 for image in self.images)

    def walk(self, at: Positions) -> tuple[Positions, list[list[Pieces]]]:
        """Return where rows end, and the pieces of each image's columns."""
        found: list[list[Pieces]] = []
        for image in self.images:
            pieces: list[Pieces] = []
            at = self._image(image, at, pieces)
            found.append(pieces)
        return at, found

    def skip(self, at: Positions) -> Positions:
        """Return where rows end."""
        for image in self.images:
            at = self._image(image, at, None)
        return at

    def follow(self, at: int, end: int) -> list[int]:
        """Return where the rows between two offsets begin.

        Raises:
            DecodeError: the last row doesn't end at ``end``.
        """
        starts: list[int] = []
        data = self._bytes
        images = list(zip(self.images, self._plans, strict=True))
        while at < end:
            starts.append(at)
            for image, plans in images:
                if image.json_columns >= 0:
                    at += 1 + ((image.json_columns + 7) // 8 if _is_partial(data[at]) else 0)
                bitmap = data[at : at + image.null_bytes].tobytes()
                plan = plans.get(bitmap)
                if plan is None:
                    plan = plans[bitmap] = _plan(image, bitmap)
                steps, last = plan
                for skip, length_bytes in steps:
                    at += skip
                    if length_bytes == 1:
                        at += 1 + data[at]
                    else:
                        at += length_bytes + int.from_bytes(data[at : at + length_bytes], "little")
                at += last
        if at != end:
            raise DecodeError("A row goes past the end of its event.")
        return starts

    def _image(self, image: Image, at: Positions, found: list[Pieces] | None) -> Positions:
        partial: Positions | None = None
        if image.json_columns >= 0:
            at, partial = self._options(image, at)
        nulls = self._nulls(image, at)
        at = at + image.null_bytes
        # Sizes of fixed-size columns without NULLs are summed up in one number, and added to ``at`` only when needed.
        fixed = 0
        for index, layout in enumerate(image.layouts):
            null = nulls.get(index)
            start = at
            if layout.size >= 0:
                if found is not None:
                    start = at + fixed
                    lengths = np.full(len(at), layout.size, np.int64)
                if null is None:
                    fixed += layout.size
                else:
                    lengths = np.where(null, 0, layout.size)
                    at = at + lengths
            else:
                if fixed:
                    at = at + fixed
                    fixed = 0
                if null is None:
                    lengths = numbers(self._buf, at, layout.length_bytes)
                    start = at + layout.length_bytes
                else:
                    lengths = np.zeros(len(at), np.int64)
                    lengths[~null] = numbers(self._buf, at[~null], layout.length_bytes)
                    start = at + np.where(null, 0, layout.length_bytes)
                at = start + lengths
            if found is not None:
                diffs = None
                if partial is not None and image.json[index] >= 0:
                    flags = (partial >> image.json[index] & 1).astype(bool)
                    diffs = flags if flags.any() else None
                found.append(Pieces(start, lengths, None if null is None else ~null, diffs))
        return at + fixed if fixed else at

    def _options(self, image: Image, at: Positions) -> tuple[Positions, Positions | None]:
        """Return where rows continue after the options, and which JSON columns are partial, as bits."""
        options = self._buf[at]
        if (options > _PARTIAL_JSON).any():
            raise DecodeError(f"A row has the unknown option {int(options.max())}.")
        flagged = options == _PARTIAL_JSON
        size = (image.json_columns + 7) // 8
        if not flagged.any():
            return at + 1, None
        # The bits of more than 56 JSON columns may not fit into a signed 64-bit integer: use Python's.
        bits = np.zeros(len(at), object if size > 7 else np.int64)
        for place in range(size):
            bits[flagged] |= self._buf[at[flagged] + 1 + place].astype(bits.dtype) << 8 * place
        return at + 1 + np.where(flagged, size, 0), bits

    def _nulls(self, image: Image, at: Positions) -> dict[int, Mask]:
        """Return where values are NULL, by column, for the columns that have NULLs."""
        nulls: dict[int, Mask] = {}
        for place in range(image.null_bytes):
            bits = self._buf[at + place]
            if not bits.any():
                continue
            some = int(np.bitwise_or.reduce(bits))
            for bit in range(min(8, len(image.layouts) - 8 * place)):
                if some >> bit & 1:
                    nulls[8 * place + bit] = (bits >> np.uint8(bit) & 1).astype(bool)
        return nulls


def _is_partial(options: int) -> bool:
    if options > _PARTIAL_JSON:
        raise DecodeError(f"A row has the unknown option {options}.")
    return options == _PARTIAL_JSON


def _plan(image: Image, bitmap: bytes) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return how to walk an image with these NULLs: bytes before each length and its size, and the bytes at the end."""
    steps = []
    skip = len(bitmap)
    for index, layout in enumerate(image.layouts):
        if bitmap[index // 8] >> index % 8 & 1:
            continue
        if layout.size >= 0:
            skip += layout.size
        else:
            steps.append((skip, layout.length_bytes))
            skip = 0
    return tuple(steps), skip


def _check_end(stops: Positions, ends: Positions) -> None:
    if (stops > ends).any():
        raise DecodeError("A row goes past the end of its event.")
