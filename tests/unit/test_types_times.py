"""Dates, times and intervals beside references made with Python's ``datetime``."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.codecs import calendar
from tests.unit.test_types_helpers import codec, encoded, strings

EPOCH = datetime(1970, 1, 1)
MICRO = timedelta(microseconds=1)
MODES = st.sampled_from(
    ["adaptive", "connect", "isostring", "microseconds", "nanoseconds", "adaptive_time_microseconds"]
)
DIGITS = st.integers(-1, 6)
INT64_MAX = (1 << 63) - 1


def fraction_of(micros: int) -> str:
    text = f".{micros:06}".rstrip("0")
    return "" if text == "." else text


def rounded(value: datetime, digits: int) -> datetime:
    """Return a timestamp with so many digits of the second's fraction; the server rounds, here is cut."""
    return value.replace(microsecond=value.microsecond - value.microsecond % 10 ** (6 - digits))


def written(value: datetime | time) -> str:
    """Return a time or timestamp as PostgreSQL writes it."""
    clock = f"{value.hour:02}:{value.minute:02}:{value.second:02}{fraction_of(value.microsecond)}"
    return f"{value.date()} {clock}" if isinstance(value, datetime) else clock


def epoch_us(value: datetime) -> int:
    return (value - EPOCH) // MICRO


@given(st.lists(st.none() | st.dates()))
def test_dates(values: list[date | None]) -> None:
    texts = [None if value is None else str(value) for value in values]
    days = ["null" if value is None else str((value - EPOCH.date()).days) for value in values]
    assert encoded(codec("date"), texts) == days
    assert encoded(codec("date", time_precision_mode="connect"), texts) == days
    iso = ["null" if text is None else f'"{text}Z"' for text in texts]
    assert encoded(codec("date", time_precision_mode="isostring"), texts) == iso
    assert codec("date").to_arrow(strings(texts)).to_pylist() == values


@given(st.lists(st.none() | st.datetimes()), DIGITS, MODES)
def test_timestamps(values: list[datetime | None], modifier: int, mode: str) -> None:
    digits = 6 if modifier == -1 else modifier
    exact = [None if value is None else rounded(value, digits) for value in values]
    one = codec("timestamp", modifier, time_precision_mode=mode)
    texts = [None if value is None else written(value) for value in exact]
    want = ["null" if value is None else number_of(value, digits, mode) for value in exact]
    assert encoded(one, texts) == want
    assert one.to_arrow(strings(texts)).to_pylist() == exact


