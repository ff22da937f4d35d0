"""Transforms that evaluate expressions: their options, hostile texts, and what they do with records."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.config.expressions.groovy import as_sql
from floodmark.config.expressions.parser import ExpressionError, parse_expression
from floodmark.config.expressions.tree import Compared, Constant, Field, Like, Not
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.columns import KEPT_ROWS
from floodmark.transforms.records import Header, Records
from floodmark.transforms.sql.columns import EvaluationError
from floodmark.transforms.sql.evaluator import evaluate
from floodmark.transforms.structs import Plain
from tests.support.expressions import records
from tests.support.records import chain, changes, texts

FILTER = "io.debezium.transforms.Filter"
ROUTER = "io.debezium.transforms.ContentBasedRouter"
SQL = {"language": "sql"}


@pytest.mark.parametrize(
    ("kind", "own", "words"),
    [
        (FILTER, {"condition": "TRUE"}, ("transforms.one.language", "required")),
        (FILTER, SQL, ("transforms.one.condition", "required")),
        (ROUTER, SQL, ("transforms.one.topic.expression", "required")),
        (
            FILTER,
            {"language": "jsr223.groovy", "condition": "value.op == 'u' && value.before.id == 2"},
            ("transforms.one.language", "'jsr223.groovy'", "this one is: value.op = 'u' AND value.before.id = 2"),
        ),
        (
            ROUTER,
            {"language": "jsr223.graal.js", "topic.expression": "value.op == 'u' ? 'updates' : null"},
            ("this one is: CASE WHEN value.op = 'u' THEN 'updates' ELSE NULL END",),
        ),
        (
            FILTER,
            {"language": "jsr223.groovy", "condition": "value.after.v =~ /x/"},
            ("must be sql", "such as: value.op = 'u' AND value.before.id = 2"),
        ),
        (FILTER, {"language": "wasm.chicory", "condition": "file:/x.wasm"}, ("'wasm.chicory'", "such as:")),
        (FILTER, {**SQL, "condition": "value.op = "}, ("transforms.one.condition", "isn't SQL")),
        (FILTER, {**SQL, "condition": "value.op RLIKE 'x'"}, ("transforms.one.condition", "RLIKE", "Allowed are")),
        (FILTER, {**SQL, "condition": "op = 'u'"}, ("'op', which is no field", "value.<field>")),
        (FILTER, {**SQL, "condition": "TRUE", "topic.regex": "(?=x)"}, ("transforms.one.topic.regex", "lookahead")),
        (FILTER, {**SQL, "condition": "TRUE", "null.handling.mode": "x"}, ("keep, drop, evaluate",)),
    ],
)
def test_wrong_options(kind: str, own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(kind, own)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "TRUE; DROP TABLE orders",
        "SELECT 1",
        "(SELECT 1)",
        "value.op IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "DROP TABLE orders",
        "SET x = 1",
        "value.op = ANY (SELECT 1)",
        "java_method('java.lang.Runtime', 'exit')",
        "reflect('java.lang.System', 'exit', 1)",
        "assert_true(false)",
        "current_user()",
        "value.op LIKE value.op",
        "value.op LIKE 'a!' ESCAPE '!'",
        "value.op LIKE 'a!x' ESCAPE '!'",
        "value.op LIKE 'x' ESCAPE ''",
        "value.op ILIKE 'x'",
        "value.op LIKE ANY ('x')",
        "value.op RLIKE '(a+)+$'",
        "'a\\nb' = value.op",
        "value.op = 'a' COLLATE UTF8_LCASE",
        "CAST(value.op AS DATE)",
        "CAST(value.op AS DECIMAL(3,1))",
        "TRY_CAST(value.op AS INT)",
        "date '2026-01-01' = value.op",
        "interval 1 day",
        "value.op = :p",
        "value.op = ?",
        "value.op = @x",
        "${value}",
        "value['op']",
        "value.after[0]",
        "headers.x",
        "header",
        "header.x.value",
        "topic.x",
        "keySchema.name",
        "SUM(value.after.id)",
        "ROW_NUMBER() OVER (ORDER BY value.op)",
        "SUBSTRING(value.op, value.after.id)",
        "SUBSTRING(value.op, 1.5)",
        "X'00' = value.op",
        "18446744073709551616 = value.after.id",
        "LTRIM(value.op)",
        "TRIM('x' FROM value.op)",
        "value.op AS x",
        "*",
        "value.*",
        "x -> x",
        "value.op = 'a",
        "/* value.op",
        "(" * 5000 + "TRUE" + ")" * 5000,
        "NOT " * 5000 + "TRUE",
        " AND ".join(["TRUE"] * 30_000),
        "'" + "x" * 70_000 + "'",
    ],
)
def test_what_expressions_must_not_have(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text)


@settings(max_examples=100, deadline=None)
@given(
    st.text(st.sampled_from("value.after topic key=<>()'\"`\\%_,;-*/AND OR NOT IN LIKE 1.5e\0é😀{}[]$:?@"), max_size=60)
)
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    with suppress(ExpressionError):
        parse_expression(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("value.after ==!=&&||?:()'\"1.5-+[]get('x').startsWith(\0é"), max_size=40))
def test_any_script_is_translated_or_not(script: str) -> None:
    found = as_sql(script)
    assert found is None or parse_expression(found)


@pytest.mark.parametrize(
    ("script", "sql"),
    [
        ("value.op == 'u'", "value.op = 'u'"),
        ('value.op === "u";', "value.op = 'u'"),
        ("value.op != null && !(value.after?.id > -1.5)", "value.op IS NOT NULL AND (NOT (value.after.id > -1.5))"),
        ("topic.startsWith('a') || topic.contains('b')", "topic LIKE 'a%' OR topic LIKE '%b%'"),
        ("header.idh.value == 'it'", "header.idh = 'it'"),
        ("value.after['odd name'] == true", "value.after.`odd name` = TRUE"),
        ("value.get('op').equals('d')", "value.op = 'd'"),
        ("topic.startsWith('100%')", None),
        ("value.op.matches('x')", None),
        ("value.op == 'a\\'b'", None),
        ('value.op == "${x}"', None),
        ("def x = 1; x", None),
        ("System.exit(1)", None),
        ("keySchema.name == 'x'", None),
        ("value.op == 'u' value", None),
        ("(" * 3000 + "value.op" + ")" * 3000, None),
        ("x" * 30_000, None),
    ],
)
def test_scripts_in_sql(script: str, sql: str | None) -> None:
    assert as_sql(script) == sql


def test_trees() -> None:
    assert parse_expression("value.`a``b`.c = -1") == Compared("=", Field(("value", "a`b", "c")), Constant(-1, "int"))
    found = parse_expression("topic NOT LIKE 'a.%!_' ESCAPE '!'")
    assert found == Not(Like(Field(("topic",)), r"(?s)\A(?:a\..*_)\z"))
    assert parse_expression('value.after.`q"é😀`') == Field(("value", "after", 'q"é😀'))
    assert str(Field(("value", "a`b", "c"))) == "value.`a``b`.c"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("value.after.nothing = 1", "no field 'value.after.nothing'"),
        ("value.after.s.x = 1", "no field 'value.after.s.x'"),
        ("value.after.s = 1", "compares STRING and INT"),
        ("value.after.b = 'true'", "compares BOOLEAN and STRING"),
        ("value.after = 1", "only IS NULL"),
        ("value.after.s + 1", "computes with STRING"),
        ("value.after.n * 2", "computes with DECIMAL"),
        ("value.after.s AND TRUE", "a condition is STRING"),
        ("NOT value.after.i", "a condition is INT"),
        ("value.after.i LIKE '1'", "LIKE has INT"),
        ("CONCAT(value.after.i, 'x')", "CONCAT has INT"),
        ("UPPER(value.after)", "UPPER has a structure"),
        ("CAST(value.after AS STRING)", "casts a structure"),
        ("CASE WHEN TRUE THEN 1 ELSE 'x' END", "CASE has values of the types INT and STRING"),
        ("COALESCE(value.after.n, 1)", "COALESCE has values of the types DECIMAL and INT"),
        ("COALESCE(value.after.n, 1.555)", "decimals of several scales"),
        ("value.after.i + 2147483647", "beyond INT"),
        ("value.after.l * 4611686018427387904", "beyond BIGINT"),
        ("1 / 0", "divides by 0"),
        ("CAST('x' AS INT)", "the text 'x'"),
        ("CAST('99999999999999999999' AS BIGINT)", "beyond BIGINT"),
        ("CAST(1e300 AS INT)", "beyond INT"),
    ],
)
def test_what_types_do_not_allow(text: str, words: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(parse_expression(text), records())
    assert words in str(caught.value), str(caught.value)


def kept(own: dict[str, str], *parts: Records) -> list[list[int]]:
    """Return which of records are left."""
    made = [chain(FILTER, {**SQL, **own}).columns(part) for part in parts]
    return [one[KEPT_ROWS].to_pylist() if KEPT_ROWS in one else list(range(len(one["key"]))) for one in made]


def test_a_condition_leaves_records_out() -> None:
    rows = changes("t", "a", "b", None)
    assert kept({"condition": "value.after.v = 'a'"}, rows) == [[0]]
    assert kept({"condition": "value.after.v <> 'a'"}, rows) == [[1]]
    assert kept({"condition": "value.op = 'c'"}, rows) == [[0, 1, 2]]
    assert kept({"condition": "value.op = 'd' OR NULL"}, rows) == [[]]
    assert kept({"condition": "value.before.v IS NULL AND key.n <> 1"}, rows) == [[0, 2]]


def test_records_without_a_value() -> None:
    tombstones = replace(changes("t", "a", "b"), value=None)
    heartbeat = replace(tombstones, key=None, value=Plain({"type": "string", "optional": True}, "null"))
    for mode, left in (("keep", [0, 1]), ("drop", [])):
        own = {"condition": "key.n = 1", "null.handling.mode": mode}
        assert kept(own, tombstones, heartbeat) == [left, left]
    own = {"condition": "key.n = 1 AND value IS NULL", "null.handling.mode": "evaluate"}
    assert kept(own, tombstones, heartbeat) == [[1], []]
    some = replace(tombstones, value=Plain({"type": "string", "optional": True}, texts("x", None)))
    assert kept({"condition": "value = 'y'", "null.handling.mode": "keep"}, some) == [[1]]
    assert kept({"condition": "value = 'x'", "null.handling.mode": "drop"}, some) == [[0]]


def test_topics_limit_an_expression() -> None:
    rows = changes(pa.array(["t", "u", "t"]), "a", "a", "b")
    own = {"condition": "value.after.v = 'b'", "topic.regex": "t"}
    assert sorted(kept(own, rows)[0]) == [1, 2]
    assert sorted(kept({"condition": "value.nothing = 1", "topic.regex": "x.*"}, rows)[0]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("kind", "own", "words"),
    [
        (FILTER, {"condition": "value.after.v"}, ("transforms.one.condition", "STRING, and must be BOOLEAN")),
        (FILTER, {"condition": "value.after.x = 1"}, ("transforms.one.condition", "value.after.x", "topic.regex")),
        (ROUTER, {"topic.expression": "1"}, ("transforms.one.topic.expression", "INT, and must be STRING")),
        (ROUTER, {"topic.expression": "''"}, ("transforms.one.topic.expression", "without content")),
    ],
)
def test_what_records_do_not_allow(kind: str, own: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(SourceStateError) as caught:
        chain(kind, {**SQL, **own}).columns(changes("t", "x"))
    assert all(word in str(caught.value) for word in ("rows of s.t", *words)), str(caught.value)


def test_records_go_to_other_topics() -> None:
    def topics(expression: str, rows: Records) -> list[str]:
        found: list[str] = chain(ROUTER, {**SQL, "topic.expression": expression}).columns(rows)["topic"].to_pylist()
        return found

    rows = changes("t", "a", "b", None)
    assert topics("CASE WHEN value.after.v = 'a' THEN 'other' END", rows) == ["other", "t", "t"]
    assert topics("topic || '.' || value.after.v", rows) == ["t.a", "t.b", "t"]
    assert topics("NULL", rows) == ["t", "t", "t"]
    several = changes(pa.array(["t", "u", "v"]), "a", None, "c")
    assert topics("value.after.v", several) == ["a", "u", "c"]
    header = Header("h", {"type": "string", "optional": True}, json.dumps("x"))
    assert topics("header.h", replace(rows, headers=(header,))) == ["x", "x", "x"]
    assert topics("header.nothing", rows) == ["t", "t", "t"]


def test_what_a_row_does_not_need_is_not_evaluated() -> None:
    """Else a guard would not keep others from an error."""
    for text in (
        "value.after.i <> 0 AND 1 / value.after.i > 0",
        "value.after.i = 0 OR 1 / value.after.i > 0",
        "CASE WHEN value.after.i <> 0 THEN 1 / value.after.i END IS NULL",
        "COALESCE(1, 1 / 0) = 1",
        "topic = 'x' AND value.after.nothing > 5",
        "CASE WHEN topic LIKE 't%' THEN 1 ELSE value.nothing END = 1",
    ):
        assert len(evaluate(parse_expression(text), records()).values) == records().rows


def test_no_records() -> None:
    nothing = records().take(np.array([], np.int64))
    assert evaluate(parse_expression("value.after.i = 1 OR value.after.s LIKE 'a%'"), nothing).values.to_pylist() == []
