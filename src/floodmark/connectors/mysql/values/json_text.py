"""Converts MySQL's binary JSON to text, exactly as the server prints it, many documents at once.

Documents are processed level by level: each pass reads all values of one depth in all documents. Every value becomes
tokens (a prefix, and its text or brackets); the numbers of tokens determine where in the output each one goes; a
single take from the pool of tokens then makes the text of all documents.

Source: MySQL, ``sql-common/json_binary.h`` (the format), ``json_dom.cc`` (the text).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import mapped, offsets_of, slices
from floodmark.connectors.mysql.values.column_bytes import int_text, numbers_at, text_array
from floodmark.connectors.mysql.values.json_scalars import double_texts, opaque_text
from floodmark.connectors.mysql.values.row_images import Bytes, Mask, Pieces, Positions
from floodmark.errors import DecodeError
from floodmark.events.json_text import escape, value_bytes

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL = range(5)
INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(5, 13)
OPAQUE = 15

MOST_LEVELS = 101
"""Arrays and objects may be 100 deep."""

_INTEGERS = {INT16: "<i2", UINT16: "<u2", INT32: "<i4", UINT32: "<u4", INT64: "<i8", UINT64: "<u8"}
_CONSTANTS = ("", ", ", "{", "}", "[", "]", "null", "true", "false")
_NOTHING, _COMMA, _OPEN, _CLOSE, _NULL = 0, 1, 2, 3, 6
_LENGTH_BYTES = 5
_SHORT_ESCAPES = frozenset(b"\b\t\n\f\r")


@dataclass
class _Level:
    """The values of one depth.

    Attributes:
        kind: the values' types, shape (values,), as all arrays.
        at: where they are in the buffer.
        limit: where their containers end.
        parent: index of each one's container in the level above; in the first level, of its document.
        prefix: the token before each one, to be filled in.
        body: its token, or that of its opening bracket.
        size: how many tokens it takes, contents included.
    """

    kind: NDArray[np.uint8]
    at: Positions
    limit: Positions
    parent: Positions
    prefix: Positions
    body: Positions
    size: Positions

    @classmethod
    def of(cls, kind: NDArray[np.uint8], at: Positions, limit: Positions, parent: Positions) -> _Level:
        """Return a level whose tokens are not filled in yet."""
        empty = np.zeros(len(kind), np.int64)
        return cls(kind, at, limit, parent, empty, empty.copy(), empty.copy())


def json_texts(buf: Bytes, pieces: Pieces) -> pa.StringArray:
    """Return JSON documents as text; one of no bytes is ``null``, as on the server.

    Raises:
        DecodeError: a document is malformed.
    """
    try:
        return _Documents(buf, pieces).text()
    except (IndexError, OverflowError):
        raise DecodeError("A JSON value is cut off.") from None


class _Documents:
    def __init__(self, buf: Bytes, pieces: Pieces) -> None:
        self._buf = buf
        self._pieces = pieces
        self._pool: list[pa.StringArray] = [pa.array(_CONSTANTS)]
        self._tokens = len(_CONSTANTS)

    def text(self) -> pa.StringArray:
        """Return the documents' text."""
        starts, lengths, valid = self._pieces[:3]
        present = np.ones(len(starts), bool) if valid is None else valid
        filled = np.flatnonzero(present & (lengths > 0))
        first = _Level.of(self._buf[starts[filled]], starts[filled] + 1, (starts + lengths)[filled], filled)
        levels = [first]
        room = int(lengths[filled].sum())
        while True:
            children = self._children(levels[-1])
            if children is None:
                break
            # Every value takes at least one byte: more values than bytes mean that entries point to the same data.
            room -= len(children.kind)
            if room < 0 or len(levels) == MOST_LEVELS:
                raise DecodeError("A JSON value holds more than its bytes can, or is nested too deep.")
            levels.append(children)
        self._scalars(levels)
        # From the deepest level up, add the sizes of the contents to those of the containers.
        for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
            level.size += np.bincount(below.parent, below.size, len(level.size)).astype(np.int64)
        sizes = np.zeros(len(starts), np.int64)
        sizes[filled] = first.size
        sizes[present & (lengths == 0)] = 1
        return self._joined(levels, sizes, valid)

    def _joined(self, levels: list[_Level], sizes: Positions, valid: Mask | None) -> pa.StringArray:
        """Order all tokens, and concatenate them."""
        ends = np.cumsum(sizes)
        order = np.full(int(ends[-1]) if len(ends) else 0, _NULL, np.int64)
        before = ends - sizes
        for index, level in enumerate(levels):
            if index:
                # A value follows its container's prefix and bracket, and the tokens of the siblings before it.
                upto = np.cumsum(level.size) - level.size
                first = np.diff(level.parent, prepend=-1) != 0
                oldest = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
                place = before[level.parent] + 2 + upto - upto[oldest]
            else:
                place = before[level.parent]
            order[place] = level.prefix
            order[place + 1] = level.body
            # The constant of a closing bracket follows that of the opening one.
            containers = level.kind <= LARGE_ARRAY
            order[(place + level.size - 1)[containers]] = level.body[containers] + 1
            before = place
        pool = pa.concat_arrays(self._pool)
        text = pool.take(pa.array(order))
        bounds = offsets_of(text)
        return text_array(bounds[np.concatenate([[0], ends])] - bounds[0], value_bytes(text), valid)

    def _children(self, level: _Level) -> _Level | None:
        """Return the values in the containers of a level; None if it has no containers."""
        which = np.flatnonzero(level.kind <= LARGE_ARRAY)
        level.size += 2
        if not len(which):
            return None
        kind, at = level.kind[which], level.at[which]
        large = (kind & 1).astype(np.int64)
        objects = kind <= LARGE_OBJECT
        width: Positions = 2 + 2 * large
        counts, sizes = self._number(at, width), self._number(at + width, width)
        keys = np.where(objects, width + 2, 0)
        heads = at + 2 * width + counts * (keys + 1 + width)
        ends = at + sizes
        if (heads > ends).any() or (ends > level.limit[which]).any():
            raise DecodeError("A JSON value goes past its end.")
        level.body[which] = np.where(objects, _OPEN, _OPEN + 2)
        level.size[which] += 1
        total = int(counts.sum())
        if total > len(self._buf):
            raise DecodeError("A JSON value holds more than its bytes can.")
        owner = np.repeat(np.arange(len(which)), counts)
        number: Positions = np.arange(total) - (np.cumsum(counts) - counts)[owner]
        entries: Positions = (at + 2 * width + counts * keys)[owner] + number * (1 + width)[owner]
        child_kind = self._buf[entries]
        # Literals and integers that fit into an entry's offset are stored in its place.
        inlined = (child_kind >= LITERAL) & (child_kind <= np.where(large[owner] == 1, UINT32, UINT16))
        places: Positions = at[owner] + self._number(entries + 1, width[owner])
        places = np.where(inlined, entries + 1, places)
        limits = ends[owner]
        if (~inlined & ((places < heads[owner]) | (places >= limits))).any():
            raise DecodeError("A JSON value goes past its end.")
        below = _Level.of(child_kind, places, limits, which[owner])
        below.prefix[:] = np.where(number > 0, _COMMA, _NOTHING)
        named = np.flatnonzero(objects[owner])
        if len(named):
            key_entries = (at + 2 * width)[owner[named]] + number[named] * keys[owner[named]]
            key_at = at[owner[named]] + self._number(key_entries, width[owner[named]])
            key_sizes = self._number(key_entries + width[owner[named]], np.full(len(named), 2))
            if ((key_at < heads[owner[named]]) | (key_at + key_sizes > limits[named])).any():
                raise DecodeError("A key of a JSON value goes past its end.")
            below.prefix[named] = self._keys(key_at, key_sizes, number[named] > 0)
        return below

    def _keys(self, at: Positions, sizes: Positions, later: Mask) -> Positions:
        """Add the tokens of keys to the pool; return their numbers."""
        order = np.argsort(at, kind="stable")
        text = _escaped(slices(self._buf, at[order], sizes[order], None))
        lead = pc.if_else(pa.array(later[order]), ', "', '"')
        return self._added(pc.binary_join_element_wise(lead, text, '": ', ""), order)

    def _scalars(self, levels: list[_Level]) -> None:
        """Fill in the tokens of all scalars."""
        kind = np.concatenate([level.kind for level in levels])
        at = np.concatenate([level.at for level in levels])
        limit = np.concatenate([level.limit for level in levels])
        body = np.zeros(len(kind), np.int64)
        for code in np.unique(kind[kind > LARGE_ARRAY]).tolist():
            chosen = np.flatnonzero(kind == code)
            # ``slices`` requires ascending starts.
            chosen = chosen[np.argsort(at[chosen], kind="stable")]
            body[chosen] = self._of_kind(code, at[chosen], limit[chosen])
        begin = 0
        for level in levels:
            mine = body[begin : begin + len(level.kind)]
            level.body[:] = np.where(level.kind > LARGE_ARRAY, mine, level.body)
            begin += len(level.kind)

    def _of_kind(self, code: int, at: Positions, limit: Positions) -> Positions:
        """Add the tokens of scalars of one type, at ascending offsets, to the pool; return their numbers."""
        if code == LITERAL:
            literals = self._buf[at].astype(np.int64)
            if (literals > 2).any() or (at >= limit).any():
                raise DecodeError("A JSON value holds an unknown literal.")
            return literals + _NULL
        if code in _INTEGERS:
            return self._added(int_text(self._fixed(at, limit, _INTEGERS[code]), None))
        if code == DOUBLE:
            return self._added(double_texts(self._fixed(at, limit, "<f8").astype(np.float64)))
        if code == STRING:
            begin, sizes = self._sized(at, limit)
            text = _escaped(slices(self._buf, begin, sizes, None))
            return self._added(pc.binary_join_element_wise('"', text, '"', ""))
        if code == OPAQUE:
            begin, sizes = self._sized(at + 1, limit)
            data = [
                bytes([self._buf[start]]) + self._buf[first : first + size].tobytes()
                for start, first, size in zip(at.tolist(), begin.tolist(), sizes.tolist(), strict=True)
            ]
            coded = pa.array(data, pa.binary()).dictionary_encode()
            texts = pa.array([opaque_text(raw) for raw in coded.dictionary.to_pylist()], pa.string())
            return self._added(texts.take(coded.indices))
        raise DecodeError(f"A JSON value has the unknown type {code}.")

    def _fixed(self, at: Positions, limit: Positions, dtype: str) -> NDArray[np.generic]:
        if (at + np.dtype(dtype).itemsize > limit).any():
            raise DecodeError("A JSON value goes past its end.")
        return numbers_at(self._buf, Pieces(at, at, None), dtype)

    def _sized(self, at: Positions, limit: Positions) -> tuple[Positions, Positions]:
        """Read lengths of seven bits per byte, lowest first; return where their data begin, and the lengths."""
        sizes = np.zeros(len(at), np.int64)
        going = np.arange(len(at))
        at = at.copy()
        for place in range(_LENGTH_BYTES):
            byte = self._buf[at[going]].astype(np.int64)
            sizes[going] |= (byte & 0x7F) << 7 * place
            at[going] += 1
            going = going[byte >= 0x80]
            if not len(going):
                break
        if len(going) or (at + sizes > limit).any():
            raise DecodeError("A JSON value goes past its end.")
        return at, sizes

    def _number(self, at: Positions, width: NDArray[np.int64]) -> Positions:
        """Return the numbers of two or four bytes that begin at ``at``."""
        low = numbers_at(self._buf, Pieces(at, at, None), "<u2").astype(np.int64)
        wide = np.flatnonzero(width == 4)
        if len(wide):
            low[wide] |= numbers_at(self._buf, Pieces(at[wide] + 2, at[wide], None), "<u2").astype(np.int64) << 16
        return low

    def _added(self, texts: pa.StringArray, order: Positions | None = None) -> Positions:
        """Add tokens to the pool; return their numbers, with the i-th one's at ``order[i]`` if that is given."""
        numbers = np.arange(self._tokens, self._tokens + len(texts))
        self._pool.append(texts)
        self._tokens += len(texts)
        if order is None:
            return numbers
        placed = np.empty_like(numbers)
        placed[order] = numbers
        return placed


def _escaped(text: pa.StringArray) -> pa.StringArray:
    """Escape strings for JSON.

    Raises:
        DecodeError: a string is not UTF-8.
    """
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A JSON value holds a string that is no text: {exc}.") from None
    present = value_bytes(text)
    controls = set(np.unique(present[present < 0x20]).tolist()) if len(present) and present.min() < 0x20 else set()
    if controls <= _SHORT_ESCAPES:
        return escape(text, surrogates=False)
    # The server writes hexadecimal digits in lower case.
    every = np.ones(len(text), bool)
    return mapped(text, text, every, lambda one: json.dumps(one, ensure_ascii=False)[1:-1])
