"""Writes whole columns as JSON text.

Strings are escaped as Kafka Connect's JsonConverter (Jackson) does: quote, backslash and the control
characters below U+0020, and characters beyond U+FFFF as surrogate pairs; everything else stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.json_data import Json

FOUR_BYTES = 0xF0
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_QUOTES = (ord('"'), ord("\\"))
_CONTROLS = 0x20
_BLOCK = 1 << 16
_OTHERWISE = re.compile(r"\\\\|\\u00[0-9a-f]{2}|[\U00010000-\U0010FFFF]")
"""What Python writes differently from Jackson, and the escaped backslash, which looks like the start of an escape."""

_PIECE = 1 << 20

NULL = pa.scalar("null")
EMPTY = pa.scalar("")


@dataclass
class Fragment:
    """JSON text of one field for many rows.

    Attributes:
        text: shape (rows,); null stands for JSON's ``null``.
        quoted: whether the text still lacks its quotes, so that they can become part of the
            constant text around it.
    """

    text: pa.StringArray
    quoted: bool = False

    def take(self, indices: NDArray[np.int64]) -> Fragment:
        """Return the fragment of some of the rows."""
        return Fragment(self.text.take(pa.array(indices)), self.quoted)

    def filled(self, json: str) -> Fragment:
        """Return the fragment with JSON in the place of nulls."""
        if not self.text.null_count:
            return self
        return Fragment(self.text.fill_null(json[1:-1] if self.quoted else json), self.quoted)


def dumps(value: Json) -> str:
    """Return compact JSON text, escaped as values are."""
    return _OTHERWISE.sub(_as_jackson, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _as_jackson(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith("\\"):
        return text if text == "\\\\" else "\\u" + text[2:].upper()
    high, low = divmod(ord(text) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def value_bytes(array: pa.StringArray) -> NDArray[np.uint8]:
    """Return the bytes of all values, shape (bytes,), without a copy."""
    buffers = array.buffers()
    if buffers[2] is None or len(array) == 0:
        return np.empty(0, np.uint8)
    offsets = np.frombuffer(buffers[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(buffers[2], np.uint8)[int(offsets[0]) : int(offsets[-1])]


def escape(array: pa.StringArray, surrogates: bool = True) -> pa.StringArray:
    """Escape strings for use between JSON's quotes.

    Args:
        array: the strings.
        surrogates: whether characters beyond U+FFFF become escapes.
    """
    present, beyond = _to_escape(value_bytes(array))
    # The backslash comes first, since the other escapes add backslashes.
    for byte in sorted(present, key=lambda byte: byte != ord("\\")):
        char = chr(byte)
        replacement = "\\" + char if char in '"\\' else _SHORT.get(char, f"\\u{byte:04X}")
        array = pc.replace_substring(array, char, replacement)
    return _escape_surrogates(array) if beyond and surrogates else array


def _to_escape(data: NDArray[np.uint8]) -> tuple[list[int], bool]:
    """Return which bytes must be escaped, and whether there are characters beyond U+FFFF.

    Reads blocks that stay in the processor's cache.
    """
    present: set[int] = set()
    beyond = False
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        beyond = beyond or int(block.max()) >= FOUR_BYTES
        present.update(byte for byte in _QUOTES if byte not in present and (block == byte).any())
        if block.min() < _CONTROLS:
            present.update(np.unique(block[block < _CONTROLS]).tolist())
    return list(present), beyond


def _escape_surrogates(array: pa.StringArray) -> pa.StringArray:
    """Write characters beyond U+FFFF as two escapes; changes only the values that hold one."""
    leads = np.flatnonzero(value_bytes(array) >= FOUR_BYTES)
    affected = np.zeros(len(array), bool)
    # A byte belongs to the last value that starts at or before it.
    affected[np.searchsorted(_starts(array), leads, side="right") - 1] = True
    if array.null_count:
        affected &= pc.is_valid(array).to_numpy(zero_copy_only=False)
    values = array.filter(pa.array(affected))
    starts = _starts(values)
    cuts = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]), _PIECE)))
    pieces = [values[a:b] for a, b in zip(cuts, [*cuts[1:], len(values)], strict=True)]
    escaped = [_with_surrogates(piece) for piece in pieces]
    return pc.replace_with_mask(array, pa.array(affected), pa.concat_arrays(escaped)) if escaped else array


def _starts(array: pa.StringArray) -> NDArray[np.int32]:
    """Return where each value starts in ``value_bytes``, and where the last one ends, shape (rows + 1,)."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    starts: NDArray[np.int32] = offsets - offsets[0]
    return starts


