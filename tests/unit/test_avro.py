from __future__ import annotations

import base64
import json
import math
import struct as binary
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.codecs.base64_text import decode_base64
from floodmark.errors import ConfigError, DecodeError
from floodmark.events.connect_schema import ConnectSchema, Raw, field_schema, struct
from floodmark.events.json_text import Fragment
from floodmark.transforms.avro.binary import long_bytes, longs
from floodmark.transforms.avro.encoding import encode
from floodmark.transforms.avro.schemas import SchemaSettings, avro_schema
from tests.support.avro import encoded, read

DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
BYTES = st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode())
FINITE = st.floats(allow_nan=False, allow_infinity=False)
LEAVES: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "int8": ({"type": "int8"}, st.integers(-128, 127)),
    "int16": ({"type": "int16"}, st.integers(-(1 << 15), (1 << 15) - 1)),
    "int32": ({"type": "int32"}, st.integers(-(1 << 31), (1 << 31) - 1)),
    "int64": ({"type": "int64"}, st.integers(-(1 << 63), (1 << 63) - 1)),
    "float": ({"type": "float"}, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "double": ({"type": "double"}, FINITE),
    "boolean": ({"type": "boolean"}, st.booleans()),
    "string": ({"type": "string"}, TEXTS),
    "bytes": ({"type": "bytes"}, BYTES),
    "decimal": (DECIMAL, BYTES),
    "map": (
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": True}},
        st.dictionaries(TEXTS, st.none() | TEXTS, max_size=3),
    ),
}


SCALARS = sorted(set(LEAVES) - {"map"})


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    """A Connect schema without its name, and its values; no structure of Debezium's has maps within a column."""
    if depth < 2 or draw(st.integers(0, 3)):
        return LEAVES[draw(st.sampled_from(sorted(LEAVES) if depth == 2 else SCALARS))]
    if draw(st.booleans()):
        items, values = draw(kinds(1))
        optional = draw(st.booleans())
        each = st.none() | values if optional else values
        return {"type": "array", "items": {**items, "optional": optional}}, st.lists(each, max_size=4)
    fields, values = draw(rows(depth - 1))
    return {"type": "struct", "fields": fields, "name": f"inner.N{draw(st.uuids()).hex}"}, values


@st.composite
def rows(draw: st.DrawFn, depth: int = 2) -> tuple[list[dict[str, Any]], st.SearchStrategy[Any]]:
    """Fields, and structures that have them."""
    fields, values = [], {}
    for number in range(draw(st.integers(1, 4))):
        schema, each = draw(kinds(depth))
        optional = draw(st.booleans())
        fields.append(field_schema(schema, optional, f"f{number}"))
        values[f"f{number}"] = st.none() | each if optional else each
    return fields, st.fixed_dictionaries(values)


def in_json(value: Any) -> Any:
    """Numbers with a point as they are written, so that the smallest and largest ones come through."""
    if isinstance(value, float):
        return Raw(repr(value))
    if isinstance(value, dict):
        return {name: in_json(one) for name, one in value.items()}
    return [in_json(one) for one in value] if isinstance(value, list) else value


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_fastavro_reads_what_was_written(data: st.DataObject) -> None:
    fields, values = data.draw(rows())
    schema = struct(fields, False, "shop.public.orders.Value")
    expected = data.draw(st.lists(values, min_size=1, max_size=4))
    avro = avro_schema(schema, SchemaSettings())
    for content, row in zip(encoded(schema, [in_json(row) for row in expected]), expected, strict=True):
        assert read(avro, content) == row


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20), st.data())
def test_integers_have_as_many_bytes_as_they_need(values: list[int], data: st.DataObject) -> None:
    absent = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    found = longs(np.array(values, np.int64), b"\x02", np.array(absent, bool), b"\x00").to_pylist()
    assert found == [b"\0" if gone else b"\x02" + long_bytes(one) for one, gone in zip(values, absent, strict=True)]


@given(st.lists(st.none() | st.binary(max_size=9)))
def test_base64_is_decoded(values: list[bytes | None]) -> None:
    text = [None if value is None else base64.b64encode(value).decode() for value in values]
    assert decode_base64(pa.array([*text, "AA=="], pa.string())[: len(values)]).to_pylist() == values


