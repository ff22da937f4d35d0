"""Converts the server's character sets to UTF-8, whole columns at once.

Characters are converted as the server itself does (``character_set_results=utf8mb4``), so that rows are the same from
the log and from a snapshot.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import lengths_of, strings
from floodmark.connectors.mysql.values.charset_tables import IBM_EXTENSION, SWEDISH, UPPER_HALVES
from floodmark.errors import DecodeError
from floodmark.events.json_text import value_bytes

UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii", "binary"})

_FIRST_UPPER = 0x80
_REPLACEMENTS: dict[str, tuple[tuple[bytes, bytes], ...]] = {"eucjpms": ((b"\x8f\xa2\xb7", b"\xa1\xc1"),)}
_CHARACTERS: dict[str, dict[int, str]] = {
    "gb18030": {0xE7C7: "\u1e3f"},
    "sjis": {0xFF3C: "\\"},
    "ujis": {0xFF3C: "\\"},
    "eucjpms": dict(
        zip(map(ord, "\u301c\u2016\u2212\xa2\xa3\xac\xa6"), "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2\uffe4", strict=True),
    ),
}
"""Characters for which the server's conversion differs from Python's codec."""

_PRIVATE_LEAD, _THREE_BYTES, _ROW, _FIRST_CELL = 0xF5, 0x8F, 94, 0xA1
_NEC_ROW = 0xAD
_IBM_ROW, _IBM_CELL = 0xF3, 0xF3
_ETEN = b"\xf9\xd6", b"\xf9\xdc"


def _japanese(error: UnicodeError) -> tuple[str, int]:
    """Decode a character that Python's EUC-JP codec doesn't know: private ones, NEC's, IBM's."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw, at = error.object, error.start
    offset, lead_at = (_ROW * 10, at + 1) if raw[at] == _THREE_BYTES else (0, at)
    pair = raw[lead_at : lead_at + 2]
    if len(pair) < 2 or min(pair) < _FIRST_CELL or max(pair) == 0xFF:
        raise error
    lead, cell = pair[0], pair[1] - _FIRST_CELL
    if lead >= _PRIVATE_LEAD:
        return chr(0xE000 + offset + (lead - _PRIVATE_LEAD) * _ROW + cell), lead_at + 2
    if not offset and lead == _NEC_ROW:
        return bytes([0x87, 0x40 + cell + (cell >= 0x3F)]).decode("cp932"), lead_at + 2
    place = (lead - _IBM_ROW) * _ROW + pair[1] - _IBM_CELL
    if offset and 0 <= place < len(IBM_EXTENSION):
        return IBM_EXTENSION[place], lead_at + 2
    raise error


