"""Finds the codec of a column's type.

Built-in types are found by their OID (PostgreSQL, ``src/include/catalog/pg_type.dat``), types of extensions by their
name. Domains are resolved to their base type. A type in neither table has no mapping: events omit its columns unless
``include.unknown.datatypes`` is set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import pyarrow as pa

from floodmark.codecs import floats, text_codecs
from floodmark.codecs.codec import Codec
from floodmark.codecs.intervals import interval
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.types import binary, geometric, hstore, numeric, vectors
from floodmark.connectors.postgres.types.array_type import array
from floodmark.connectors.postgres.types.settings import PostgresSettings
from floodmark.connectors.postgres.types.temporal import dates, zoned
from floodmark.connectors.postgres.types.type_info import TypeInfo

Factory = Callable[[int, PostgresSettings], Codec]
"""Makes a codec from a type modifier and the options."""

ENUM = "io.debezium.data.Enum"


def _any_modifier(make: Callable[[PostgresSettings], Codec]) -> Factory:
    """Return a factory for a type whose modifier does not matter."""
    return lambda _modifier, settings: make(settings)


def _integer(kind: str, arrow_type: pa.DataType) -> Factory:
    return _any_modifier(partial(text_codecs.integer, kind, arrow_type))


def _text(name: str = "") -> Factory:
    return _any_modifier(partial(text_codecs.text, name=name))


BUILT_IN: dict[int, Factory] = {
    16: _any_modifier(text_codecs.boolean),
    17: _any_modifier(binary.bytea),
    18: _text(),  # "char"
    19: _text(),  # name
    20: _integer("int64", pa.int64()),
    21: _integer("int16", pa.int16()),
    23: _integer("int32", pa.int32()),
    25: _text(),  # text
    26: _integer("int64", pa.int64()),  # oid
    114: _text("io.debezium.data.Json"),
    142: _text("io.debezium.data.Xml"),
    650: _text(),  # cidr
    700: _any_modifier(partial(floats.floating, "float", pa.float32())),
    701: _any_modifier(partial(floats.floating, "double", pa.float64())),
    774: _text(),  # macaddr8
    790: _any_modifier(numeric.money),
    829: _text(),  # macaddr
    869: _text(),  # inet
    1042: _text(),  # char(n)
    1043: _text(),  # varchar
    1082: _any_modifier(dates.date),
    1083: dates.time,
    1114: dates.timestamp,
    1184: zoned.timestamptz,
    1186: _any_modifier(lambda settings: interval(settings.interval_handling_mode, settings)),
    1266: _any_modifier(zoned.timetz),
    1560: binary.bits,
    1562: binary.bits,
    1700: numeric.numeric,
    2950: _text("io.debezium.data.Uuid"),
    3802: _text("io.debezium.data.Json"),
}

_GEOMETRY = _any_modifier(binary.unknown_geometry)
BUILT_IN |= {
    600: _any_modifier(geometric.point),
    601: _GEOMETRY,  # lseg
    602: _GEOMETRY,  # path
    603: _GEOMETRY,  # box
    604: _GEOMETRY,  # polygon
    628: _GEOMETRY,  # line
    718: _GEOMETRY,  # circle
    3614: _text("io.debezium.data.Tsvector"),
    **{oid: _text() for oid in (3904, 3906, 3908, 3910, 3912, 3926)},  # ranges
}

BY_NAME: dict[str, Factory] = {
    "citext": _text(),
    "geography": _any_modifier(partial(geometric.postgis, "Geography")),
    "geometry": _any_modifier(partial(geometric.postgis, "Geometry")),
    "halfvec": _any_modifier(partial(vectors.vector, "FloatVector", "float", pa.float32())),
    "hstore": _any_modifier(hstore.hstore),
    "isbn": _text(),
    "ltree": _text("io.debezium.data.Ltree"),
    "sparsevec": _any_modifier(vectors.sparse),
    "vector": _any_modifier(partial(vectors.vector, "DoubleVector", "double", pa.float64())),
}

ELEMENTS = {
    143: 142,
    199: 114,
    651: 650,
    775: 774,
    791: 790,
    **{oid: oid - 984 for oid in (1000, 1001, 1002, 1003)},  # bool, bytea, "char", name
    1005: 21,
    1007: 23,
    1009: 25,
    1014: 1042,
    1015: 1043,
    1016: 20,
    1017: 600,
    1021: 700,
    1022: 701,
    1028: 26,
    1040: 829,
    1041: 869,
    1115: 1114,
    1182: 1082,
    1183: 1083,
    1185: 1184,
    1187: 1186,
    1231: 1700,
    1270: 1266,
    1561: 1560,
    1563: 1562,
    2951: 2950,
    3643: 3614,
    3807: 3802,
    **{oid: oid - 1 for oid in (3905, 3907, 3909, 3911, 3913, 3927)},  # ranges
}
"""The element types of the built-in arrays whose elements have a mapping."""

_NEVER = {143, 791, 1003, 1017, 1187, 1563, 2201}
"""Arrays of xml, money, name, point, interval, varbit and refcursor: Debezium omits them whatever the options."""

_OPTIONAL_BY_NAME = {"citext", "geography", "geometry", "hstore", "ltree"}
"""The other types whose arrays have a schema in which elements are optional."""

_BOX, _TSVECTOR = 603, 3614

MAPPED = frozenset({*BUILT_IN, *ELEMENTS})
"""The types that need no query of the catalog."""


def codec_for(type_oid: int, modifier: int, types: Mapping[int, TypeInfo], options: PostgresOptions) -> Codec:
    """Return the codec of a column.

    Args:
        type_oid: the column's type.
        modifier: its modifier; -1 for none.
        types: the catalog's descriptions of the types that are not built in.
        options: the source's options.
    """
    type_oid, modifier = below_domains(type_oid, modifier, types)
    info = types.get(type_oid)
    settings = PostgresSettings(
        decimal_handling_mode=options.decimal_handling_mode,
        time_precision_mode=options.time_precision_mode,
        binary_handling_mode=options.binary_handling_mode,
        interval_handling_mode=options.interval_handling_mode,
        money_fraction_digits=options.money_fraction_digits,
        unavailable_value_placeholder=options.unavailable_value_placeholder,
        hstore_handling_mode=options.hstore_handling_mode,
        include_unknown_datatypes=options.include_unknown_datatypes,
    )
    element = info.element if info is not None else ELEMENTS.get(type_oid, 0)
    if element:
        return _array(type_oid, modifier, element, types.get(element), settings)
    return _codec(type_oid, modifier, info, settings)


def below_domains(type_oid: int, modifier: int, types: Mapping[int, TypeInfo]) -> tuple[int, int]:
    """Return the base type and modifier of a domain; those of another type unchanged."""
    for _ in types:
        info = types.get(type_oid)
        if info is None or info.kind != "d":
            break
        type_oid = info.base
        modifier = info.base_modifier if modifier == -1 else modifier
    return type_oid, modifier


@lru_cache(maxsize=4096)
def _codec(type_oid: int, modifier: int, info: TypeInfo | None, settings: PostgresSettings) -> Codec:
    if info is not None and info.kind == "e":
        return text_codecs.text(settings, ENUM, {"allowed": ",".join(info.labels)})
    factory = BUILT_IN.get(type_oid) or (BY_NAME.get(info.name) if info is not None else None)
    return factory(modifier, settings) if factory is not None else binary.unknown(settings)


@lru_cache(maxsize=4096)
def _array(type_oid: int, modifier: int, element: int, info: TypeInfo | None, settings: PostgresSettings) -> Codec:
    """Return the codec of an array; elements of a domain have no mapping."""
    inner = _codec(element, modifier, info, settings)
    named = info is not None and info.name in _OPTIONAL_BY_NAME
    optional = named or (type_oid in ELEMENTS and element != _TSVECTOR)
    codec = array(inner, element, settings, optional, ";" if element == _BOX else ",")
    return dataclasses.replace(codec, known=False) if type_oid in _NEVER else codec