@pytest.mark.parametrize("text", ["A", "A*==", "AAA"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64|character|padding"):
        decode_base64(pa.array([text]))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floats_that_are_no_numbers_are_written_everywhere(kind: str) -> None:
    leaf: dict[str, Any] = {"type": kind, "optional": True}
    schema = struct(
        [
            {**leaf, "field": "alone"},
            {"type": "array", "items": leaf, "optional": False, "field": "listed"},
            {
                **struct([{**leaf, "field": "x"}, {"type": "string", "optional": False, "field": "s"}], False, "P"),
                "field": "point",
            },
        ],
        False,
        "v.Value",
    )
    text = '"x":1.0'
    row = {"alone": "NaN", "listed": ["-Infinity", None, Raw("1.5")], "point": {"x": "Infinity", "s": text}}
    plain: dict[str, Any] = {"alone": None, "listed": [], "point": {"x": Raw("2.5"), "s": "NaN"}}
    first, second = (read(avro_schema(schema, SchemaSettings()), one) for one in encoded(schema, [row, plain]))
    assert math.isnan(first["alone"])
    assert first["listed"] == [-math.inf, None, 1.5]
    assert first["point"] == {"x": math.inf, "s": text}
    assert second == {"alone": None, "listed": [], "point": {"x": 2.5, "s": "NaN"}}


def test_half_a_character_becomes_a_question_mark_as_java_writes_it() -> None:
    assert encoded({"type": "string"}, ["a\ud83d", "😀"]) == [b"\x04a?", b"\x08\xf0\x9f\x98\x80"]


def test_nulls_become_their_default_unless_that_is_left_out() -> None:
    field: ConnectSchema = {"type": "int32", "optional": True, "default": Raw("7"), "field": "n"}
    schema = struct([field], False, "v.Value")
    # The branch of the default comes first.
    assert avro_schema(schema, SchemaSettings()).count('"type":[{"type":"int","connect.default":7},"null"]') == 1
    assert encoded(schema, [{"n": None}, {"n": 1}]) == [b"\0\x0e", b"\0\x02"]
    assert encoded(schema, [{"n": None}, {"n": 1}], defaults=False) == [b"\x02", b"\0\x02"]


def test_null_where_none_may_be_is_an_error_that_names_the_field() -> None:
    schema = struct([{"type": "int32", "optional": False, "field": "n"}], False, "v.Value")
    with pytest.raises(DecodeError, match="In the field 'n': A value of the type int32 is null"):
        encoded(schema, [{"n": None}, {"n": 1}])
    with pytest.raises(DecodeError, match="In the field 'n': A value of the type int32 is null"):
        encoded(schema, [{"n": None}])


def test_what_a_schema_does_not_allow_is_an_error() -> None:
    with pytest.raises(DecodeError, match="A value isn't int32"):
        encoded({"type": "int32"}, ["x"])


def test_maps_of_other_keys_are_arrays_of_pairs() -> None:
    schema: ConnectSchema = {"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}}
    assert json.loads(avro_schema(schema, SchemaSettings()))["items"]["name"] == "MapEntry"
    assert encoded(schema, [[[1, Raw("0.5")], [-3, Raw("2.0")]], []]) == [
        b"\x04\x02" + binary.pack("<d", 0.5) + b"\x05" + binary.pack("<d", 2.0) + b"\0",
        b"\0",
    ]


def test_long_texts_are_written_whole() -> None:
    text = "ä" * 3_000_000
    assert encoded({"type": "string"}, [text, "x"]) == [long_bytes(6_000_000) + text.encode(), b"\x02x"]


def test_no_rows_are_no_bytes() -> None:
    schema: ConnectSchema = {"type": "int32", "optional": True}
    assert [len(cells) for cells in encode(Fragment(pa.array([], pa.string())), schema, 0)] == [0]


@pytest.mark.parametrize(("name", "schema_mode"), [("a-b", False), ("1a", False), ("", False), ("a-b", True)])
def test_names_that_avro_does_not_allow_are_refused_with_the_cure(name: str, schema_mode: bool) -> None:
    field: ConnectSchema = {"type": "int32", "optional": False, "field": "n" if schema_mode else name}
    schema = struct([field], False, f"v.{name}" if schema_mode else "v.Value")
    with pytest.raises(ConfigError, match=f"{'schema' if schema_mode else 'field'}.name.adjustment.mode=avro"):
        avro_schema(schema, SchemaSettings())
    if name:
        scrubbed = avro_schema(schema, SchemaSettings(scrub=True))
        assert f'"name":"{ {"a-b": "a_b", "1a": "x1a"}[name] }"' in scrubbed


def test_two_fields_that_get_the_same_name_are_refused() -> None:
    fields: list[ConnectSchema] = [{"type": "int32", "optional": False, "field": name} for name in ("a-b", "a_b")]
    with pytest.raises(ConfigError, match=r"The fields 'a-b' and 'a_b' of 'v.Value' both get the name 'a_b'"):
        avro_schema(struct(fields, False, "v.Value"), SchemaSettings(scrub=True))


def test_two_structures_of_one_name_are_refused_if_they_differ() -> None:
    def point(kind: str, name: str) -> dict[str, Any]:
        return {**struct([{"type": kind, "optional": False, "field": "x"}], True, "geo.Point"), "field": name}

    same = avro_schema(struct([point("int32", "p"), point("int32", "q")], False, "v.Value"), SchemaSettings())
    assert '{"name":"q","type":["null","geo.Point"],"default":null}' in same
    with pytest.raises(ConfigError, match=r"Two different structures have the name 'geo\.Point'"):
        avro_schema(struct([point("int32", "p"), point("int64", "q")], False, "v.Value"), SchemaSettings())