def _with_surrogates(array: pa.StringArray) -> pa.StringArray:
    """Replace each UTF-8 sequence of four bytes by twelve ASCII characters; the array has no nulls."""
    data = value_bytes(array)
    leads = np.flatnonzero(data >= FOUR_BYTES)
    sequence = data[leads[:, None] + np.arange(4)].astype(np.uint64)
    # The bytes hold 3, 6, 6 and 6 bits of the code point.
    points = (sequence & np.array([0x07, 0x3F, 0x3F, 0x3F], np.uint64)) @ np.array(
        [1 << 18, 1 << 12, 1 << 6, 1], np.uint64
    )
    points -= np.uint64(0x10000)
    escapes = np.empty((len(leads), 12), np.uint8)
    escapes[:, 0::6] = ord("\\")
    escapes[:, 1::6] = ord("u")
    escapes[:, 2:6] = hex_digits(np.uint64(0xD800) + (points >> np.uint64(10)), 4)
    escapes[:, 8:12] = hex_digits(np.uint64(0xDC00) + (points & np.uint64(0x3FF)), 4)
    # Repeat each first byte twelve times and drop the other three, to make room for the escapes.
    times = np.ones(len(data), np.uint8)
    times[leads] = 12
    times[leads[:, None] + np.arange(1, 4)] = 0
    text = np.repeat(data, times)
    # Each sequence before a place in the text has moved it by 8 bytes.
    growth = 8 * np.arange(len(leads))
    text[(leads + growth)[:, None] + np.arange(12)] = escapes
    offsets = _starts(array)
    offsets += (8 * np.searchsorted(leads, offsets)).astype(np.int32)
    return pa.StringArray.from_buffers(len(array), pa.py_buffer(offsets), pa.py_buffer(text))


def string(array: pa.StringArray) -> Fragment:
    """Return strings as JSON strings.

    Raises:
        pa.ArrowInvalid: a string is not UTF-8.
    """
    array.validate(full=True)
    return Fragment(escape(array), quoted=True)


def closed(fragment: Fragment) -> pa.StringArray:
    """Return a fragment as complete JSON values, ``null`` included."""
    text = fragment.text
    if fragment.quoted:
        text = pc.binary_join_element_wise('"', text, '"', "")
    return text.fill_null("null") if text.null_count else text


Text: TypeAlias = str | pa.StringArray
"""One text for all rows, or one a row, shape (rows,)."""
Pieces: TypeAlias = list[Text]
"""Pieces of a text, each either the same for all rows or an array with one text a row."""


def of_rows(pieces: Pieces, index: pa.Array) -> Pieces:
    """Return pieces with the texts of some rows."""
    return [piece if isinstance(piece, str) else piece.take(index) for piece in pieces]


class Joiner:
    """Collects constant and varying pieces of a text, then joins them for all rows at once."""

    def __init__(self) -> None:
        self._pieces: list[str | pa.StringArray] = []

    def add(self, piece: str | pa.StringArray) -> Joiner:
        """Append a constant, or a column without nulls."""
        if isinstance(piece, str) and self._pieces and isinstance(self._pieces[-1], str):
            self._pieces[-1] += piece
        else:
            self._pieces.append(piece)
        return self

    def add_field(self, fragment: Fragment) -> Joiner:
        """Append a field's value."""
        if fragment.quoted and not fragment.text.null_count:
            return self.add('"').add(fragment.text).add('"')
        return self.add(closed(fragment))

    def add_struct(self, names: Sequence[str], fragments: Sequence[Fragment]) -> Joiner:
        """Append an object with these fields."""
        lead = "{"
        for name, fragment in zip(names, fragments, strict=True):
            self.add(f"{lead}{dumps(name)}:").add_field(fragment)
            lead = ","
        return self.add("}" if names else "{}")

    def parts(self, rows: int, apart: bool) -> list[str | pa.StringArray]:
        """Return the joined text as the only piece of a text; or, if ``apart``, what has been added."""
        return list(self._pieces) if apart else [self.join(rows)]

    def join(self, rows: int) -> pa.StringArray:
        """Return the joined text, shape (rows,)."""
        if all(isinstance(piece, str) for piece in self._pieces):
            return pa.repeat(pa.scalar("".join(map(str, self._pieces))), rows)
        return pc.binary_join_element_wise(*self._pieces, "")


_DIGITS = 4
_HEX = np.frombuffer("".join(f"{value:04X}" for value in range(1 << 16)).encode(), np.uint32)
"""The four digits of every 16-bit number, as one element each."""


def hex_digits(values: NDArray[np.uint64], digits: int) -> NDArray[np.uint8]:
    """Return numbers as fixed-width upper-case hexadecimal text, shape (rows, digits)."""
    words = -(-digits // _DIGITS)
    text = np.empty((len(values), words), np.uint32)
    for place in range(words):
        text[:, place] = _HEX[(values >> np.uint64(16 * (words - 1 - place))) & np.uint64(0xFFFF)]
    return text.view(np.uint8).reshape(len(values), words * _DIGITS)[:, words * _DIGITS - digits :]


def fixed_width(matrix: NDArray[np.uint8]) -> pa.StringArray:
    """Return rows of characters, shape (rows, width), as a string array."""
    rows, width = matrix.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32) if width else np.zeros(rows + 1, np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix)))
