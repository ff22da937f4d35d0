"""Debezium's converter of time zones: its options, offsets of zones, and texts that are moved."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.config.transforms.timezones import TimezoneConverterOptions
from floodmark.errors import ConfigError
from floodmark.transforms.debezium.zone_offsets import Zone
from floodmark.transforms.debezium.zoned_texts import moved_numbers, moved_times, moved_timestamps
from tests.support.records import chain, changes

CONVERTER = "io.debezium.transforms.TimezoneConverter"
ZONES = ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin", "Pacific/Apia", "UTC"]
EPOCH = datetime(1970, 1, 1)
MOMENTS = st.datetimes(datetime(1801, 1, 1), datetime(9998, 12, 31)) | st.datetimes(
    datetime(1900, 1, 1), datetime(2040, 1, 1)
)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({}, ("transforms.one.converted.timezone", "required")),
        ({"converted.timezone": "America/Limas"}, ("transforms.one.converted.timezone", "Did you mean 'America/Lima'")),
        ({"converted.timezone": "+19:00"}, ("'+19:00'", "-18:00")),
        ({"converted.timezone": "../etc/passwd"}, ("'../etc/passwd'",)),
        ({"converted.timezone": "PST"}, ("'PST'",)),
        (
            {"converted.timezone": "UTC", "include.list": "source:a", "exclude.list": "source:b"},
            ("exclude each other",),
        ),
        (
            {"converted.timezone": "UTC", "include.list": "orders"},
            ("transforms.one.include.list", "'orders'", "source:"),
        ),
        ({"converted.timezone": "UTC", "exclude.list": "source:a:b:c"}, ("transforms.one.exclude.list", "a:b:c")),
        ({"converted.timezone": "UTC", "exclude.list": "topic:"}, ("'topic:'",)),
        ({"converted.timezone": "UTC", "exclude.list": "a:b:c"}, ("'a:b:c'",)),
    ],
)
def test_wrong_options(own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(CONVERTER, own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("text", "offset"), [("+05:30", 19_800), ("-11:22:33", -40_953), ("+18:00", 64_800), ("UTC", None), ("Z", None)]
)
def test_fixed_offsets(text: str, offset: int | None) -> None:
    if text == "Z":
        with pytest.raises(ConfigError):
            TimezoneConverterOptions.parse({"converted.timezone": text})
    else:
        assert TimezoneConverterOptions.parse({"converted.timezone": text}).fixed_offset == offset


def test_rules() -> None:
    given_rules = "orders:made,source:items,items:sold,topic:shop.public.orders:at"
    rules = TimezoneConverterOptions.parse({"converted.timezone": "UTC", "include.list": given_rules}).rules
    assert not rules.excluded
    assert rules.of("shop.public.orders", "orders") == frozenset({"at"})
    assert rules.of("x", "orders") == frozenset({"made"})
    assert rules.of("orders", "x") == frozenset({"made"})
    assert rules.of("x", "items") == frozenset({"sold"})
    assert rules.of("x", "other") is None


@settings(max_examples=30)
@given(st.sampled_from(ZONES), st.lists(MOMENTS, min_size=1, max_size=8))
def test_offsets_are_the_zones(name: str, moments: list[datetime]) -> None:
    seconds = np.array([(one - EPOCH) // timedelta(seconds=1) for one in moments], np.int64)
    zone, info = Zone(name, None), ZoneInfo(name)
    clocks = [one.replace(tzinfo=info, microsecond=0).utcoffset() for one in moments]
    instants = [one.replace(tzinfo=UTC, microsecond=0).astimezone(info).utcoffset() for one in moments]
    for got, want in ((zone.at_clocks(seconds), clocks), (zone.at_instants(seconds), instants)):
        assert [timedelta(seconds=int(one)) for one in got] == want


@pytest.mark.parametrize("name", ZONES)
def test_offsets_where_clocks_are_set(name: str) -> None:
    """Every second hour of some years, and the seconds beside each time at which clocks are set."""
    zone, info = Zone(name, None), ZoneInfo(name)
    hours = np.arange(1_100_000_000, 1_800_000_000, 1800, dtype=np.int64)
    offsets = zone.at_instants(hours)
    near = hours[1:][np.diff(offsets) != 0]
    seconds = np.unique((near[:, None] + np.array([-7201, -3601, -3600, -1, 0, 1, 1799, 1800, 3599, 3600])).ravel())
    for shift in (0, int(offsets[0])):
        clocks = seconds + shift
        want = [(EPOCH + timedelta(seconds=int(one))).replace(tzinfo=info).utcoffset() for one in clocks]
        assert [timedelta(seconds=int(one)) for one in zone.at_clocks(clocks)] == want


OFFSETS = st.sampled_from(["Z", "+00:00", "+05:30", "-11:00", "+01:00:30"])
ODD = ["infinity", "-infinity", "", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01", "null", "x"]


def java_text(moment: datetime, offset: timedelta) -> str:
    """Return what Java's ISO_OFFSET_DATE_TIME writes."""
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds").rstrip("0").rstrip(".")
    total = int(offset.total_seconds())
    hours, rest = divmod(abs(total), 3600)
    shown = f"{'-' if total < 0 else '+'}{hours:02}:{rest // 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")
    return text + (shown if total else "Z")


