"""Defaults of columns in schemas, beside Debezium's classes that convert them.

Recorded with ``python -m tests.conformance.oracle.test_defaults``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.codecs.codec import one_json
from floodmark.connectors.oracle.decode.defaults import default_value
from floodmark.connectors.oracle.structures.described import described_type
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.types.registry import codec_with
from floodmark.connectors.oracle.types.settings import OracleSettings
from tests.conformance.oracle.debezium_classes import called

GOLDEN = Path(__file__).parents[1] / "goldens" / "oracle" / "defaults.jsonl"
NUMBERS = ["1", "-1", "+1", "0", "(1)", "((2))", "1+1", "seq.nextval", "NULL", "null", "USER"]
FRACTIONS = [*NUMBERS, "1.5", "1.555", ".5", "1e2", "5."]
TIMES = ["SYSDATE", "sysdate", "SYSDATE + 1", "SYSTIMESTAMP", "CURRENT_TIMESTAMP", "NULL", "LOCALTIMESTAMP"]
TEXTS = ["'a'", "'abc'", "'a longer text'", "'a '", "('x')", "NULL", "'Вы'"]
INTEGER, DECIMAL, ANY = (
    Column("C", "NUMBER", length=digits, scale=scale) for digits, scale in ((5, 0), (5, 2), (None, None))
)
FLOAT = Column("C", "FLOAT", length=126)
DATE, TIMESTAMP = Column("C", "DATE"), Column("C", "TIMESTAMP", scale=6)
ZONED, LOCAL = (Column("C", f"TIMESTAMP WITH {kind}TIME ZONE", scale=6) for kind in ("", "LOCAL "))
MONTHS = Column("C", "INTERVAL YEAR TO MONTH", length=2, scale=0)
SECONDS = Column("C", "INTERVAL DAY TO SECOND", length=2, scale=6)
VARYING, NATIONAL = Column("C", "VARCHAR2", length=10), Column("C", "NVARCHAR2", length=10)
ALIKE: list[tuple[list[Column], list[str]]] = [
    ([INTEGER], NUMBERS),
    ([DECIMAL, ANY, Column("C", "NUMBER", length=38, scale=0)], FRACTIONS),
    ([FLOAT], ["1", "-1.5", "1.5e3", "NULL", "1+1"]),
    ([Column("C", "BINARY_FLOAT"), Column("C", "BINARY_DOUBLE")], ["1", "-1.5", "1.5E-3", "1f", "1d", "NULL", "USER"]),
    ([VARYING, NATIONAL, Column("C", "CHAR", length=5), Column("C", "NCHAR", length=3)], TEXTS),
    ([DATE, TIMESTAMP, Column("C", "TIMESTAMP", scale=3), Column("C", "TIMESTAMP", scale=9)], TIMES),
    ([ZONED, LOCAL], ["SYSDATE", "NULL"]),
    ([MONTHS], ["'01-02'", "'-10-11'", "TO_YMINTERVAL('+01-02')", "NULL", "NUMTOYMINTERVAL(1, 'YEAR')"]),
    ([SECONDS], ["'1 02:03:04.5'", "'-10 00:00:00.000001'", "TO_DSINTERVAL('+01 02:03:04.5')", "NULL"]),
    ([Column("C", "CLOB"), Column("C", "NCLOB")], ["EMPTY_CLOB()", "empty_clob()", "NULL"]),
    ([Column("C", "BLOB")], ["EMPTY_BLOB()", "HEXTORAW('00FF')", "NULL"]),
    ([Column("C", "RAW", length=5)], ["HEXTORAW('00FF')", "SYS_GUID()", "NULL"]),
]
"""Columns, and defaults that both show in the same way."""
MODES = [
    {"decimal.handling.mode": "string"},
    {"decimal.handling.mode": "double"},
    {"time.precision.mode": "connect"},
    {"time.precision.mode": "isostring"},
    {"time.precision.mode": "nanoseconds"},
    {"interval.handling.mode": "string"},
    {"binary.handling.mode": "hex"},
]
EPOCH, DAY = "1970-01-01T00:00:00Z", 1_577_836_800_000
LITERALS = "Debezium shows the text of an expression that isn't a literal"
QUOTES = "Debezium leaves quotes in texts as they are written"
ZONES = "Debezium shows the text of any expression"
DIFFERENT: list[tuple[str, Column, str, Any, Any]] = [
    (LITERALS, VARYING, "USER", None, None),
    (LITERALS, VARYING, "'a' || 'b'", None, None),
    (LITERALS, Column("C", "CHAR", length=5), "SYS_CONTEXT('a', 'b')", None, None),
    (LITERALS, Column("C", "CLOB"), "TO_CLOB('x')", None, None),
    (LITERALS, Column("C", "BLOB"), "UTL_RAW.CAST_TO_RAW('x')", None, None),
    (QUOTES, VARYING, "'it''s'", "it's", "it's"),
    (QUOTES, VARYING, "q'[it's]'", "it's", "it's"),
    (QUOTES, NATIONAL, "N'x'", "x", "x"),
    (QUOTES, Column("C", "CLOB"), "'abc'", "abc", "abc"),
    ("a character outside of the first plane is one", Column("C", "CHAR", length=3), "'🐘'", "🐘  ", "🐘  "),
    ("an empty text is NULL to Oracle", VARYING, "''", None, None),
    ("an integer may be written in another way", INTEGER, "1e2", 100, 100),
    ("an integer may be written in another way", INTEGER, "5.", 5, 5),
    ("Debezium doesn't know literals of times", DATE, "DATE '2020-01-01'", DAY, DAY),
    (
        "Debezium doesn't know literals of times",
        TIMESTAMP,
        "TIMESTAMP '2020-01-01 00:00:00.5'",
        DAY * 1000 + 500_000,
        DAY * 1000 + 500_000,
    ),
    (ZONES, ZONED, "TIMESTAMP '2020-01-01 00:00:00 +05:30'", "2020-01-01T00:00:00+05:30", "2020-01-01T00:00:00+05:30"),
    (ZONES, ZONED, "SYSTIMESTAMP", None, EPOCH),
    (ZONES, LOCAL, "CURRENT_TIMESTAMP", None, EPOCH),
    (ZONES, ZONED, "TO_DATE('x', 'y')", None, EPOCH),
]
"""Why, the column, its default, and what is right for a column that may be NULL and for one that can't."""
ASKED: list[tuple[Column, str, Any]] = [
    (DATE, "TO_DATE('2020-01-01', 'YYYY-MM-DD')", DAY),
    (DATE, "TO_DATE('01.01.2020 00:00:01','DD.MM.YYYY HH24:MI:SS')", DAY + 1000),
    (DATE, "TO_DATE('2020-01-01 00:00:00')", DAY),
    (TIMESTAMP, "TO_TIMESTAMP('2020-01-01 00:00:00.25', 'YYYY-MM-DD HH24:MI:SS.FF')", DAY * 1000 + 250_000),
    (TIMESTAMP, "TO_TIMESTAMP('20200101', 'YYYYMMDD')", DAY * 1000),
    (
        ZONED,
        "TO_TIMESTAMP_TZ('2020-01-01 00:00:00 -03:00', 'YYYY-MM-DD HH24:MI:SS TZH:TZM')",
        "2020-01-01T00:00:00-03:00",
    ),
    (DATE, "TO_DATE('01-JAN-20', 'DD-MON-RR')", None),
    (DATE, "TO_DATE('12', 'HH24')", None),
    (DATE, "TO_DATE('2020-13', 'YYYY-MM-DD')", None),
    (MONTHS, "'x'", None),
    (Column("C", "BLOB"), "HEXTORAW('0')", None),
    (VARYING, "'does not end", None),
]
"""Columns, defaults of which Debezium asks the database or can't know, and what is right."""


