"""Expressions of transforms have the values that Spark gives them, over the same rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from floodmark.config.expressions.parser import parse_expression
from floodmark.transforms.sql.columns import EvaluationError
from floodmark.transforms.sql.evaluator import evaluate
from tests.support.expressions import SPARK_SCHEMA, records, spark_rows

pytestmark = pytest.mark.slow
A = "value.after"
EXPRESSIONS = (
    "value.op = 'u' AND value.after.i == 1",
    "value.after.i <> value.after.j OR value.after.b",
    "NOT value.after.b",
    "value.after.b AND NOT value.after.b OR value.after.b IS NULL",
    "value.after.i IN (1, 2, NULL)",
    "value.after.i NOT IN (1, -7)",
    "value.after.i BETWEEN 0 AND value.after.j",
    "value.after.s NOT BETWEEN 'a' AND 'b'",
    "value.after.d = value.after.d",
    "value.after.d > value.after.f",
    "value.after.d >= 'NaN'::double",
    "value.after.d < 1.5",
    "value.after.f = 0.5",
    "value.after.n > 1",
    "value.after.n = 1.5",
    "value.after.n <= value.after.d",
    "value.after.n <> value.after.i",
    "value.after.n <> 1.505",
    "value.after.i = 1.0",
    "value.after.l > value.after.i",
    "value.after.l = 5L",
    "value.after.b = TRUE",
    "value.after.b < FALSE",
    "value.after.b IS TRUE",
    "value.after.b IS NOT FALSE",
    "value.after.b <=> NULL",
    "value.after.s <=> value.after.t",
    "value.after.i IS DISTINCT FROM value.after.j",
    "value.after IS NULL OR key.id > 10",
    "topic",
    "header.h || topic",
    "key.id",
    "value.after.`odd name`",
    "value.after.s LIKE 'a%'",
    "value.after.s LIKE '_'",
    "value.after.s LIKE '%'",
    "value.after.s LIKE 'a!%b!_%' ESCAPE '!'",
    "value.after.s LIKE 'x_y'",
    "value.after.s NOT LIKE '%é'",
    "value.after.s LIKE ''",
    "UPPER(value.after.s)",
    "LOWER(value.after.s)",
    "LENGTH(value.after.s)",
    "TRIM(value.after.s)",
    "SUBSTRING(value.after.s, 2)",
    "SUBSTRING(value.after.s, 0, 2)",
    "SUBSTRING(value.after.s, -2, 1)",
    "SUBSTRING(value.after.s, -4, 3)",
    "SUBSTRING(value.after.s, -2)",
    "SUBSTR(value.after.s, 3, 100)",
    "SUBSTRING(value.after.s, 2, -1)",
    "SUBSTRING(value.after.s, -9, 8)",
    "CONCAT(value.after.s, '-', value.after.t)",
    "value.after.s || NULL",
    "COALESCE(value.after.s, value.after.t, 'none')",
    "COALESCE(value.after.i, value.after.l)",
    "COALESCE(NULL, value.after.d)",
    "COALESCE(value.after.i, value.after.d)",
    "NVL(value.after.n, value.after.n)",
    "CASE WHEN value.after.i > 0 THEN 'more' WHEN value.after.i < 0 THEN 'less' END",
    "CASE value.after.s WHEN 'a' THEN 1 WHEN '' THEN 2 ELSE 3L END",
    "IF(value.after.b, value.after.i, NULL)",
    "CASE WHEN value.after.j <> 0 THEN 12 / value.after.j END",
    "value.after.j <> 0 AND 12 % value.after.j = 0",
    "value.after.j = 0 OR 12 % value.after.j = 0",
    "value.after.j + value.after.j * 2 - 1",
    "value.after.j / 4",
    "value.after.j % 5",
    "-value.after.j % 5",
    "value.after.d % 2",
    "value.after.d * 2 + value.after.j",
    "-value.after.d",
    "-value.after.n",
    "-value.after.f",
    "value.after.l + 1",
    "1 / 3",
    "1 + NULL",
    "CAST(value.after.i AS STRING)",
    "CAST(value.after.d AS STRING)",
    "CAST(value.after.f AS STRING)",
    "CAST(value.after.n AS STRING)",
    "CAST(value.after.b AS STRING)",
    "CAST(value.after.b AS INT)",
    "CAST(value.after.b AS DOUBLE)",
    "CAST(value.after.i AS BOOLEAN)",
    "CAST(value.after.l AS BOOLEAN)",
    "CAST(value.after.d AS BOOLEAN)",
    "CAST(value.after.n AS BOOLEAN)",
    "CAST(value.after.n AS INT)",
    "CAST(value.after.n AS DOUBLE)",
    "CAST(value.after.i AS BIGINT) * 4",
    "CAST(' +12 ' AS INT)",
    "CAST('-1.5e3' AS DOUBLE)",
    "CAST(' YES ' AS BOOLEAN)",
    "CAST('-9223372036854775808' AS BIGINT)",
    "CAST(1.99 AS INT)",
    "CAST(-1.99 AS INT)",
    "CAST(NULL AS STRING)",
    "CASE WHEN value.after.s = '5' THEN CAST(value.after.s AS INT) END",
    '"it\'s" = value.after.s',
    "value.after.s = 'é'",
    "1.5 = 1.50",
    ".5 < 1",
    "1e3 = 1000",
    "2147483648 > value.after.i",
    "-2147483648 < value.after.i",
)
FAILING = (
    "1 / (value.after.i - value.after.i)",
    "value.after.d / 0",
    "value.after.j % 0",
    "value.after.i + 1",
    "value.after.l * 4",
    "-(value.after.i - 2147483647 - 2147483647) ",
    "CAST(value.after.s AS INT)",
    "CAST(value.after.s AS DOUBLE)",
    "CAST(value.after.s AS BOOLEAN)",
    "CAST(value.after.d AS INT)",
    "CAST(value.after.d AS BIGINT)",
    "CAST(value.after.l AS INT)",
    "CAST('1.5' AS INT)",
)


def values_of(spark: SparkSession, expressions: Sequence[str]) -> list[list[Any]]:
    """Return the values that Spark gives expressions, by expression and row."""
    frame = spark.createDataFrame(spark_rows(), SPARK_SCHEMA).coalesce(1)
    found = frame.selectExpr(*(f"{text} AS c{number}" for number, text in enumerate(expressions))).collect()
    return [list(column) for column in zip(*found, strict=True)]


def plain(value: Any) -> Any:
    """Return a value in a form in which equal ones are the same."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    return value.normalize() if isinstance(value, Decimal) else value


