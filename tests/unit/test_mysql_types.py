"""Codecs of MySQL's types: JSON, schemas, typed columns, defaults and source types."""

from __future__ import annotations

import datetime
import json
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from floodmark.codecs.codec import one_json
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.types.defaults import default_value
from floodmark.connectors.mysql.types.registry import FACTORIES, codec_with
from floodmark.connectors.mysql.types.settings import MysqlSettings
from floodmark.connectors.mysql.types.source_types import source_type
from floodmark.connectors.mysql.values.raw_columns import raw_type
from floodmark.errors import SourceStateError
from floodmark.events.json_text import closed

PLACEHOLDER = "__debezium_unavailable_value"
DEFAULT = MysqlSettings("precise", "adaptive_time_microseconds", "bytes", PLACEHOLDER, "long", True)
UTC = datetime.UTC


def encoded(column: Column, values: list[Any], **modes: Any) -> list[Any]:
    """Return raw values as events hold them; they must look the same in a sliced array."""
    codec = codec_with(column, replace(DEFAULT, **modes))
    array = pa.array([None, *values, None], raw_type(column))
    shown = [json.loads(text) for text in closed(codec.encode(array.slice(1, len(values)))).to_pylist()]
    whole = [json.loads(text) for text in closed(codec.encode(array)).to_pylist()]
    assert whole[1:-1] == shown
    assert codec.encode(array.slice(0, 0)).text.to_pylist() == []
    return shown


def typed(column: Column, values: list[Any], **modes: Any) -> list[Any]:
    codec = codec_with(column, replace(DEFAULT, **modes))
    found = codec.to_arrow(pa.array(values, raw_type(column)))
    assert found.type == codec.arrow_type
    values_found: list[Any] = found.to_pylist()
    return values_found


BIG = Column("c", "bigint", unsigned=True)
YEAR = Column("c", "year")
DATE = Column("c", "date")
DATETIME = Column("c", "datetime", None, 6)
STAMP = Column("c", "timestamp", None, 3)
TIME = Column("c", "time", None, 2)
BITS = Column("c", "bit", 9)
POINT = Column("c", "point")
VECTOR = Column("c", "vector", 2)


