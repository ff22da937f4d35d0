"""Cases of arrays: every element type in snapshot and stream, odd texts, more dimensions, the modes, large values."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import AS_XML, MOOD

ELEMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "smallint": ("smallint", ("1", "-32768")),
    "integer": ("integer", ("1", "-2147483648", "2147483647")),
    "bigint": ("bigint", ("9223372036854775807", "-1")),
    "oid": ("oid", ("1", "4294967295")),
    "real": ("real", ("1.5", "1e10", "NaN", "-Infinity", "1e-45")),
    "double": ("double precision", ("0.1", "1e20", "NaN", "Infinity", "-0")),
    "numeric": ("numeric", ("12.3400", "0.00", "1e20", "-5")),
    "numeric_10_2": ("numeric(10,2)", ("123.45", "-0.01", "0")),
    "bool": ("boolean", ("t", "f")),
    "char": ("char(3)", ("a", "b,c")),
    "quoted_char": ('"char"', ("a", "b")),
    "varchar": ("varchar(20)", ("a", "with, comma", 'with "quotes"', "with {braces}", "back\\slash", "null")),
    "text": ("text", ("", "NULL", " ", "a\nb\tc", "é 😀", '\\"', "\\\\", "'", "x" * 100)),
    "bytea": ("bytea", ("\\x", "\\x00ff")),
    "date": ("date", ("2024-02-29", "1970-01-01", "1900-01-01")),
    "time": ("time", ("13:14:15", "00:00:00")),
    "time_3": ("time(3)", ("13:14:15.123",)),
    "timetz": ("timetz", ("13:14:15+00", "13:14:15+02")),
    "timestamp": ("timestamp", ("2024-02-29 13:14:15.123456", "1970-01-01 00:00:00")),
    "timestamp_3": ("timestamp(3)", ("2024-02-29 13:14:15.123",)),
    "timestamptz": ("timestamptz", ("2024-02-29 13:14:15.123456+02", "1970-01-01 00:00:00+00")),
    "timestamptz_3": ("timestamptz(3)", ("2024-02-29 13:14:15.1+02",)),
    "uuid": ("uuid", ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",)),
    "json": ("json", ('{"b": [1,  2]}', "null", '"x"')),
    "jsonb": ("jsonb", ('{"b": [1,  2]}', "null", '"x"')),
    "inet": ("inet", ("10.0.0.1", "::/0")),
    "cidr": ("cidr", ("10.0.0.0/8",)),
    "macaddr": ("macaddr", ("08:00:2b:01:02:03",)),
    "macaddr8": ("macaddr8", ("08:00:2b:01:02:03:04:05",)),
    "enum": ("mood", ("happy", "so, so")),
    "int4range": ("int4range", ("[1,5)", "empty", "(,)")),
    "int8range": ("int8range", ("[1,5)",)),
    "numrange": ("numrange", ("[1.5,2.50]",)),
    "tsrange": ("tsrange", ("[2024-01-01,2024-01-02)",)),
    "tstzrange": ("tstzrange", ("[2024-01-01 00:00:00+02,)",)),
    "daterange": ("daterange", ("[2024-01-01,2024-01-05]",)),
    "tsvector": ("tsvector", ("a:1 b:2", "x")),
}


LEFT_OUT: dict[str, tuple[str, tuple[str, ...]]] = {
    "money": ("money", ("1.23",)),
    "name": ("name", ("n",)),
    "interval": ("interval", ("1 day",)),
    "varbit": ("varbit", ("101",)),
    "point": ("point", ("(1,2)",)),
    "box": ("box", ("(3,4),(1,2)", "(1.5,1e20),(0,0)")),
    "circle": ("circle", ("<(1,2),3>",)),
    "xid8": ("xid8", ("5",)),
    "pg_lsn": ("pg_lsn", ("0/16B3748",)),
    "pair": ("pair", ("(1,a)",)),
    "small": ("small", ("1", "2")),
    "multirange": ("int4multirange", ("{[1,3),[5,8)}",)),
}

BITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bit_1": ("bit(1)", ("1", "0")),
    "bit_5": ("bit(5)", ("10110", "00000")),
}

SETUP = (
    MOOD,
    AS_XML,
    "CREATE TYPE pair AS (a integer, b text)",
    "CREATE DOMAIN small AS integer",
    "CREATE DOMAIN numbers AS integer[]",
)

Elements = dict[str, tuple[str, tuple[str, ...]]]


def create(table: str, elements: Elements, suffix: str = "") -> str:
    """Return the statement that creates a table with an array of each type."""
    body = ", ".join(f"a_{name} {kind}[]{suffix}" for name, (kind, _) in elements.items())
    return f"CREATE TABLE {table} (id integer PRIMARY KEY, {body})"


def quoted(text: str) -> str:
    """Return an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(kind: str, values: tuple[str, ...], with_null: bool = False) -> str:
    """Return an SQL array."""
    items = [f"{quoted(value)}::{kind}" for value in values] + (["NULL"] if with_null else [])
    return f"ARRAY[{', '.join(items)}]::{kind}[]"