def number_of(value: datetime, digits: int, mode: str) -> str:
    micros = epoch_us(value)
    if mode == "isostring":
        return f'"{written(value).replace(" ", "T")}Z"'
    if mode == "nanoseconds":
        return str(micros * 1000) if abs(micros * 1000) <= INT64_MAX else "null"
    if mode == "connect" or (mode != "microseconds" and digits <= 3):
        return str(micros // 1000)
    return str(micros)


@given(st.lists(st.none() | st.datetimes()), DIGITS)
def test_timestamps_with_time_zone(values: list[datetime | None], modifier: int) -> None:
    digits = 6 if modifier == -1 else modifier
    exact = [None if value is None else rounded(value, digits) for value in values]
    texts = [None if value is None else f"{written(value)}+00" for value in exact]
    want = []
    for value in exact:
        if value is None:
            want.append("null")
            continue
        fraction = f".{value.microsecond:06}"[: digits + 1] if digits else ""
        want.append(f'"{value.date()}T{value:%H:%M:%S}{fraction}Z"')
    one = codec("timestamptz", modifier)
    assert encoded(one, texts) == want
    assert one.to_arrow(strings(texts)).to_pylist() == [value and value.replace(tzinfo=UTC) for value in exact]


@pytest.mark.parametrize("offset", ["+02", "-03:30", "+05:45:15"])
def test_timestamps_in_other_zones_are_moved_to_utc(offset: str) -> None:
    moved = datetime.fromisoformat(f"2024-01-01 01:00:00.5{offset if len(offset) > 3 else offset + ':00'}")
    want = moved.astimezone(UTC).strftime('"%Y-%m-%dT%H:%M:%S.500000Z"')
    assert encoded(codec("timestamptz"), [f"2024-01-01 01:00:00.5{offset}"]) == [want]


@given(st.lists(st.none() | st.times() | st.just("24:00:00")), DIGITS, MODES)
def test_times(values: list[time | str | None], modifier: int, mode: str) -> None:
    digits = 6 if modifier == -1 else modifier
    texts: list[str | None] = []
    want = []
    for value in values:
        if value is None:
            texts.append(None)
            want.append("null")
            continue
        if isinstance(value, str):
            micros, text, iso = 86_400_000_000, value, "00:00:00Z"
        else:
            exact = rounded(datetime.combine(EPOCH, value), digits)
            micros, text = epoch_us(exact), written(exact.time())
            iso = text + "Z"
        texts.append(text)
        if mode == "isostring":
            want.append(f'"{iso}"')
        elif mode == "nanoseconds":
            want.append(str(micros * 1000))
        else:
            millis = mode == "connect" or (mode == "adaptive" and digits <= 3)
            want.append(str(micros // 1000 if millis else micros))
    assert encoded(codec("time", modifier, time_precision_mode=mode), texts) == want


OFFSETS = st.integers(-15 * 3600 - 3599, 15 * 3600 + 3599) | st.sampled_from([0, 3600, -7200, 19800, 20700])


@given(st.lists(st.none() | st.tuples(st.times(), OFFSETS)))
def test_times_with_time_zone(values: list[tuple[time, int] | None]) -> None:
    texts: list[str | None] = []
    want = []
    for value in values:
        if value is None:
            texts.append(None)
            want.append("null")
            continue
        clock, offset = value
        hours, minutes, seconds = abs(offset) // 3600, abs(offset) // 60 % 60, abs(offset) % 60
        tail = f":{minutes:02}:{seconds:02}" if seconds else f":{minutes:02}" if minutes else ""
        texts.append(f"{written(clock)}{'-' if offset < 0 else '+'}{hours:02}{tail}")
        local = datetime.combine(date(2000, 1, 2), clock, timezone(timedelta(seconds=offset)))
        want.append(f'"{written(local.astimezone(UTC).time())}Z"')
    assert encoded(codec("timetz"), texts) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("24:00:00+00", "00:00:00Z"),
        ("24:00:00-05:30", "05:30:00Z"),
        ("24:00:00+00:30", "23:30:00Z"),
        ("00:00:00+15:59:59", "08:00:01Z"),
    ],
)
def test_midnight_with_time_zone(text: str, want: str) -> None:
    assert encoded(codec("timetz"), ["01:02:03.4+00", text]) == ['"01:02:03.4Z"', f'"{want}"']


PARTS = st.tuples(
    st.integers(-9999, 9999),
    st.integers(-11, 11),
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.integers(0, 10**6),
    st.integers(0, 59),
    st.integers(0, 59),
    st.integers(0, 999_999) | st.just(0),
)


def interval_text(years: int, months: int, days: int, negative: bool, *clock: int) -> str:
    """Return an interval as PostgreSQL writes it (``EncodeInterval``, style postgres)."""
    words: list[str] = []
    before_negative = False
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            plus = "+" if before_negative and number > 0 else ""
            words.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            before_negative = number < 0
    hours, minutes, seconds, micros = clock
    if any(clock) or not words:
        sign = "-" if negative and any(clock) else "+" if before_negative else ""
        words.append(f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction_of(micros)}")
    return " ".join(words)


def interval_micros(years: int, months: int, days: int, negative: bool, *clock: int) -> int:
    """Return what Debezium's formula gives, in double precision."""
    sign = -1 if negative else 1
    hours, minutes, seconds, micros = (sign * part for part in clock)
    total = ((years * 12 + months) * 30.4375 + days) * 24 + hours
    exact = ((total * 60 + minutes) * 60 + (seconds + micros / 1e6)) * 1e6
    whole = math.floor(exact + 0.5) if abs(exact) < 2.0**52 else int(exact)
    return max(-(1 << 63), min(INT64_MAX, whole))


def interval_iso(years: int, months: int, days: int, negative: bool, *clock: int) -> str:
    hours, minutes, seconds, micros = clock
    signs = ["-" if negative and part else "" for part in (hours, minutes, seconds or micros)]
    return f"P{years}Y{months}M{days}DT{signs[0]}{hours}H{signs[1]}{minutes}M{signs[2]}{seconds}{fraction_of(micros)}S"


@given(st.lists(st.none() | PARTS))
def test_intervals(values: list[tuple[int, int, int, bool, int, int, int, int] | None]) -> None:
    texts = [None if parts is None else interval_text(*parts) for parts in values]
    micros = ["null" if parts is None else str(interval_micros(*parts)) for parts in values]
    assert encoded(codec("interval"), texts) == micros
    iso = ["null" if parts is None else f'"{interval_iso(*parts)}"' for parts in values]
    assert encoded(codec("interval", interval_handling_mode="string"), texts) == iso


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("9999 years 11 mons 30 days 23:59:59.999999", "315576048600000000"),
        ("10000000 days 00:00:00.000001", "864000000000000000"),
        ("2562047788:00:54.775807", "9223372036854775807"),
        ("-178000000 years", "-9223372036854775808"),
        ("infinity", "9223372036854775807"),
        ("-infinity", "-9223372036854775808"),
    ],
)
def test_exceptional_intervals(text: str, micros: str) -> None:
    assert encoded(codec("interval"), ["1 day", text]) == ["86400000000", micros]


