"""Numbers beside references made with Python's own decimals, floats and base64."""

from __future__ import annotations

import base64
import struct
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.decimals import unscaled_base64
from tests.unit.test_types_helpers import codec, encoded, numeric_modifier, strings

EDGES = sorted({sign * ((1 << bits) + step) for bits in range(129) for step in (-1, 0, 1) for sign in (-1, 1)})
INTEGERS = st.integers(-(10**45), 10**45) | st.integers(-300, 300) | st.sampled_from(EDGES)


def unscaled(number: int) -> str:
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def java(text: str) -> str:
    """Return Java's form of a number's shortest digits, by Python's decimals."""
    if text in ("nan", "inf", "-inf"):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[text]
    sign = "-" if text[0] == "-" else ""
    number = Decimal(text.lstrip("-"))
    if not number:
        return sign + "0.0"
    power = number.adjusted()
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    if -3 <= power < 7:
        plain = f"{number.normalize():f}"
        return sign + (plain if "." in plain else plain + ".0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


@given(st.lists(st.none() | st.binary(max_size=20)), st.booleans())
def test_base64(values: list[bytes | None], url_safe: bool) -> None:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    got = encode_base64(pa.array(values, pa.binary()), url_safe)
    got.validate(full=True)
    assert got.to_pylist() == [None if value is None else encode(value).decode() for value in values]


@given(st.lists(st.none() | INTEGERS))
def test_unscaled_values_of_all_sizes(numbers: list[int | None]) -> None:
    got = unscaled_base64(strings([None if number is None else str(number) for number in numbers]))
    assert got.to_pylist() == [None if number is None else unscaled(number) for number in numbers]


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1) | st.sampled_from(EDGES).filter(lambda n: abs(n) < 10**18)))
def test_unscaled_values_of_64_bits(numbers: list[int]) -> None:
    assert unscaled_base64(strings(list(map(str, numbers)))).to_pylist() == list(map(unscaled, numbers))


@given(st.lists(INTEGERS), st.integers(0, 45))
def test_numeric_with_a_scale(numbers: list[int], scale: int) -> None:
    texts = [f"{Decimal(number).scaleb(-scale, Context(prec=99)):f}" for number in numbers]
    got = encoded(codec("numeric", numeric_modifier(99, scale)), texts)
    assert got == [f'"{unscaled(number)}"' for number in numbers]


@given(st.lists(st.tuples(INTEGERS, st.integers(0, 50))))
def test_numeric_without_a_scale(numbers: list[tuple[int, int]]) -> None:
    values = [Decimal(number).scaleb(-scale, Context(prec=99)) for number, scale in numbers]
    want = []
    for number, scale in numbers:
        while scale and number % 10 == 0:
            number, scale = number // 10, scale - 1
        want.append(f'{{"scale":{scale},"value":"{unscaled(number)}"}}')
    assert encoded(codec("numeric"), [f"{value:f}" for value in values]) == want


def test_numeric_with_more_digits_than_int_parses() -> None:
    digits = "-" + "1" + "0" * 20_000
    assert encoded(codec("numeric"), [digits]) == [f'{{"scale":0,"value":"{unscaled(-(10**20_000))}"}}']


def test_numeric_that_is_no_number() -> None:
    texts = ["NaN", "1.5", "Infinity", "-Infinity", None]
    nothing = ["null", '{"scale":1,"value":"Dw=="}', "null", "null", "null"]
    assert encoded(codec("numeric"), texts) == nothing
    names = ['"NAN"', '"1.5"', '"POSITIVE_INFINITY"', '"NEGATIVE_INFINITY"', "null"]
    assert encoded(codec("numeric", decimal_handling_mode="string"), texts) == names
    doubles = ['"NaN"', "1.5", '"Infinity"', '"-Infinity"', "null"]
    assert encoded(codec("numeric", decimal_handling_mode="double"), texts) == doubles
    rows = codec("numeric", numeric_modifier(5, 1)).to_arrow(strings(texts))
    assert rows.to_pylist() == [None, Decimal("1.5"), None, None, None]


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**20), max_value=10**20)))
def test_numeric_as_double(numbers: list[Decimal]) -> None:
    texts = [f"{abs(number) if number == 0 else number:f}" for number in numbers]
    got = encoded(codec("numeric", decimal_handling_mode="double"), texts)
    assert got == [java(repr(float(text))) for text in texts]


