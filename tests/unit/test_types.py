"""What holds for all codecs, and which one a type has."""

from __future__ import annotations

import json
from itertools import product

import pyarrow as pa
import pytest

from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.types.registry import BUILT_IN, codec_for
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.events.json_text import closed
from tests.unit.test_types_helpers import OIDS, codec, encoded, numeric_modifier, options, strings

TIMES = ["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]
DECIMALS = ["precise", "double", "string"]
BINARIES = ["bytes", "base64", "base64-url-safe", "hex"]
TIMESTAMPS = ["2024-02-29 13:14:15.123456", "infinity", "0044-03-15 12:00:00 BC", "1969-12-31 23:59:59", "-infinity"]
ZONED = ["2024-02-29 13:14:15.123456+00", "infinity", "0044-03-15 12:00:00+00 BC", "1969-12-31 23:59:59+00"]
FAR = ["12345-01-01 00:00:00.25", "294276-12-31 23:59:59"]
NUMBERS = ["0", "12", "-1", "127", "128", "-128", "-129", "99999999999999999999", "1" + "0" * 50]

SAMPLES: list[tuple[str, int, dict[str, str], list[str]]] = [
    ("bool", -1, {}, ["t", "f"]),
    ("int2", -1, {}, ["0", "-32768"]),
    ("int4", -1, {}, ["1", "-2147483648"]),
    ("int8", -1, {}, ["9223372036854775807"]),
    ("oid", -1, {}, ["4294967295"]),
    ("text", -1, {}, ["", 'a"b', "\\", "😀", "é"]),
    ("json", -1, {}, ['{"a": 1}', "null"]),
    ("uuid", -1, {}, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("float4", -1, {}, ["1.5", "1e+10", "NaN", "-0", "1e-45", "Infinity"]),
    ("float8", -1, {}, ["1.5", "1e+23", "-Infinity", "12345678.9", "0.0001", "5e-324"]),
    *(("bytea", -1, {"binary_handling_mode": mode}, [r"\x", r"\x00ff7f", r"\xfbfe"]) for mode in BINARIES),
    *(("numeric", -1, {"decimal_handling_mode": mode}, [*NUMBERS, "1.10", "NaN", "Infinity"]) for mode in DECIMALS),
    *(
        ("numeric", numeric_modifier(10, 2), {"decimal_handling_mode": mode}, ["1.10", "-0.01", "NaN"])
        for mode in DECIMALS
    ),
    *(
        ("money", -1, {"decimal_handling_mode": mode, "money_fraction_digits": digits}, ["$1,234.56", "-$0.01"])
        for mode, digits in product(DECIMALS, ["0", "2", "30"])
    ),
    *(("date", -1, {"time_precision_mode": mode}, ["2024-02-29", "infinity", "0044-03-15 BC"]) for mode in TIMES),
    *(
        ("time", digits, {"time_precision_mode": mode}, ["24:00:00", "01:02:03"])
        for mode in TIMES
        for digits in (-1, 3)
    ),
    *(("timestamp", -1, {"time_precision_mode": mode}, [*TIMESTAMPS, *FAR]) for mode in TIMES),
    *(("timestamptz", digits, {}, [*ZONED, "12345-01-01 00:00:00.25+00"]) for digits in (-1, 0, 6)),
    ("timetz", -1, {}, ["13:14:15.1+02", "01:02:03+00", "24:00:00+00", "00:30:00+05:45"]),
    *(
        ("interval", -1, {"interval_handling_mode": mode}, ["1 mon -1 days", "00:00:00", "infinity", "-00:00:00.5"])
        for mode in ("numeric", "string")
    ),
    ("bit", 1, {}, ["0", "1"]),
    ("bit", 5, {}, ["10110", "00000"]),
    ("varbit", -1, {}, ["", "1", "1" * 2000]),
]
IDS = [f"{kind}({modifier}) {' '.join(given.values())}" for kind, modifier, given, _ in SAMPLES]


def same(left: pa.Array, right: pa.Array) -> bool:
    """Return whether two arrays are equal, with NaN equal to itself."""
    return str(left.to_pylist()) == str(right.to_pylist())


@pytest.mark.parametrize(("kind", "modifier", "given", "values"), SAMPLES, ids=IDS)
class TestEveryCodec:
    @pytest.fixture
    def one(self, kind: str, modifier: int, given: dict[str, str]) -> Codec:
        return codec(kind, modifier, **given)

    def test_values_are_json(self, one: Codec, values: list[str]) -> None:
        texts = encoded(one, values)
        for text in [*texts, one.zero, one.unavailable]:
            json.loads(text, parse_constant=pytest.fail)
        assert one.zero != "null"

    def test_null_stays_null(self, one: Codec, values: list[str]) -> None:
        mixed = [None, *(value for pair in values for value in (pair, None))]
        assert encoded(one, mixed)[1::2] == encoded(one, values)
        assert set(encoded(one, mixed)[0::2]) == {"null"}
        assert one.to_arrow(strings(mixed)).take(pa.array([0, 2]))[0].as_py() is None

    def test_values_do_not_depend_on_each_other(self, one: Codec, values: list[str]) -> None:
        assert [encoded(one, [value])[0] for value in values] == encoded(one, values)

    def test_sliced_taken_and_empty_arrays(self, one: Codec, values: list[str]) -> None:
        whole = strings([None, *values, values[0], None])
        text, rows = closed(one.encode(whole)), one.to_arrow(whole)
        for start in range(len(whole)):
            for length in (0, 1, len(whole)):
                part = whole.slice(start, length)
                assert closed(one.encode(part)).equals(text.slice(start, length))
                assert same(one.to_arrow(part), rows.slice(start, length))
        backwards = pa.array(range(len(whole) - 1, -1, -1))
        assert closed(one.encode(whole.take(backwards))).equals(text.take(backwards))
        assert encoded(one, []) == []
        assert encoded(one, [None, None]) == ["null", "null"]

    def test_rows_have_the_type(self, one: Codec, values: list[str]) -> None:
        for some in ([], [None], values):
            rows = one.to_arrow(strings(some))
            assert rows.type == one.arrow_type
            assert len(rows) == len(some)
            rows.validate(full=True)

    def test_results_are_valid_arrays(self, one: Codec, values: list[str]) -> None:
        text = one.encode(strings([*values, None])).text
        assert isinstance(text, pa.StringArray)
        text.validate(full=True)


@pytest.mark.parametrize(
    ("kind", "modifier", "given", "zero"),
    [
        ("int4", -1, {}, "0"),
        ("float8", -1, {}, "0.0"),
        ("bool", -1, {}, "false"),
        ("bit", 1, {}, "false"),
        ("varbit", 1, {}, "false"),
        ("bit", 4, {}, '""'),
        ("bytea", -1, {}, '""'),
        ("text", -1, {}, '""'),
        ("numeric", -1, {}, '{"scale":0,"value":"AA=="}'),
        ("numeric", numeric_modifier(10, 2), {}, '"AA=="'),
        ("numeric", -1, {"decimal_handling_mode": "string"}, '"0"'),
        ("numeric", numeric_modifier(8, 3), {"decimal_handling_mode": "string"}, '"0.000"'),
        ("numeric", numeric_modifier(60, 40), {"decimal_handling_mode": "string"}, f'"0.{"0" * 40}"'),
        ("numeric", -1, {"decimal_handling_mode": "double"}, "0.0"),
        ("money", -1, {}, '"AA=="'),
        ("money", -1, {"decimal_handling_mode": "string", "money_fraction_digits": "1"}, '"0.0"'),
        ("timetz", -1, {}, '"00:00:00Z"'),
        ("timestamptz", 2, {}, '"1970-01-01T00:00:00Z"'),
        ("date", -1, {"time_precision_mode": "isostring"}, '"1970-01-01Z"'),
        ("time", -1, {"time_precision_mode": "isostring"}, '"00:00:00Z"'),
        ("timestamp", -1, {"time_precision_mode": "isostring"}, '"1970-01-01T00:00:00Z"'),
        ("interval", -1, {}, "0"),
        ("interval", -1, {"interval_handling_mode": "string"}, '"P0Y0M0DT0H0M0S"'),
    ],
)
def test_zeros_are_debeziums(kind: str, modifier: int, given: dict[str, str], zero: str) -> None:
    assert codec(kind, modifier, **given).zero == zero


@pytest.mark.parametrize(
    ("kind", "given", "placeholder"),
    [
        ("text", {}, '"__debezium_unavailable_value"'),
        ("text", {"unavailable_value_placeholder": 'pl"ace😀'}, r'"pl\"ace\uD83D\uDE00"'),
        ("bytea", {}, '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="'),
        ("bytea", {"unavailable_value_placeholder": 'pl"ace😀'}, '"cGwiYWNl8J+YgA=="'),
        ("bytea", {"binary_handling_mode": "hex"}, '"__debezium_unavailable_value"'),
        ("numeric", {}, "null"),
        ("numeric", {"decimal_handling_mode": "double"}, "null"),
        ("numeric", {"decimal_handling_mode": "string"}, '"__debezium_unavailable_value"'),
        ("varbit", {}, "null"),
    ],
)
def test_placeholders_are_debeziums(kind: str, given: dict[str, str], placeholder: str) -> None:
    assert codec(kind, -1, **given).unavailable == placeholder


@pytest.mark.parametrize(
    ("kind", "modifier", "rows"),
    [
        ("numeric", numeric_modifier(38, 10), pa.decimal128(38, 10)),
        ("numeric", numeric_modifier(5, 7), pa.decimal128(7, 7)),
        ("numeric", numeric_modifier(5, -2), pa.decimal128(7, 0)),
        ("numeric", numeric_modifier(39, 0), pa.string()),
        ("numeric", -1, pa.string()),
        ("money", -1, pa.decimal128(19, 2)),
        ("float4", -1, pa.float32()),
        ("timestamp", 3, pa.timestamp("us")),
        ("timestamptz", -1, pa.timestamp("us", tz="UTC")),
        ("time", -1, pa.string()),
        ("bytea", -1, pa.binary()),
    ],
)
def test_row_types(kind: str, modifier: int, rows: pa.DataType) -> None:
    assert codec(kind, modifier).arrow_type == rows


def test_enums_carry_their_labels() -> None:
    info = TypeInfo("mood", "e", labels=("happy", "so, so"))
    schema = codec_for(20000, -1, {20000: info}, options()).schema
    assert schema["parameters"] == {"allowed": "happy,so, so"}
    assert list(schema) == ["type", "name", "version", "parameters"]


def test_domains_are_their_base_type() -> None:
    modifier = numeric_modifier(8, 3)
    types = {1: TypeInfo("inner", "d", OIDS["numeric"], modifier), 2: TypeInfo("outer", "d", 1, -1)}
    assert codec_for(2, -1, types, options()) is codec_for(OIDS["numeric"], modifier, {}, options())


def test_domains_over_enums() -> None:
    types = {1: TypeInfo("mood", "e", labels=("a",)), 2: TypeInfo("outer", "d", 1)}
    assert codec_for(2, -1, types, options()).schema["name"] == "io.debezium.data.Enum"


@pytest.mark.parametrize("types", [{}, {99999: TypeInfo("pair", "c")}, {99999: TypeInfo("isbn13", "b")}])
def test_types_without_a_mapping_are_left_out_or_the_bytes_of_their_text(types: dict[int, TypeInfo]) -> None:
    assert not codec_for(99999, -1, types, options()).known
    other = codec_for(99999, -1, types, options(include_unknown_datatypes="true"))
    assert other.known
    assert other.schema == {"type": "bytes"}
    assert encoded(other, ["(a,1)", None]) == ['"KGEsMSk="', "null"]
    assert other.to_arrow(strings(["(a,1)"])).to_pylist() == ["(a,1)"]


def test_codecs_are_cached_by_what_they_depend_on() -> None:
    assert codec_for(23, -1, {}, options()) is codec_for(23, -1, {}, options(topic_prefix="other"))
    assert codec("numeric") is not codec("numeric", decimal_handling_mode="string")


def test_schemas_hold_only_what_a_type_says() -> None:
    for oid in BUILT_IN:
        schema = codec_for(oid, -1, {}, options()).schema
        assert not schema.keys() & {"optional", "default", "field"}
        order = ["type", "fields", "name", "version", "doc", "parameters"]
        assert list(schema) == [key for key in order if key in schema]
