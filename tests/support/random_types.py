"""Random types and values, and what an event must hold for what the server prints, without Floodmark's codecs."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

Options = dict[str, str]
Check = Callable[[Any, str, Options], bool]
"""Tells whether an event's value stands for the server's text under the options."""

EPOCH = datetime(1970, 1, 1)
US = timedelta(microseconds=1)
DIGITS = Context(prec=500)


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Attributes:
        name: as SQL writes it.
        literals: its values, as text that the server reads.
        check: whether an event's value is right.
        keys: whether a key may have it.
        default: whether Debezium takes defaults of this type.
        zero: what a delete has for a NOT NULL column that the log lacks, as the server would print it.
    """

    name: str
    literals: st.SearchStrategy[str]
    check: Check
    keys: bool = True
    default: bool = True
    zero: str | None = None


def exact(value: Any, text: str, options: Options) -> bool:
    """The server's text as a string."""
    return bool(value == text)


def whole(value: Any, text: str, options: Options) -> bool:
    """An integer."""
    return type(value) is int and value == int(text)


def floating(value: Any, text: str, options: Options) -> bool:
    """A number; what is none is a string."""
    number = float(text)
    if math.isfinite(number):
        return type(value) is float and repr(value) == repr(number)
    return bool(value == text)


def single(value: Any, text: str, options: Options) -> bool:
    """A number of single precision."""
    if not isinstance(value, float):
        return bool(value == text)
    return struct.pack("f", value) == struct.pack("f", float(text))


def boolean(value: Any, text: str, options: Options) -> bool:
    """A truth value."""
    return value is (text in ("true", "t", "1"))


def unscaled(value: str) -> int:
    return int.from_bytes(base64.b64decode(value), "big", signed=True)


def decimal(scale: int | None) -> Check:
    """A decimal, in the three modes."""

    def check(value: Any, text: str, options: Options) -> bool:
        mode = options["decimal.handling.mode"]
        number = Decimal(text)
        if not number.is_finite():
            names = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}
            return bool(value == {"precise": None, "string": names[text], "double": text}[mode])
        if mode == "string":
            return bool(value == text)
        if mode == "double":
            return type(value) is float and value == float(text)
        if scale is None:
            own = int(value["scale"])
            return own >= 0 and Decimal(unscaled(value["value"])).scaleb(-own, DIGITS) == number
        return Decimal(unscaled(value)).scaleb(-scale, DIGITS) == number

    return check


def money(value: Any, text: str, options: Options) -> bool:
    """An amount."""
    return decimal(2)(value, text.replace("$", "").replace(",", ""), options)


def octets(value: Any, raw: bytes, options: Options) -> bool:
    """Bytes, in the modes."""
    mode = options["binary.handling.mode"]
    if mode == "hex":
        return bool(value == raw.hex())
    encode = base64.urlsafe_b64encode if mode == "base64-url-safe" else base64.b64encode
    return bool(value == encode(raw).decode())


def bytea(value: Any, text: str, options: Options) -> bool:
    """Bytes of the server's ``\\x00``."""
    return octets(value, bytes.fromhex(text[2:]), options)


def unknown(value: Any, text: str, options: Options) -> bool:
    """The bytes of the text."""
    return octets(value, text.encode(), options)


def day(value: Any, text: str, options: Options) -> bool:
    """A date."""
    if options["time.precision.mode"] == "isostring":
        return bool(value == text + "Z")
    return type(value) is int and value == (date.fromisoformat(text) - EPOCH.date()).days


def in_unit(micros: int, digits: int, options: Options, kind: str) -> int:
    mode = options["time.precision.mode"]
    if mode == "nanoseconds":
        return micros * 1000
    adaptive = mode == "adaptive" or (mode == "adaptive_time_microseconds" and kind == "timestamp")
    return micros // 1000 if mode == "connect" or (adaptive and digits <= 3) else micros


def clock(digits: int) -> Check:
    """A time of day."""

    def check(value: Any, text: str, options: Options) -> bool:
        if options["time.precision.mode"] == "isostring":
            return bool(value == text.replace("24:00:00", "00:00:00") + "Z")
        hours, minutes, seconds = text.split(":")
        micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds) * 1_000_000)
        return type(value) is int and value == in_unit(micros, digits, options, "time")

    return check


def moment(digits: int) -> Check:
    """A timestamp."""

    def check(value: Any, text: str, options: Options) -> bool:
        if options["time.precision.mode"] == "isostring":
            return bool(value == text.replace(" ", "T") + "Z")
        micros = (datetime.fromisoformat(text) - EPOCH) // US
        return type(value) is int and value == in_unit(micros, digits, options, "timestamp")

    return check


