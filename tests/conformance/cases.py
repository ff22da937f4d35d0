"""The cases whose events are recorded from Debezium: SQL to prepare, SQL to stream, and options.

A case's setup runs before the connector starts, so that its rows come from the snapshot; its statements run
one by one, each in a transaction of its own, once the connector streams.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One conformance case.

    Args:
        name: the golden file's name.
        setup: SQL scripts that run before the connector starts.
        statements: SQL statements that run while it streams.
        options: connector options by Debezium's names.
        schemas: whether keys and values carry their schemas.
    """

    name: str
    setup: tuple[str, ...]
    statements: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    schemas: bool = False


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


def _scalar_case(
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


IDENTITY_COLUMNS = (
    "a text NOT NULL, b integer NOT NULL, c text, d integer, e text NOT NULL DEFAULT 'dflt', f integer DEFAULT 5"
)
IDENTITY_SETUP = (
    MOOD,
    AS_XML,
    f"CREATE TABLE id_default (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_full (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_index (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_nothing (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE key_composite (x text, n bigint, {IDENTITY_COLUMNS}, PRIMARY KEY (n, x))",
    f"CREATE TABLE key_none (id integer, {IDENTITY_COLUMNS})",
    f"CREATE TABLE key_none_full (id integer, {IDENTITY_COLUMNS})",
    "CREATE TABLE key_unique_only (id integer NOT NULL UNIQUE, v text)",
    "CREATE UNIQUE INDEX id_index_ab ON id_index (a, b)",
    "ALTER TABLE id_full REPLICA IDENTITY FULL",
    "ALTER TABLE id_index REPLICA IDENTITY USING INDEX id_index_ab",
    "ALTER TABLE id_nothing REPLICA IDENTITY NOTHING",
    "ALTER TABLE key_none_full REPLICA IDENTITY FULL",
    "ALTER TABLE key_unique_only REPLICA IDENTITY FULL",
    create_scalars("not_nulls", SCALAR_COLUMNS, " NOT NULL"),
    insert("not_nulls", 1, ORDINARY),
)
IDENTITY_VALUES = "(id, a, b, c, d) VALUES (1, 'a', 10, 'c', 20)"
IDENTITY_STATEMENTS = (
    *(
        statement.format(table=table)
        for table in ("id_default", "id_full", "id_index", "key_none_full")
        for statement in (
            f"INSERT INTO {{table}} {IDENTITY_VALUES}",
            "UPDATE {table} SET c = 'c2' WHERE id = 1",
            "UPDATE {table} SET a = 'a2', c = NULL WHERE id = 1",
            "UPDATE {table} SET id = 2 WHERE id = 1",
            "DELETE FROM {table} WHERE id = 2",
        )
    ),
    f"INSERT INTO id_nothing {IDENTITY_VALUES}",
    f"INSERT INTO key_none {IDENTITY_VALUES}",
    "INSERT INTO key_composite (x, n, a, b) VALUES ('k\"1', 9007199254740993, 'a', 10)",
    "UPDATE key_composite SET x = 'k2'",
    "DELETE FROM key_composite",
    "INSERT INTO key_unique_only VALUES (1, 'v')",
    "UPDATE key_unique_only SET id = 2",
    "DELETE FROM key_unique_only",
    "INSERT INTO id_default (id, a, b, f) VALUES (3, 'a', 1, NULL), (4, 'b', 2, 6), (5, 'c', 3, 7)",
    "UPDATE id_default SET id = 6 - id + 100 WHERE id IN (4, 5)",
    "UPDATE not_nulls SET id = 2",
    "DELETE FROM not_nulls",
)

WIDE = "repeat('0123456789', 60)"
TOAST_SETUP = (
    *(
        f"CREATE TABLE {table} (id integer PRIMARY KEY, n integer, t text, tn text NOT NULL, b bytea,"
        f" j jsonb, a text[], i int[]) WITH (toast_tuple_target = 128)"
        for table in ("toast_default", "toast_full")
    ),
    *(
        f"ALTER TABLE {table} ALTER {column} SET STORAGE EXTERNAL"
        for table in ("toast_default", "toast_full")
        for column in ("t", "tn", "b", "j", "a", "i")
    ),
    "ALTER TABLE toast_full REPLICA IDENTITY FULL",
)
TOAST_STATEMENTS = tuple(
    statement.format(table=table)
    for table in ("toast_default", "toast_full")
    for statement in (
        f"INSERT INTO {{table}} VALUES (1, 1, {WIDE}, {WIDE}, convert_to({WIDE}, 'UTF8'), to_jsonb({WIDE}),"
        f" ARRAY[{WIDE}], array_fill(7, ARRAY[150]))",
        "UPDATE {table} SET n = 2",
        "UPDATE {table} SET t = 'short'",
        "UPDATE {table} SET id = 2",
        "DELETE FROM {table}",
    )
)

TRUNCATE_SETUP = (
    "CREATE TABLE t1 (id integer PRIMARY KEY)",
    "CREATE TABLE t2 (id integer PRIMARY KEY)",
    "CREATE TABLE t3 (id integer REFERENCES t1)",
)
TRUNCATE_STATEMENTS = (
    "INSERT INTO t1 VALUES (1)",
    "TRUNCATE t2",
    "TRUNCATE t1, t2, t3 RESTART IDENTITY",
    "TRUNCATE t1 CASCADE",
    "INSERT INTO t1 VALUES (2)",
)

SCHEMA_CHANGE_STATEMENTS = (
    "INSERT INTO s VALUES (1, 'a')",
    "ALTER TABLE s ADD n integer",
    "INSERT INTO s VALUES (2, 'b', 2)",
    "UPDATE s SET a = 'a2' WHERE id = 1",
    "ALTER TABLE s ADD d text NOT NULL DEFAULT 'new'",
    "UPDATE s SET n = 1 WHERE id = 1",
    "DELETE FROM s WHERE id = 1",
    "ALTER TABLE s DROP a",
    "UPDATE s SET n = 22 WHERE id = 2",
    "ALTER TABLE s ALTER n TYPE numeric(8,3)",
    "UPDATE s SET d = 'x' WHERE id = 2",
    "ALTER TABLE s RENAME d TO e",
    "INSERT INTO s VALUES (3, 3.5, 'y')",
    "ALTER TABLE s DROP CONSTRAINT s_pkey, ADD PRIMARY KEY (id, e)",
    "UPDATE s SET n = 4 WHERE id = 3",
    "DELETE FROM s WHERE id = 3",
)

SCHEMAS_SETUP = (
    MOOD,
    AS_XML,
    create_scalars("scalars", SCALAR_COLUMNS),
    insert("scalars", 1, ORDINARY),
    "CREATE TABLE id_default (id integer PRIMARY KEY, a text NOT NULL, b integer NOT NULL, c text,"
    " e text NOT NULL DEFAULT 'dflt', f integer DEFAULT 5, g numeric(6,2) DEFAULT 1.5,"
    " h date DEFAULT '2024-01-01', i boolean NOT NULL DEFAULT true, j timestamptz DEFAULT now())",
    "CREATE TABLE key_none (id integer, v text)",
    "CREATE TABLE t (id integer PRIMARY KEY)",
)
SCHEMAS_STATEMENTS = (
    insert("scalars", 101, {}),
    "INSERT INTO id_default (id, a, b, j) VALUES (1, 'a', 10, '2024-01-01 00:00:00.5+00')",
    "UPDATE id_default SET id = 2",
    "DELETE FROM id_default",
    "INSERT INTO key_none VALUES (1, 'v')",
    "TRUNCATE t",
)

MARKERS_SETUP = (
    *(f"CREATE TABLE {table} (id integer PRIMARY KEY)" for table in ("a", "b", "c", "d")),
    *(f"INSERT INTO {table} VALUES (1), (2), (3)" for table in ("a", "c")),
    "INSERT INTO b VALUES (1)",
)

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

CASES: tuple[Case, ...] = (
    _scalar_case("scalars", ROWS),
    Case("identity", IDENTITY_SETUP, IDENTITY_STATEMENTS),
    Case("toast", TOAST_SETUP, TOAST_STATEMENTS),
    Case("truncate", TRUNCATE_SETUP, TRUNCATE_STATEMENTS, {"skipped.operations": "none"}),
    Case(
        "schema_change",
        ("CREATE TABLE s (id integer PRIMARY KEY, a text)",),
        SCHEMA_CHANGE_STATEMENTS,
    ),
    Case("schemas_enabled", SCHEMAS_SETUP, SCHEMAS_STATEMENTS, {"skipped.operations": "none"}, schemas=True),
    _scalar_case("decimal_string", ROWS, NUMERIC_PREFIXES, {"decimal.handling.mode": "string"}),
    _scalar_case("decimal_double", ROWS, NUMERIC_PREFIXES, {"decimal.handling.mode": "double"}),
    _scalar_case("time_specials", TIME_SPECIALS, TIME_PREFIXES),
    Case(
        "precision",
        (create_scalars("p", PRECISION_COLUMNS), insert("p", 1, PRECISION_ROW, PRECISION_COLUMNS)),
        (insert("p", 101, PRECISION_ROW, PRECISION_COLUMNS),),
        schemas=True,
    ),
    Case("snapshot_markers", MARKERS_SETUP, ("INSERT INTO b VALUES (3)",)),
    _scalar_case("time_connect", (ORDINARY, {}, HIGH, LOW, *TIMES), TIME_PREFIXES, {"time.precision.mode": "connect"}),
)
