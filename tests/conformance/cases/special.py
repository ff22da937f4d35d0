"""Cases of the types that are no plain scalars: ranges, geometry, extensions, domains, composites, the unknown ones."""

from __future__ import annotations

from tests.conformance.cases.case import Case

Columns = dict[str, tuple[str, tuple[str, ...]]]
"""Type and SQL values by column; a column without a value for a row is left out there."""

BUILT_IN: Columns = {
    "int4": ("int4range", ("'[1,5)'", "'empty'", "'(,)'")),
    "int8": ("int8range", ("'[1,5]'", "'(,7)'")),
    "num": ("numrange", ("'[1.5,2.50]'", "'(1,)'")),
    "ts": ("tsrange", ("'[2024-01-01,2024-01-02 03:04:05.5)'", "'[,infinity]'")),
    "tstz": ("tstzrange", ("'[2024-01-01 00:00+02,2024-02-01 00:00+02)'",)),
    "days": ("daterange", ("'[2024-01-01,2024-01-05]'", "'empty'")),
    "pt": ("point", ("'(1,2)'", "'(1.5,-1e20)'", "'(0.1,1e-7)'", "'(-0,123456789)'")),
    "vec": ("tsvector", ("'a:1A b:2,3'", "'''it''s'' fat cat'", "''")),
    "obj": ("oid", ("5", "4294967295")),
    "ch": ('"char"', ("'a'", "' '")),
}

UNKNOWN: Columns = {
    "ln": ("line", ("'{1,2,3}'", "'{1.5,-1,1e20}'")),
    "sg": ("lseg", ("'[(1,2),(3,4)]'",)),
    "bx": ("box", ("'(3,4),(1,2)'", "'(1e7,0.0001),(0,0)'")),
    "pa": ("path", ("'((1,2),(3,4))'", "'[(1,2),(3,4.5)]'")),
    "pg": ("polygon", ("'((0,0),(1,1),(1,0))'",)),
    "ci": ("circle", ("'<(1,2),3>'",)),
    "tq": ("tsquery", ("'a & !b'",)),
    "lsn": ("pg_lsn", ("'0/16B3748'",)),
    "sn": ("txid_snapshot", ("'10:20:10,14,15'",)),
    "ps": ("pg_snapshot", ("'10:20:10,14,15'",)),
    "xi": ("xid", ("'5'",)),
    "x8": ("xid8", ("'5'",)),
    "td": ("tid", ("'(1,2)'",)),
    "rc": ("regclass", ("'pg_class'",)),
    "jp": ("jsonpath", ("'$.a[*]'",)),
    "mr": ("int4multirange", ("'{[1,3),[5,8)}'",)),
    "pr": ("pair", ("ROW(1, 'a b')::pair", "ROW(NULL, NULL)::pair")),
    "ur": ("floatrange", ("'[1.5,2.5)'",)),
}

DOMAINS: Columns = {
    "n": ("amount", ("12.345", "-0.001")),
    "nn": ("amount2", ("1",)),
    "t": ("short", ("'abc'",)),
    "i": ("positive", ("5",)),
    "a": ("numbers", ("'{1,2,NULL}'", "'{}'")),
    "ta": ("texts", ("'{a,\"b c\"}'",)),
    "ts": ("moment", ("'2024-02-29 13:14:15.123'",)),
    "jb": ("doc", ("'{\"a\": 1}'",)),
    "pt": ("place", ("'(1,2)'",)),
    "pr": ("pairs", ("ROW(1, 'a')::pair",)),
}

VECTORS: Columns = {
    "v": ("vector(3)", ("'[1,2.5,-1e-5]'", "'[0.1,1e10,3]'")),
    "v_any": ("vector", ("'[1]'", "'[1,2,3,4,5,6,7,8,9]'")),
    "h": ("halfvec(3)", ("'[1,2.5,-1e-5]'", "'[0.1,65504,3]'")),
    "s": (
        "sparsevec",
        (
            "'{1:0.5,3:2}/5'",
            "'{}/3'",
            "'{1:1,5:2,9:3,2:4,700:5,30000:6}/32767'",
            "'{16:1,32:2,48:3,64:4,5:6,21:7,37:8,53:9,1:10,2:11,3:12,4:13,17:14}/64'",
        ),
    ),
    "va": ("vector(2)[]", ("ARRAY['[1,2]','[3,4]']::vector[]",)),
}