def mine(text: str) -> list[Any]:
    return list(map(plain, evaluate(parse_expression(text), records()).values.to_pylist()))


def test_values_are_sparks(spark: SparkSession) -> None:
    for text, want in zip(EXPRESSIONS, values_of(spark, EXPRESSIONS), strict=True):
        assert mine(text) == list(map(plain, want)), text


@pytest.mark.long
@pytest.mark.parametrize("text", FAILING)
def test_what_fails_in_spark_fails(text: str, spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        values_of(spark, [text])
    with pytest.raises(EvaluationError):
        mine(text)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_generated_expressions_have_sparks_values(seed: int, spark: SparkSession) -> None:
    chance = random.Random(seed)
    texts = [boolean(chance, 4) for _ in range(120)]
    for text, want in zip(texts, values_of(spark, texts), strict=True):
        assert mine(text) == want, text


def boolean(chance: random.Random, depth: int) -> str:
    """Return a condition."""
    if depth == 0:
        return chance.choice([f"{A}.b", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", f"{A}.i IS NULL", "value.op = 'u'"])

    def inner() -> str:
        return boolean(chance, depth - 1)

    kinds: list[Callable[[], str]] = [
        lambda: f"({inner()} AND {inner()})",
        lambda: f"({inner()} OR {inner()})",
        lambda: f"(NOT {inner()})",
        lambda: f"({number(chance)} {operator(chance)} {number(chance)})",
        lambda: f"({text(chance)} {operator(chance)} {text(chance)})",
        lambda: f"({text(chance)} LIKE '{chance.choice(['a%', '%', '_', '%b%', 'A_', 'x%y'])}')",
        lambda: f"({number(chance)} {chance.choice(['', 'NOT '])}IN ({number(chance)}, {number(chance)}, 3))",
        lambda: f"({number(chance)} {chance.choice(['', 'NOT '])}BETWEEN {number(chance)} AND {number(chance)})",
        lambda: f"(CASE WHEN {inner()} THEN {inner()} ELSE {inner()} END)",
        lambda: f"({chance.choice([number, text])(chance)} IS {chance.choice(['', 'NOT '])}NULL)",
        lambda: f"COALESCE({inner()}, {inner()})",
    ]
    return chance.choice(kinds)()


def operator(chance: random.Random) -> str:
    return chance.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])


def number(chance: random.Random) -> str:
    """Return a number that can't overflow."""
    return chance.choice(
        [
            f"{A}.i",
            f"{A}.j",
            f"{A}.l",
            f"{A}.d",
            f"{A}.f",
            f"{A}.n",
            "key.id",
            "0",
            "-7",
            "1.5",
            "1.0E0",
            f"({A}.j + {chance.randint(-9, 9)})",
            f"({A}.j * key.id)",
            f"({A}.j / 4)",
            f"({A}.d * 0.5D)",
            f"({A}.j % 4)",
            f"CASE WHEN {A}.j <> 0 THEN 10 / {A}.j ELSE {A}.d END",
            f"CAST({A}.n AS DOUBLE)",
            f"LENGTH({text(chance)})",
        ]
    )


def text(chance: random.Random) -> str:
    """Return a text."""
    return chance.choice(
        [
            f"{A}.s",
            f"{A}.t",
            "topic",
            f"{A}.`odd name`",
            "'a'",
            "''",
            f"CONCAT({A}.s, {A}.t)",
            f"LOWER({A}.s)",
            f"UPPER({A}.s)",
            f"SUBSTRING({A}.s, {chance.randint(-4, 4)}, {chance.randint(-1, 4)})",
            f"COALESCE({A}.t, {A}.s)",
            f"CAST({A}.i AS STRING)",
            f"TRIM({A}.s)",
        ]
    )