def postgres_float(value: float, single: bool = False) -> str:
    """Return a number as PostgreSQL prints it, with ``extra_float_digits=3``."""
    text = np.format_float_scientific(np.float32(value), trim="-") if single else repr(value)
    number = Decimal(text)
    if not number.is_finite():
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    power = number.adjusted() if number else 0
    if -4 <= power < (6 if single else 15):
        plain = f"{number:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{'-' if number < 0 else ''}{mantissa}e{power:+03d}"


DOUBLES = st.floats() | st.floats(-1e7, 1e7) | st.integers(-(2**60), 2**60).map(float) | st.floats(-1e-2, 1e-2)


@given(st.lists(DOUBLES.filter(lambda x: x == 0 or not abs(x) < 1e-320)))
def test_double_precision(values: list[float]) -> None:
    got = encoded(codec("float8"), [postgres_float(value) for value in values])
    assert got == [java(repr(value)) for value in values]


SINGLES = st.floats(width=32) | st.floats(-(2.0**24), 2.0**24, width=32)


@given(st.lists(SINGLES.filter(lambda x: x == 0 or not abs(x) < 1e-42)))
def test_real(values: list[float]) -> None:
    got = encoded(codec("float4"), [postgres_float(value, single=True) for value in values])
    assert got == [java(np.format_float_scientific(np.float32(value), trim="-")) for value in values]


@pytest.mark.parametrize(
    ("kind", "text", "java_text"),
    [
        ("float8", "5e-324", "4.9E-324"),
        ("float8", "-5e-324", "-4.9E-324"),
        ("float8", "1e-323", "9.9E-324"),
        ("float8", "2e-323", "2.0E-323"),
        ("float8", "1.5e-323", "1.5E-323"),
        ("float8", "9.999999999999999e+22", "1.0E23"),
        ("float8", "1.7976931348623157e+308", "1.7976931348623157E308"),
        ("float8", "123456789012345", "1.23456789012345E14"),
        ("float8", "9999999.5", "9999999.5"),
        ("float8", "10000000", "1.0E7"),
        ("float8", "0.001", "0.001"),
        ("float8", "0.0009999", "9.999E-4"),
        ("float8", "-0", "-0.0"),
        ("float4", "1e-45", "1.4E-45"),
        ("float4", "1e-44", "9.8E-45"),
        ("float4", "3.0000001e+10", "3.0E10"),
        ("float4", "1e+06", "1000000.0"),
        ("float4", "9.999999e+06", "9999999.0"),
        ("float4", "3.4028235e+38", "3.4028235E38"),
    ],
)
def test_exceptional_floats(kind: str, text: str, java_text: str) -> None:
    assert encoded(codec(kind), [text, "1.5", None]) == [java_text, "1.5", "null"]


@given(st.lists(st.floats(width=64)))
def test_rows_have_the_same_floats(values: list[float]) -> None:
    rows = codec("float8").to_arrow(strings([postgres_float(value) for value in values])).to_pylist()
    assert [struct.pack("d", a) if a == a else "nan" for a in rows] == [
        struct.pack("d", a) if a == a else "nan" for a in values
    ]


CENTS = st.integers(-(2**63), 2**63 - 1)


def amount(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


@given(st.lists(CENTS), st.integers(0, 30))
def test_money(values: list[int], digits: int) -> None:
    got = encoded(codec("money", money_fraction_digits=str(digits)), list(map(amount, values)))
    wide = Context(prec=60)
    numbers = [
        Decimal(value).scaleb(-2, wide).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, wide) for value in values
    ]
    assert got == [f'"{unscaled(int(number.scaleb(digits, wide)))}"' for number in numbers]


@given(st.lists(CENTS))
def test_money_otherwise(values: list[int]) -> None:
    texts = list(map(amount, values))
    plain = [f"{Decimal(value).scaleb(-2):f}" for value in values]
    assert encoded(codec("money", decimal_handling_mode="string"), texts) == [f'"{text}"' for text in plain]
    doubles = [java(repr(float(text))) for text in plain]
    assert encoded(codec("money", decimal_handling_mode="double"), texts) == doubles
    assert codec("money").to_arrow(strings(texts)).to_pylist() == [Decimal(text) for text in plain]


@pytest.mark.parametrize(("text", "whole"), [("$0.50", 1), ("$2.50", 3), ("-$0.50", -1), ("-$2.50", -3), ("$0.49", 0)])
def test_half_a_unit_of_money_is_rounded_away_from_zero(text: str, whole: int) -> None:
    assert encoded(codec("money", money_fraction_digits="0"), [text]) == [f'"{unscaled(whole)}"']
