"""Codecs of ``timestamptz`` and ``timetz``, which Debezium writes as ISO 8601 text in UTC in every mode.

With ``TimeZone=UTC`` the server already prints timestamps in UTC, so only the format changes: a ``T``, exactly as many
fractional digits of a second as the column's type has, and a ``Z``. The server prints a time with the offset that it
was stored with, so times are shifted to UTC here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs import calendar
from floodmark.codecs.arrays import Mask, as_mask, byte_at, lengths_of, mapped, replaced, valid, without
from floodmark.codecs.codec import Codec, Settings, quoted, semantic, unchanged
from floodmark.codecs.time_units import DEBEZIUM
from floodmark.connectors.postgres.types.temporal.dates import digits_of, odd_timestamps
from floodmark.events.json_text import fixed_width

_UTC = "+00"
_SECONDS_WIDTH = 19
_DAY_SECONDS = 86_400
_CLOCK_WIDTH = 8
_TIME = r"^(?P<clock>\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?(?P<offset>[+-][\d:]+)$"


def timestamptz(modifier: int, settings: Settings) -> Codec:
    """Return the codec of ``timestamptz``."""
    digits = digits_of(modifier)

    def to_arrow(text: pa.StringArray) -> pa.Array:
        return _naive(without(text, _odd(text))).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))

    return Codec(
        semantic("string", DEBEZIUM + "ZonedTimestamp"),
        lambda text: quoted(_timestamps(text, digits)),
        '"1970-01-01T00:00:00Z"',
        settings.placeholder,
        pa.timestamp("us", tz="UTC"),
        to_arrow,
    )


def timetz(settings: Settings) -> Codec:
    """Return the codec of ``timetz``."""
    return Codec(
        semantic("string", DEBEZIUM + "ZonedTime"),
        lambda text: quoted(_times(text)),
        '"00:00:00Z"',
        settings.placeholder,
        pa.string(),
        unchanged,
    )


def _odd(text: pa.StringArray) -> Mask:
    """Return which timestamps are infinite, BC, later than year 9999, or not in UTC."""
    return odd_timestamps(text) | (valid(text) & ~as_mask(pc.ends_with(text, _UTC)))


def _naive(text: pa.StringArray) -> pa.StringArray:
    """Return timestamps without their offset, which is ``+00``."""
    return pc.utf8_slice_codeunits(text, 0, -len(_UTC))


def _timestamps(text: pa.StringArray, digits: int) -> pa.StringArray:
    odd = _odd(text)
    base = pc.replace_substring(_naive(without(text, odd)), " ", "T", max_replacements=1)
    if digits:
        whole = lengths_of(base) == _SECONDS_WIDTH
        if whole.any():
            base = pc.binary_join_element_wise(base, pc.if_else(pa.array(whole), ".", ""), "")
        base = pc.ascii_rpad(base, _SECONDS_WIDTH + 1 + digits, "0")
    return mapped(pc.binary_join_element_wise(base, "Z", ""), text, odd, lambda one: _timestamp(one, digits))


def _timestamp(text: str, digits: int) -> str:
    if text in calendar.INFINITE_US:
        return text
    moment = calendar.parse(text)
    return f"{moment.date()}T{moment.time(digits)}Z"


def _times(text: pa.StringArray) -> pa.StringArray:
    """Return times in UTC; the fraction of the second stays as it is."""
    base = pc.replace_substring(text, _UTC, "Z", max_replacements=1)
    # 24:00:00 becomes 00:00:00 even without an offset.
    ready = pc.and_not(pc.ends_with(text, _UTC), pc.starts_with(text, "24"))
    others = valid(text) & ~as_mask(ready)
    if not others.any():
        return base
    return replaced(base, others, _shifted(text.filter(pa.array(others))))


def _shifted(text: pa.StringArray) -> pa.StringArray:
    """Return times moved to UTC; ``text`` has no nulls."""
    parts = pc.extract_regex(text, _TIME)
    clock, fraction, offset = (parts.field(index) for index in range(parts.type.num_fields))
    seconds = _seconds(clock, 0)
    east = _seconds(offset, 1)
    seconds = (seconds + np.where(byte_at(offset, 0) == ord("-"), east, -east)) % _DAY_SECONDS
    moved = np.full((len(text), _CLOCK_WIDTH), ord(":"), np.uint8)
    for at, number in ((0, seconds // 3600), (3, seconds // 60 % 60), (6, seconds % 60)):
        moved[:, at] = number // 10 + ord("0")
        moved[:, at + 1] = number % 10 + ord("0")
    return pc.binary_join_element_wise(fixed_width(moved), fraction, "Z", "")


def _seconds(text: pa.StringArray, at: int) -> NDArray[np.int64]:
    """Return the seconds in ``hh:mm:ss``, which begins at byte ``at`` and may be shorter, shape (rows,)."""
    total = np.zeros(len(text), np.int64)
    for index, unit in ((at, 3600), (at + 3, 60), (at + 6, 1)):
        # Beyond a value's end `byte_at` returns 0, so missing digits are negative.
        tens, ones = (byte_at(text, index + digit).astype(np.int64) - ord("0") for digit in (0, 1))
        total += np.where(ones >= 0, (tens * 10 + ones) * unit, 0)
    return total
