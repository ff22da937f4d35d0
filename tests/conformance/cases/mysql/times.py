"""Cases of dates and times."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import FLAVORS, both, by_column, streamed, table

Table = dict[str, tuple[str, ...]]
DIGITS = range(7)
INSTANTS = (
    "'2024-02-29 13:14:15.123456'",
    "'1999-12-31 23:59:59.999999'",
    "'2000-01-01 00:00:00'",
    "'1970-01-01 00:00:01'",
    "'2024-02-29 13:14:15.5'",
    "'2024-02-29 13:14:15.000001'",
    "'2038-01-19 03:14:07'",
)
DATETIMES = (*INSTANTS, "'1969-12-31 23:59:59.5'", "'1900-01-01 00:00:00'", "'9999-12-31 23:59:59'")
SPANS = (
    "'00:00:00'",
    "'13:14:15.123456'",
    "'-13:14:15.123456'",
    "'838:59:59'",
    "'-838:59:59'",
    "'24:00:00'",
    "'-00:00:01.5'",
    "'-00:00:00.000001'",
    "'00:00:00.9'",
    "'100:00:00.25'",
)
OLD_DATES = ("'1000-01-01'", "'1582-10-04'", "'1582-10-10'", "'1582-10-15'", "'0001-01-01'", "'1752-09-10'")


def columns(kind: str, values: tuple[str, ...]) -> Table:
    """Return a column for each number of fraction digits; timestamps are nullable without a default."""
    null = " NULL" if kind == "timestamp" else ""
    return {f"f{digits}": (f"{kind}({digits}){null}", *values) for digits in DIGITS}


TABLES: dict[str, Table] = {
    "dates": {"d": ("date", "'2024-02-29'", "'1970-01-01'", "'1969-12-31'", "'9999-12-31'", "'1900-03-01'")},
    "datetimes": columns("datetime", DATETIMES),
    "timestamps": columns("timestamp", INSTANTS),
    "spans": columns("time", SPANS),
}
OLD: dict[str, Table] = {
    "olds": {
        "d": ("date", *OLD_DATES),
        "dt": ("datetime(6)", *(f"{day[:-1]} 12:13:14.15'" for day in OLD_DATES)),
        "dt0": ("datetime", *(f"{day[:-1]} 00:00:00'" for day in OLD_DATES)),
    }
}
ZERO: dict[str, Table] = {
    "zeros": {
        "d": ("date", "'0000-00-00'", "'2024-00-00'", "'2024-02-00'", "'0000-01-01'"),
        "dt": (
            "datetime(3)",
            *("'0000-00-00 00:00:00'", "'2024-00-00 01:02:03.456'", "'2024-02-00 00:00:00'", "'0000-01-01 10:00:00'"),
        ),
        "ts": ("timestamp(3) NULL", "'0000-00-00 00:00:00'"),
    }
}
REQUIRED = (
    "CREATE TABLE required (id int PRIMARY KEY, d date NOT NULL, dt datetime(3) NOT NULL, "
    "ts timestamp(3) NOT NULL DEFAULT '2000-01-01', y year NOT NULL)",
    "INSERT INTO required VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00', 1999)",
    "INSERT INTO required VALUES (2, '2024-02-29', '2024-02-29', '2024-02-29', 2024)",
)
LENIENT = ("SET sql_mode = ''",)
ZONED = (
    "SET time_zone = '+05:30'",
    "INSERT INTO timestamps (id, f0, f6) VALUES (200, '2024-02-29 13:14:15', '2024-02-29 13:14:15.123456')",
    "INSERT INTO datetimes (id, f0, f6) VALUES (200, '2024-02-29 13:14:15', '2024-02-29 13:14:15.123456')",
    "SET time_zone = DEFAULT",
)
INSTANTS_ONLY = {f"{kind}s": columns(kind, INSTANTS[:3]) for kind in ("timestamp", "datetime")}
MODES = ("connect", "isostring", "microseconds", "nanoseconds")


def times(
    name: str,
    tables: dict[str, Table],
    options: dict[str, str] | None = None,
    schemas: bool = False,
    setup: tuple[str, ...] = (),
    statements: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
    flavors: tuple[str, ...] = FLAVORS,
) -> tuple[Case, ...]:
    created = chain.from_iterable(table(kind, *by_column(tables[kind])) for kind in tables)
    changed = chain.from_iterable(streamed(kind, list(tables[kind])) for kind in tables)
    return both(name, (*setup, *created), (*changed, *statements), options, schemas, settings, flavors)


def modes() -> tuple[Case, ...]:
    """Return a case for each mode besides the default one."""
    cases = (times(f"times_{mode}", TABLES, {"time.precision.mode": mode}, schemas=True) for mode in MODES)
    return tuple(chain.from_iterable(cases))


CASES: tuple[Case, ...] = (
    *times("times", TABLES),
    *times("times_schemas", TABLES, schemas=True),
    *modes(),
    *times("times_old", OLD),
    *times("times_old_connect", OLD, {"time.precision.mode": "connect"}),
    *times("times_old_isostring", OLD, {"time.precision.mode": "isostring"}),
    *times(
        "times_zero",
        ZERO,
        setup=(*LENIENT, *REQUIRED),
        statements=(
            "INSERT INTO required SELECT id + 10, d, dt, ts, y FROM required",
            "UPDATE required SET y = 0",
        ),
        schemas=True,
    ),
    *times("times_zone", INSTANTS_ONLY, statements=ZONED),
    *times("times_server_zone", INSTANTS_ONLY, statements=ZONED, settings={"default_time_zone": "+02:00"}),
    # Columns of the formats before MySQL 5.6; Debezium can't read those with fractions, which are MariaDB's own.
    *times(
        "times_old_formats",
        {kind: {"f0": TABLES[kind]["f0"]} for kind in ("datetimes", "timestamps", "spans")},
        settings={"mysql56_temporal_format": "OFF"},
        flavors=("mariadb",),
    ),
)