def zoned(value: Any, text: str, options: Options) -> bool:
    """A timestamp in UTC with six digits."""
    return bool(value == datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0"))


def zoned_time(value: Any, text: str, options: Options) -> bool:
    """A time in UTC without zeros at its end."""
    found = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(\.\d+)?([+-])(\d\d)(?::(\d\d))?", text)
    assert found is not None
    hours, minutes, seconds = map(int, found.groups()[:3])
    shift = (int(found[6]) * 60 + int(found[7] or 0)) * (-1 if found[5] == "+" else 1)
    total = (hours * 60 + minutes + shift) % 1440
    return bool(value == f"{total // 60:02}:{total % 60:02}:{seconds:02}{found[4] or ''}Z")


def interval(value: Any, text: str, options: Options) -> bool:
    """A duration in microseconds, a month being 30.4375 days; or its parts."""
    numbers = {unit: int(n) for n, unit in re.findall(r"([+-]?\d+) (year|mon|day)", text)}
    time = re.search(r"([+-]?)(\d+):(\d\d):(\d\d)(\.\d+)?$", text)
    sign = -1 if time and time[1] == "-" else 1
    hours, minutes = (sign * int(time[group]) for group in (2, 3)) if time else (0, 0)
    seconds = sign * Decimal(time[4] + (time[5] or "")) if time else Decimal(0)
    years, months, days = (numbers.get(unit, 0) for unit in ("year", "mon", "day"))
    if options["interval.handling.mode"] == "string":
        shown = f"{seconds.normalize():f}" if seconds else "0"
        return bool(value == f"P{years}Y{months}M{days}DT{hours}H{minutes}M{shown}S")
    exact_days = Decimal(years * 12 + months) * Decimal("30.4375") + days
    micros = int(((exact_days * 24 + hours) * 60 + minutes) * 60_000_000 + seconds * 1_000_000)
    return type(value) is int and abs(value - micros) <= max(1, abs(micros) >> 52)


def bits(value: Any, text: str, options: Options) -> bool:
    """Bits, the lowest first, without zero bytes at the end."""
    number = int(text, 2) if text else 0
    return bool(base64.b64decode(value) == number.to_bytes((number.bit_length() + 7) // 8, "little"))


def point(value: Any, text: str, options: Options) -> bool:
    """A point, with its binary form."""
    x, y = map(float, text.strip("()").split(","))
    wkb = base64.b64decode(value["wkb"])
    return (value["x"], value["y"], value["srid"]) == (x, y, None) and wkb == struct.pack("<BIdd", 1, 1, x, y)


def sample(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | sample(
    "", "NULL", "null", '"', "\\", "{}", ",", "{a,b}", "'", " ", "a b", "\\N", "\t", "\n", "😀", "\x7f\x1f"
)
ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=5)
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31)).map(str)
STAMPS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 12, 31)).map(str)
CLOCKS = st.times().map(str) | sample("24:00:00", "00:00:00", "23:59:59.999999")
OFFSETS = sample("+00", "+02", "-12", "+05:45", "-03:30")
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=None, min_value=-(10**30), max_value=10**30).map(
    lambda number: f"{number:f}"[:60]
)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ASCII, inner, max_size=3),
    max_leaves=5,
).map(lambda value: json.dumps(value, ensure_ascii=False))


def between(low: int, high: int) -> st.SearchStrategy[str]:
    return (st.integers(low, high) | st.sampled_from([low, high, 0, 1])).map(str)


def fixed(precision: int, scale: int) -> st.SearchStrategy[str]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda number: f"{Decimal(number).scaleb(-scale, DIGITS):f}")


def ranges(low: int, high: int) -> st.SearchStrategy[str]:
    ends = (st.integers(low, high), st.integers(low, high))
    return st.builds(lambda one, two: f"[{min(one, two)},{max(one, two)}]", *ends) | sample("empty", "(,)", "[1,)")