@pytest.mark.parametrize(
    ("column", "modes", "values", "expected"),
    [
        (BIG, {}, ["1", "18446744073709551615"], [1, -1]),
        (BIG, {"bigint_unsigned_handling_mode": "precise"}, ["128"], ["AIA="]),
        (Column("c", "decimal", 5, 2), {}, ["-1.50", "0.00"], ["/2o=", "AA=="]),
        (Column("c", "float"), {}, [0.1, 16777216.0, None], [0.1, 16777216.0, None]),
        (Column("c", "float", 7, 3), {}, [1234.568], [1234.5679931640625]),
        (Column("c", "double"), {}, [1e23, -0.0], [1e23, -0.0]),
        (Column("c", "bit", 1), {}, [b"\1", b"\0", None], [True, False, None]),
        (BITS, {}, [b"\1\0", b"\0\xff", None], ["AAE=", "/wA=", None]),
        (YEAR, {}, ["0000", "2155"], [2000, 2155]),
        (YEAR, {"enable_time_adjuster": False}, ["0000"], [0]),
        (
            DATE,
            {},
            ["2024-02-29", "0000-00-00", "2024-00-01", "2023-02-29", "0001-01-01"],
            [19782, None, None, None, 11323],
        ),
        (DATE, {"enable_time_adjuster": False}, ["0001-01-01"], [-719162]),
        (DATE, {"time_precision_mode": "isostring"}, ["2024-02-29", "0070-01-01"], ["2024-02-29Z", "1970-01-01Z"]),
        (DATETIME, {}, ["1969-12-31 23:59:59.500000", "0000-00-00 00:00:00.000000"], [-500000, None]),
        (replace(DATETIME, scale=3), {}, ["1969-12-31 23:59:59.500"], [-500]),
        (replace(DATETIME, scale=None), {}, ["2024-02-29 13:14:15"], [1709212455000]),
        (DATETIME, {"time_precision_mode": "connect"}, ["1969-12-31 23:59:59.999999"], [-1]),
        (DATETIME, {"time_precision_mode": "nanoseconds"}, ["9999-12-31 00:00:00.000000"], [None]),
        (DATETIME, {"time_precision_mode": "isostring"}, ["2024-02-29 13:14:15.120000"], ["2024-02-29T13:14:15.12Z"]),
        (DATETIME, {"time_precision_mode": "isostring"}, ["2024-02-29 13:14:10.000000"], ["2024-02-29T13:14:10Z"]),
        (STAMP, {}, ["2024-02-29 13:14:15.120", "0000-00-00 00:00:00.000"], ["2024-02-29T13:14:15.120Z", None]),
        (TIME, {}, ["-838:59:59.00", "100:00:00.25", "-00:00:00.01"], [-3020399000000, 360000250000, -10000]),
        (TIME, {"time_precision_mode": "nanoseconds"}, ["00:00:01.50"], [1500000000]),
        (
            TIME,
            {"time_precision_mode": "connect"},
            ["24:00:00.00", "24:00:00.01", "-00:00:00.01"],
            [86400000, None, None],
        ),
        (TIME, {"time_precision_mode": "isostring"}, ["24:00:00.00", "01:02:03.50"], ["00:00:00Z", "01:02:03.5Z"]),
        (replace(TIME, scale=None), {}, ["01:02:03", None], [3723000000, None]),
        (Column("c", "enum", values=("a,b", "")), {}, ["a,b", ""], ["a,b", ""]),
        (Column("c", "blob"), {"binary_handling_mode": "hex"}, [b"\xff\0"], ["ff00"]),
        (Column("c", "varbinary", 4), {}, [b"\xff\0"], ["/wA="]),
        (Column("c", "json"), {}, ['{"a b": [1, "x, \\" y: "]}', None], ['{"a b":[1,"x, \\" y: "]}', None]),
        (POINT, {}, [struct.pack("<IBIdd", 4326, 1, 1, 1.5, -2.0)], None),
        (Column("c", "geometry"), {}, [struct.pack("<IBI", 0, 1, 7), None], [{"wkb": "AQcAAAA=", "srid": None}, None]),
        (VECTOR, {}, [struct.pack("<ff", 1, 0.1), b"", None], [[1.0, 0.1], [], None]),
    ],
)
def test_values(column: Column, modes: dict[str, Any], values: list[Any], expected: list[Any] | None) -> None:
    if expected is None:
        expected = [{"x": 1.5, "y": -2.0, "wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAADA", "srid": 4326}]
    found = encoded(column, values, **modes)
    assert found == expected
    assert [str(value) for value in found] == [str(value) for value in expected]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (BIG, ["18446744073709551615"], [-1]),
        (Column("c", "tinyint"), ["-1", None], [-1, None]),
        (Column("c", "float", 7, 3), [1.5], [1.5]),
        (DATE, ["0000-00-00", "2024-02-29"], [None, datetime.date(2024, 2, 29)]),
        (replace(STAMP, scale=0), ["2024-02-29 13:14:15"], [datetime.datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)]),
        (replace(DATETIME, scale=0), ["2024-02-29 13:14:15"], [datetime.datetime(2024, 2, 29, 13, 14, 15)]),
        (Column("c", "bit", 1), [b"\1", None], [True, None]),
        (VECTOR, [struct.pack("<ff", 1, 2), None], [[1.0, 2.0], None]),
    ],
)
def test_typed_columns(column: Column, values: list[Any], expected: list[Any]) -> None:
    assert typed(column, values) == expected


def test_zero_dates_of_required_columns() -> None:
    zero = ["0000-00-00", "2024-00-00", "2024-02-29"]
    assert encoded(replace(DATE, optional=False), zero) == [0, 0, 19782]
    default = replace(DATE, optional=False, default="2000-01-01", default_kind="literal")
    assert encoded(default, zero) == [10957, 10957, 19782]
    stamp = replace(STAMP, optional=False, default="2000-01-01 00:00:00.000", default_kind="literal")
    assert encoded(stamp, ["0000-00-00 00:00:00.000"]) == ["2000-01-01T00:00:00.000Z"]
    assert encoded(replace(STAMP, optional=False), ["0000-00-00 00:00:00.000"]) == ["1970-01-01T00:00:00.000Z"]


@pytest.mark.parametrize("kind", sorted(FACTORIES))
def test_every_type_has_valid_parts(kind: str) -> None:
    for mode in ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"):
        column = Column("c", kind, 10 if kind == "bit" else None, values=("a",) if kind in ("enum", "set") else ())
        codec = codec_with(column, replace(DEFAULT, time_precision_mode=mode))
        json.loads(codec.zero)
        json.loads(codec.unavailable)
        empty = pa.array([], raw_type(column))
        assert codec.to_arrow(empty).type == codec.arrow_type
        assert codec.encode(pa.nulls(2, raw_type(column))).text.null_count == 2


