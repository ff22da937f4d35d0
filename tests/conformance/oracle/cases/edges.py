"""Values at the ends of what types hold, and texts that a reader of SQL may stumble over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.conformance.oracle.cases.case import SCHEMA, Case, Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.values import Moment

Edges = Mapping[str, tuple[str, Sequence[Any]]]
"""By column, its type and values."""
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
_LAST_SECOND = _LAST.replace(microsecond=0)
_BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999)
_WEST, _EAST = timezone(timedelta(hours=-12)), timezone(timedelta(hours=14))
_ODD = timezone(timedelta(hours=-9, minutes=-30))
_NINES = Decimal("9" * 38)


def _decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


NUMBERS: Edges = {
    "N38": ("NUMBER(38,0)", [_NINES, Decimal("-" + "9" * 38), Decimal(2**63), Decimal(-(2**63)), Decimal(2**63 - 1)]),
    "N38_38": ("NUMBER(38,38)", _decimals("." + "9" * 38, "-." + "9" * 38, "." + "0" * 37 + "1", "0")),
    "N38_19": ("NUMBER(38,19)", _decimals("9" * 19 + "." + "9" * 19, "-1E-19", "1", "0.10", "100")),
    "N18": ("NUMBER(18,0)", _decimals("9" * 18, "-" + "9" * 18, "0")),
    "N9": ("NUMBER(9,0)", _decimals("9" * 9, "-" + "9" * 9, "2147483647"[:9])),
    "N4": ("NUMBER(4,0)", _decimals("9999", "-9999")),
    "N2": ("NUMBER(2,0)", _decimals("99", "-99")),
    "N_NEGATIVE": ("NUMBER(3,-5)", _decimals("99900000", "-99900000", "100000", "0")),
    "N_SMALL": ("NUMBER(3,7)", _decimals("0.0000999", "-0.0000001", "0")),
    "N": ("NUMBER", [*_decimals("1E+125", "-1E+125", "1E-130", "-9.87654321E-100", "0.1", "1000"), _NINES]),
    "N_STAR": ("NUMBER(*,38)", _decimals("0.5", "-" + "." + "1" * 38)),
    "F": ("FLOAT(126)", _decimals("1E+100", "-1E-100", "0.3333333333333333333333333333333333333")),
    "I": ("INTEGER", [_NINES, Decimal("-" + "9" * 38), Decimal(0)]),
}
FLOATS: Edges = {
    "SINGLE": (
        "BINARY_FLOAT",
        [float("inf"), float("-inf"), float("nan"), 3.4028234663852886e38, 1.401298464324817e-45, -0.0],
    ),
    "DOUBLE": (
        "BINARY_DOUBLE",
        [float("inf"), float("-inf"), float("nan"), 1.7976931348623157e308, 5e-324, -0.0],
    ),
}
TEXTS: Edges = {
    "V": (
        "VARCHAR2(4000)",
        [
            "'",
            "''",
            "'''",
            "\\",
            "\\\\'",
            "NULL",
            "null",
            "'; delete from x;--",
            "a\x00b",
            "\r\n",
            "\t",
            " ",
            "  x  ",
            "EMPTY_CLOB()",
            "TO_DATE('x', 'y')",
            "UNISTR('\\0041')",
            "HEXTORAW('00')",
            "\"ID\" = '1'",
            " and ",
            "where",
            "Unsupported Type",
            "\u2028\u2029\u0085",
            "e\u0301",
            "\U0010ffff",
            "\ufeff",
            "x" * 4000,
            "'" * 2000,
            "漢" * 1300,
        ],
    ),
    "C": ("CHAR(12)", [None, "a", "a  b", "'", "漢字", "123456789012", "\\"]),
    "NV": (
        "NVARCHAR2(2000)",
        ["'Ж'", "''Ж", "🐘🐘", "\U0010ffff", "plain \\ text", "Ж" * 2000, "NULL", "ж|ж", "\u0000ж"],
    ),
    "NC": ("NCHAR(3)", ["Ж", "🐘", "abc", "'Ж'"]),
    "R": ("RAW(2000)", [b"\x00", b"\xff" * 2000, b"'", bytes(range(256))]),
}
TIMES: Edges = {
    "D": (
        "DATE",
        [
            _FIRST,
            _LAST_SECOND,
            datetime(1582, 10, 4),
            datetime(1582, 10, 15),
            datetime(2024, 2, 29),
            datetime(1900, 1, 1),
        ],
    ),
    "T0": ("TIMESTAMP(0)", [_FIRST, _LAST_SECOND, datetime(1970, 1, 1)]),
    "T1": ("TIMESTAMP(1)", [_BEFORE_1970.replace(microsecond=900000), datetime(2038, 1, 19, 3, 14, 7, 100000)]),
    "T3": ("TIMESTAMP(3)", [_BEFORE_1970.replace(microsecond=999000), _FIRST]),
    "T6": (
        "TIMESTAMP(6)",
        [_FIRST, _LAST, _BEFORE_1970, datetime(1700, 2, 28, 12), datetime(2000, 12, 31, 23, 59, 59)],
    ),
    "T7": ("TIMESTAMP(7)", [Moment(_BEFORE_1970, 900), Moment(datetime(2026, 1, 1), 100)]),
    "T9": (
        "TIMESTAMP(9)",
        [Moment(datetime(1677, 9, 22), 1), Moment(datetime(2262, 4, 11, 23), 999), Moment(_BEFORE_1970, 999)],
    ),
    "Z0": ("TIMESTAMP(0) WITH TIME ZONE", [datetime(2026, 1, 1, tzinfo=_WEST), datetime(2026, 1, 1, tzinfo=_EAST)]),
    "Z6": (
        "TIMESTAMP(6) WITH TIME ZONE",
        [_BEFORE_1970.replace(tzinfo=_ODD), datetime(9999, 12, 30, tzinfo=_EAST), datetime(1, 1, 3, tzinfo=_WEST)],
    ),
    "Z9": ("TIMESTAMP(9) WITH TIME ZONE", [Moment(datetime(2026, 6, 30, 23, 59, 59, tzinfo=UTC), 1)]),
    "L6": (
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        [_BEFORE_1970.replace(tzinfo=_ODD), datetime(2026, 1, 1, tzinfo=_EAST)],
    ),
    "YM": ("INTERVAL YEAR(9) TO MONTH", ["+000000000-00", "-000000001-11", "+000009999-11", "-000178000-00"]),
    "DS": (
        "INTERVAL DAY(9) TO SECOND(6)",
        [
            "+000000000 00:00:00.000000",
            "-000000000 00:00:00.000001",
            "+000099999 23:59:59.999999",
            "-000001000 00:00:00.5",
        ],
    ),
    "DS9": ("INTERVAL DAY(2) TO SECOND(9)", ["+00 00:00:00.123456789", "-99 23:59:59.999999999"]),
}
_TABLES = {"NUMBERS": NUMBERS, "FLOATS": FLOATS, "TEXTS": TEXTS, "TIMES": TIMES}


def _rows(values: Edges) -> list[dict[str, Any]]:
    """Return rows in which each column has each of its values."""
    count = max(len(one) for _, one in values.values())
    return [{name: one[number % len(one)] for name, (_, one) in values.items()} for number in range(count)]


def _setup(name: str, values: Edges) -> Step:
    def setup(database: OracleDatabase) -> None:
        columns = [
            column("ID", "NUMBER(9,0)", nullable=False),
            *(column(one, kind) for one, (kind, _) in values.items()),
        ]
        made = database.create_table(SCHEMA, name, columns, ["ID"], logged=False)
        transaction = database.begin()
        for number, row in enumerate(_rows(values)):
            transaction.insert(made, ID=number, **row)
        transaction.commit()

    return setup


def _changes(name: str, values: Edges) -> Step:
    def change(database: OracleDatabase) -> None:
        made = table(database, name)
        transaction = database.begin()
        rows = _rows(values)
        for number, row in enumerate(rows):
            transaction.insert(made, ID=100 + number, **row)
        for number in range(len(rows)):
            transaction.update(made, {"ID": 100 + number}, **rows[(number + 1) % len(rows)])
        transaction.update(made, {"ID": 100}, **dict.fromkeys(values))
        transaction.delete(made, {"ID": 101})
        transaction.commit()

    return change


def _case(name: str, values: Edges, **options: str) -> Case:
    given = {option.replace("_", "."): value for option, value in options.items()}
    suffix = "".join(f"_{one}" for one in options.values())
    changes = [_changes(name, values)]
    return Case(f"edges/{name.lower()}{suffix}", _setup(name, values), changes, given, tables=[name], compact=True)


EDGES = (
    *(_case(name, values) for name, values in _TABLES.items()),
    _case("NUMBERS", NUMBERS, decimal_handling_mode="string"),
    _case("NUMBERS", NUMBERS, decimal_handling_mode="double"),
    *(
        _case("TIMES", TIMES, time_precision_mode=mode)
        for mode in ("connect", "isostring", "microseconds", "nanoseconds", "adaptive_time_microseconds")
    ),
    replace(
        _case("TIMES", TIMES, interval_handling_mode="string"),
        name="edges/times_interval_string",
    ),
    *(_case("TEXTS", TEXTS, binary_handling_mode=mode) for mode in ("base64", "hex")),
)
