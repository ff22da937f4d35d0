"""Cases of the scalar types: their values in snapshot and stream, and the modes of numbers and times."""

from __future__ import annotations

from tests.conformance.cases.case import Case

AS_XML = """
CREATE FUNCTION as_xml(text) RETURNS xml LANGUAGE internal IMMUTABLE STRICT AS 'xmltotext'
"""
"""A cast that works on servers built without libxml, where XML values can be stored but not parsed."""

SCALAR_COLUMNS: dict[str, str] = {
    "c_smallint": "smallint",
    "c_integer": "integer",
    "c_bigint": "bigint",
    "c_real": "real",
    "c_double": "double precision",
    "c_numeric_10_2": "numeric(10,2)",
    "c_numeric": "numeric",
    "c_numeric_38": "numeric(38,0)",
    "c_money": "money",
    "c_bool": "boolean",
    "c_char": "char(5)",
    "c_varchar": "varchar(10)",
    "c_text": "text",
    "c_bytea": "bytea",
    "c_date": "date",
    "c_time": "time",
    "c_time_3": "time(3)",
    "c_timetz": "timetz",
    "c_timestamp": "timestamp",
    "c_timestamp_3": "timestamp(3)",
    "c_timestamptz": "timestamptz",
    "c_interval": "interval",
    "c_uuid": "uuid",
    "c_json": "json",
    "c_jsonb": "jsonb",
    "c_xml": "xml",
    "c_bit_1": "bit(1)",
    "c_bit_5": "bit(5)",
    "c_varbit": "varbit(9)",
    "c_inet": "inet",
    "c_cidr": "cidr",
    "c_macaddr": "macaddr",
    "c_macaddr8": "macaddr8",
    "c_oid": "oid",
    "c_enum": "mood",
}

