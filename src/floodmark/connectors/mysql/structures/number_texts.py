"""How the servers write a floating-point number into a column of texts, which may have little room for it.

Source: ``my_gcvt`` in the servers' ``strings/dtoa.c``, which describes the choice of a format.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np

_MOST_DIGITS = 15
"""Powers of ten, below and above 1, from which a number is written with an exponent even if there is room."""
ROOM = 1 << 16
"""The width of columns that have room for any number."""


def number_text(number: np.float32 | np.float64, width: int = ROOM) -> str:
    """Return the shortest text that identifies a number, or as many of its digits as there is room for.

    Args:
        width: how many characters the column has.
    """
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    number, width = -number if sign else number, width - len(sign)
    digits, point = _digits(number, max(width, 1))
    exponent = 1 + (point >= 101 or point <= -99) + (point >= 11 or point <= -9)
    if point <= 0:
        fits = len(digits) - point + 2 <= width
    else:
        fits = max(point, len(digits) + 1 if point < len(digits) else 0) <= width
    if fits:
        fixed = point > -_MOST_DIGITS and (point <= _MOST_DIGITS or len(digits) > point)
    else:
        loses_all = point < 0 and width <= 2 - point and width >= 3 + exponent
        fixed = point <= width and not loses_all and point >= -2
    if not fixed:
        return sign + _scientific(number, digits, point, width, exponent)
    text = _fixed(number, digits, point, width)
    return text if text == "0" else sign + text


def _fixed(number: np.float32 | np.float64, digits: str, point: int, width: int) -> str:
    room = width - (point < len(digits)) - (1 - point if point <= 0 else 0)
    if room < len(digits):
        places = Decimal(1).scaleb(-max(room - point, 0))
        text = f"{Decimal(float(number)).quantize(places, ROUND_HALF_EVEN):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[:point].ljust(point, '0')}.{digits[point:]}".rstrip(".")


def _scientific(number: np.float32 | np.float64, digits: str, point: int, width: int, exponent: int) -> str:
    room = max(width - (point < 1) - 1 - exponent - (len(digits) > 1), 1)
    if room < len(digits):
        digits, point = _digits(number, room)
    return f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{point - 1}"


def _digits(number: np.float32 | np.float64, most: int) -> tuple[str, int]:
    """Return the digits that identify a number, rounded if there are more, and the place of the decimal point."""
    text = np.format_float_scientific(number, trim="-", exp_digits=1)
    if len(text.partition("e")[0].replace(".", "")) > most:
        text = np.format_float_scientific(number, precision=most - 1, unique=False, trim="-", exp_digits=1)
    mantissa, _, power = text.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(power) + 1
