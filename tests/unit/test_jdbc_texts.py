"""Rows as text for COPY and INSERT."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from floodmark.errors import TargetUnfitError
from floodmark.sinks.relational.mysql import literals
from floodmark.sinks.relational.mysql.types import accepts as mysql_accepts
from floodmark.sinks.relational.postgres.copy_text import copy_blocks
from floodmark.sinks.relational.postgres.types import accepts

ROWS = pa.table(
    {
        "b": pa.array([True, False, None]),
        "i": pa.array([-1, 2, None], pa.int16()),
        "f": pa.array([0.1, float("inf"), None], pa.float64()),
        "n": pa.array([Decimal("0.0000001"), Decimal("-12.5000000"), None], pa.decimal128(20, 7)),
        "s": pa.array(["a\\b\n\t'", "", None]),
        "x": pa.array([b"\x00\xff", b"", None]),
        "d": pa.array([date(2026, 1, 2), date(1, 1, 1), None]),
        "t": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC), datetime(1, 1, 1, tzinfo=UTC), None]),
        "u": pa.array([time(1, 2, 3), time(0), None], pa.time64("us")),
        "l": pa.array([["a,b", None, 'q"\\'], [], None]),
    }
)


def copied(rows: pa.Table) -> tuple[str, set[str]]:
    lost: set[str] = set()
    return b"".join(map(bytes, copy_blocks(rows, lost))).decode(), lost


def inserted(rows: pa.Table, most: int = 1 << 20) -> tuple[list[str], set[str]]:
    lost: set[str] = set()
    return [one.decode() for one in literals.statements("INSERT INTO t (c)", rows, most, lost)], lost


def test_copy() -> None:
    text, lost = copied(ROWS)
    lines = text.split("\n")
    assert lines[0].split("\t") == [
        "t",
        "-1",
        "0.1",
        "1E-7",
        "a\\\\b\\n\\t'",
        "\\\\x00ff",
        "2026-01-02",
        "2026-01-02 03:04:05.000006Z",
        "01:02:03.000000",
        '{"a,b",NULL,"q\\\\"\\\\\\\\"}',
    ]
    assert lines[1].split("\t")[4:6] == ["", "\\\\x"]
    assert lines[1].split("\t")[9] == "{}"
    assert lines[2] == "\t".join(["\\N"] * 10)
    assert not lost


def test_copy_without_what_postgres_lacks() -> None:
    text, lost = copied(pa.table({"s": ["a\0b", "ok"], "l": [["\0"], ["k"]]}))
    assert text == '\\N\t{NULL}\nok\t{"k"}\n'
    assert lost == {"s", "l"}


def test_copy_of_early_times() -> None:
    days = pa.array([-719163], pa.int32()).cast(pa.date32())
    times = pa.array([-62135596800000000 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    # The day before 0001-01-01 as a Julian day.
    assert copied(pa.table({"d": days, "t": times}))[0] == "J1721425\tJ1721425 23:59:59.999999Z\n"


def test_copy_of_slices() -> None:
    rows = pa.table({"s": ["zero", "one", "two"], "x": [b"0", b"11", b"2"], "l": [["a"], ["b", "c"], []]}).slice(1, 1)
    assert copied(rows)[0] == 'one\t\\\\x3131\t{"b","c"}\n'
    assert inserted(rows)[0] == ["INSERT INTO t (c) VALUES ('one',x'3131','[\"b\",\"c\"]')"]


def test_inserts() -> None:
    (statement,), lost = inserted(ROWS)
    rows = statement.removeprefix("INSERT INTO t (c) VALUES ").split("),(")
    assert rows[0] == (
        "(1,-1,0.1,'1E-7','a\\\\b\n\t\\'',x'00ff','2026-01-02','2026-01-02 03:04:05.000006',"
        '\'01:02:03.000000\',\'["a,b",null,"q\\\\"\\\\\\\\"]\''
    )
    assert rows[1].startswith("0,2,NULL,")
    assert rows[2] == ",".join(["NULL"] * 10) + ")"
    assert lost == {"f"}


def test_inserts_are_cut() -> None:
    rows = pa.table({"s": [f"{number:05}" for number in range(100)]})
    found, _ = inserted(rows, 100)
    assert max(map(len, found)) <= 100
    head = "INSERT INTO t (c) VALUES "
    assert "".join(one.removeprefix(head) + "," for one in found) == "".join(f"('{n:05}')," for n in range(100))
    with pytest.raises(TargetUnfitError, match="max_allowed_packet"):
        inserted(pa.table({"s": ["x" * 200]}), 100)


def test_dates_that_mysql_lacks() -> None:
    days = pa.array(np.array([-719163, 2932897, 0], np.int32)).cast(pa.date32())
    (statement,), lost = inserted(pa.table({"d": days}))
    assert statement.endswith("VALUES (NULL),(NULL),('1970-01-01')")
    assert lost == {"d"}


def test_types_of_postgres() -> None:
    assert accepts("bigint", pa.int32())
    assert not accepts("smallint", pa.int32())
    assert accepts("numeric(12,2)", pa.int32())
    assert not accepts("numeric(10,2)", pa.int32())
    assert accepts("numeric", pa.decimal128(38, 10))
    assert accepts("jsonb", pa.string())
    assert accepts("my_enum", pa.string())
    assert not accepts("integer", pa.string())
    assert not accepts("timestamp without time zone", pa.string())
    assert not accepts("text", pa.int32())
    assert accepts("integer[]", pa.list_(pa.int32()))


def test_types_of_mysql() -> None:
    assert mysql_accepts("int(11)", pa.int32())
    assert mysql_accepts("bigint", pa.int32())
    assert not mysql_accepts("int unsigned", pa.int32())
    assert mysql_accepts("bigint", pa.uint32())
    assert mysql_accepts("decimal(12,2)", pa.int32())
    assert not mysql_accepts("decimal(10,2)", pa.int32())
    assert mysql_accepts("varchar(20)", pa.string())
    assert mysql_accepts("longtext", pa.list_(pa.int32()))
    assert not mysql_accepts("int", pa.string())
