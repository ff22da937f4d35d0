"""Transforms of fields: Kafka Connect's own."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.codecs.decimals import unscaled_base64
from floodmark.config.transforms.kafka import CastType, ExtractFieldOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.connect_schema import ConnectSchema, field_schema, struct
from floodmark.events.json_text import Fragment, dumps
from floodmark.transforms.kafka.casting import cast_values
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct, Values, complete
from tests.support.records import KEY, chain, changes, texts

PACKAGE = "org.apache.kafka.connect.transforms"
DECIMAL = "org.apache.kafka.connect.data.Decimal"
OF_RECORDS = "'one' can't be applied to rows of s.t by 'transforms.one."


def row(fields: dict[str, tuple[dict[str, Any], Values]], rows: int = 1) -> Records:
    """Return rows with these fields: their schemas, which may say that they aren't optional, and their values."""
    schemas = [field_schema(schema, bool(schema.get("optional", True)), name) for name, (schema, _) in fields.items()]
    value = Struct(struct(schemas, True, "t.Value"), [values for _, values in fields.values()])
    key = Struct(KEY, [Fragment(pa.array([str(n) for n in range(rows)]))])
    return Records("rows of s.t", rows, "t", key, value, (), np.arange(rows))


def made(kind: str, own: dict[str, str], records: Records, side: str = "value", **others: str) -> list[Any]:
    """Return what a transform makes of keys or values."""
    columns = chain(f"{PACKAGE}.{kind}", own, **others).columns(records)
    return [json.loads(text) for text in columns[side].to_pylist()]


