"""Debezium's router of an outbox table: its options, its errors, and JSON texts that become structures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.config.transforms.outbox import AdditionalField, EventRouterOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.columns import KEPT_ROWS, PARTITIONED_SCHEMA, EventGroup, assemble
from floodmark.events.connect_schema import field_schema, struct
from floodmark.events.json_text import Fragment, dumps, string
from floodmark.transforms.chain import Chain
from floodmark.transforms.envelopes import envelopes
from floodmark.transforms.outbox.json_structs import structs_of
from floodmark.transforms.outbox.json_tokens import closed_quotes, tokens_of
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct, complete
from tests.support.records import ENVELOPE, chain, changes, headers, texts

ROUTER = "io.debezium.transforms.outbox.EventRouter"
COLUMNS = ("id", "aggregatetype", "aggregateid", "payload", "part")


def outbox(*rows: tuple[str | None, ...], op: str = "c") -> Records:
    """Return inserts into an outbox table of rows with the values of ``COLUMNS``."""
    fields = [field_schema({"type": "string"}, True, name) for name in COLUMNS[:-1]]
    fields.append(field_schema({"type": "int32"}, True, "part"))
    row = struct(fields, True, "shop.outbox.Value")
    members = [
        field_schema(row, True, str(field["field"])) if field["field"] in ("before", "after") else field
        for field in Struct(ENVELOPE, None).fields
    ]
    schema = {**ENVELOPE, "fields": members, "name": "shop.outbox.Envelope"}
    columns = [*map(list, zip(*rows, strict=True))]
    values = [*(texts(*column) for column in columns[:-1]), Fragment(pa.array(columns[-1], pa.string()))]
    source = ['{"table":"outbox","lsn":1,"sure":true,"snapshot":"false"}']
    value = envelopes(schema, op, len(rows), None, values, source, None)
    return Records("rows of shop.outbox", len(rows), "shop.outbox", None, value, (), np.arange(len(rows)))


def router(**own: str) -> Chain:
    return chain(ROUTER, {name.replace("__", "."): value for name, value in own.items()})


PLACEMENT = "table.fields.additional.placement"


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({PLACEMENT: "type"}, (f"transforms.one.{PLACEMENT}", "'type'", "header, envelope, partition")),
        ({PLACEMENT: "type:heading"}, ("'type:heading'",)),
        ({PLACEMENT: "a:header:b:c"}, ("'a:header:b:c'",)),
        ({PLACEMENT: "a:envelope:payload"}, ("two fields 'payload'",)),
        ({PLACEMENT: "a:envelope:x,b:envelope:x"}, ("two fields 'x'",)),
        ({PLACEMENT: "a:partition,b:partition"}, ("two columns give the partition",)),
        ({"route.topic.regex": "(?=x)"}, ("transforms.one.route.topic.regex", "lookahead")),
        ({"route.topic.replacement": "${other}"}, ("route.topic.replacement", "other")),
        ({"table.op.invalid.behavior": "skip"}, ("warn, error, fatal",)),
        ({"route.by.field": ""}, ("transforms.one.route.by.field", "empty")),
        ({"table.field.event.name": "x"}, ("table.field.event.name",)),
        ({"table.json.payload.empty.array.behavior": "ignore"}, ("3.7", "left out")),
    ],
)
def test_wrong_options(own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(ROUTER, own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_oracles_columns_are_in_upper_case_unless_they_are_given() -> None:
    options = EventRouterOptions.parse({"table.field.event.key": "key"})
    assert options.column("table_field_event_id", "oracle") == "ID"
    assert options.column("table_field_event_key", "oracle") == "key"
    assert options.column("table_field_event_id", "mysql") == "id"


def test_placements() -> None:
    assert AdditionalField.parse(" a : Header : b ") == AdditionalField("a", "header", "b")
    assert AdditionalField.parse("a:partition") == AdditionalField("a", "partition", "a")


def test_rows_become_records() -> None:
    given_rows = outbox(("1", "order", "k", '{"a":1}', None), ("2", "user", None, None, "3"))
    columns = router().columns(given_rows)
    assert columns["topic"].to_pylist() == ["outbox.event.order", "outbox.event.user"]
    assert columns["key"].to_pylist() == ['"k"', "null"]
    assert columns["value"].to_pylist() == [dumps('{"a":1}'), "null"]
    assert headers(columns) == [{"id": "1"}, {"id": "2"}]
    assert "partition" not in columns


def test_partitions_are_a_column() -> None:
    columns = router(**{PLACEMENT: "part:partition"}).columns(
        outbox(("1", "a", "k", "x", None), ("2", "a", "l", "y", "3"))
    )
    batch = assemble([EventGroup.of(np.arange(2), {**columns, "op": "c"})], PARTITIONED_SCHEMA)
    assert batch is not None
    assert batch["partition"].to_pylist() == [None, 3]
    # Other records of the same query have no partition.
    assert (
        router(**{PLACEMENT: "part:partition"}).columns(replace(changes("t", "x"), value=None))["key"].to_pylist() == []
    )


def test_deletes_updates_and_tombstones_are_left_out() -> None:
    assert router().columns(changes("t", "x", op="d"))["value"].to_pylist() == []
    assert router().columns(replace(changes("t", "x"), value=None))["value"].to_pylist() == []
    row = outbox(("1", "a", "k", "x", None), op="u")
    assert router(table__op__invalid__behavior="error").columns(row)["value"].to_pylist() == []


@pytest.mark.parametrize(
    ("own", "rows", "words"),
    [
        ({"route.by.field": "type"}, ("1", "a", "k", "x", None), ("route.by.field", "no column 'type'")),
        ({"route.by.field": "part"}, ("1", "a", "k", "x", "1"), ("route.by.field", "int32")),
        ({}, ("1", None, "k", "x", None), ("route.by.field", "null")),
        ({"table.field.event.id": "x"}, ("1", "a", "k", "x", None), ("table.field.event.id", "'x'")),
        ({"table.field.event.key": "x"}, ("1", "a", "k", "x", None), ("table.field.event.key", "'x'")),
        ({"table.field.event.payload": "x"}, ("1", "a", "k", "x", None), ("table.field.event.payload", "'x'")),
        ({PLACEMENT: "x:header"}, ("1", "a", "k", "x", None), (PLACEMENT, "'x'")),
        ({PLACEMENT: "id:partition"}, ("1", "a", "k", "x", None), (PLACEMENT, "string")),
        ({PLACEMENT: "part:partition"}, ("1", "a", "k", "x", "-1"), (PLACEMENT, "below 0")),
        (
            {PLACEMENT: "id:envelope", "table.field.event.schema.version": "id"},
            ("1", "a", "k", "x", "1"),
            ("table.field.event.schema.version", "string"),
        ),
        (
            {"route.topic.replacement": "$1", "route.topic.regex": "()a"},
            ("1", "a", "k", "x", "1"),
            ("route.topic.replacement", "without content"),
        ),
    ],
)
def test_what_rows_do_not_allow(own: dict[str, str], rows: tuple[str | None, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(SourceStateError) as caught:
        chain(ROUTER, own).columns(outbox(rows))
    assert all(word in str(caught.value) for word in ("rows of shop.outbox", *words)), str(caught.value)


def test_fatal_updates_and_truncates() -> None:
    with pytest.raises(SourceStateError, match="'fatal'"):
        router(table__op__invalid__behavior="fatal").columns(outbox(("1", "a", "k", "x", None), op="u"))
    truncate = envelopes(ENVELOPE, "t", 1, None, None, ['{"table":"t","lsn":1,"sure":true,"snapshot":"false"}'], None)
    with pytest.raises(SourceStateError, match="no new row, as truncates"):
        router().columns(replace(changes("t", "x"), value=truncate))


def test_rows_of_one_table_go_several_ways() -> None:
    own = {
        PLACEMENT: "part:envelope:p",
        "table.expand.json.payload": "true",
        "route.tombstone.on.empty.payload": "true",
        "table.field.event.schema.version": "part",
    }
    rows = outbox(
        ("1", "a", "k", '{"x":1}', "1"),
        ("2", "b", "k", " \n", "1"),
        ("3", "a", "k", '{"x":{"y":"z"}}', "2"),
        ("4", "b", "k", None, None),
        ("5", "a", "k", '{"x":2}', "2"),
    )
    columns = chain(ROUTER, own, schemas__enable="true").columns(rows)
    found = dict(zip(columns[KEPT_ROWS].to_pylist(), columns["value"].to_pylist(), strict=True))
    assert found[1] is None
    assert found[3] is None
    made = {row: json.loads(found[row]) for row in (0, 2, 4)}
    assert {row: one["schema"]["version"] for row, one in made.items()} == {0: 1, 2: 2, 4: 2}
    assert {one["schema"]["name"] for one in made.values()} == {"shop.outbox.a.Value"}
    assert [made[row]["payload"] for row in (0, 2, 4)] == [
        {"payload": {"x": 1}, "p": 1},
        {"payload": {"x": {"y": "z"}}, "p": 2},
        {"payload": {"x": 2}, "p": 2},
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9) | TEXTS
)
SCALARS |= st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(bool), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS.filter(bool), VALUES, max_size=4)


def expected(value: Any) -> Any:
    """Return a value without what gets no schema.

    Raises:
        ValueError: an array has values of several types.
    """
    if isinstance(value, dict):
        members = {name: expected(one) for name, one in value.items() if one is not None}
        return {name: one for name, one in members.items() if one != []}
    if not isinstance(value, list):
        return value
    present = [one for one in value if one is not None]
    if value and (len({kind_of(one) for one in present}) != 1 or present[0] == []):
        raise ValueError
    return [None if one is None else expected(one) for one in value]


def kind_of(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -(1 << 31) <= value < 1 << 31 else "long"
    return type(value).__name__


def has_objects_in_arrays(value: Any) -> bool:
    """Return whether an array holds objects or arrays; what becomes of those, goldens and the tests below tell."""
    if isinstance(value, list):
        return any(isinstance(one, list | dict) for one in value)
    return isinstance(value, dict) and any(map(has_objects_in_arrays, value.values()))


@settings(max_examples=50)
@given(st.lists(OBJECTS, min_size=1, max_size=6), st.sampled_from([(",", ":"), (" ,\n", "\t: ")]), st.booleans())
def test_objects_become_structures(objects: list[dict[str, Any]], blanks: tuple[str, str], plain_ascii: bool) -> None:
    given_objects = [one for one in objects if not has_objects_in_arrays(one)]
    lines = [json.dumps(one, ensure_ascii=plain_ascii, separators=blanks) for one in given_objects]
    column = pa.array([*lines, None, "text", '{"a":"', '["a"]'], pa.string())
    found: dict[int, Any] = {}
    for at, made in structs_of(column, "payload", keeps_null=False):
        shown = [None] * len(at) if made is None else complete(made, len(at)).to_pylist()
        found |= dict(zip(at.tolist(), shown, strict=True))
    assert sorted(found) == list(range(len(column)))
    for row, one in enumerate(given_objects):
        if any(ord(c) >= 0xD800 for c in json.dumps(one, ensure_ascii=False)) and plain_ascii:
            # Halves of characters, as ASCII has them, are left to the text.
            continue
        try:
            want = expected(one)
        except ValueError:
            assert found[row] is None
        else:
            assert found[row] is not None
            assert json.loads(found[row]) == want
            assert list(json.loads(found[row])) == list(want)
    assert [found[len(lines) + more] for more in range(4)] == [None] * 4


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"a":[{"b":1},{"c":"x"},{"b":2}]}', '{"a":[{"b":1,"c":null},{"b":null,"c":"x"},{"b":2,"c":null}]}'),
        ('{"a":[{"b":1},{"b":"x"}]}', None),
        ('{"a":[{"b":1},{"c":1},null]}', None),
        ('{"a":[{"b":1},null]}', '{"a":[{"b":1},null]}'),
        ('{"a":[[1],["x"]]}', None),
        ('{"a":[[],[1]]}', None),
        ('{"a":[[1],[],null]}', '{"a":[[1],[],null]}'),
        ('{"a":[null]}', None),
        ('{"a":1e999}', '{"a":"Infinity"}'),
        ('{"a":123456789012345678901}', None),
        ('{"a":01}', None),
        ('{"a":tru}', None),
        ('{"a":"\\x"}', None),
        ('{"a":"\\ud83d"}', None),
        ('{"a" 1}', None),
        ('{"":1}', None),
        ('{"":null}', "{}"),
        ('{"a":1', None),
        ('{"a":1}}', '{"a":1}'),
        ('{"a":"\x01"}', None),
        ("{" * 5000, None),
        ('{"a":' * 5000 + "1" + "}" * 5000, None),
        ('{"k\\u0041":"\\/"}', '{"kA":"/"}'),
    ],
)
def test_odd_texts(text: str, want: str | None) -> None:
    ((at, made),) = structs_of(pa.array([text]), "payload", keeps_null=False)
    assert at.tolist() == [0]
    assert (None if made is None else complete(made, 1)[0].as_py()) == want


def test_nulls_can_be_kept() -> None:
    ((_, made),) = structs_of(pa.array(['{"a":null,"b":[null]}']), "payload", keeps_null=True)
    assert made is not None
    assert complete(made, 1).to_pylist() == ['{"a":null,"b":[null]}']
    assert [field["type"] for field in made.fields] == ["bytes", "array"]


@settings(max_examples=50)
@given(st.lists(st.text('"\\{}[]:,ab1 \n', max_size=12), min_size=1))
def test_tokens_are_those_of_each_text(lines: list[str]) -> None:
    column = pa.array(lines)
    closed = closed_quotes(column)
    kept = column.filter(pa.array(closed))
    whole = tokens_of(kept)
    for number, text in enumerate(kept.to_pylist()):
        alone = tokens_of(pa.array([text]))
        first, end = whole.begins[number], whole.begins[number + 1]
        assert whole.text[first:end].to_pylist() == alone.text.to_pylist()
        assert whole.kind[first:end].tolist() == alone.kind.tolist()
    assert string(kept).text.to_pylist() == [dumps(text)[1:-1] for text in kept.to_pylist()]
