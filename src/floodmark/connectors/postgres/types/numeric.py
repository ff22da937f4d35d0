"""Codecs of ``numeric`` and ``money``, in the three modes of ``decimal.handling.mode``.

A negative scale (``numeric(5,-2)``) is treated as 0 with as many more digits, since few consumers expect one.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import int64_like, int64_values
from floodmark.codecs.codec import Codec, Settings, quoted, semantic
from floodmark.codecs.decimals import (
    DECIMAL,
    DOUBLE,
    ZERO,
    Scale,
    as_text,
    decimal,
    digits_of,
    in_rows,
    unscaled_base64,
)
from floodmark.connectors.postgres.types.settings import PostgresSettings

MONEY_DIGITS = 2
"""Digits after the point in the server's text of ``money``, with ``lc_monetary=C``."""

_MONEY_WIDTH = 17


def scale_of(modifier: int) -> Scale | None:
    """Decode the modifier of ``numeric``: precision in the upper half, scale in 11 bits with a sign.

    Source: PostgreSQL, ``src/backend/utils/adt/numeric.c``, ``make_numeric_typmod``.
    """
    if modifier < 4:
        return None
    precision = ((modifier - 4) >> 16) & 0xFFFF
    scale = (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    return Scale(precision - min(scale, 0), max(scale, 0), scale)


def numeric(modifier: int, settings: Settings) -> Codec:
    """Return the codec of ``numeric``, with or without precision."""
    return decimal(scale_of(modifier), settings)


def money(settings: PostgresSettings) -> Codec:
    """Return the codec of ``money``, with ``money.fraction.digits`` after the point in precise mode."""
    digits = settings.money_fraction_digits
    if settings.decimal_handling_mode == "double":
        inner = DOUBLE
    elif settings.decimal_handling_mode == "string":
        inner = as_text(f"{Decimal(0).scaleb(-digits):f}", settings)
    else:
        inner = Codec(
            semantic("bytes", DECIMAL, parameters={"scale": str(digits)}),
            lambda text: quoted(unscaled_base64(_rescaled(digits_of(text), digits - MONEY_DIGITS))),
            f'"{ZERO}"',
            "null",
            *in_rows(_MONEY_WIDTH + max(digits, MONEY_DIGITS), max(digits, MONEY_DIGITS)),
        )
    return Codec(
        inner.schema,
        lambda text: inner.encode(_amount(text)),
        inner.zero,
        inner.unavailable,
        inner.arrow_type,
        lambda text: inner.to_arrow(_amount(text)),
    )


def _amount(text: pa.StringArray) -> pa.StringArray:
    """Return amounts of money without currency sign and grouping: ``-$1,234.56`` is -1234.56."""
    return pc.replace_substring(pc.replace_substring(text, "$", ""), ",", "")


def _rescaled(digits: pa.StringArray, shift: int) -> pa.StringArray:
    """Return integers times 10**shift, half rounded away from zero."""
    if shift == 0:
        return digits
    if shift > 0:
        return pc.binary_join_element_wise(digits, "0" * shift, "")
    number = digits.cast(pa.int64())
    factor = 10**-shift
    quotient, rest = np.divmod(int64_values(number), factor)
    # divmod rounds down, which for a negative half is away from zero already.
    half = rest * 2
    quotient += (half > factor) | ((half == factor) & (quotient >= 0))
    return int64_like(quotient, number).cast(pa.string())