@settings(max_examples=40)
@given(st.sampled_from(ZONES), st.lists(st.none() | st.tuples(MOMENTS, OFFSETS, st.integers(0, 6)), max_size=8))
def test_timestamps_are_moved(name: str, rows: list[tuple[datetime, str, int] | None]) -> None:
    texts: list[str | None] = [*ODD]
    want: list[str | None] = [*ODD]
    for row in rows:
        if row is None:
            texts.append(None)
            want.append(None)
            continue
        moment, offset, digits = row
        fraction = f"{moment.microsecond:06}"[:digits]
        whole = moment.replace(microsecond=int(fraction.ljust(6, "0")))
        texts.append(whole.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{fraction}" if digits else "") + offset)
        own = datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").utcoffset() or timedelta()
        shift = whole.replace(tzinfo=ZoneInfo(name), microsecond=0).utcoffset() or timedelta()
        want.append(java_text((whole - own + shift).replace(tzinfo=timezone(shift)), shift))
    found = moved_timestamps(pa.array(texts, pa.string()), Zone(name, None)).to_pylist()
    assert found == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("9999-12-31T23:59:59.5Z", "+10000-01-01T05:29:59.5+05:30"),
        ("+10000-01-01T00:00:00Z", "+10000-01-01T05:30:00+05:30"),
        ("-0043-03-15T12:00:00.000000Z", "-0043-03-15T17:30:00+05:30"),
        ("0000-12-31T23:00:00Z", "0001-01-01T04:30:00+05:30"),
    ],
)
def test_years_beyond_four_digits(text: str, want: str) -> None:
    assert moved_timestamps(pa.array([text, "2026-01-01T00:00:00Z"]), Zone("", 19_800)).to_pylist() == [
        want,
        "2026-01-01T05:30:00+05:30",
    ]


def test_times_of_day() -> None:
    given_texts = ["23:59:59.500000Z", "00:00:00+02:00", None, "24:00:00Z", "x", "12:00:00Z"]
    found = moved_times(pa.array(given_texts, pa.string()), -3600).to_pylist()
    assert found == ["22:59:59.5-01:00", "21:00:00-01:00", None, "24:00:00Z", "x", "11:00:00-01:00"]
    assert moved_times(pa.array([], pa.string()), 0).to_pylist() == []


def test_numbers_round_down_before_1970() -> None:
    seen: list[int] = []

    def shifts(
        seconds: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        seen.extend(seconds.tolist())
        return np.full(len(seconds), -60)

    assert moved_numbers(pa.array(["-1", None, "1500"]), 1000, shifts).to_pylist() == ["-60001", None, "-58500"]
    assert seen == [-1, 0, 1]


def test_records_that_have_no_times_stay() -> None:
    made = chain(CONVERTER, {"converted.timezone": "+01:00"}).columns(changes("t", "x", None))
    assert [json.loads(value)["after"]["v"] for value in made["value"].to_pylist()] == ["x", None]
