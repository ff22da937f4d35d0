"""Cases of the options that decide how values look: each of their values, for scalars, keys and large values."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import (
    FLOATS,
    HIGH,
    LOW,
    ORDINARY,
    TIME_PREFIXES,
    TIME_SPECIALS,
    TIMES,
    scalar_case,
)

TIME_MODES = ("adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds")
BINARY_MODES = ("base64", "base64-url-safe", "hex")

KEY_COLUMNS = {
    "d": ("date", "'2024-02-29'", "'1969-12-31'"),
    "t": ("time", "'13:14:15.123456'", "'00:00'"),
    "t3": ("time(3)", "'13:14:15.123'", "'00:00'"),
    "tz": ("timetz", "'13:14:15.1+02'", "'00:00+00'"),
    "ts": ("timestamp", "'2024-02-29 13:14:15.123456'", "'1969-12-31 23:59:59.999999'"),
    "ts3": ("timestamp(3)", "'2024-02-29 13:14:15.123'", "'1969-12-31 23:59:59.999'"),
    "tt": ("timestamptz", "'2024-02-29 13:14:15.123456+02'", "'1969-12-31 23:59:59.5+00'"),
    "iv": ("interval", "'1 year 2 days 03:04:05.5'", "'-1 day'"),
    "n": ("numeric(8,3)", "12.5", "-0.001"),
    "nv": ("numeric", "12.50", "100"),
    "m": ("money", "12.34", "-0.01"),
    "b": ("bytea", "'\\xfbff00'", "'\\x'"),
    "f": ("double precision", "1.5", "-1e20"),
    "u": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'"),
}


def key_case(name: str, options: dict[str, str]) -> Case:
    """Return a case of a table whose key has many columns: it is inserted, changed in its key, and deleted."""
    body = ", ".join(f"{column} {kind}" for column, (kind, *_) in KEY_COLUMNS.items())
    one, two = (", ".join(values[number] for values in KEY_COLUMNS.values()) for number in (1, 2))
    return Case(
        name,
        (
            f"CREATE TABLE k ({body}, v text, PRIMARY KEY ({', '.join(KEY_COLUMNS)}))",
            f"INSERT INTO k VALUES ({one}, 'v')",
        ),
        (f"INSERT INTO k VALUES ({two}, 'v')", "UPDATE k SET f = 2.5 WHERE f = 1.5", "DELETE FROM k WHERE f = 2.5"),
        options,
        schemas=True,
    )


LARGE = {
    "t": "text",
    "c": "varchar",
    "b": "bytea",
    "j": "json",
    "jb": "jsonb",
    "x": "xml",
    "n": "numeric",
    "v": "varbit",
    "bp": "char(3000)",
}
LARGE_VALUES = (
    "repeat('x', 3000), repeat('x', 3000), convert_to(repeat('x', 3000), 'UTF8'), to_json(repeat('x', 3000)),"
    " to_jsonb(repeat('x', 3000)), as_xml('<a>' || repeat('x', 3000) || '</a>'), repeat('123456789', 400)::numeric,"
    " repeat('10110', 4000)::varbit, repeat('x', 3000)"
)
XML = "CREATE FUNCTION as_xml(text) RETURNS xml LANGUAGE internal IMMUTABLE STRICT AS 'xmltotext'"


def placeholder_case(name: str, options: dict[str, str]) -> Case:
    """Return a case of large values that are not in the log because an update left them as they were."""
    body = ", ".join(f"{column} {kind}" for column, kind in LARGE.items())
    external = ", ".join(f"ALTER {column} SET STORAGE EXTERNAL" for column in LARGE)
    return Case(
        name,
        (
            XML,
            f"CREATE TABLE large (id integer PRIMARY KEY, k integer, {body}) WITH (toast_tuple_target = 128)",
            f"ALTER TABLE large {external}",
        ),
        (f"INSERT INTO large VALUES (1, 1, {LARGE_VALUES})", "UPDATE large SET k = 2", "DELETE FROM large"),
        options,
    )


CASES = (
    *(
        scalar_case(f"time_{mode}", (ORDINARY, {}, HIGH, LOW, *TIMES), TIME_PREFIXES, {"time.precision.mode": mode})
        for mode in TIME_MODES
    ),
    *(
        scalar_case(f"time_specials_{mode}", TIME_SPECIALS, TIME_PREFIXES, {"time.precision.mode": mode})
        for mode in ("connect", *TIME_MODES)
    ),
    scalar_case(
        "interval_string", (ORDINARY, {}, HIGH, LOW, *TIMES), ("c_interval",), {"interval.handling.mode": "string"}
    ),
    *(
        scalar_case(
            f"binary_{mode.replace('-', '_')}",
            (ORDINARY, {}, HIGH),
            ("c_bytea", "c_bit", "c_varbit"),
            {"binary.handling.mode": mode},
        )
        for mode in BINARY_MODES
    ),
    *(
        scalar_case(
            f"money_{digits}_{decimals}",
            (ORDINARY, {}, HIGH, LOW),
            ("c_money",),
            {"money.fraction.digits": digits, "decimal.handling.mode": decimals},
        )
        for digits in ("0", "4")
        for decimals in ("precise", "string", "double")
    ),
    scalar_case(
        "numeric_nan", ({"c_numeric": "'NaN'", "c_numeric_10_2": "'NaN'"}, *FLOATS[:2]), ("c_numeric", "c_real")
    ),
    *(
        scalar_case(
            f"numeric_special_{mode}",
            (
                {"c_numeric": "'NaN'", "c_numeric_10_2": "'NaN'"},
                {"c_numeric": "'Infinity'"},
                {"c_numeric": "'-Infinity'"},
            ),
            ("c_numeric",),
            {"decimal.handling.mode": mode},
        )
        for mode in ("precise", "string", "double")
    ),
    key_case("keys", {}),
    key_case(
        "keys_strings",
        {
            "time.precision.mode": "isostring",
            "decimal.handling.mode": "string",
            "interval.handling.mode": "string",
            "binary.handling.mode": "hex",
        },
    ),
    key_case(
        "keys_connect",
        {"time.precision.mode": "connect", "decimal.handling.mode": "double", "binary.handling.mode": "base64"},
    ),
    key_case("keys_nanoseconds", {"time.precision.mode": "nanoseconds", "binary.handling.mode": "base64-url-safe"}),
    key_case("keys_microseconds", {"time.precision.mode": "microseconds"}),
    placeholder_case("placeholder", {"unavailable.value.placeholder": 'not "there" é😀'}),
    placeholder_case(
        "placeholder_hex", {"unavailable.value.placeholder": "hex:00ff41", "decimal.handling.mode": "string"}
    ),
    *(
        placeholder_case(f"placeholder_binary_{mode.replace('-', '_')}", {"binary.handling.mode": mode})
        for mode in BINARY_MODES
    ),
)
