"""Values of SQL_REDO in the forms that codecs take."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.structures.table import Column, column_of
from floodmark.connectors.oracle.values import texts
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.errors import DecodeError

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6)


def strings(*values: str | None) -> pa.StringArray:
    return pa.array(values, pa.string())


@given(st.lists(DECIMALS, max_size=5))
def test_numbers_keep_their_value(values: list[Decimal]) -> None:
    # As Oracle writes them: no zero before the point, none at the end.
    shown = [
        f"{value.normalize():f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value.normalize():f}"
        for value in values
    ]
    found = texts.numbers(strings(*shown), None).to_pylist()
    assert list(map(Decimal, found)) == values
    assert all(text.lstrip("-")[0].isdigit() for text in found)
    fixed = texts.numbers(strings(*shown), 6).to_pylist()
    assert [f"{value:.6f}" for value in values] == fixed


@pytest.mark.parametrize(
    ("text", "scale", "wanted"),
    [
        ("1.5E+40", None, "1" + "5" + "0" * 39),
        ("1E-10", None, "0.0000000001"),
        ("-.5", None, "-0.5"),
        (".5", 2, "0.50"),
        ("-7", 2, "-7.00"),
        ("1E-10", 10, "0.0000000001"),
        (None, 2, None),
        (None, None, None),
    ],
)
def test_numbers(text: str | None, scale: int | None, wanted: str | None) -> None:
    assert texts.numbers(strings(text), scale).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("text", "scale"),
    [("x", 2), ("1.234", 2), ("1E", None), ("E", None), ("x", 0), ("", None), ("1 2", None), ('"', 0)],
)
def test_what_is_no_number(text: str, scale: int | None) -> None:
    with pytest.raises(DecodeError, match="isn't a number"):
        texts.numbers(strings(text), scale)


def test_binary_numbers() -> None:
    found = texts.floats(strings("2.5E+000", "-1.5E-003", "Inf", "-Inf", "Nan", None), pa.float64()).to_pylist()
    assert found[:4] == [2.5, -0.0015, float("inf"), float("-inf")]
    assert np.isnan(found[4])
    assert found[5] is None
    with pytest.raises(DecodeError, match="binary number"):
        texts.floats(strings("x"), pa.float32())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("2026-01-02 03:04:05.", "2026-01-02 03:04:05"),
        ("2026-01-02 03:04:05.120", "2026-01-02 03:04:05.120"),
        ("2026-01-02 03:04:05. +05:30", "2026-01-02 03:04:05 +05:30"),
        ("02-JAN-26 03.04.05 PM", "2026-01-02 15:04:05"),
        ("02-jan-76 12.04.05.123456789 AM", "1976-01-02 00:04:05.123456789"),
        ("02-JAN-26 12.04.05.5 PM +05:30", "2026-01-02 12:04:05.5 +05:30"),
        (None, None),
    ],
)
def test_times(text: str | None, wanted: str | None) -> None:
    assert texts.moments(strings(text, "2026-01-02 03:04:05")).to_pylist() == [wanted, "2026-01-02 03:04:05"]


@given(st.datetimes(datetime(1950, 1, 1), datetime(2049, 12, 31)))
def test_times_in_the_format_of_a_session_that_has_set_none(time: datetime) -> None:
    shown = f"{time:%d-%b-%y %I.%M.%S.%f %p}".upper()
    assert texts.moments(strings(shown)).to_pylist() == [f"{time:%Y-%m-%d %H:%M:%S.%f}"]


def test_times_in_no_known_format() -> None:
    for text in ("yesterday", "02-XXX-26 03.04.05 PM", ""):
        with pytest.raises(DecodeError, match="format"):
            texts.moments(strings(text))


def test_intervals() -> None:
    months = texts.month_intervals(strings("+01-02", "-010-11", "+000-00", None)).to_pylist()
    assert months == ["1 years 2 mons", "-10 years -11 mons", "0 years 0 mons", None]
    days = texts.day_intervals(strings("+01 02:03:04.5", "-010 00:00:00.000001234", "+00 00:00:00", None)).to_pylist()
    assert days == ["1 days 02:03:04.5", "-10 days -00:00:00.000001", "0 days 00:00:00", None]
    with pytest.raises(DecodeError, match="interval"):
        texts.month_intervals(strings("+01 02:03:04"))
    with pytest.raises(DecodeError, match="interval"):
        texts.day_intervals(strings("+01-02"))


COLUMNS = (
    Column("ID", "NUMBER", optional=False, length=9, scale=0),
    Column("NAME", "VARCHAR2", length=20),
    Column("NATIONAL", "NVARCHAR2", length=20),
    Column("BYTES", "RAW", length=20),
    Column("TEXT", "CLOB"),
    Column("BLOCK", "BLOB"),
    Column("LONG", "VARCHAR2", length=4001),
    Column("NEEDED", "CLOB", optional=False),
)


def rows(side: Side, *statements: str, inserted: bool = False) -> list[list[object]]:
    read = StatementReader([column.name for column in COLUMNS]).read(strings(*statements))
    assert read.problems == {}
    found = raw_columns(read, side, COLUMNS, np.full(len(statements), inserted))
    shown = []
    for number in range(len(statements)):
        row: list[object] = []
        for one in found:
            unknown = one.unchanged is not None and bool(one.unchanged[number])
            row.append("?" if unknown else one.values[number].as_py())
        shown.append(row)
    return shown


def test_an_update_s_new_row_has_what_it_doesn_t_set() -> None:
    update = (
        """update "S"."T" set "NAME" = NULL, "BYTES" = HEXTORAW('00ff') where "ID" = '1' and "NAME" = 'a' and """
        """"NATIONAL" = UNISTR('\\0416') and "BYTES" IS NULL;"""
    )
    assert rows(Side.OLD, update) == [["1", "a", "Ж", None, "?", "?", "?", "?"]]
    assert rows(Side.NEW, update) == [["1", None, "Ж", b"\x00\xff", "?", "?", "?", "?"]]


def test_large_objects() -> None:
    insert = (
        """insert into "S"."T"("ID","TEXT","BLOCK","LONG","NEEDED") values """
        """('1',EMPTY_CLOB(),EMPTY_BLOB(),'LM_EMPTY_STRING',EMPTY_CLOB());"""
    )
    update = """update "S"."T" set "TEXT" = 'long', "BLOCK" = HEXTORAW('00') where "ID" = '1';"""
    assert rows(Side.NEW, insert, inserted=True) == [["1", None, None, None, None, None, None, ""]]
    assert rows(Side.NEW, update) == [["1", None, None, None, "long", b"\x00", "?", "?"]]


def test_what_an_insert_lacks_is_null() -> None:
    insert = """insert into "S"."T"("ID","TEXT") values ('1',NULL);"""
    assert rows(Side.NEW, insert, inserted=True) == [["1", None, None, None, None, None, None, None]]


@pytest.mark.parametrize(
    ("where", "old", "new"),
    [("", "?", "?"), (""" and "LONG" IS NULL""", "?", "?"), (""" and "LONG" = 'short'""", "short", "short")],
)
def test_long_texts_of_rows_before(where: str, old: object, new: object) -> None:
    update = f"""update "S"."T" set "NAME" = 'a' where "ID" = '1'{where};"""
    assert [rows(side, update)[0][6] for side in (Side.OLD, Side.NEW)] == [old, new]
    assert rows(Side.NEW, update.replace('"NAME"', '"LONG"'))[0][6] == "a"


def test_a_large_object_that_a_row_before_seems_to_lack() -> None:
    delete = """delete from "S"."T" where "ID" = '1' and "TEXT" IS NULL;"""
    assert rows(Side.OLD, delete)[0][4:6] == ["?", "?"]


def test_columns_whose_values_come_apart() -> None:
    kinds = [("VARCHAR2", 4000), ("VARCHAR2", 4001), ("NVARCHAR2", 2000), ("NVARCHAR2", 2001), ("CLOB", None)]
    assert [Column("A", kind, length=length).comes_apart for kind, length in kinds] == [False, True, False, True, True]


def test_texts_as_bytes() -> None:
    insert = """insert into "S"."T"("ID","NAME","NATIONAL") values ('1',HEXTORAW('d096'),HEXTORAW('0416'));"""
    assert rows(Side.NEW, insert)[0][1:3] == ["Ж", "Ж"]
    with pytest.raises(DecodeError, match="character set"):
        rows(Side.NEW, """insert into "S"."T"("NAME") values (HEXTORAW('ff'));""")
    for value in ("'text'", "HEXTORAW('f')", "HEXTORAW('xx')"):
        with pytest.raises(DecodeError, match="hexadecimal"):
            rows(Side.NEW, f"""insert into "S"."T"("BYTES") values ({value});""")


def test_columns_of_the_dictionary() -> None:
    assert column_of("A", "NUMBER", "N", 0, 22, 9, 0) == Column("A", "NUMBER", False, 9, 0)
    assert column_of("A", "NUMBER", "Y", 0, 22, None, None) == Column("A", "NUMBER", True, None, None)
    assert column_of("A", "NUMBER", "Y", 0, 22, None, 0) == Column("A", "NUMBER", True, 38, 0)
    assert column_of("A", "FLOAT", "Y", 0, 22, 126, None) == Column("A", "FLOAT", True, 126, None)
    assert column_of("A", "VARCHAR2", "Y", 20, 80, None, None) == Column("A", "VARCHAR2", True, 20, None)
    assert column_of("A", "RAW", "Y", 0, 16, None, None) == Column("A", "RAW", True, 16, None)
    zoned = column_of("A", "TIMESTAMP(3) WITH TIME ZONE", "Y", 0, 13, None, 3)
    assert zoned == Column("A", "TIMESTAMP WITH TIME ZONE", True, None, 3)
    interval = column_of("A", "INTERVAL DAY(3) TO SECOND(6)", "Y", 0, 11, 3, 6)
    assert (interval.type, interval.scale) == ("INTERVAL DAY TO SECOND", 6)