def inserts(table: str, first: int, elements: Elements, null_elements: bool = True) -> tuple[str, ...]:
    """Return inserts of arrays that are full, empty, of one element, NULL, and hold a null."""
    ways = [
        [literal(kind, values) for kind, values in elements.values()],
        ["'{}'"] * len(elements),
        [literal(kind, values[:1]) for kind, values in elements.values()],
        ["NULL"] * len(elements),
    ]
    if null_elements:
        ways.append([literal(kind, values, with_null=True) for kind, values in elements.values()])
    return tuple(
        f"INSERT INTO {table} VALUES ({number}, {', '.join(values)})" for number, values in enumerate(ways, first)
    )


def array_case(
    name: str, elements: Elements, options: dict[str, str] | None = None, schemas: bool = False, nulls: bool = True
) -> Case:
    return Case(
        name,
        (*SETUP, create("arrays", elements), *inserts("arrays", 1, elements, nulls)),
        inserts("arrays", 101, elements, nulls),
        options or {},
        schemas,
    )


def only(*names: str) -> Elements:
    """Return some of the element types."""
    return {name: ELEMENTS[name] for name in names}


TIMES = only("date", "time", "time_3", "timetz", "timestamp", "timestamp_3", "timestamptz", "timestamptz_3")

ODD_TIMES: Elements = {
    "date": ("date", ("infinity", "0044-03-15 BC", "1582-10-10", "0001-01-01")),
    "time": ("time", ("13:14:15.123456", "24:00:00", "23:59:59.999999")),
    "timetz": ("timetz", ("13:14:15.123456+02", "00:00:00.1-12")),
    "timestamp": (
        "timestamp",
        ("infinity", "0044-03-15 12:00:00 BC", "1582-10-10 00:00:00", "9999-12-31 23:59:59.999999"),
    ),
    "timestamptz": ("timestamptz", ("infinity", "-infinity", "0044-03-15 12:00:00+00 BC", "1582-10-10 00:00:00+00")),
    "numeric": ("numeric", ("NaN", "1")),
    "numeric_10_2": ("numeric(10,2)", ("NaN", "1")),
}

NESTED = (
    "CREATE TABLE nested (id integer PRIMARY KEY, i int[], t text[], n numeric(5,2)[], b boolean[], j jsonb[],"
    " d numbers)"
)
NESTED_ROWS = (
    "'{{1,2},{3,NULL}}', '{{a,\"b c\"},{NULL,\"{x}\"}}', '{{1.5},{2}}', '{{{t,f}}}',"
    " ARRAY[ARRAY['{\"a\": 1}'::jsonb]], '{{1}}'",
    "'[0:2]={1,2,3}', '[5:5]={x}', '[-1:0]={1,2}', '[2:3][1:1]={{t},{f}}', '{}', '[0:0]={7}'",
)