@given(st.dates())
def test_the_calendar_within_pythons(value: date) -> None:
    days = (value - EPOCH.date()).days
    assert calendar.days_of(value.year, value.month, value.day) == days
    assert calendar.year_month_day(days) == (value.year, value.month, value.day)


@given(st.integers(calendar.INT32_MIN, calendar.INT32_MAX))
def test_the_calendar_beyond_pythons(days: int) -> None:
    assert calendar.days_of(*calendar.year_month_day(days)) == days


@pytest.mark.parametrize(
    ("mode", "text", "want"),
    [
        ("adaptive", "infinity", "9223372036825200000"),
        ("adaptive", "-infinity", "-9223372036832400000"),
        ("adaptive", "294276-12-31 23:59:59", "9223372036854775807"),
        ("adaptive", "0044-03-15 12:00:00 BC", "-63517780800000000"),
        ("adaptive", "4714-11-24 00:00:00 BC", "-210866803200000000"),
        ("connect", "294276-12-31 23:59:59", "9224318015999000"),
        ("connect", "1969-12-31 23:59:59.999999", "-1"),
        ("connect", "0001-12-31 23:59:59.999999 BC", "-62135596800001"),
        ("nanoseconds", "infinity", "9223372036854775807"),
        ("nanoseconds", "-infinity", "-9223372036854775808"),
        ("nanoseconds", "2262-04-11 23:47:16.854775", "9223372036854775000"),
        ("nanoseconds", "2262-04-11 23:47:16.854776", "null"),
        ("nanoseconds", "0044-03-15 12:00:00 BC", "null"),
        ("isostring", "infinity", '"+294247-01-10T04:00:25.2Z"'),
        ("isostring", "0001-03-15 12:00:00 BC", '"0000-03-15T12:00:00Z"'),
        ("isostring", "12345-01-01 00:00:00.25", '"+12345-01-01T00:00:00.25Z"'),
    ],
)
def test_exceptional_timestamps(mode: str, text: str, want: str) -> None:
    ordinary = "2024-01-01 00:00:00"
    one = codec("timestamp", time_precision_mode=mode)
    assert encoded(one, [ordinary, text, None]) == [encoded(one, [ordinary])[0], want, "null"]


def test_what_does_not_fit_rows_is_null() -> None:
    for kind, odd in {
        "date": ["infinity", "-infinity", "0044-03-15 BC", "12345-01-01"],
        "timestamp": ["infinity", "-infinity", "0044-03-15 12:00:00 BC", "12345-01-01 00:00:00"],
        "timestamptz": ["infinity", "-infinity", "0044-03-15 12:00:00+00 BC", "12345-01-01 00:00:00+00"],
    }.items():
        assert codec(kind).to_arrow(strings(odd)).null_count == len(odd)
