"""Which codec a column has: a table from types to the functions that make codecs.

Built-in types are found by their OID (PostgreSQL, ``src/include/catalog/pg_type.dat``), types of extensions by their
name. Domains stand for the type below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import pyarrow as pa

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.relation import TypeInfo
from floodmark.connectors.postgres.types import binary, decimals, floats, interval, plain, temporal, zoned
from floodmark.connectors.postgres.types.codec import Codec, Settings

Factory = Callable[[int, Settings], Codec]
"""Makes a codec from a type modifier and the options."""

ENUM = "io.debezium.data.Enum"


def _any_modifier(make: Callable[[Settings], Codec]) -> Factory:
    """Return a factory for a type whose modifier does not matter."""
    return lambda _modifier, settings: make(settings)


def _integer(kind: str, arrow_type: pa.DataType) -> Factory:
    return _any_modifier(partial(plain.integer, kind, arrow_type))


def _text(name: str = "") -> Factory:
    return _any_modifier(partial(plain.text, name=name))


BUILT_IN: dict[int, Factory] = {
    16: _any_modifier(plain.boolean),
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
    790: _any_modifier(decimals.money),
    829: _text(),  # macaddr
    869: _text(),  # inet
    1042: _text(),  # char(n)
    1043: _text(),  # varchar
    1082: _any_modifier(temporal.date),
    1083: temporal.time,
    1114: temporal.timestamp,
    1184: zoned.timestamptz,
    1186: _any_modifier(interval.interval),
    1266: _any_modifier(zoned.timetz),
    1560: binary.bits,
    1562: binary.bits,
    1700: decimals.numeric,
    2950: _text("io.debezium.data.Uuid"),
    3802: _text("io.debezium.data.Json"),
}

BY_NAME: dict[str, Factory] = {
    "citext": _text(),
    "ean13": _text(),
    "hstore": _text(),
    "isbn": _text(),
    "isbn13": _text(),
    "ismn": _text(),
    "ismn13": _text(),
    "issn": _text(),
    "issn13": _text(),
    "ltree": _text(),
    "upc": _text(),
}

OTHER = _text()
"""What types have that are in neither table: arrays, ranges, composite and geometric types."""


def codec_for(type_oid: int, modifier: int, types: Mapping[int, TypeInfo], options: PostgresOptions) -> Codec:
    """Return the codec of a column.

    Args:
        type_oid: the column's type.
        modifier: its modifier; -1 for none.
        types: what the catalog says of the types that are not built in.
        options: the source's options.
    """
    type_oid, modifier = below_domains(type_oid, modifier, types)
    info = types.get(type_oid)
    settings = Settings(
        decimal_handling_mode=options.decimal_handling_mode,
        time_precision_mode=options.time_precision_mode,
        binary_handling_mode=options.binary_handling_mode,
        interval_handling_mode=options.interval_handling_mode,
        money_fraction_digits=options.money_fraction_digits,
        unavailable_value_placeholder=options.unavailable_value_placeholder,
    )
    return _codec(type_oid, modifier, info, settings)


def below_domains(type_oid: int, modifier: int, types: Mapping[int, TypeInfo]) -> tuple[int, int]:
    """Return the type and modifier that a domain stands for; those of another type as they are."""
    for _ in types:
        info = types.get(type_oid)
        if info is None or info.kind != "d":
            break
        type_oid = info.base
        modifier = info.base_modifier if modifier == -1 else modifier
    return type_oid, modifier


@lru_cache(maxsize=4096)
def _codec(type_oid: int, modifier: int, info: TypeInfo | None, settings: Settings) -> Codec:
    if info is not None and info.kind == "e":
        return plain.text(settings, ENUM, {"allowed": ",".join(info.labels)})
    factory = BUILT_IN.get(type_oid) or (BY_NAME.get(info.name, OTHER) if info is not None else OTHER)
    return factory(modifier, settings)