STRICT = (*SETUP, create("strict", ELEMENTS, " NOT NULL"), inserts("strict", 1, ELEMENTS)[0])

KEYS = (
    "CREATE TABLE keyed (i int[], t text[], n numeric(5,2)[], v text, PRIMARY KEY (i, t, n))",
    "INSERT INTO keyed VALUES ('{1,2}', '{a,\"b c\"}', '{1.5}', 'v')",
)
KEY_STATEMENTS = (
    "INSERT INTO keyed VALUES ('{}', '{}', '{}', 'v')",
    "UPDATE keyed SET i = '{3}' WHERE i = '{1,2}'",
    "DELETE FROM keyed",
)

LARGE = (
    "smallint",
    "integer",
    "bigint",
    "double",
    "numeric",
    "numeric_10_2",
    "bool",
    "char",
    "varchar",
    "text",
    "bytea",
    "date",
    "timestamp",
    "timestamptz",
    "uuid",
    "json",
    "jsonb",
    "inet",
    "enum",
    "int4range",
    "tsvector",
)


def toast_case(name: str, options: dict[str, str]) -> Case:
    """Return a case of arrays that are not in the log because an update left them as they were."""
    elements = only(*LARGE)
    filled = ", ".join(f"array_fill({quoted(values[0])}::{kind}, ARRAY[30])" for kind, values in elements.values())
    body = ", ".join(f"a_{name} {kind}[]" for name, (kind, _) in elements.items())
    external = ", ".join(f"ALTER a_{name} SET STORAGE EXTERNAL" for name in elements)
    return Case(
        name,
        (
            *SETUP,
            f"CREATE TABLE large (id integer PRIMARY KEY, n integer, {body}, d numbers)"
            " WITH (toast_tuple_target = 128)",
            f"ALTER TABLE large {external}, ALTER d SET STORAGE EXTERNAL",
        ),
        (
            f"INSERT INTO large VALUES (1, 1, {filled}, array_fill(1, ARRAY[30]))",
            "UPDATE large SET n = 2",
            "UPDATE large SET id = 2",
            "DELETE FROM large",
        ),
        options,
    )


CASES = (
    array_case("arrays", ELEMENTS, schemas=True),
    array_case("arrays_left_out", LEFT_OUT, schemas=True),
    array_case("arrays_unknown", {**LEFT_OUT, **only("integer")}, {"include.unknown.datatypes": "true"}, schemas=True),
    array_case("arrays_bits", BITS, schemas=True),
    array_case("arrays_odd", ODD_TIMES),
    *(
        array_case(f"arrays_time_{mode}", TIMES, {"time.precision.mode": mode}, schemas=True)
        for mode in ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
    ),
    *(
        array_case(
            f"arrays_decimal_{mode}", only("numeric", "numeric_10_2"), {"decimal.handling.mode": mode}, schemas=True
        )
        for mode in ("string", "double")
    ),
    *(
        array_case(
            f"arrays_binary_{mode.replace('-', '_')}", only("bytea"), {"binary.handling.mode": mode}, schemas=True
        )
        for mode in ("base64", "base64-url-safe", "hex")
    ),
    Case(
        "arrays_nested",
        (*SETUP, NESTED, *(f"INSERT INTO nested VALUES ({n}, {row})" for n, row in enumerate(NESTED_ROWS, 1))),
        tuple(f"INSERT INTO nested VALUES ({n}, {row})" for n, row in enumerate(NESTED_ROWS, 101)),
    ),
    Case("arrays_not_null", STRICT, ("UPDATE strict SET id = 2", "DELETE FROM strict")),
    Case("arrays_keys", (*SETUP, *KEYS), KEY_STATEMENTS, schemas=True),
    toast_case("arrays_toast", {}),
    toast_case("arrays_toast_hex", {"unavailable.value.placeholder": "hex:00ff41", "binary.handling.mode": "hex"}),
)