def _chinese(error: UnicodeError) -> tuple[str, int]:
    """Decode a character that Python's Big5 codec doesn't know: ETEN's extension."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if not _ETEN[0] <= pair <= _ETEN[1] or len(pair) < 2:
        raise error
    return pair.decode("cp950"), error.start + 2


codecs.register_error("floodmark-euc-jp", _japanese)
codecs.register_error("floodmark-big5", _chinese)

_CODECS = {
    "big5": ("big5", "floodmark-big5"),
    "cp932": ("cp932", "strict"),
    "eucjpms": ("euc_jp", "floodmark-euc-jp"),
    "euckr": ("cp949", "strict"),
    "gb18030": ("gb18030", "strict"),
    "gb2312": ("gb2312", "strict"),
    "gbk": ("gbk", "strict"),
    "sjis": ("shift_jis", "strict"),
    "ucs2": ("utf-16-be", "strict"),
    "ujis": ("euc_jp", "floodmark-euc-jp"),
    "utf16": ("utf-16-be", "strict"),
    "utf16le": ("utf-16-le", "strict"),
    "utf32": ("utf-32-be", "strict"),
}
_UNITS = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}

KNOWN = UTF8 | frozenset(UPPER_HALVES) | frozenset(_CODECS) | {"swe7"}
"""The character sets whose values can be decoded."""


def to_utf8(values: pa.StringArray, charset: str) -> pa.StringArray:
    """Return text in UTF-8.

    Args:
        values: text in the character set.
        charset: the server's name of the character set.

    Raises:
        DecodeError: the character set is unknown, or a value is not valid in it.
    """
    if charset in UTF8:
        return values
    if charset in _UNITS:
        return _decoded(values, charset)
    if charset != "swe7":
        data = value_bytes(values)
        if not len(data) or int(data.max()) < _FIRST_UPPER:
            return values
        if charset in _CODECS:
            return _decoded(values, charset)
    return _one_byte(values, charset)


def _one_byte(values: pa.StringArray, charset: str) -> pa.StringArray:
    sizes, starts, encoded = _table(charset)
    data = value_bytes(values)
    each = sizes[data]
    ends = np.cumsum(each, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    # For each byte of output, its index in ``encoded``: where its character starts there, and the offset in that.
    places = np.repeat(starts[data] - (ends - each), each) + np.arange(total)
    lengths = lengths_of(values)
    offsets = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(lengths)])]
    return strings(offsets.astype(np.int32), encoded[places], values)


@lru_cache
def _table(charset: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the sizes and offsets of each byte's character in a UTF-8 text, shapes (bytes,), and the text."""
    if charset == "swe7":
        characters = [SWEDISH.get(byte, chr(byte)) for byte in range(_FIRST_UPPER)] + ["?"] * _FIRST_UPPER
    elif charset in UPPER_HALVES:
        characters = [*map(chr, range(_FIRST_UPPER)), *UPPER_HALVES[charset]]
    else:
        raise DecodeError(f"The character set '{charset}' is unknown.")
    sizes = np.array([len(character.encode()) for character in characters])
    return sizes, np.cumsum(sizes) - sizes, np.frombuffer("".join(characters).encode(), np.uint8)


def _decoded(values: pa.StringArray, charset: str) -> pa.StringArray:
    """Decode with Python's codec, all values in one call.

    They are joined by a control character that none of them holds: no character set has bytes below 0x30 inside
    characters of several bytes.
    """
    decode = _decoder(charset)
    raw = value_bytes(values).tobytes()
    unit = _UNITS.get(charset, 1)
    separator = next((code for code in range(1, 32) if raw.find(_unit(code, charset, unit)) < 0), None)
    bounds = np.concatenate([[0], np.cumsum(lengths_of(values))])
    if separator is None or (bounds % unit).any():
        parts = [decode(raw[a:b]) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return strings(offsets.astype(np.int32), b"".join(parts), values)
    between = _unit(separator, charset, unit)
    text = decode(between.join(raw[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)))
    data = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(data == separator)
    # The separators are removed, so each offset shrinks by the number of separators before it.
    offsets = np.concatenate([[0], marks - np.arange(len(marks)), [len(data) - len(marks)]])
    if len(offsets) != len(values) + 1:
        raise DecodeError(f"A value is not text of the character set '{charset}'.")
    return strings(offsets.astype(np.int32), text.replace(bytes([separator]), b""), values)


def _unit(code: int, charset: str, unit: int) -> bytes:
    return code.to_bytes(unit, "little" if charset == "utf16le" else "big")


def _decoder(charset: str) -> Callable[[bytes], bytes]:
    codec, errors = _CODECS[charset]
    characters = _CHARACTERS.get(charset)
    replacements = _REPLACEMENTS.get(charset, ())

    def decode(raw: bytes) -> bytes:
        for old, new in replacements:
            raw = raw.replace(old, new)
        try:
            text = raw.decode(codec, errors)
            return (text.translate(characters) if characters else text).encode()
        except (UnicodeError, LookupError) as exc:
            raise DecodeError(f"A value is not text of the character set '{charset}': {exc}.") from None

    return decode