@pytest.mark.parametrize(
    ("kind", "own", "words"),
    [
        ("InsertField$Value", {}, ("transforms.one.topic.field", "required")),
        ("InsertField$Value", {"static.field": "a"}, ("static.value",)),
        ("InsertField$Value", {"offset.field": "a"}, ("transforms.one.offset.field", "only records that a sink gets")),
        ("InsertField$Value", {"partition.field": "a!"}, ("partition.field", "neither a partition nor a time")),
        ("InsertField", {"topic.field": "a"}, ("transforms.one.type", "InsertField$Value")),
        ("ReplaceField$Value", {"renames": "a"}, ("'a'", "<field>:<name>")),
        ("ReplaceField$Value", {"renames": "a:b:c"}, ("'a:b:c'",)),
        ("ReplaceField$Key", {"blacklist": "a"}, ("blacklist", "exclude")),
        ("MaskField$Value", {}, ("transforms.one.fields", "required")),
        ("MaskField$Value", {"fields": "a", "replacement": ""}, ("replacement", "empty")),
        ("ValueToKey", {"fields": ""}, ("fields", "empty")),
        ("ValueToKey", {"fields": "a,a"}, ("twice",)),
        ("ExtractField$Key", {}, ("transforms.one.field", "required")),
        ("ExtractField$Key", {"field": "`a", "field.syntax.version": "V2"}, ("backtick",)),
        ("ExtractField$Key", {"field": "a", "field.syntax.version": "V3"}, ("V1, V2",)),
        ("HoistField$Key", {}, ("transforms.one.field", "required")),
        ("Cast$Value", {}, ("transforms.one.spec", "required")),
        ("Cast$Value", {"spec": "a:date"}, ("'a:date'", "float64")),
        ("Cast$Value", {"spec": "a:b:string"}, ("'a:b:string'",)),
        ("Cast$Value", {"spec": "string,a:string"}, ("the only one",)),
    ],
)
def test_wrong_options(kind: str, own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(f"{PACKAGE}.{kind}", own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


TEXT: dict[str, Any] = {"type": "string"}
ARRAY: dict[str, Any] = {"type": "array", "items": {"type": "int32", "optional": True}}
BYTES: dict[str, Any] = {"type": "bytes"}
DECIMAL_2: dict[str, Any] = {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": {"scale": "2"}}


@pytest.mark.parametrize(
    ("kind", "own", "field", "words"),
    [
        ("InsertField$Value", {"topic.field": "f"}, (TEXT, '"a"'), ("topic.field", "'f'")),
        ("InsertField$Key", {"topic.field": "n"}, (TEXT, '"a"'), ("'n'",)),
        ("ReplaceField$Value", {"renames": "f:g"}, (TEXT, '"a"'), ("renames", "'g'")),
        ("MaskField$Value", {"fields": "f"}, (BYTES, texts("AA==")), ("fields", "'f'", "bytes")),
        ("MaskField$Value", {"fields": "f"}, (DECIMAL_2, texts("AA==")), ("Decimal",)),
        ("MaskField$Value", {"fields": "f", "replacement": "1"}, ({"type": "boolean"}, "true"), ("boolean", "'1'")),
        ("MaskField$Value", {"fields": "f", "replacement": "x"}, ({"type": "int32"}, "1"), ("int32", "'x'")),
        ("ValueToKey", {"fields": "f,h"}, (TEXT, '"a"'), ("fields", "'h'")),
        ("ExtractField$Value", {"field": "h"}, (TEXT, '"a"'), ("field", "'h'")),
        ("ExtractField$Value", {"field": "f.a", "field.syntax.version": "V2"}, (TEXT, '"a"'), ("string",)),
        ("Cast$Value", {"spec": "f:int8"}, (TEXT, '"128"'), ("spec", "'f'", "'128'")),
        ("Cast$Value", {"spec": "f:int8"}, (TEXT, texts("1.0")), ("'1.0'",)),
        ("Cast$Value", {"spec": "f:float64"}, (TEXT, texts("1", "inf")), ("'inf'", "no number")),
        ("Cast$Value", {"spec": "f:int8"}, (BYTES, texts("AA==")), ("bytes",)),
        ("Cast$Value", {"spec": "f:string"}, (ARRAY, "[1]"), ("array",)),
        ("Cast$Value", {"spec": "string"}, (TEXT, '"a"'), ("structure",)),
        ("Cast$Value", {"spec": "f:int8"}, ({**TEXT, "default": "x"}, '"1"'), ("'x'",)),
    ],
)
def test_what_rows_do_not_allow(
    kind: str, own: dict[str, str], field: tuple[dict[str, Any], Values], words: tuple[str, ...]
) -> None:
    with pytest.raises(SourceStateError) as caught:
        made(kind, own, row({"f": field, "g": (TEXT, '"b"')}))
    assert all(word in str(caught.value) for word in (OF_RECORDS, *words)), str(caught.value)


@pytest.mark.parametrize("kind", ["MaskField$Value", "ValueToKey"])
def test_tombstones_have_no_fields(kind: str) -> None:
    gone = Records("rows of s.t", 1, "t", None, None, (), np.arange(1))
    with pytest.raises(SourceStateError, match="no value, as tombstones"):
        made(kind, {"fields": "f"}, gone)
    with pytest.raises(SourceStateError, match="no key"):
        made("MaskField$Key", {"fields": "f"}, gone)


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("InsertField", {"topic.field": "a"}),
        ("ReplaceField", {"exclude": "a"}),
        ("ExtractField", {"field": "a"}),
        ("Cast", {"spec": "a:string"}),
    ],
)
def test_what_is_null_stays(kind: str, own: dict[str, str]) -> None:
    gone = Records("rows of s.t", 1, "t", None, None, (), np.arange(1))
    for side in ("Key", "Value"):
        columns = chain(f"{PACKAGE}.{kind}${side}", own).columns(gone)
        assert columns["key"].to_pylist() == columns["value"].to_pylist() == [None]


def test_topics_row_by_row() -> None:
    columns = chain(f"{PACKAGE}.InsertField$Key", {"topic.field": "of!"}).columns(
        changes(pa.array(["a", 'b"']), "x", "y")
    )
    assert columns["key"].to_pylist() == ['{"n":0,"of":"a"}', '{"n":1,"of":"b\\""}']


def test_renamed_fields_keep_their_values() -> None:
    given = row({"a": (TEXT, '"1"'), "b": (TEXT, '"2"'), "c": (TEXT, '"3"')})
    assert made("ReplaceField$Value", {"renames": "a:b,b:a", "exclude": "c"}, given) == [{"b": "1", "a": "2"}]
    # In Kafka Connect, a field that has the new name already gets the value of the other one, if there is one.
    assert made("ReplaceField$Value", {"renames": "x:b", "include": "b"}, given) == [{"b": "2"}]


@pytest.mark.parametrize("replaces", ["true", "false"])
def test_nulls_with_a_default(replaces: str) -> None:
    given = row({"f": ({**TEXT, "default": "d"}, texts(None))})
    want = "d" if replaces == "true" else None
    others = {"value.converter.replace.null.with.default": "false"}
    own = {"replace.null.with.default": replaces}
    for kind, more, found in (
        ("InsertField$Value", {"static.field": "s", "static.value": "v"}, {"f": want, "s": "v"}),
        ("ReplaceField$Value", {"renames": "f:g"}, {"g": want}),
        ("MaskField$Value", {"fields": "f"}, {"f": want and ""}),
        ("Cast$Value", {"spec": "f:string"}, {"f": want}),
        ("ExtractField$Value", {"field": "f"}, want),
    ):
        assert made(kind, {**own, **more}, given, **others) == [found]
    # Only the values' converter has an option for defaults.
    assert made("ValueToKey", {**own, "fields": "f"}, given, "key", **others) == [{"f": "d"}]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a", ["a"]),
        ("a.b", ["a", "b"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("`a`b`", ["a`b"]),
        ("`a\\`.b`", ["a`.b"]),
        ("a.", ["a", ""]),
    ],
)
def test_paths_of_fields(path: str, names: list[str]) -> None:
    assert list(ExtractFieldOptions.parse({"field": path, "field.syntax.version": "V2"}).path) == names
    assert list(ExtractFieldOptions.parse({"field": path}).path) == [path]


def test_fields_within_fields() -> None:
    inner = {"type": "struct", "fields": [{"type": "string", "optional": True, "field": "a"}]}
    own = {"field": "f.a", "field.syntax.version": "V2"}
    values: Values = Fragment(pa.array(['{"a":"x"}', '{"a":null}', None]))
    assert made("ExtractField$Value", own, row({"f": (inner, values)}, 3)) == ["x", None, None]
    assert made("ExtractField$Value", own, row({"f": (inner, "null")})) == [None]
    given = changes("t", "x")
    assert made("ExtractField$Value", {"field": "before"}, given) == [None]
    assert made("ExtractField$Value", {"field": "source.lsn", "field.syntax.version": "V2"}, given) == [0]


def cast_all(values: list[str | None], schema: dict[str, Any], target: CastType, is_text: bool = False) -> list[Any]:
    given = texts(*values) if is_text else Fragment(pa.array(values, pa.string()))
    found = cast_values(given, {"optional": True, **schema}, target)
    each = [cast_one(value, schema, target, is_text) for value in values]
    whole = complete(found, len(values)).to_pylist()
    assert whole == each
    return [json.loads(text) for text in whole]


def cast_one(value: str | None, schema: ConnectSchema, target: CastType, is_text: bool) -> str:
    """Cast a value that is the same for all records."""
    text = "null" if value is None else dumps(value) if is_text else value
    found = cast_values(text, schema, target)
    assert isinstance(found, str)
    return found


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_numbers_are_narrowed(numbers: list[int | None]) -> None:
    given = [None if one is None else str(one) for one in numbers]
    schema = {"type": "int64"}
    sizes: list[tuple[int, CastType]] = [(8, "int8"), (16, "int16"), (32, "int32"), (64, "int64")]
    for bits, target in sizes:
        half = 1 << (bits - 1)
        want = [None if one is None else (one + half) % (2 * half) - half for one in numbers]
        assert cast_all(given, schema, target) == want
    assert cast_all(given, schema, "boolean") == [None if one is None else one != 0 for one in numbers]
    assert cast_all(given, schema, "string") == given
    assert cast_all(given, schema, "float64") == [None if one is None else float(one) for one in numbers]
    nearest = [None if one is None else float(np.int64(one).astype(np.float32)) for one in numbers]
    assert [one if one is None else float(np.float32(one)) for one in cast_all(given, schema, "float32")] == nearest


@given(st.lists(st.none() | st.integers(-(10**40), 10**40) | st.integers(-300, 300), min_size=1), st.integers(0, 12))
def test_decimals_are_read(unscaled: list[int | None], scale: int) -> None:
    encoded = unscaled_base64(
        pa.array([None if one is None else str(one) for one in unscaled], pa.string())
    ).to_pylist()
    values = [None if one is None else Decimal(one).scaleb(-scale) for one in unscaled]
    schema = {"type": "bytes", "name": DECIMAL, "parameters": {"scale": str(scale)}}
    tuples = [
        None if one is None else Decimal((int(one < 0), tuple(map(int, str(abs(one)))), -scale)) for one in unscaled
    ]
    assert cast_all(encoded, schema, "string", True) == [None if one is None else str(one) for one in tuples]
    assert cast_all(encoded, schema, "float64", True) == [None if one is None else float(one) for one in values]
    lowest = [None if one is None else (int(one) + 2**63) % 2**64 - 2**63 for one in tuples]
    assert cast_all(encoded, schema, "int64", True) == lowest
    assert cast_all(encoded, schema, "boolean", True) == [None if one is None else one != 0 for one in lowest]


@pytest.mark.parametrize(
    ("kind", "values", "target", "want"),
    [
        ("double", ["1.0E20", "-1.0E20", "-1.9"], "int32", [2147483647, -2147483648, -1]),
        ("double", ['"NaN"', '"Infinity"', None], "int32", [0, 2147483647, None]),
        ("double", ["1.0E20", "-1.9"], "int8", [-1, -1]),
        ("double", ["1.0E20", '"-Infinity"'], "int64", [2**63 - 1, -(2**63)]),
        ("double", ["1.0E300", '"NaN"', "0.1"], "float32", ["Infinity", "NaN", 0.1]),
        ("float", ["0.1", "1.0E7"], "float64", [0.10000000149011612, 1.0e7]),
        ("float", ["1.0E7", '"NaN"', "-0.0"], "string", ["1.0E7", "NaN", "-0.0"]),
        ("float", ["0.9", '"NaN"', "1.0"], "boolean", [False, False, True]),
        ("boolean", ["true", None, "false"], "int8", [1, None, 0]),
        ("boolean", ["true", "false"], "float32", [1.0, 0.0]),
        ("boolean", ["true", "false"], "string", ["true", "false"]),
        ("boolean", ["true", None], "boolean", [True, None]),
    ],
)
def test_casts_are_javas(kind: str, values: list[str | None], target: CastType, want: list[Any]) -> None:
    assert cast_all(values, {"type": kind}, target) == want


def test_casts_of_texts() -> None:
    schema = {"type": "string"}
    assert cast_all(["+1", "-007", None], schema, "int8", True) == [1, -7, None]
    assert cast_all(["TRUE", "yes", " true", None], schema, "boolean", True) == [True, False, False, None]
    texts_of_numbers = ["1e3", " -2.5", "+.5", "3.", "NaN", "-Infinity", None]
    numbers = [1000.0, -2.5, 0.5, 3.0, "NaN", "-Infinity", None]
    assert cast_all(texts_of_numbers, schema, "float64", True) == numbers
    assert cast_all(['a"é', None], schema, "string", True) == ['a"é', None]


@pytest.mark.parametrize(
    ("kind", "number", "shown"),
    [
        ("Date", "19782", "2024-02-29"),
        ("Date", "-1", "00:00:00.000Z"),
        ("Time", "47655123", "13:14:15.123Z"),
        ("Timestamp", "1709212455123", "2024-02-29T13:14:15.123Z"),
        ("Timestamp", "1709164800000", "2024-02-29"),
    ],
)
def test_dates_as_texts(kind: str, number: str, shown: str) -> None:
    schema = {"type": "int32", "name": f"org.apache.kafka.connect.data.{kind}", "version": 1}
    assert cast_all([number, None], schema, "string") == [shown, None]
    assert cast_all([number], schema, "int64") == [int(number)]
