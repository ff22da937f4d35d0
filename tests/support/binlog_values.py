"""Values as a server writes them into row events, and rows of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

DECIMAL_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


@dataclass(frozen=True)
class Kind:
    """A column in the log.

    Attributes:
        code: its type.
        meta: its metadata in the TABLE_MAP event.
    """

    code: int
    meta: bytes = b""


def table_map(kinds: Sequence[Kind]) -> tuple[bytes, bytes]:
    """Return the types and the metadata of a TABLE_MAP event."""
    return bytes(kind.code for kind in kinds), b"".join(kind.meta for kind in kinds)


def image(values: Sequence[bytes | None]) -> bytes:
    """Return a row image: which values are NULL, then the others."""
    bits = sum(1 << place for place, value in enumerate(values) if value is None)
    return bits.to_bytes((len(values) + 7) // 8, "little") + b"".join(value for value in values if value is not None)


def bitmap(present: Sequence[bool]) -> bytes:
    """Return a bitmap of columns."""
    bits = sum(1 << place for place, one in enumerate(present) if one)
    return bits.to_bytes((len(present) + 7) // 8, "little")


def sized(data: bytes, length_bytes: int) -> bytes:
    """Return bytes after their length."""
    return len(data).to_bytes(length_bytes, "little") + data


def decimal(number: Decimal, precision: int, scale: int) -> bytes:
    """Return a packed decimal."""
    digits = f"{number.copy_abs():.{scale}f}".replace(".", "").rjust(precision, "0")[-precision:]
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    head, tail = len(whole) % 9, scale % 9
    parts = [whole[:head], *(whole[at : at + 9] for at in range(head, len(whole), 9))]
    parts += [*(fraction[at : at + 9] for at in range(0, scale - tail, 9)), fraction[scale - tail :]]
    raw = bytearray(b"".join(int(part).to_bytes(DECIMAL_BYTES[len(part)], "big") for part in parts if part))
    if number < 0:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


def fraction_bytes(micros: int, digits: int) -> bytes:
    """Return a second's fraction in as many bytes as its digits need."""
    size = (digits + 1) // 2
    unit: int = 10 ** (6 - 2 * size)
    return (micros // unit).to_bytes(size, "big")


def datetime2(year: int, month: int, day: int, clock: tuple[int, int, int], micros: int, digits: int) -> bytes:
    """Return a datetime with a fraction."""
    hour, minute, second = clock
    packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second
    return (packed + (1 << 39)).to_bytes(5, "big") + fraction_bytes(micros, digits)


def time2(negative: bool, clock: tuple[int, int, int], micros: int, digits: int) -> bytes:
    """Return a time with a fraction."""
    hour, minute, second = clock
    size = (digits + 1) // 2
    unit: int = 10 ** (6 - 2 * size)
    packed = (hour << 12 | minute << 6 | second) << 8 * size | micros // unit
    return ((1 << 23 + 8 * size) + (-packed if negative else packed)).to_bytes(3 + size, "big")


LITERALS = {None: 0, True: 1, False: 2}


def json_document(value: Any, large: bool = False) -> bytes:
    """Return a document as binary JSON.

    Args:
        value: of Python's types; ``Opaque`` for others.
        large: whether all containers are of the large kind.
    """
    kind, data = _json(value, large)
    return bytes([kind]) + data


@dataclass(frozen=True)
class Opaque:
    """A value of an SQL type."""

    code: int
    data: bytes


def _json(value: Any, large: bool) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes([LITERALS[value]])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        return 12, _varlen(value.encode())
    if isinstance(value, Opaque):
        return 15, bytes([value.code]) + _varlen(value.data)
    return _container(value, large)


def _varlen(data: bytes) -> bytes:
    size, head = len(data), b""
    while size >= 0x80:
        head += bytes([size & 0x7F | 0x80])
        size >>= 7
    return head + bytes([size]) + data


def _container(value: dict[str, Any] | list[Any], large: bool) -> tuple[int, bytes]:
    width = 4 if large else 2
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        keys, items = [name.encode() for name in names], [value[name] for name in names]
    else:
        keys, items = [], value
    at = 2 * width + len(keys) * (width + 2) + len(items) * (1 + width)
    key_entries = b""
    for key in keys:
        key_entries += at.to_bytes(width, "little") + len(key).to_bytes(2, "little")
        at += len(key)
    entries, rest = b"", b""
    for item in items:
        if at >= 1 << 16 and not large:
            return _container(value, True)
        kind, data = _json(item, large)
        if kind in (4, 5, 6) or (large and kind in (7, 8)):
            signed = kind in (5, 7)
            number = int.from_bytes(data, "little", signed=signed)
            entries += bytes([kind]) + number.to_bytes(width, "little", signed=signed)
        else:
            entries += bytes([kind]) + at.to_bytes(width, "little")
            rest += data
            at += len(data)
    if at >= 1 << 16 and not large:
        return _container(value, True)
    head = len(items).to_bytes(width, "little") + at.to_bytes(width, "little")
    kind = (0 if isinstance(value, dict) else 2) + large
    return kind, head + key_entries + entries + b"".join(keys) + rest
