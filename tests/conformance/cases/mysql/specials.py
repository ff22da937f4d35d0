"""Cases of JSON, geometry, vectors and UUIDs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import FLAVORS, both, by_column, streamed, table

DOCUMENTS = (
    "'{}'",
    "'[]'",
    "'null'",
    "'true'",
    "'[false, true, null]'",
    "'0'",
    "'[-1, 32767, -32768, 32768, 2147483647, -2147483648, 2147483648]'",
    "'[9223372036854775807, -9223372036854775808, 18446744073709551615, 18446744073709551616]'",
    "'[1.5, -0.0, 1.0, 1e100, 1e-7, 123456789.123, 1e15, 1e17, 0.1]'",
    "'\"text\"'",
    r"""'["quote \\" back \\\\ slash / \\b\\f\\n\\r\\t \\u0001 \\u001f", "é漢😀", "\\u007f\\u2028"]'""",
    '\'{"b": 1, "a": {"z": [1, {"y": []}], "key": "v"}, "aa": {}, "": "empty key", "é\\\\"": 2}\'',
    f"'[{'[' * 20}{']' * 20}]'",
    "JSON_OBJECT('key', REPEAT('x', 200), 'list', JSON_ARRAY(1, 'two', 3.5))",
    '\'{"k1": 1, "k2": "2", "k1": 3}\'',
)
OPAQUE = (
    "JSON_OBJECT('d', CAST('1.50' AS DECIMAL(5,2)), 'n', CAST('-99999999999999999999.000000001' AS DECIMAL(40,10)))",
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 13:14:15.5' AS DATETIME(6)))",
    "JSON_ARRAY(CAST('13:14:15.123456' AS TIME(6)), CAST('-838:59:59' AS TIME))",
    "JSON_ARRAY(CAST(x'00ff10' AS BINARY(3)), b'101', CAST('2024-02-29 13:14:15' AS DATETIME))",
    "CAST(CAST('12:00:00' AS TIME) AS JSON)",
    "JSON_OBJECT('long', REPEAT('é', 40000))",
    "CAST(CONCAT('[', REPEAT('12345, ', 12000), '1]') AS JSON)",
    "CAST(ST_GeomFromText('POINT(1 2)') AS JSON)",
)
GEOMETRIES = {
    "point": ("POINT(1 2)", "POINT(-1.5 1e100)"),
    "linestring": ("LINESTRING(0 0, 1 1, 2 0.5)",),
    "polygon": ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))",),
    "multipoint": ("MULTIPOINT((0 0), (1 1))",),
    "multilinestring": ("MULTILINESTRING((0 0, 1 1), (2 2, 3 3, 4 4))",),
    "multipolygon": ("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",),
    "geometrycollection": ("GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))", "GEOMETRYCOLLECTION EMPTY"),
    "geometry": ("POINT(3 4)", "LINESTRING(0 0, 1 1)", "POLYGON((0 0, 1 0, 1 1, 0 0))"),
}
SHAPES = {f"g_{kind}": (kind, *(f"ST_GeomFromText('{text}')" for text in texts)) for kind, texts in GEOMETRIES.items()}
PLACED: Mapping[str, tuple[str, ...]] = {
    "g": ("geometry", "ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('POINT(1 2)', 3857)"),
    "p": ("point", "ST_GeomFromText('POINT(1 2)', 4326)"),
}
LOCATED: Mapping[str, tuple[str, ...]] = {"p": ("point SRID 4326", "ST_GeomFromText('POINT(1 2)', 4326)")}
VECTORS: Mapping[str, tuple[str, ...]] = {
    "v": ("vector(4)", "TO_VECTOR('[1, -2.5, 1e-7, 3.4e38]')", "TO_VECTOR('[0]')", "TO_VECTOR('[-0.0, 0.1]')"),
    "w": ("vector", "TO_VECTOR('[1, 2]')"),
}
UUIDS: Mapping[str, tuple[str, ...]] = {
    "u": ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "'00000000-0000-0000-0000-000000000000'"),
}
BINARY_JSON = {"j": ("json", *DOCUMENTS, *OPAQUE)}
TEXT_JSON = {"j": ("json", *DOCUMENTS)}


def specials(
    name: str,
    tables: Mapping[str, Mapping[str, tuple[str, ...]]],
    options: dict[str, str] | None = None,
    schemas: bool = False,
    flavors: tuple[str, ...] = FLAVORS,
) -> tuple[Case, ...]:
    setup = chain.from_iterable(table(kind, *by_column(columns)) for kind, columns in tables.items())
    statements = chain.from_iterable(streamed(kind, list(columns))[:2] for kind, columns in tables.items())
    return both(name, tuple(setup), tuple(statements), options, schemas, flavors=flavors)


MYSQL, MARIADB = FLAVORS[:1], FLAVORS[1:]

CASES: tuple[Case, ...] = (
    *specials("json", {"documents": BINARY_JSON}, flavors=MYSQL),
    *specials("json", {"documents": TEXT_JSON}, flavors=MARIADB),
    *specials("json_schemas", {"documents": TEXT_JSON}, schemas=True),
    *specials("geometries", {"shapes": SHAPES, "placed": PLACED}),
    *specials("geometries_schemas", {"shapes": SHAPES}, schemas=True),
    *specials("geometries_located", {"located": LOCATED}, schemas=True, flavors=MYSQL),
    *specials("vectors", {"vectors": VECTORS}, schemas=True, flavors=MYSQL),
    *specials("uuids", {"uuids": UUIDS}, schemas=True, flavors=MARIADB),
)