EXTENSIONS: Columns = {
    "h": (
        "hstore",
        (
            "'a=>1'",
            r"""'"k 1"=>"v\"1", b=>NULL, "=>"=>", ", é=>😀, "c\\"=>"x y", "t"=>"a	b"'""",
            "''",
            "(SELECT hstore(array_agg('key' || i), array_agg(i::text)) FROM generate_series(1, 40) i)",
        ),
    ),
    "ha": ("hstore[]", ("ARRAY['a=>1, b=>\"x y\"'::hstore, '']",)),
    "c": ("citext", ("'MiXed'", "''")),
    "ca": ("citext[]", ("ARRAY['A', 'b c', 'NULL']::citext[]",)),
    "l": ("ltree", ("'Top.Science.Astronomy'", "''")),
    "la": ("ltree[]", ("ARRAY['a.b', 'c']::ltree[]",)),
    "isbn": ("isbn", ("'0-393-04002-X'",)),
    "isbna": ("isbn[]", ("ARRAY['0-393-04002-X']::isbn[]",)),
    "isbn13": ("isbn13", ("'978-0-393-04002-9'",)),
    "ean": ("ean13", ("'978-0-393-04002-9'",)),
    "lq": ("lquery", ("'a.*'",)),
}

HEXADECIMAL = (
    "'0101000000000000000000F03F0000000000000040'",
    "'0101000020E6100000000000000000F03F0000000000000040'",
    "'0020000001000010E63FF00000000000004000000000000000'",
    "'010700000000000000'",
)
POSTGIS: Columns = {
    "g": ("geometry", HEXADECIMAL),
    "gg": ("geography", HEXADECIMAL),
    "ga": ("geometry[]", (f"ARRAY[{HEXADECIMAL[0]}, {HEXADECIMAL[1]}]::geometry[]",)),
    "gga": ("geography[]", (f"ARRAY[{HEXADECIMAL[1]}]::geography[]",)),
}


def text_type(name: str) -> tuple[str, ...]:
    """Return the statements that make a type whose text is kept as it is: it stands for an extension's type."""
    return (
        f"CREATE TYPE {name}",
        f"CREATE FUNCTION {name}_in(cstring) RETURNS {name} LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
        f"CREATE FUNCTION {name}_out({name}) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
        f"CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, STORAGE = extended)",
    )


PAIR = "CREATE TYPE pair AS (a integer, b text)"
RANGE = "CREATE TYPE floatrange AS RANGE (subtype = float8)"
MAKE_DOMAINS = (
    "CREATE DOMAIN amount AS numeric(8,3)",
    "CREATE DOMAIN amount2 AS amount CHECK (VALUE < 10)",
    "CREATE DOMAIN short AS varchar(5)",
    "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
    "CREATE DOMAIN numbers AS integer[]",
    "CREATE DOMAIN texts AS text[]",
    "CREATE DOMAIN moment AS timestamp(3)",
    "CREATE DOMAIN doc AS jsonb",
    "CREATE DOMAIN place AS point",
    "CREATE DOMAIN pairs AS pair",
)
INSTALL = tuple(f"CREATE EXTENSION {name}" for name in ("hstore", "citext", "ltree", "isn"))


def create(table: str, columns: Columns, suffix: str = "") -> str:
    """Return the statement that creates a table."""
    body = ", ".join(f"{name} {kind}{suffix}" for name, (kind, _) in columns.items())
    return f"CREATE TABLE {table} (id integer PRIMARY KEY, x integer, {body})"


def inserts(table: str, first: int, columns: Columns) -> tuple[str, ...]:
    """Return as many inserts as a column has values, and one of nulls."""
    rows = max(len(values) for _, values in columns.values())
    result = [f"INSERT INTO {table} (id) VALUES ({first})"]
    for number in range(rows):
        here = {name: values[number] for name, (_, values) in columns.items() if number < len(values)}
        names, values = ", ".join(here), ", ".join(here.values())
        result.append(f"INSERT INTO {table} (id, {names}) VALUES ({first + 1 + number}, {values})")
    return tuple(result)


