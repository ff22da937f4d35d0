"""Values in Oracle's own forms, beside another encoder of them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.values.stored_forms import decoder_of
from floodmark.errors import DecodeError
from tests.support.oracle.model.raw_values import raw_value
from tests.support.oracle.model.types import OracleType
from tests.support.oracle.model.values import Moment

TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))


def stored(type_: OracleType, value: object) -> str:
    """Return a value's digits."""
    raw = raw_value(type_, value)
    assert raw is not None
    return raw.hex()


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-60, 40))
def test_numbers(digits: int, exponent: int) -> None:
    value = Decimal(digits).scaleb(exponent)
    text = decoder_of("NUMBER")(stored(OracleType.parse("NUMBER"), value))
    assert Decimal(text) == value
    assert "E" not in text
    assert "." not in text or not text.endswith("0")


@given(TIMES, st.integers(0, 999))
def test_times(time: datetime, nanos: int) -> None:
    date = time.replace(microsecond=0)
    assert decoder_of("DATE")(stored(OracleType.parse("DATE"), date)) == f"{date.isoformat(' ')}"
    text = decoder_of("TIMESTAMP")(stored(OracleType.parse("TIMESTAMP(9)"), Moment(time, nanos)))
    assert text == f"{time.isoformat(' ', 'microseconds')}{nanos:03d}"


@given(TIMES, st.integers(-14 * 60, 14 * 60))
def test_times_with_zones(time: datetime, minutes: int) -> None:
    zoned = time.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    text = decoder_of("TIMESTAMP WITH TIME ZONE")(stored(OracleType.parse("TIMESTAMP(6) WITH TIME ZONE"), zoned))
    when, zone = text.rsplit(" ", 1)
    found = datetime.fromisoformat(f"{when[:-3]}{zone}")
    assert found.astimezone(UTC) == zoned.astimezone(UTC)
    assert found.utcoffset() == zoned.utcoffset()


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_binary_numbers(single: float, double: float) -> None:
    assert float(decoder_of("BINARY_FLOAT")(stored(OracleType.parse("BINARY_FLOAT"), single))) == single
    assert float(decoder_of("BINARY_DOUBLE")(stored(OracleType.parse("BINARY_DOUBLE"), double))) == double


@given(st.binary(max_size=24), st.sampled_from(["NUMBER", "DATE", "TIMESTAMP WITH TIME ZONE", "BINARY_FLOAT"]))
def test_other_digits_are_an_error_or_a_value(raw: bytes, kind: str) -> None:
    try:
        text = decoder_of(kind)(raw.hex())
    except DecodeError:
        return
    assert text


@pytest.mark.parametrize("kind", ["INTERVAL DAY TO SECOND", "TIMESTAMP WITH LOCAL TIME ZONE"])
def test_types_without_a_known_form(kind: str) -> None:
    with pytest.raises(DecodeError, match="isn't known"):
        decoder_of(kind)("78")


@pytest.mark.parametrize(
    ("kind", "digits"),
    [
        ("NUMBER", ""),
        ("NUMBER", "c1"),
        ("NUMBER", "c1ff"),
        ("NUMBER", "xx"),
        ("DATE", "787e0d01010101"),
        ("TIMESTAMP WITH TIME ZONE", "787e01020e0506075bca00" + "9401"),
        ("BINARY_DOUBLE", struct.pack(">f", 1).hex()),
    ],
)
def test_digits_that_are_refused(kind: str, digits: str) -> None:
    with pytest.raises(DecodeError):
        decoder_of(kind)(digits)
