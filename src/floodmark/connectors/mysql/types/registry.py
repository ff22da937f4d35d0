"""Finds the codec of a column: a table from types to the functions that create codecs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import lru_cache

import pyarrow as pa

from floodmark.codecs import text_codecs
from floodmark.codecs.binary import binary
from floodmark.codecs.codec import Codec, one_json, unchanged
from floodmark.codecs.decimals import Scale, decimal
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import BLOBS, GEOMETRIES, INTEGERS, TEXTS
from floodmark.connectors.mysql.types import dates, geometry, json_values, numbers, time_types
from floodmark.connectors.mysql.types.defaults import default_value
from floodmark.connectors.mysql.types.settings import MysqlSettings
from floodmark.errors import SourceStateError
from floodmark.events.json_text import Fragment

Factory = Callable[[Column, MysqlSettings], Codec]

ENUM, ENUM_SET, UUID = "io.debezium.data.Enum", "io.debezium.data.EnumSet", "io.debezium.data.Uuid"

_PRECISION = 10
_SINGLE_BITS = 24
"""The most bits with which ``float(bits)`` is in single precision."""

_DATES = {"date", "datetime", "timestamp"}


def _integer(column: Column, settings: MysqlSettings) -> Codec:
    return numbers.integer(column.type, column.unsigned, settings)


def _decimal(column: Column, settings: MysqlSettings) -> Codec:
    scale = column.scale or 0
    return decimal(Scale(column.length or _PRECISION, scale, scale), settings)


def _float(column: Column, settings: MysqlSettings) -> Codec:
    del settings
    return numbers.floating(column.scale is None and (column.length or 0) <= _SINGLE_BITS, True)


def _labels(name: str) -> Factory:
    def make(column: Column, settings: MysqlSettings) -> Codec:
        allowed = ",".join(label.replace(",", "\\,") for label in column.values)
        return text_codecs.text(settings, name, {"allowed": allowed})

    return make


def _bytes(column: Column, settings: MysqlSettings) -> Codec:
    del column
    return binary(settings, unchanged, pa.binary(), unchanged)


FACTORIES: Mapping[str, Factory] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(
        ("char", "varchar", *TEXTS, "inet4", "inet6"), lambda _column, settings: text_codecs.text(settings)
    ),
    **dict.fromkeys(("binary", "varbinary", *BLOBS), _bytes),
    **dict.fromkeys(GEOMETRIES, lambda _column, _settings: geometry.geometry()),
    "decimal": _decimal,
    "float": _float,
    "double": lambda _column, _settings: numbers.floating(False, False),
    "bit": lambda column, _settings: numbers.bits(column.length or 1),
    "year": lambda _column, settings: time_types.year(settings),
    "date": lambda _column, settings: dates.date(settings),
    "datetime": lambda column, settings: dates.datetime_codec(column.scale or 0, settings),
    "timestamp": lambda column, settings: dates.timestamp(column.scale or 0, settings),
    "time": lambda column, settings: time_types.time(column.scale or 0, settings),
    "enum": _labels(ENUM),
    "set": _labels(ENUM_SET),
    "json": lambda _column, settings: json_values.json(settings),
    "uuid": lambda _column, settings: text_codecs.text(settings, UUID),
    "point": lambda _column, _settings: geometry.point(),
    "vector": lambda _column, _settings: geometry.vector(),
}
"""The factories by ``Column.type``."""


def codec_for(column: Column, options: BinlogOptions) -> Codec:
    """Return the codec of a column.

    Raises:
        SourceStateError: its type is unknown.
    """
    settings = MysqlSettings(
        decimal_handling_mode=options.decimal_handling_mode,
        time_precision_mode=options.time_precision_mode,
        binary_handling_mode=options.binary_handling_mode,
        unavailable_value_placeholder=options.unavailable_value_placeholder,
        bigint_unsigned_handling_mode=options.bigint_unsigned_handling_mode,
        enable_time_adjuster=options.enable_time_adjuster,
    )
    return codec_with(column, settings)


@lru_cache(maxsize=4096)
def codec_with(column: Column, settings: MysqlSettings) -> Codec:
    """Return the codec of a column; errors are those of ``codec_for``."""
    factory = FACTORIES.get(column.type)
    if factory is None:
        raise SourceStateError(
            f"The column '{column.name}' has the type '{column.type}', which is not known.",
            "Leave it out with column.exclude.list.",
        )
    codec = factory(column, settings)
    return _required(column, codec) if column.type in _DATES and not column.optional else codec


def _required(column: Column, codec: Codec) -> Codec:
    """Return the codec of a NOT NULL column of dates: zero dates become the default, or the epoch if it has none."""
    default = default_value(column, codec)
    stand_in = (one_json(codec, default) if default is not None else None) or codec.zero

    def encode(values: pa.Array) -> Fragment:
        fragment = codec.encode(values)
        if not fragment.text.null_count:
            return fragment
        return Fragment(fragment.text.fill_null(stand_in[1:-1] if fragment.quoted else stand_in), fragment.quoted)

    return dataclasses.replace(codec, encode=encode)
