"""Formats scalars of binary JSON as the server does: doubles, and values of SQL types that JSON lacks ("opaque").

Source: MySQL, ``sql-common/json_dom.cc``, ``wrapper_to_string``; ``strings/dtoa.cc``, ``my_gcvt``.
"""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, mapped
from floodmark.connectors.mysql.binlog.column_types import DATE, DATETIME, NEWDECIMAL, TIME, TIMESTAMP
from floodmark.connectors.mysql.values.layouts import DIGIT_BYTES, decimal_size
from floodmark.errors import DecodeError
from floodmark.events.json_text import dumps

_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e15, 1e-3
_MOST_PLACES = 15
_LINE = 76
_PACKED_BYTES = 8


def double_texts(numbers: NDArray[np.float64]) -> pa.StringArray:
    """Return doubles as text: the shortest digits that identify them, with a point or an exponent."""
    text = pa.array(numbers).cast(pa.string())
    magnitude = np.abs(numbers)
    ordinary = ((magnitude >= _SMALLEST_PLAIN) & (magnitude < _LARGEST_PLAIN)) | (magnitude == 0)
    odd = ~ordinary | as_mask(pc.match_substring(text, "e"))
    if not as_mask(pc.match_substring(text, "."))[~odd].all():
        odd |= ~as_mask(pc.match_substring(text, "."))
    return mapped(text, text, odd, lambda one: double_text(float(one)))


def double_text(number: float) -> str:
    """Return a double as text.

    Raises:
        DecodeError: the number is infinite or NaN, which JSON can't represent.
    """
    if number - number != 0:
        raise DecodeError("A JSON value holds a number that is not finite.")
    mantissa, exponent = f"{abs(number):e}".split("e") if number == 0 else _shortest(abs(number))
    digits = mantissa.replace(".", "").rstrip("0") or "0"
    places = int(exponent) + 1
    if 1 - _MOST_PLACES <= places <= _MOST_PLACES or len(digits) > places > 0:
        if places <= 0:
            text = f"0.{'0' * -places}{digits}"
        else:
            text = f"{digits[:places].ljust(places, '0')}.{digits[places:] or '0'}"
    else:
        text = f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{places - 1}"
    return f"-{text}" if np.signbit(number) else text


def _shortest(number: float) -> tuple[str, str]:
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="-").split("e")
    return mantissa, exponent


def opaque_text(raw: bytes) -> str:
    """Return an opaque value as JSON text.

    Args:
        raw: the number of its type, and its bytes.

    Raises:
        DecodeError: the bytes are not a value of the type.
    """
    code, data = raw[0], raw[1:]
    if code == NEWDECIMAL:
        return _decimal(data)
    if code in (DATE, TIME, DATETIME, TIMESTAMP):
        return f'"{_temporal(code, data)}"'
    encoded = base64.b64encode(data).decode()
    lines = "\n".join(encoded[at : at + _LINE] for at in range(0, len(encoded), _LINE))
    return dumps(f"base64:type{code}:{lines}")


def _decimal(data: bytes) -> str:
    if len(data) < 2:
        raise DecodeError("A JSON value holds a decimal that is cut off.")
    precision, scale, packed = data[0], data[1], bytearray(data[2:])
    whole = precision - scale
    if whole < 0 or len(packed) != decimal_size(whole) + decimal_size(scale) or not packed:
        raise DecodeError("A JSON value holds a decimal of the wrong size.")
    negative = packed[0] < 0x80
    packed[0] ^= 0x80
    if negative:
        packed = bytearray(byte ^ 0xFF for byte in packed)
    at, text = 0, ["", ""]
    for side, digits in enumerate((whole, scale)):
        groups = [9] * (digits // 9)
        rest = [digits % 9] if digits % 9 else []
        for group in rest + groups if side == 0 else groups + rest:
            number = int.from_bytes(packed[at : at + DIGIT_BYTES[group]], "big")
            if number >= 10**group:
                raise DecodeError("A JSON value holds a decimal that is none.")
            text[side] += f"{number:0{group}}"
            at += DIGIT_BYTES[group]
    shown = (text[0].lstrip("0") or "0") + (f".{text[1]}" if scale else "")
    return f"-{shown}" if negative else shown


def _temporal(code: int, data: bytes) -> str:
    """Return a date or time as text; it is a packed number with the microseconds in its lowest 24 bits."""
    if len(data) != _PACKED_BYTES:
        raise DecodeError("A JSON value holds a date or time of the wrong size.")
    packed = int.from_bytes(data, "little", signed=True)
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    micros, clock, rest = packed & 0xFFFFFF, packed >> 24 & 0x1FFFF, packed >> 41
    minute_second = f"{clock >> 6 & 63:02}:{clock & 63:02}"
    if code == TIME:
        return f"{sign}{packed >> 36 & 0x3FF:02}:{minute_second}.{micros:06}"
    day, months = rest & 31, rest >> 5
    date = f"{sign}{months // 13:04}-{months % 13:02}-{day:02}"
    return date if code == DATE else f"{date} {clock >> 12:02}:{minute_second}.{micros:06}"
