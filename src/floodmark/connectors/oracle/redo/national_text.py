r"""Decodes the argument of ``UNISTR``: text in which ``\XXXX`` is a code unit of UTF-16, and ``\\`` a backslash.

Oracle's SQL Language Reference, ``UNISTR``. Debezium takes each backslash for the beginning of a code unit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import DecodeError

_BACKSLASH = ord("\\")
_LENGTH = 5
"""Of a code unit: a backslash and four digits."""
_NO_DIGIT = 255
_DIGITS = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[np.frombuffer(b"0123456789", np.uint8)] = np.arange(10)
_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = _DIGITS[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)


def decoded(texts: pa.StringArray) -> pa.StringArray:
    """Return what texts say.

    Args:
        texts: shape (texts,), without null.

    Raises:
        DecodeError: a backslash isn't followed by four hexadecimal digits, or half of a character stands alone.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    content = np.frombuffer(data, np.uint8)[: bounds[-1]] if data is not None else np.zeros(0, np.uint8)
    slashes = np.flatnonzero(content[bounds[0] :] == _BACKSLASH) + bounds[0]
    if not len(slashes):
        return texts
    # Backslashes in a row come in pairs, from the first one on; texts end between them.
    begins = np.ones(len(slashes), np.bool_)
    begins[1:] = (np.diff(slashes) != 1) | np.isin(slashes[1:], bounds)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(slashes)), 0))
    escapes = slashes[(np.arange(len(slashes)) - first) % 2 == 0]
    ends = bounds[np.searchsorted(bounds, escapes, "right")]
    follows = escapes + 1 < ends
    pairs = follows & (content[np.where(follows, escapes + 1, 0)] == _BACKSLASH)
    units = escapes[~pairs]
    if (units + _LENGTH > ends[~pairs]).any():
        raise _error()
    digits = _DIGITS[content[units[:, None] + np.arange(1, _LENGTH)]]
    if (digits == _NO_DIGIT).any():
        raise _error()
    codes = digits.astype(np.int64) @ np.array([4096, 256, 16, 1])
    # Two backslashes are one: the other one goes, as the second half of a character does.
    lengths = np.ones(len(content), np.int64)
    lengths[escapes[pairs] + 1] = 0
    lengths[(units[:, None] + np.arange(1, _LENGTH)).reshape(-1)] = 0
    points, low = _code_points(units, codes, ends[~pairs])
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    lengths[units] = np.where(low, 0, widths)
    places = np.cumsum(lengths) - lengths
    result = np.repeat(content, lengths)
    kept = ~low
    _write(result, places[units[kept]], points[kept], widths[kept])
    total = np.concatenate([places, [len(result)]])
    made = (total[bounds] - total[bounds[0]]).astype(np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(made), pa.py_buffer(result[total[bounds[0]] :].copy()))


def _code_points(
    units: NDArray[np.int64], codes: NDArray[np.int64], ends: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the code point that each code unit stands for, and which units are only a second half."""
    high, low = (codes >> 10) == 0x36, (codes >> 10) == 0x37
    together = np.zeros(len(codes), np.bool_)
    together[:-1] = high[:-1] & low[1:] & (np.diff(units) == _LENGTH) & (ends[:-1] == ends[1:])
    second = np.zeros(len(codes), np.bool_)
    second[1:] = together[:-1]
    if (high & ~together).any() or (low & ~second).any():
        raise DecodeError("A text of UNISTR in SQL_REDO has half of a character (a lone surrogate).")
    points = codes.copy()
    pair = np.flatnonzero(together)
    points[pair] = 0x10000 + ((codes[pair] & 0x3FF) << 10) + (codes[pair + 1] & 0x3FF)
    return points, second


def _write(
    result: NDArray[np.uint8], places: NDArray[np.int64], points: NDArray[np.int64], widths: NDArray[np.int64]
) -> None:
    """Write code points as UTF-8."""
    lead = np.array([0, 0, 0xC0, 0xE0, 0xF0])
    for width in range(1, 5):
        chosen = np.flatnonzero(widths == width)
        for number in range(width):
            bits = points[chosen] >> (6 * (width - 1 - number))
            result[places[chosen] + number] = lead[width] | bits if number == 0 else 0x80 | (bits & 0x3F)


def _error() -> DecodeError:
    return DecodeError("A text of UNISTR in SQL_REDO has a backslash without four hexadecimal digits.")
