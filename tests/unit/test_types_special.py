"""Types with structures of their own: hstore, geometry, vectors."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.connectors.postgres.types.type_info import TypeInfo
from tests.unit.test_types_helpers import encoded, options


def named(name: str, **given: str) -> Codec:
    """Return the codec of an extension's type."""
    return codec_for(20000, -1, {20000: TypeInfo(name, "b")}, options(**given))


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ('"a"=>"1"', {"a": "1"}),
        ('"a"=>NULL, "b"=>"NULL"', {"a": None, "b": "NULL"}),
        (r'"k\"1"=>"a\\b", "=>"=>", "', {'k"1': "a\\b", "=>": ", "}),
        ('"é"=>"😀\n"', {"é": "😀\n"}),
    ],
)
def test_hstore(text: str, entries: dict[str, str | None]) -> None:
    for one, decode in ((named("hstore", hstore_handling_mode="map"), json.loads), (named("hstore"), twice)):
        values = encoded(one, [text, None, "", text])
        assert [decode(values[0]), values[1], decode(values[2]), decode(values[3])] == [entries, "null", {}, entries]


def twice(text: str) -> object:
    return json.loads(json.loads(text))


def test_hstore_entries_have_the_order_of_a_hash_map() -> None:
    text = ", ".join(f'"key{number}"=>"{number}"' for number in (1, 2, 3, 10, 11, 20))
    (value,) = encoded(named("hstore", hstore_handling_mode="map"), [text])
    # In Java: "key1".hashCode() is 3288498, and so on.
    assert list(json.loads(value)) == sorted(json.loads(value), key=slot)


def slot(key: str) -> int:
    number = 0
    for char in key:
        number = (number * 31 + ord(char)) & 0xFFFFFFFF
    return (number ^ number >> 16) & 15


def test_points() -> None:
    one = codec_for(600, -1, {}, options())
    first, null, last = encoded(one, ["(1,2)", None, "(1e+20,-0)"])
    assert first == '{"x":1.0,"y":2.0,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null}'
    assert null == "null"
    assert last.startswith('{"x":1.0E20,"y":-0.0,"wkb":"')
    assert base64.b64decode(json.loads(last)["wkb"]) == struct.pack("<BIdd", 1, 1, 1e20, -0.0)
    assert json.loads(one.zero) == json.loads(encoded(one, ["(0,0)"])[0])


def test_postgis() -> None:
    one = named("geometry")
    assert one.always_optional
    assert not named("geography").always_optional
    little = "0101000020E6100000000000000000F03F0000000000000040"
    big = "0020000001000010E63FF00000000000004000000000000000"
    values = [json.loads(value) for value in encoded(one, [little, None, big, "010700000000000000"])]
    assert [value and value["srid"] for value in values] == [4326, None, 4326, None]
    assert json.loads(one.zero) == values[3]


def test_vectors() -> None:
    assert encoded(named("vector"), ["[1,2.5,-1e-05]", None]) == ["[1.0,2.5,-1.0E-5]", "null"]
    assert encoded(named("halfvec"), ["[65504]"]) == ["[65504.0]"]


def test_sparse_vectors() -> None:
    one = named("sparsevec")
    assert encoded(one, ["{1:0.5,3:2}/5", None, "{}/3", "{1:1}/32768"]) == [
        '{"dimensions":5,"vector":[[1,0.5],[3,2.0]]}',
        "null",
        '{"dimensions":3,"vector":[]}',
        "null",
    ]
    # Three entries in four slots: 5 falls into that of 1.
    assert encoded(one, ["{1:1,3:2,5:3}/5"]) == ['{"dimensions":5,"vector":[[1,1.0],[5,3.0],[3,2.0]]}']
    assert json.loads(one.zero) == {"dimensions": 0, "vector": []}
