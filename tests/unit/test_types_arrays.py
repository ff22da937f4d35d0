"""Arrays: the server's text as JSON arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.types.registry import ELEMENTS, codec_for
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import closed
from tests.unit.test_types_helpers import encoded, numeric_modifier, options, strings

TEXT, INT, NUMERIC, BYTEA, DATE, UUID, BOX = 1009, 1007, 1231, 1001, 1182, 2951, 1020
BOX_TYPES = {BOX: TypeInfo("_box", "b", element=603), 603: TypeInfo("box", "b")}


def array_codec(oid: int, **given: str) -> Codec:
    return codec_for(oid, -1, BOX_TYPES, options(**given))


def items(codec: Codec) -> ConnectSchema:
    """Return the schema of an array's elements."""
    found = codec.schema["items"]
    assert isinstance(found, Mapping)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "[]"),
        ("{a}", '["a"]'),
        ('{a,NULL,"NULL","null"}', '["a",null,"NULL","null"]'),
        ('{"",""}', '["",""]'),
        ('{"a b","c,d","{e}"}', '["a b","c,d","{e}"]'),
        (r'{"\"","\\","\\\"","\\\\",x}', r'["\"","\\","\\\"","\\\\","x"]'),
        ('{"é 😀","\n"}', r'["é \uD83D\uDE00","\n"]'),
        ("[0:1]={a,b}", '["a","b"]'),
        ("{{a,b},{c,NULL}}", '[["a","b"],["c",null]]'),
        ('[1:1][-2:-1]={{"[1:2]=","}"}}', '[["[1:2]=","}"]]'),
        ('{"[0:1]={"}', '["[0:1]={"]'),
    ],
)
def test_texts(text: str, expected: str) -> None:
    one = array_codec(TEXT)
    assert encoded(one, [text]) == [expected]
    mixed = [None, text, "{}", text, None, "[5:5]={x}"]
    assert encoded(one, mixed) == ["null", expected, "[]", expected, "null", '["x"]']
    whole = strings(mixed)
    for start in range(len(mixed)):
        assert closed(one.encode(whole.slice(start))).equals(closed(one.encode(whole)).slice(start))


def test_elements_are_encoded_as_scalars_are() -> None:
    assert encoded(array_codec(INT), ["{1,-2,NULL}", "{{1},{2}}"]) == ["[1,-2,null]", "[[1],[2]]"]
    assert encoded(codec_for(NUMERIC, numeric_modifier(5, 2), {}, options()), ["{1.50,NaN}"]) == ['["AJY=",null]']
    assert encoded(array_codec(NUMERIC), ["{1.50}"]) == ['[{"scale":1,"value":"Dw=="}]']
    assert encoded(array_codec(BYTEA, binary_handling_mode="hex"), [r'{"\\x00ff"}']) == ['["00ff"]']


def listed(codec: Codec, texts: Sequence[str | None]) -> list[object]:
    """Return what rows hold of arrays; a part of an array of rows must give the same."""
    whole = strings(texts)
    lists = codec.to_arrow(whole)
    lists.validate(full=True)
    assert lists.type == codec.arrow_type
    for start in range(len(texts)):
        assert codec.to_arrow(whole.slice(start)).equals(lists.slice(start))
    result: list[object] = lists.to_pylist()
    return result


def test_rows_hold_lists() -> None:
    texts = [None, "{}", '{a,NULL,"NULL","{x,y}"}', "[0:1]={a,b}", '{"[0:1]={"}', '{"","\\""}', None]
    lists = [None, [], ["a", None, "NULL", "{x,y}"], ["a", "b"], ["[0:1]={"], ["", '"'], None]
    assert listed(array_codec(TEXT), texts) == lists
    assert listed(array_codec(INT), ["{1,-2,NULL}", "{}", None]) == [[1, -2, None], [], None]
    assert listed(array_codec(INT), []) == []
    assert listed(array_codec(INT), [None]) == [None]
    assert array_codec(INT).arrow_type == pa.list_(pa.int32())
    assert listed(array_codec(BYTEA), [r'{"\\x00ff"}']) == [[b"\x00\xff"]]
    assert listed(array_codec(BOX), ["{(3,4),(1,2);(1,1),(0,0)}"]) == [["(3,4),(1,2)", "(1,1),(0,0)"]]


def test_arrays_that_lists_cannot_hold_are_null() -> None:
    texts = ["{{1,2},{3,4}}", "{1}", "[1:1][-2:-1]={{1,2}}", "{2,3}"]
    assert listed(array_codec(INT), texts) == [None, [1], None, [2, 3]]
    exact = codec_for(NUMERIC, numeric_modifier(5, 2), {}, options())
    assert listed(exact, ["{1.50,NaN}", "{2.50,NULL}"]) == [None, [Decimal("2.50"), None]]


def test_all_null_and_no_rows() -> None:
    assert encoded(array_codec(INT), [None, None]) == ["null", "null"]
    assert encoded(array_codec(INT), []) == []


def test_boxes_are_separated_by_semicolons() -> None:
    one = array_codec(BOX, include_unknown_datatypes="true", binary_handling_mode="hex")
    (text,) = encoded(one, ["{(3,4),(1,2);(1,1),(0,0)}"])
    assert [bytes.fromhex(part).decode() for part in json.loads(text)] == ["(3.0,4.0),(1.0,2.0)", "(1.0,1.0),(0.0,0.0)"]


def test_arrays_that_events_never_hold() -> None:
    for oid in (143, 791, 1003, 1017, 1187, 1563):
        assert not array_codec(oid, include_unknown_datatypes="true").known
    assert not array_codec(BOX).known


def test_enums_and_domains() -> None:
    types = {
        1: TypeInfo("_mood", "b", element=2),
        2: TypeInfo("mood", "e", labels=("a",)),
        3: TypeInfo("moods", "d", base=1),
        4: TypeInfo("_amount", "b", element=5),
        5: TypeInfo("amount", "d", base=23),
    }
    assert codec_for(3, -1, types, options()) is codec_for(1, -1, types, options())
    assert items(codec_for(1, -1, types, options()))["parameters"] == {"allowed": "a"}
    assert not codec_for(4, -1, types, options()).known


def test_schemas_and_zeros() -> None:
    for oid in ELEMENTS:
        one = array_codec(oid)
        assert one.schema["type"] == "array"
        assert list(items(one))[-1] != "field"
        assert one.zero == "[]"
        assert pa.types.is_list(one.arrow_type)


@pytest.mark.parametrize(
    ("oid", "given", "placeholder"),
    [
        (TEXT, {}, ["__debezium_unavailable_value"]),
        (TEXT, {"unavailable_value_placeholder": "hex:41ff"}, ["A\ufffd"]),
        (INT, {"unavailable_value_placeholder": "hex:41ff"}, [65, -1]),
        (DATE, {"unavailable_value_placeholder": "A"}, [65]),
        (DATE, {"unavailable_value_placeholder": "A", "time_precision_mode": "isostring"}, ["A"]),
        (DATE, {"time_precision_mode": "connect"}, None),
        (UUID, {}, ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
        (BYTEA, {"unavailable_value_placeholder": "A"}, ["QQ=="]),
        (NUMERIC, {}, None),
    ],
)
def test_placeholders(oid: int, given: dict[str, str], placeholder: object) -> None:
    assert json.loads(array_codec(oid, **given).unavailable) == placeholder