SCALARS: tuple[Kind, ...] = (
    Kind("smallint", between(-(2**15), 2**15 - 1), whole, zero="0"),
    Kind("integer", between(-(2**31), 2**31 - 1), whole, zero="0"),
    Kind("bigint", between(-(2**63), 2**63 - 1), whole, zero="0"),
    Kind("oid", between(0, 2**32 - 1), whole, default=False, zero="0"),
    Kind("real", st.floats(width=32).map(repr), single, keys=False, zero="0"),
    Kind("double precision", st.floats().map(repr), floating, keys=False, zero="0"),
    Kind("numeric", NUMBERS | sample("NaN", "Infinity", "-Infinity"), decimal(None), keys=False, default=False),
    Kind("numeric(12,4)", fixed(12, 4) | sample("NaN"), decimal(4), keys=False, default=False),
    Kind("numeric(40,0)", fixed(40, 0), decimal(0), default=False),
    Kind("money", fixed(18, 2), money, default=False, zero="$0.00"),
    Kind("boolean", sample("t", "f"), boolean, zero="f"),
    Kind("char(4)", ASCII.map(lambda text: text[:4]), exact, default=False, zero=""),
    Kind("varchar(12)", TEXTS, exact, zero=""),
    Kind("text", TEXTS, exact, zero=""),
    Kind("bytea", st.binary(max_size=9).map(lambda raw: "\\x" + raw.hex()), bytea, default=False, zero="\\x"),
    Kind("date", DATES, day, zero="1970-01-01"),
    Kind("time", CLOCKS, clock(6), default=False, zero="00:00:00"),
    Kind("time(2)", CLOCKS, clock(2), default=False, zero="00:00:00"),
    Kind("timetz", st.builds(str.__add__, CLOCKS, OFFSETS), zoned_time, keys=False, default=False),
    Kind("timestamp", STAMPS, moment(6), zero="1970-01-01 00:00:00"),
    Kind("timestamp(1)", STAMPS, moment(1), default=False, zero="1970-01-01 00:00:00"),
    Kind("timestamptz", st.builds(str.__add__, STAMPS, OFFSETS), zoned, default=False),
    Kind(
        "interval",
        st.builds(
            "{} year {} mon {} day {} second".format,
            st.integers(-99, 99),
            st.integers(-11, 11),
            st.integers(-30, 30),
            st.integers(-(10**11), 10**11).map(lambda micros: f"{Decimal(micros).scaleb(-6):f}"),
        ),
        interval,
        keys=False,
        default=False,
    ),
    Kind("uuid", st.uuids().map(str), exact, zero=""),
    Kind("json", JSONS, exact, keys=False, default=False, zero=""),
    Kind("jsonb", JSONS, exact, default=False, zero=""),
    Kind("bit(1)", sample("0", "1"), boolean, default=False, zero="0"),
    Kind("bit(11)", st.integers(0, 2**11 - 1).map("{:011b}".format), bits, default=False, zero=""),
    Kind("varbit(20)", st.text("01", max_size=20), bits, default=False, zero=""),
    Kind("inet", st.ip_addresses().map(str), exact, default=False, zero=""),
    Kind("cidr", st.ip_addresses().map(str), exact, default=False, zero=""),
    Kind("macaddr", st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex()), exact, default=False, zero=""),
    Kind("int4range", ranges(-1000, 1000), exact, default=False, zero=""),
    Kind("numrange", ranges(-1000, 1000), exact, default=False, zero=""),
    Kind(
        "tsvector",
        st.lists(sample("a", "b:1", "c:2A", "'it''s'"), max_size=3).map(" ".join),
        exact,
        default=False,
        zero="",
    ),
    Kind(
        "point",
        st.builds("({!r},{!r})".format, st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)),
        point,
        keys=False,
        default=False,
    ),
    Kind("mood", sample("happy", "very sad", "so, so"), exact, default=False, zero=""),
    Kind("amount", fixed(6, 3), decimal(3), default=False),
    Kind("xid8", between(0, 2**63), unknown, keys=False, default=False),
    Kind("pair", sample("(1,a)", "(,)", '("2","b c")'), unknown, keys=False, default=False),
)
WITHOUT_ARRAYS = {"money", "interval", "varbit(20)", "point", "amount", "xid8", "pair", "bit(1)", "bit(11)"}
ARRAYS: tuple[Kind, ...] = tuple(kind for kind in SCALARS if kind.name not in WITHOUT_ARRAYS)
"""The kinds of which Debezium has arrays."""
SETUP = (
    "CREATE TYPE mood AS ENUM ('happy', 'very sad', 'so, so')",
    "CREATE TYPE pair AS (a integer, b text)",
    "CREATE DOMAIN amount AS numeric(6,3)",
)
MODES = {
    "time.precision.mode": (
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ),
    "decimal.handling.mode": ("precise", "double", "string"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
    "interval.handling.mode": ("numeric", "string"),
    "include.unknown.datatypes": ("true", "false"),
}