def test_an_unknown_type() -> None:
    with pytest.raises(SourceStateError, match="'c' has the type 'xml'"):
        codec_with(Column("c", "xml"), DEFAULT)


def literal(kind: str, default: str, **more: Any) -> Column:
    return Column("c", kind, default=default, default_kind="literal", **more)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (literal("int", "5"), "5"),
        (literal("int", "1.5"), "2"),
        (literal("tinyint", "true"), "1"),
        (literal("bigint", "18446744073709551615", unsigned=True), "9223372036854775807"),
        (literal("int", "nonsense"), None),
        (literal("decimal", "1.005", length=5, scale=2), '"ZQ=="'),
        (literal("decimal", "9" * 40, length=40), '"HWMp8cNcpL+rufVg//////8="'),
        (literal("float", "1.5"), "1.5"),
        (literal("double", "1e20"), "1.0E20"),
        (literal("varchar", "it's"), '"it\'s"'),
        (literal("enum", "a", values=("a", "b")), '"a"'),
        (literal("date", "2024-02-29"), "19782"),
        (literal("date", "0000-00-00"), None),
        (literal("date", "0000-00-00", optional=False), "0"),
        (literal("datetime", "2024-02-29 13:14:15"), "1709212455000"),
        (literal("datetime", "2024-02-29", scale=6), "1709164800000000"),
        (literal("timestamp", "2000-01-01 00:00:00", scale=3, optional=False), '"2000-01-01T00:00:00.000Z"'),
        (Column("c", "timestamp", default="CURRENT_TIMESTAMP", default_kind="expression"), None),
        (
            Column("c", "timestamp", optional=False, default="CURRENT_TIMESTAMP", default_kind="expression"),
            '"1970-01-01T00:00:00Z"',
        ),
        (Column("c", "datetime", default="CURRENT_TIMESTAMP", default_kind="expression"), "0"),
        (Column("c", "varchar", default="uuid()", default_kind="expression"), None),
        (Column("c", "int", default_kind="null"), None),
        (literal("time", "10:11:12.5", scale=2), "36672500000"),
        (literal("time", "-01:02"), "-3720000000"),
        (literal("year", "0"), "2000"),
        (literal("bit", "b'1'"), "true"),
        (literal("bit", "b'101'", length=9), '"BQA="'),
        (literal("binary", "ab", length=4), '"YWIAAA=="'),
        (literal("varbinary", "0x6162"), '"YWI="'),
    ],
)
def test_defaults(column: Column, shown: str | None) -> None:
    codec = codec_with(column, DEFAULT)
    value = default_value(column, codec)
    assert (None if value is None else one_json(codec, value)) == shown


@pytest.mark.parametrize(
    ("column", "name", "length", "scale", "text"),
    [
        (Column("c", "int", unsigned=True, zerofill=True), "INT UNSIGNED ZEROFILL", -1, -1, False),
        (Column("c", "varchar", 50), "VARCHAR", 50, -1, True),
        (Column("c", "decimal", 10, 2), "DECIMAL", 10, 2, False),
        (Column("c", "datetime", None, 6), "DATETIME", 6, -1, False),
        (Column("c", "set", values=("a", "b", "c")), "SET", 5, -1, True),
        (Column("c", "json"), "JSON", -1, -1, False),
    ],
)
def test_source_types(column: Column, name: str, length: int, scale: int, text: bool) -> None:
    found = source_type(column)
    assert (found.name, found.length, found.scale, found.text) == (name, length, scale, text)


def test_days_that_their_months_have() -> None:
    day = datetime.date(1899, 12, 20)
    days = [str(day + datetime.timedelta(days=number)) for number in range(1000)] + ["2000-02-29", "1900-02-29"]
    expected = [(datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days for text in days[:-1]]
    assert encoded(DATE, days) == [*expected, None]


def test_escapes_in_json() -> None:
    text = r'["\u001f", "\\u001f", "\n \" , "]'
    assert encoded(Column("c", "json"), [text, "[1, 2]"]) == [r'["\u001F","\\u001f","\n \" , "]', "[1,2]"]
