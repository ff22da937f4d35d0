"""Columns' defaults: what of an expression counts, and in which form."""

from __future__ import annotations

import pyarrow as pa
import pytest

from floodmark.codecs.codec import one_json
from floodmark.connectors.postgres.types.defaults import default_text
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.connectors.postgres.types.type_info import TypeInfo
from tests.unit.test_types_helpers import OIDS, numeric_modifier, options

MOOD = {20000: TypeInfo("mood", "e", labels=("happy", "it's")), 20001: TypeInfo("small", "d", base=23)}


def default(oid: int, expression: str, modifier: int = -1, **given: str) -> str | None:
    codec = codec_for(oid, modifier, MOOD, options(**given))
    text = default_text(expression, oid, modifier, codec, MOOD)
    return None if text is None else one_json(codec, pa.array([text]))


@pytest.mark.parametrize(
    ("kind", "expression", "expected"),
    [
        ("int4", "5", "5"),
        ("int4", "'-5'::integer", "-5"),
        ("int4", "(1 + 2)", None),
        ("int4", "nextval('s'::regclass)", "0"),
        ("int4", "NULL::integer", None),
        ("int2", "40000", None),
        ("float8", "'-1.5'::numeric", "-1.5"),
        ("float8", "'Infinity'::double precision", '"Infinity"'),
        ("float4", "'0.1'::real", "0.1"),
        ("text", "'it''s'::text", '"it\'s"'),
        ("text", "'two\nlines'::text", '"two\\nlines"'),
        ("text", "NULL::text", None),
        ("text", "NULL::character varying(3)", None),
        ("text", "''::text", '""'),
        ("text", "(now())::text", '""'),
        ("text", "CURRENT_USER", '"CURRENT_USER"'),
        ("bool", "true", "true"),
        ("bool", "(1 = 1)", "false"),
        ("date", "'2024-02-29'::date", "19782"),
        ("date", "CURRENT_DATE", "0"),
        ("date", "'infinity'::date", None),
        ("time", "'24:00:00'::time without time zone", "86400000000"),
        ("timestamp", "now()", "0"),
        ("timestamp", "(now() AT TIME ZONE 'utc'::text)", "0"),
        ("timestamp", "timezone('utc'::text, now())", "0"),
        ("timestamptz", "'2024-02-29 13:14:15+00'::timestamp with time zone", '"2024-02-29T13:14:15.000000Z"'),
        ("timestamptz", "('now'::text)::timestamp with time zone", None),
        ("interval", "'1 day'::interval", "86400000000"),
        ("interval", "''::interval", None),
        ("uuid", "gen_random_uuid()", '"00000000-0000-0000-0000-000000000000"'),
        ("uuid", "'x'::uuid", None),
        ("json", "jsonb_build_object()", '"{}"'),
        ("numeric", "1.5", None),
        ("bytea", r"'\x00'::bytea", None),
        ("timetz", "'10:00+00'::time with time zone", None),
    ],
)
def test_built_in_types(kind: str, expression: str, expected: str | None) -> None:
    assert default(OIDS[kind], expression) == expected


def test_decimals_have_the_columns_scale() -> None:
    modifier = numeric_modifier(10, 2)
    assert default(OIDS["numeric"], "1.5", modifier) == '"AJY="'
    assert default(OIDS["numeric"], "1.555", modifier) is None
    assert default(OIDS["numeric"], "'NaN'::numeric", modifier) is None
    assert default(OIDS["numeric"], "round(1.5)", modifier, decimal_handling_mode="string") == '"0.00"'
    assert default(OIDS["numeric"], "1.50", decimal_handling_mode="string") == '"1.50"'
    assert default(OIDS["numeric"], "1.5", modifier, decimal_handling_mode="double") == "1.5"


def test_enums_and_domains() -> None:
    assert default(20000, "'happy'::mood") == '"happy"'
    assert default(20000, "'it''s'::public.mood") == '"it\'s"'
    assert default(20000, "lower('HAPPY'::text)::mood") is None
    assert default(20000, "'happy'") is None
    assert default(20001, "3") is None
