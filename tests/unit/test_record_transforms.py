"""Transforms of records: their options, and what they make of columns of records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.config.transforms.settings import parse_transforms
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.columns import KEPT_ROWS, EventGroup, assemble, header_lists
from floodmark.events.json_text import Fragment, Text, dumps
from floodmark.transforms.chain import Chain
from floodmark.transforms.records import Header, Records
from floodmark.transforms.structs import Struct, Written, plain
from tests.support.options import REQUIRED
from tests.support.records import SOURCE, chain, changes, headers, texts, updates

EXTRACT = "io.debezium.transforms.ExtractNewRecordState"
TOPICS = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def options(**given: str) -> PostgresOptions:
    every = {name.replace("__", "."): value for name, value in given.items()}
    return PostgresOptions.parse({**REQUIRED, **every})


def unwrapping(own: dict[str, str], **others: str) -> Chain:
    return chain(EXTRACT, own, **others)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"transforms": "a"}, ("'transforms.a.type' is required",)),
        ({"transforms": "a,A", "transforms.a.type": EXTRACT}, ("twice",)),
        ({"transforms": "a", "transforms.a.type": EXTRACT, "transforms.b.type": EXTRACT}, ("'b'", "transforms")),
        ({"transforms.unwrap.type": EXTRACT}, ("'unwrap'", "Add it to 'transforms'")),
        ({"transforms": "unwrap", "transforms.unwarp.type": EXTRACT}, ("Did you mean 'unwrap'",)),
        ({"transforms": "a", "transforms.a.type": "io.debezium.transforms.ExtractNewRecordStat"}, ("mean", EXTRACT)),
        ({"transforms": "a", "transforms.a.type": "com.example.Own"}, ("com.example.Own", EXTRACT)),
        (
            {"transforms": "a", "transforms.a.type": EXTRACT, "transforms.a.add.field": "op"},
            ("transforms.a.add.field",),
        ),
        ({"add.fields": "op:a:b"}, ("op:a:b", "names no field")),
        ({"add.fields": "sorce.lsn"}, ("sorce.lsn", "source.<field>")),
        ({"add.headers": "op:"}, ("op:",)),
        ({"delete.tombstone.handling.mode": "none"}, ("transforms.a.delete.tombstone.handling.mode", "rewrite")),
        ({"negate": "true"}, ("predicate",)),
        ({"predicate": "p", "negate": "yes"}, ("transforms.a.negate", "true or false")),
        ({"predicate": "p"}, ("'predicates' doesn't name it",)),
    ],
)
def test_wrong_options(given: dict[str, str], words: tuple[str, ...]) -> None:
    if "transforms" not in given and "transforms.unwrap.type" not in given:
        own = {f"transforms.a.{name}": value for name, value in given.items()}
        given = {"transforms": "a", "transforms.a.type": EXTRACT, **own}
    with pytest.raises(ConfigError) as caught:
        PostgresOptions.parse({**REQUIRED, **given})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": TOPICS}, ("predicates.p.pattern", "required")),
        ({"type": TOPICS, "pattern": "("}, ("predicates.p",)),
        ({"type": "x"}, ("predicates.p.type", TOPICS)),
        ({}, ("predicates.p.type",)),
    ],
)
def test_wrong_predicates(given: dict[str, str], words: tuple[str, ...]) -> None:
    own = {f"predicates.p.{name}": value for name, value in given.items()}
    with pytest.raises(ConfigError) as caught:
        unwrapping({"predicate": "p"}, predicates="p", **own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_transforms_need_events() -> None:
    with pytest.raises(ConfigError, match="format=events"):
        options(format="tables", transforms="u", transforms__u__type=EXTRACT)


def test_names_ignore_case_as_spark_drops_it() -> None:
    (one,) = parse_transforms(["Unwrap"], {"unwrap.TYPE": EXTRACT, "unwrap.add.fields": "op"})
    assert one.name == "Unwrap"


@given(st.lists(st.none() | TEXTS, min_size=1))
def test_fields_of_written_blocks_are_what_was_written(values: list[str | None]) -> None:
    numbers = [None if value is None else len(value) - (1 << 62) for value in values]
    lines = [
        f'{{"table":{dumps(value)},"lsn":{dumps(number)},"sure":{dumps(value == "")},"snapshot":"false"}}'
        for value, number in zip(values, numbers, strict=True)
    ]
    block = Written(SOURCE, [pa.array(lines)], len(lines))
    shown = {name: block.value(name) for name in ("table", "lsn", "sure", "snapshot")}
    assert all(isinstance(value, Fragment) for value in shown.values())
    read = {name: value.text.to_pylist() for name, value in shown.items() if isinstance(value, Fragment)}
    assert read["lsn"] == [None if number is None else str(number) for number in numbers]
    assert read["sure"] == [dumps(value == "") for value in values]
    assert read["table"] == [None if value is None else dumps(value)[1:-1] for value in values]
    # Debezium leaves it out of streamed events, and the converter writes its default.
    assert read["snapshot"] == [None] * len(values)
    assert plain(texts(*values)).to_pylist() == values


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | st.integers(-9, 9), TEXTS), min_size=1), st.booleans())
def test_fields_are_found_in_pieces(rows: list[tuple[str | None, int | None, str]], within: bool) -> None:
    first, second, third = zip(*rows, strict=True)
    whole = pa.array([dumps(value) for value in first])
    numbers = pa.array([dumps(value) for value in second])
    # A number may be put together, too, as PostgreSQL's nanoseconds are.
    lsn: list[Text] = ["12", pa.array([str(abs(value or 0)) for value in second]), "000"] if within else [numbers]
    inside = pa.array([dumps(value)[1:-1] for value in third])
    # A text that is put together from what is the same for all rows and what isn't, as PostgreSQL's sequence is.
    table: list[Text] = ['"a\\"', inside, '\\"z"'] if within else [whole]
    pieces: list[Text] = ['{"table":', *table, ',"lsn":', *lsn, ',"sure":', 'true,"snapshot":"', inside, '"}']
    found, read = (Written(SOURCE, given, len(rows)) for given in (pieces, [pa.array(_joined(pieces, len(rows)))]))
    for name in ("table", "lsn", "sure", "snapshot"):
        one, other = (_shown(block.value(name), len(rows)) for block in (found, read))
        assert one == other


def _joined(pieces: list[Text], rows: int) -> list[str]:
    return ["".join(piece if isinstance(piece, str) else piece[row].as_py() for piece in pieces) for row in range(rows)]


def _shown(values: Any, rows: int) -> list[Any]:
    if isinstance(values, str):
        return [json.loads(values)] * rows
    texts = values.text.to_pylist()
    return [None if text is None else json.loads(f'"{text}"' if values.quoted else text) for text in texts]


def test_blocks_that_are_the_same_for_all_rows() -> None:
    block = Written(SOURCE, ['{"table":"a\\"b","lsn":null,', '"sure":true,"snapshot":"true"}'], 3)
    assert block.values == ['"a\\"b"', "null", "true", '"true"']


def test_headers_are_plain_text_or_json() -> None:
    added = {"add.headers": "op,table,lsn,sure,snapshot,nothing"}
    assert headers(unwrapping(added).columns(changes("t", 'a"b'))) == [
        {"__op": "c", "__table": "c", "__lsn": "0", "__sure": "true", "__snapshot": None}
    ]
    converter = "org.apache.kafka.connect.json.JsonConverter"
    assert headers(unwrapping(added, header__converter=converter).columns(changes("t", 'a"b'))) == [
        {"__op": '"c"', "__table": '"c"', "__lsn": "0", "__sure": "true", "__snapshot": "null"}
    ]
    row = {"add.headers": "after.v"}
    assert headers(unwrapping(row).columns(changes("t", 'a"\\😀', None))) == [
        {"__after_v": 'a"\\😀'},
        {"__after_v": None},
    ]


def test_predicates_choose_row_by_row() -> None:
    chain = unwrapping(
        {"predicate": "p"}, predicates="p", predicates__p__type=TOPICS, predicates__p__pattern="shop[.].*"
    )
    columns = chain.columns(changes(pa.array(["shop.a", "other", "shop.b"]), "x", "y", "z"))
    made = [json.loads(value) for value in columns["value"].to_pylist()]
    kept = columns[KEPT_ROWS].to_pylist()
    assert {number: "op" in value for number, value in zip(kept, made, strict=True)} == {0: False, 1: True, 2: False}
    group = EventGroup.of(np.array([10, 20, 30]), {**columns, "position": pa.array(["p0", "p1", "p2"]), "op": "c"})
    batch = assemble([group])
    assert batch is not None
    assert batch.column("position").to_pylist() == ["p0", "p1", "p2"]
    assert batch.column("topic").to_pylist() == ["shop.a", "other", "shop.b"]


def test_left_out_rows_leave_out_their_other_columns() -> None:
    chain = unwrapping({"delete.tombstone.handling.mode": "drop"})
    columns = chain.columns(changes("t", "x", "y", op="d"))
    group = EventGroup.of(np.array([1, 2]), {**columns, "position": pa.array(["p0", "p1"]), "op": "d"})
    assert assemble([group]) is None


def test_transforms_follow_each_other() -> None:
    again = {"transforms": "one,two", "transforms.one.type": EXTRACT, "transforms.two.type": EXTRACT}
    chain = Chain(PostgresOptions.parse({**REQUIRED, **again, "transforms.one.add.fields": "op"}))
    # The second one finds no envelope any more.
    assert chain.columns(changes("t", "x"))["value"].to_pylist() == ['{"v":"x","n":0,"__op":"c"}']


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"add.fields": "op,table:op"}, ("'__op'", "t")),
        ({"add.fields": "op:v", "add.fields.prefix": ""}, ("'v'", "add.fields")),
        ({"route.by.field": "n"}, ("'n'", "int32", "route.by.field")),
        ({"route.by.field": "missing"}, ("'missing'", "isn't there")),
    ],
)
def test_what_rows_do_not_allow(own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(SourceStateError) as caught:
        unwrapping(own).columns(changes("t", "x"))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_routed_rows_keep_their_topic_where_the_field_is_blank() -> None:
    columns = unwrapping({"route.by.field": "v"}).columns(changes("t", "a", None, "", " ", 'q"'))
    assert columns["topic"].to_pylist() == ["a", "t", "t", "t", 'q"']
    columns = unwrapping({"route.by.field": "v"}).columns(changes(pa.array(["t", "u"]), "a", None))
    assert columns["topic"].to_pylist() == ["a", "u"]


@given(st.integers(0, 4), st.integers(0, 5))
def test_header_lists(width: int, rows: int) -> None:
    values = [(f"h{n}", pa.array([f"{n}-{row}" for row in range(rows)], pa.string())) for n in range(width)]
    lists = header_lists(values, rows).to_pylist()
    assert [[(one["key"], one["value"].decode()) for one in each] for each in lists] == [
        [(f"h{n}", f"{n}-{row}") for n in range(width)] for row in range(rows)
    ]


def test_structures_of_some_rows() -> None:
    records = changes("t", "a", "b", "c")
    assert records.value is not None
    part = records.take(np.array([2, 0]))
    value = part.value
    assert isinstance(value, Struct)
    source = value.value("source")
    assert isinstance(source, Written)
    lsn: Any = source.value("lsn")
    assert lsn.text.to_pylist() == ["2", "0"]
    header = Header("h", {"type": "int64", "optional": False}, "1")
    with_header = Records("rows of s.t", 1, "t", None, None, (header,), np.arange(1))
    assert with_header.take(np.array([0])).headers[0].values == "1"


CHANGED = "io.debezium.transforms.ExtractChangedRecordState"


def test_changed_fields_are_listed_row_by_row() -> None:
    own = {"header.changed.name": "new", "header.unchanged.name": "same"}
    given = updates("t", ["a", None, None, 'q"', "null"], ["a", "null", None, "q", None])
    found = headers(chain(CHANGED, own).columns(given))
    assert found == [
        {"new": "[]", "same": '["v","n"]'},
        {"new": '["v"]', "same": '["n"]'},
        {"new": "[]", "same": '["v","n"]'},
        {"new": '["v"]', "same": '["n"]'},
        {"new": '["v"]', "same": '["n"]'},
    ]
    assert headers(chain(CHANGED, own).columns(changes("t", "x"))) == [{"new": "[]", "same": "[]"}]
    assert headers(chain(CHANGED, {}).columns(changes("t", "x"))) == [{}]


@pytest.mark.parametrize(
    ("own", "values", "keys"),
    [
        ({}, ["{}", '{"v":"c"}'], ['{"n":0}', '{"n":1}']),
        ({"drop.fields.from.key": "true"}, ["{}", '{"v":"c"}'], ['{"n":0}', '{"n":1}']),
        (
            {"drop.fields.from.key": "true", "drop.fields.keep.schema.compatible": "false"},
            ["{}", '{"v":"c"}'],
            ["{}", "{}"],
        ),
    ],
)
def test_fields_that_a_header_names_are_left_out(own: dict[str, str], values: list[str], keys: list[str]) -> None:
    transforms = {
        "transforms": "same,unwrap",
        "transforms.same.type": CHANGED,
        "transforms.same.header.unchanged.name": "same",
        "transforms.unwrap.type": EXTRACT,
        "transforms.unwrap.drop.fields.header.name": "same",
        **{f"transforms.unwrap.{name}": value for name, value in own.items()},
    }
    made = Chain(PostgresOptions.parse({**REQUIRED, **transforms})).columns(updates("t", ["a", "b"], ["a", "c"]))
    order = np.argsort(made[KEPT_ROWS].to_numpy())
    assert made["value"].take(order).to_pylist() == values
    assert made["key"].take(order).to_pylist() == keys


def test_a_header_that_is_no_list_names_no_fields() -> None:
    with pytest.raises(SourceStateError, match=r"'transforms\.one\.drop\.fields\.header\.name': the header '__op'"):
        unwrapping({"add.headers": "op", "drop.fields.header.name": "__op"}).columns(changes("t", "x"))


MOVE = "io.debezium.transforms.HeaderToValue"


def with_headers(*named: tuple[str, str]) -> Records:
    headers = tuple(Header(name, {"type": "string", "optional": True}, dumps(value)) for name, value in named)
    return replace(changes("t", "x"), headers=headers)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"headers": "a", "fields": "b"}, ("transforms.one.operation", "required")),
        ({"headers": "a", "fields": "b,c", "operation": "move"}, ("as many",)),
        ({"headers": "a", "fields": "b.", "operation": "move"}, ("'b.'",)),
        ({"headers": "a", "fields": "b", "operation": "delete"}, ("move, copy",)),
    ],
)
def test_wrong_options_of_moved_headers(own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(MOVE, own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_headers_become_fields() -> None:
    given = with_headers(("a", "1"), ("b", "2"), ("other", "3"))
    own = {"headers": "a,b,c", "fields": "source.a,new.b,c", "operation": "move"}
    columns = chain(MOVE, own).columns(given)
    (value,) = map(json.loads, columns["value"].to_pylist())
    assert (value["source"]["a"], value["new"], value["after"]) == ("1", {"b": "2"}, {"v": "x", "n": 0})
    assert "c" not in value
    assert headers(columns) == [{"other": "3"}]
    kept = headers(chain(MOVE, {**own, "operation": "copy"}).columns(given))
    assert kept == [{"a": "1", "b": "2", "other": "3"}]


def test_lists_of_headers_become_fields_of_each_row() -> None:
    transforms = {
        "transforms": "changed,move",
        "transforms.changed.type": CHANGED,
        "transforms.changed.header.changed.name": "new",
        "transforms.move.type": MOVE,
        "transforms.move.headers": "new",
        "transforms.move.fields": "new",
        "transforms.move.operation": "move",
    }
    made = Chain(PostgresOptions.parse({**REQUIRED, **transforms})).columns(updates("t", ["a", "b"], ["a", "c"]))
    assert [json.loads(value)["new"] for value in made["value"].to_pylist()] == [[], ["v"]]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("before.a", ("'before'", "is null")),
        ("op.a", ("'op'", "no structure")),
        ("source.lsn", ("'lsn'", "int64")),
        ("x.y.z", ("'x'", "one level")),
    ],
)
def test_headers_without_a_place(field: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SourceStateError) as caught:
        chain(MOVE, {"headers": "a", "fields": field, "operation": "copy"}).columns(with_headers(("a", "1")))
    assert all(word in str(caught.value) for word in ("'transforms.one.fields'", *words)), str(caught.value)
