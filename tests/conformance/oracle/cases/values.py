"""Values of all types that LogMiner shows, in all modes of handling them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.conformance.oracle.cases.case import SCHEMA, Case, Pause, Step, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.dictionaries import made_of
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.values import Moment

INDIA, BRAZIL = timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-3))
_TIME = datetime(2026, 1, 2, 13, 4, 5, 123456)
_OLD = datetime(1, 1, 1)
FILE = "/dictionaries/cases.ora"
_LATE = datetime(9999, 12, 31, 23, 59, 59, 999999)

Values = dict[str, tuple[str, list[Any]]]
"""By column, its type and values."""

_WHOLE = [Decimal(text) for text in ("0", "1", "-1", "7")]
NUMBERS: Values = {
    "I1": ("NUMBER(1)", [*_WHOLE, 9]),
    "I2": ("NUMBER(2)", [*_WHOLE, 99, -99]),
    "I4": ("NUMBER(4,0)", [*_WHOLE, 9999, -9999]),
    "I9": ("NUMBER(9)", [*_WHOLE, 999_999_999]),
    "I18": ("NUMBER(18)", [*_WHOLE, 10**18 - 1, -(10**18) + 1]),
    "I19": ("NUMBER(19,0)", [*_WHOLE, 10**19 - 1, 128, -129]),
    "I38": ("NUMBER(38)", [*_WHOLE, 10**38 - 1, 10**17]),
    "INTEGER": ("INTEGER", [*_WHOLE, 2**63]),
    "NEGATIVE": ("NUMBER(5,-2)", [0, 100, -12300, 9999900]),
    "NEGATIVE18": ("NUMBER(16,-3)", [0, 1000, -123000]),
    "D1": ("NUMBER(1,1)", [Decimal(text) for text in ("0", ".5", "-.1")]),
    "D6": ("NUMBER(6,2)", [Decimal(text) for text in ("0", "12.5", "-12.34", ".01", "9999.99", "-7")]),
    "D38": ("NUMBER(38,10)", [Decimal("1234567890123456789012345678.0123456789"), Decimal("-.0000000001")]),
    "D2": ("NUMBER(2,5)", [Decimal("0.00012"), Decimal("-0.00099")]),
    "ANYTHING": (
        "NUMBER",
        [Decimal(text) for text in ("0", "1", "-1.5", "3.14159", "1E+20", "1E-20", "123456789012345678901234567890.5")],
    ),
    "STAR": ("NUMBER(*,3)", [Decimal(text) for text in ("0", "1.5", "-1.125")]),
    "STAR0": ("NUMBER(*,0)", [0, 12, -12]),
    "FLOAT": ("FLOAT", [Decimal(text) for text in ("0", "1.5", "-1.5", "3.33")]),
    "FLOAT10": ("FLOAT(10)", [Decimal(text) for text in ("0", "1.5", "2.25")]),
    "REAL": ("REAL", [Decimal(text) for text in ("0", "1.5", "-2")]),
}
FLOATS: Values = {
    "SINGLE": ("BINARY_FLOAT", [0.0, 1.5, -1.5, 2.5e30, 1.5e-38]),
    "DOUBLE": ("BINARY_DOUBLE", [0.0, 1.5, -1.5, 2.5e300, 5e-324]),
}
TEXTS: Values = {
    "FIXED": ("CHAR(5)", ["a", "abcde", "é", " "]),
    "VARYING": ("VARCHAR2(200)", ["a", "O'Neil", "''", "Вы", "🐘 漢字", "a\\b", "x" * 200, "a\nb\t", "NULL", '"q"']),
    "NFIXED": ("NCHAR(5)", ["a", "Ж", "abcde"]),
    "NVARYING": ("NVARCHAR2(100)", ["a", "O'Neil", "Вы", "漢字 🐘", "x" * 100, "a'Ж"]),
    "BYTES": ("RAW(20)", [b"\x00", b"\xff\xfe", b"0123456789", bytes(20)]),
}
TIMES: Values = {
    "DAY": ("DATE", [_TIME.replace(microsecond=0), _OLD, _LATE.replace(microsecond=0), datetime(1969, 12, 31, 23, 59)]),
    "T0": ("TIMESTAMP(0)", [_TIME.replace(microsecond=0), datetime(1969, 12, 31)]),
    "T3": ("TIMESTAMP(3)", [_TIME.replace(microsecond=123000), datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    "T4": ("TIMESTAMP(4)", [_TIME.replace(microsecond=123400)]),
    "T6": ("TIMESTAMP(6)", [_TIME, _OLD, _LATE, datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    "T7": ("TIMESTAMP(7)", [Moment(_TIME, 700)]),
    "T9": ("TIMESTAMP(9)", [Moment(_TIME, 789), Moment(datetime(1969, 12, 31, 23, 59, 59, 999999), 999)]),
    "Z0": ("TIMESTAMP(0) WITH TIME ZONE", [_TIME.replace(microsecond=0, tzinfo=INDIA)]),
    "Z3": ("TIMESTAMP(3) WITH TIME ZONE", [_TIME.replace(microsecond=120000, tzinfo=BRAZIL)]),
    "Z6": ("TIMESTAMP(6) WITH TIME ZONE", [_TIME.replace(tzinfo=INDIA), _TIME.replace(tzinfo=UTC)]),
    "Z9": ("TIMESTAMP(9) WITH TIME ZONE", [Moment(_TIME.replace(tzinfo=INDIA), 789)]),
    "L3": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", [_TIME.replace(microsecond=120000, tzinfo=INDIA)]),
    "L6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [_TIME.replace(tzinfo=INDIA), _TIME.replace(tzinfo=UTC)]),
    "MONTHS": ("INTERVAL YEAR(3) TO MONTH", ["+001-02", "-010-11", "+000-00"]),
    "SECONDS": (
        "INTERVAL DAY(3) TO SECOND(6)",
        ["+001 02:03:04.500000", "-010 00:00:00.000001", "+000 00:00:00.000000"],
    ),
    "SECONDS2": ("INTERVAL DAY(2) TO SECOND(2)", ["+01 02:03:04.50", "-99 23:59:59.99"]),
}
TABLES = {"NUMBERS": NUMBERS, "FLOATS": FLOATS, "TEXTS": TEXTS, "TIMES": TIMES}


def rows(values: Values) -> list[dict[str, Any]]:
    """Return rows that have all values of each column, and one that has none."""
    count = max(len(one) for _, one in values.values())
    found = [{name: one[number % len(one)] for name, (_, one) in values.items()} for number in range(count)]
    return [dict.fromkeys(values), *found]


def _setup(tables: dict[str, Values]) -> Step:
    def setup(database: OracleDatabase) -> None:
        for name, values in tables.items():
            typed = [column(one, type_) for one, (type_, _) in values.items()]
            columns = [column("ID", "NUMBER(9,0)", nullable=False), *typed]
            made = database.create_table(SCHEMA, name, columns, ["ID"], logged=False)
            transaction = database.begin()
            for number, row in enumerate(rows(values)):
                transaction.insert(made, ID=number, **row)
            transaction.commit()

    return setup


def _changes(tables: dict[str, Values]) -> Step:
    def change(database: OracleDatabase) -> None:
        for name, values in tables.items():
            made = table(database, name)
            transaction = database.begin()
            listed = rows(values)
            for number, row in enumerate(listed):
                transaction.insert(made, ID=100 + number, **row)
            # Each row gets the values of the next one.
            for number in range(len(listed)):
                transaction.update(made, {"ID": 100 + number}, **listed[(number + 1) % len(listed)])
            for number in range(len(listed)):
                transaction.delete(made, {"ID": 100 + number})
            transaction.commit()

    return change


def _case(name: str, *tables: str, **options: str) -> Case:
    chosen = {one: TABLES[one] for one in tables}
    given = {option.replace("_", "."): value for option, value in options.items()}
    return Case(name, _setup(chosen), [_changes(chosen)], given, tables=tables)


def _altered(tables: Sequence[str]) -> Step:
    def alter(database: OracleDatabase) -> None:
        for name in tables:
            made = table(database, name)
            columns = (*made.structure.columns, column("ADDED", "NUMBER(3,0)"))
            database.ddl(made, f'ALTER TABLE "{SCHEMA}"."{name}" ADD ("ADDED" NUMBER(3,0))', columns=columns)

    return alter


def _both(*steps: Step) -> Step:
    def run(database: OracleDatabase) -> None:
        for step in steps:
            step(database)

    return run


def _before_an_alteration() -> Case:
    """Return a case of changes that are read when their tables are others already, of types whose form is known."""
    times = {name: one for name, one in TIMES.items() if not ("INTERVAL" in one[0] or "LOCAL" in one[0])}
    tables = {"NUMBERS": NUMBERS, "FLOATS": FLOATS, "TEXTS": TEXTS, "TIMES": times}
    steps = [_both(_changes(tables), _altered([*tables]))]
    return Case("hybrid", _setup(tables), steps, {"log.mining.strategy": "hybrid"}, tables=[*tables])


def _with_dictionaries() -> Iterator[Case]:
    """Yield cases of changes that LogMiner shows with a dictionary in the logs, or in a file."""
    tables = {"NUMBERS": NUMBERS, "TEXTS": TEXTS}
    # Debezium has its dictionary written when it begins to mine, and fails at what was altered between.
    steps: list[Step | Pause] = [_changes(tables), Pause(), _both(_altered([*tables]), _changes(tables))]
    in_logs = {"log.mining.strategy": "redo_log_catalog"}
    yield Case("dictionaries/in_logs", _setup(tables), steps, in_logs, tables=[*tables])
    in_file = {"log.mining.strategy": "dictionary_from_file", "log.mining.path.dictionary": FILE}
    yield Case("dictionaries/in_file", _both(_setup(tables), _write), steps[:1], in_file, tables=[*tables])


def _write(database: OracleDatabase) -> None:
    database.dictionary_files[FILE] = made_of(database)


ALTERED = _before_an_alteration()
DICTIONARIES = tuple(_with_dictionaries())
VALUES = (
    _case("values", *TABLES),
    _case("values_schemas", *TABLES, key_converter_schemas_enable="true", value_converter_schemas_enable="true"),
    _case("decimal_string", "NUMBERS", decimal_handling_mode="string"),
    _case("decimal_double", "NUMBERS", decimal_handling_mode="double"),
    _case("time_connect", "TIMES", time_precision_mode="connect"),
    _case("time_microseconds", "TIMES", time_precision_mode="microseconds"),
    _case("time_nanoseconds", "TIMES", time_precision_mode="nanoseconds"),
    _case("time_isostring", "TIMES", time_precision_mode="isostring"),
    _case("interval_string", "TIMES", interval_handling_mode="string"),
    _case("binary_base64", "TEXTS", binary_handling_mode="base64"),
    _case("binary_hex", "TEXTS", binary_handling_mode="hex"),
    _case("binary_base64_url_safe", "TEXTS", binary_handling_mode="base64-url-safe"),
)