def ours(column: Column, options: dict[str, str]) -> Any:
    settings = OracleSettings(
        decimal_handling_mode=options.get("decimal.handling.mode", "precise"),
        time_precision_mode=options.get("time.precision.mode", "adaptive"),
        binary_handling_mode=options.get("binary.handling.mode", "bytes"),
        unavailable_value_placeholder="",
        interval_handling_mode=options.get("interval.handling.mode", "numeric"),
    )
    codec = codec_with(column, settings)
    value = default_value(column, codec)
    shown = None if value is None else one_json(codec, value)
    return None if shown is None else json.loads(shown)


def with_default(column: Column, default: str, optional: bool = True) -> Column:
    return Column("C", column.type, optional, column.length, column.scale, default, stated=True)


def calls() -> Iterator[tuple[Column, dict[str, str]]]:
    """Yield the columns and options that are alike, and then those that differ."""
    for columns, defaults in ALIKE:
        for options in ({}, *MODES):
            for column in columns:
                for default in defaults:
                    yield from ((with_default(column, default, optional), options) for optional in (True, False))
    for _, column, default, _, _ in DIFFERENT:
        yield from ((with_default(column, default, optional), {}) for optional in (True, False))


def asked(column: Column, options: dict[str, str]) -> list[Any]:
    kind = described_type(column)
    return ["default", kind.name, kind.jdbc, kind.length, kind.scale, column.optional, column.default, options]


def recorded() -> list[tuple[list[Any], Any]]:
    with GOLDEN.open(encoding="utf-8") as file:
        return [(one["call"], one["result"]) for one in map(json.loads, file)]


def test_defaults() -> None:
    differing = 2 * len(DIFFERENT)
    for (column, options), (call, result) in zip(list(calls())[:-differing], recorded()[:-differing], strict=True):
        assert call == asked(column, options)
        assert ours(column, options) == result, call


@pytest.mark.parametrize("number", range(len(DIFFERENT)))
def test_what_differs_from_debezium(number: int) -> None:
    why, column, default, optional, required = DIFFERENT[number]
    theirs = recorded()[len(list(calls())) - 2 * (len(DIFFERENT) - number) :][:2]
    found = [ours(with_default(column, default, one), {}) for one in (True, False)]
    assert found == [optional, required], why
    assert found != [result for _, result in theirs], why


@pytest.mark.parametrize(("column", "default", "value"), ASKED)
def test_defaults_that_debezium_asks_the_database_for(column: Column, default: str, value: Any) -> None:
    assert ours(with_default(column, default), {}) == value


def main() -> None:
    """Write the golden file."""
    given = [asked(*one) for one in calls()]
    with GOLDEN.open("w", encoding="utf-8") as file:
        for call, result in zip(given, called(given), strict=True):
            file.write(json.dumps({"call": call, "result": result}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