ORDINARY = {
    "c_smallint": "7",
    "c_integer": "42",
    "c_bigint": "1234567890123",
    "c_real": "1.5",
    "c_double": "3.25",
    "c_numeric_10_2": "123.45",
    "c_numeric": "12.3400",
    "c_numeric_38": "12345678901234567890",
    "c_money": "'1234.56'",
    "c_bool": "true",
    "c_char": "'ab'",
    "c_varchar": "'hello'",
    "c_text": "'plain text'",
    "c_bytea": r"'\x00017f80ff'",
    "c_date": "'2024-02-29'",
    "c_time": "'13:14:15.123456'",
    "c_time_3": "'13:14:15.123'",
    "c_timetz": "'13:14:15.123456+02'",
    "c_timestamp": "'2024-02-29 13:14:15.123456'",
    "c_timestamp_3": "'2024-02-29 13:14:15.123'",
    "c_timestamptz": "'2024-02-29 13:14:15.123456+02'",
    "c_interval": "'1 year 2 mons 3 days 04:05:06.789'",
    "c_uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "c_json": """'{"b": 1,  "a": [true, null]}'""",
    "c_jsonb": """'{"b": 1,  "a": [true, null]}'""",
    "c_xml": "as_xml('<a b=\"1\">x</a>')",
    "c_bit_1": "B'1'",
    "c_bit_5": "B'10110'",
    "c_varbit": "B'1011'",
    "c_inet": "'192.168.0.1/24'",
    "c_cidr": "'10.0.0.0/8'",
    "c_macaddr": "'08:00:2b:01:02:03'",
    "c_macaddr8": "'08:00:2b:01:02:03:04:05'",
    "c_oid": "16384",
    "c_enum": "'happy'",
}

HIGH = {
    "c_smallint": "32767",
    "c_integer": "2147483647",
    "c_bigint": "9223372036854775807",
    "c_real": "3.4028235e38",
    "c_double": "1.7976931348623157e308",
    "c_numeric_10_2": "99999999.99",
    "c_numeric": "123456789012345678901234567890.123456789",
    "c_numeric_38": "99999999999999999999999999999999999999",
    "c_money": "'92233720368547758.07'",
    "c_bool": "false",
    "c_char": "'abcde'",
    "c_varchar": "'0123456789'",
    "c_bytea": r"'\x'",
    "c_date": "'9999-12-31'",
    "c_time": "'23:59:59.999999'",
    "c_time_3": "'23:59:59.999'",
    "c_timetz": "'23:59:59.999999-12'",
    "c_timestamp": "'9999-12-31 23:59:59.999999'",
    "c_timestamp_3": "'9999-12-31 23:59:59.999'",
    "c_timestamptz": "'9999-12-31 23:59:59.999999+00'",
    "c_interval": "'9999 years 11 mons 30 days 23:59:59.999999'",
    "c_uuid": "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    "c_json": "'[]'",
    "c_jsonb": "'1e400'",
    "c_bit_1": "B'0'",
    "c_bit_5": "B'11111'",
    "c_varbit": "B'111111111'",
    "c_inet": "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'",
    "c_cidr": "'255.255.255.255/32'",
    "c_macaddr": "'ff:ff:ff:ff:ff:ff'",
    "c_macaddr8": "'ff:ff:ff:ff:ff:ff:ff:ff'",
    "c_oid": "4294967295",
    "c_enum": "'very sad'",
}

LOW = {
    "c_smallint": "-32768",
    "c_integer": "-2147483648",
    "c_bigint": "-9223372036854775808",
    "c_real": "1e-45",
    "c_double": "5e-324",
    "c_numeric_10_2": "-99999999.99",
    "c_numeric": "-0.000000000001",
    "c_numeric_38": "-99999999999999999999999999999999999999",
    "c_money": "'-92233720368547758.08'",
    "c_char": "''",
    "c_varchar": "''",
    "c_text": "''",
    "c_date": "'0001-01-01'",
    "c_time": "'00:00'",
    "c_time_3": "'00:00:00.0004'",
    "c_timetz": "'00:00:00+12'",
    "c_timestamp": "'0001-01-01 00:00:00'",
    "c_timestamp_3": "'1582-10-04 00:00:00.001'",
    "c_timestamptz": "'0001-01-01 00:00:00.000001+00'",
    "c_interval": "'-1 year -2 mons +3 days -04:05:06.000001'",
    "c_uuid": "'00000000-0000-0000-0000-000000000000'",
    "c_json": "'null'",
    "c_jsonb": "'null'",
    "c_bit_5": "B'00000'",
    "c_varbit": "B''",
    "c_inet": "'::'",
    "c_cidr": "'::/0'",
    "c_oid": "0",
}

FLOATS = (
    {"c_real": "'NaN'", "c_double": "'NaN'", "c_numeric": "0", "c_numeric_10_2": "0"},
    {"c_real": "'Infinity'", "c_double": "'-Infinity'", "c_numeric": "1e20", "c_numeric_10_2": "-0.01"},
    {"c_real": "-0.0::real", "c_double": "-0.0::float8", "c_numeric": "127", "c_numeric_10_2": "1.27"},
    {"c_real": "0.1", "c_double": "0.1", "c_numeric": "128", "c_numeric_10_2": "1.28"},
    {"c_real": "1e7", "c_double": "1e7", "c_numeric": "-128", "c_numeric_10_2": "-1.28"},
    {"c_real": "9999999", "c_double": "9999999", "c_numeric": "-129", "c_numeric_10_2": "-1.29"},
    {"c_real": "0.001", "c_double": "0.001", "c_numeric": "0.00", "c_numeric_10_2": "655.36"},
    {"c_real": "0.00099", "c_double": "0.00099", "c_numeric": "1.10", "c_numeric_10_2": "12"},
    {"c_real": "16777216", "c_double": "123456789012345680", "c_numeric": "100"},
    {"c_real": "1.1e-5", "c_double": "2.0E-3", "c_numeric": "1e-7"},
)

ESCAPES = {
    "c_text": r"""E'quote " backslash \\ slash / tab \t newline \n return \r bell \x07 """
    r"""escape \x1b delete \x7f'""",
    "c_varchar": r"E'\b\f\x01\x1f<>&'",
    "c_char": "'é'",
    "c_json": r"""'{"k": "a\"b\\c\nd\u00e9\ud83d\ude00"}'""",
    "c_jsonb": r"""'{"k": "a\"b\\c\nd\u00e9\ud83d\ude00"}'""",
    "c_xml": "as_xml('<a>\"é\"</a>')",
}
UNICODE = {
    "c_text": r"E'emoji 😀 line\u2028paragraph\u2029 nbsp\u00a0 nel\u0085 bom\ufeff max\U0010ffff 日本'",
    "c_varchar": "'naïve 😀'",
}

TIMES = (
    {"c_timetz": "'01:02:03.1+00'", "c_timestamptz": "'2024-01-01 01:02:03.1+00'", "c_time": "'24:00:00'"},
    {
        "c_timetz": "'01:02:00.12+00'",
        "c_timestamptz": "'2024-01-01 01:02:00.12+00'",
        "c_interval": "'-1 day'",
    },
    {"c_timetz": "'01:00:00+00'", "c_timestamptz": "'2024-01-01 01:00:00+00'", "c_interval": "'1 mon'"},
    {"c_timestamptz": "'1969-12-31 23:59:59.999999+00'", "c_timestamp": "'1969-12-31 23:59:59.999999'"},
    {
        "c_timestamptz": "'1582-10-10 12:00:00+00'",
        "c_timestamp": "'1582-10-10 12:00:00'",
        "c_date": "'1582-10-10'",
    },
)

TIME_SPECIALS = (
    {"c_timestamptz": "'infinity'", "c_timestamp": "'infinity'", "c_date": "'infinity'"},
    {"c_timestamptz": "'-infinity'", "c_timestamp": "'-infinity'", "c_date": "'-infinity'"},
    {
        "c_timestamptz": "'0044-03-15 12:00:00+00 BC'",
        "c_timestamp": "'0044-03-15 12:00:00 BC'",
        "c_date": "'0044-03-15 BC'",
    },
    {
        "c_timestamptz": "'294276-12-31 23:59:59+00'",
        "c_timestamp": "'294276-12-31 23:59:59'",
        "c_date": "'5874897-12-31'",
    },
)