def special_case(
    name: str,
    prepare: tuple[str, ...],
    columns: Columns,
    options: dict[str, str] | None = None,
    extensions: bool = False,
    strict: bool = True,
) -> Case:
    """Return a case of a table with these columns, and of one in which they are NOT NULL, whose row is deleted."""
    setup = (*prepare, create("special", columns), *inserts("special", 1, columns))
    statements = (*inserts("special", 101, columns), "UPDATE special SET x = 1 WHERE id = 102")
    if strict:
        row = ", ".join(values[0] for _, values in columns.values())
        setup += (create("strict", columns, " NOT NULL"), f"INSERT INTO strict VALUES (1, 1, {row})")
        statements += ("UPDATE strict SET id = 2", "DELETE FROM strict")
    return Case(name, setup, statements, options or {}, schemas=True, extensions=extensions)


MODES = ("bytes", "base64", "base64-url-safe", "hex")
TEXT_TYPES = (*text_type("geometry"), *text_type("geography"))

GENERATED = (
    "CREATE TABLE made (id integer PRIMARY KEY, a integer, twice integer GENERATED ALWAYS AS (a * 2) STORED,"
    " always integer GENERATED ALWAYS AS IDENTITY, byd integer GENERATED BY DEFAULT AS IDENTITY)",
    "INSERT INTO made (id, a) VALUES (1, 2)",
)
GENERATED_STATEMENTS = (
    "INSERT INTO made (id, a) VALUES (101, 2)",
    "UPDATE made SET a = 3 WHERE id = 101",
    "DELETE FROM made WHERE id = 101",
)

TOAST_COLUMNS = {"h": "hstore", "c": "citext", "l": "ltree", "ca": "citext[]", "ha": "hstore[]", "tv": "tsvector"}
TOAST_VALUES = (
    "hstore('k', repeat('x', 3000)), repeat('x', 3000), (repeat('x', 200) || repeat('.y', 500))::ltree,"
    " array_fill('x'::citext, ARRAY[1500]), array_fill('a=>1'::hstore, ARRAY[500]),"
    " (SELECT string_agg('w' || i || ':' || i, ' ') FROM generate_series(1, 400) i)::tsvector"
)


def toast_case(name: str, options: dict[str, str]) -> Case:
    body = ", ".join(f"{column} {kind}" for column, kind in TOAST_COLUMNS.items())
    external = ", ".join(f"ALTER {column} SET STORAGE EXTERNAL" for column in TOAST_COLUMNS)
    return Case(
        name,
        (
            *INSTALL,
            f"CREATE TABLE large (id integer PRIMARY KEY, n integer, {body}) WITH (toast_tuple_target = 128)",
            f"ALTER TABLE large {external}",
        ),
        (
            f"INSERT INTO large VALUES (1, 1, {TOAST_VALUES})",
            "UPDATE large SET n = 2",
            "DELETE FROM large",
        ),
        options,
        extensions=True,
    )


CASES = (
    special_case("special", (), BUILT_IN),
    special_case("unknown_left_out", (PAIR, RANGE), UNKNOWN),
    *(
        special_case(
            f"unknown_{mode.replace('-', '_')}",
            (PAIR, RANGE),
            UNKNOWN,
            {"include.unknown.datatypes": "true", "binary.handling.mode": mode},
        )
        for mode in MODES
    ),
    special_case("domains", (PAIR, *MAKE_DOMAINS), DOMAINS),
    special_case("vectors", ("CREATE EXTENSION vector",), VECTORS, strict=False),
    special_case("extensions", INSTALL, EXTENSIONS, extensions=True),
    special_case("extensions_map", INSTALL, EXTENSIONS, {"hstore.handling.mode": "map"}, extensions=True),
    special_case("postgis", TEXT_TYPES, POSTGIS),
    Case("generated", GENERATED, GENERATED_STATEMENTS, schemas=True),
    toast_case("extensions_toast", {}),
    toast_case("extensions_toast_map", {"hstore.handling.mode": "map"}),
)