ROWS: tuple[dict[str, str], ...] = (ORDINARY, {}, HIGH, LOW, *FLOATS, ESCAPES, UNICODE, *TIMES)

MOOD = "CREATE TYPE mood AS ENUM ('happy', 'very sad', 'so, so')"


def create_scalars(table: str, columns: dict[str, str], suffix: str = "") -> str:
    """Return the statement that creates a table of an integer key and these columns."""
    body = ", ".join(f"{name} {kind}{suffix}" for name, kind in columns.items())
    return f"CREATE TABLE {table} (id integer PRIMARY KEY, {body})"


def insert(table: str, key: int, row: dict[str, str], columns: dict[str, str] = SCALAR_COLUMNS) -> str:
    """Return the statement that inserts those values of a row which the table has columns for."""
    kept = {name: value for name, value in row.items() if name in columns}
    names = ", ".join(["id", *kept])
    values = ", ".join([str(key), *kept.values()])
    return f"INSERT INTO {table} ({names}) VALUES ({values})"


def both_ways(
    table: str, rows: tuple[dict[str, str], ...], columns: dict[str, str] = SCALAR_COLUMNS
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inserts of the same rows for the snapshot (keys from 1) and the stream (keys from 101)."""
    snapshot = tuple(insert(table, number, row, columns) for number, row in enumerate(rows, 1))
    stream = tuple(insert(table, number, row, columns) for number, row in enumerate(rows, 101))
    return snapshot, stream


def scalar_case(
    name: str,
    rows: tuple[dict[str, str], ...],
    prefixes: tuple[str, ...] = ("c_",),
    options: dict[str, str] | None = None,
) -> Case:
    columns = {column: kind for column, kind in SCALAR_COLUMNS.items() if column.startswith(prefixes)}
    kept = tuple(row for row in rows if not row or columns.keys() & row.keys())
    snapshot, stream = both_ways("scalars", kept, columns)
    setup = (MOOD, AS_XML, create_scalars("scalars", columns), *snapshot)
    return Case(name, setup, stream, options or {})


PRECISION_COLUMNS = {
    **{f"time_{n}": f"time({n})" for n in range(0, 7, 3)},
    **{f"timetz_{n}": f"timetz({n})" for n in range(0, 7, 3)},
    **{f"timestamp_{n}": f"timestamp({n})" for n in range(7)},
    **{f"timestamptz_{n}": f"timestamptz({n})" for n in range(7)},
    "interval_0": "interval second(0)",
    "interval_ym": "interval year to month",
    "numeric_5": "numeric(5)",
    "numeric_5_7": "numeric(5,7)",
    "numeric_5_m2": "numeric(5,-2)",
    "varchar_any": "varchar",
    "char_1": "char",
    "bit_16": "bit(16)",
    "bit_64": "bit(64)",
    "varbit_any": "varbit",
    "name": "name",
}
PRECISION_ROW = {
    **dict.fromkeys([f"time_{n}" for n in range(0, 7, 3)], "'01:02:03.456789'"),
    **dict.fromkeys([f"timetz_{n}" for n in range(0, 7, 3)], "'01:02:03.456789+00'"),
    **dict.fromkeys([f"timestamp_{n}" for n in range(7)], "'2024-01-02 03:04:05.678901'"),
    **dict.fromkeys([f"timestamptz_{n}" for n in range(7)], "'2024-01-02 03:04:05.678901+00'"),
    "interval_0": "'1.5 s'",
    "interval_ym": "'1-2'",
    "numeric_5": "12345",
    "numeric_5_7": "0.0012345",
    "numeric_5_m2": "1234500",
    "varchar_any": "'any'",
    "char_1": "'c'",
    "bit_16": "B'1000000000000010'",
    "bit_64": "B'1" + "0" * 55 + "10000011'",
    "varbit_any": "B'00000000000000001'",
    "name": "'a name'",
}

NUMERIC_PREFIXES = ("c_numeric", "c_money")
TIME_PREFIXES = ("c_date", "c_time", "c_interval")

CASES = (
    scalar_case("scalars", ROWS),
    scalar_case("decimal_string", ROWS, NUMERIC_PREFIXES, {"decimal.handling.mode": "string"}),
    scalar_case("decimal_double", ROWS, NUMERIC_PREFIXES, {"decimal.handling.mode": "double"}),
    scalar_case("time_specials", TIME_SPECIALS, TIME_PREFIXES),
    Case(
        "precision",
        (create_scalars("p", PRECISION_COLUMNS), insert("p", 1, PRECISION_ROW, PRECISION_COLUMNS)),
        (insert("p", 101, PRECISION_ROW, PRECISION_COLUMNS),),
        schemas=True,
    ),
    scalar_case("time_connect", (ORDINARY, {}, HIGH, LOW, *TIMES), TIME_PREFIXES, {"time.precision.mode": "connect"}),
)
