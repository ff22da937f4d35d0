"""Loads the converters of the option ``converters``, and makes codecs of their conversions."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.codec import Codec, bare, json_string, quoted
from floodmark.codecs.floats import java_number
from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError, DecodeError
from floodmark.events.json_text import Fragment, string
from floodmark.extensions.converter import KINDS, Conversion, Converter, SourceColumn
from floodmark.extensions.discovery import load_plugin

GROUP = "floodmark.converters"
_ZERO = {"string": '""', "bytes": '""', "boolean": "false", "float": "0.0", "double": "0.0"}

Settings = tuple[tuple[str, str], ...]


def load_converters(options: CommonOptions) -> tuple[Converter, ...]:
    """Return the converters in the order in which they are tried.

    Raises:
        ConfigError: a converter is not installed, or cannot be used.
    """
    return tuple(_converter(name, tuple(options.converter_settings(name).items())) for name in options.converters)


@lru_cache(maxsize=64)
def _converter(name: str, settings: Settings) -> Converter:
    given = dict(settings)
    converter = load_plugin(GROUP, given.pop("type"), f"{name}.type", Converter)
    try:
        converter.configure(given)
    except ConfigError:
        raise
    except Exception as exc:
        raise ConfigError(f"The converter '{name}' refuses its options: {type(exc).__name__}: {exc}.") from exc
    return converter


def converted(column: SourceColumn, converters: Sequence[Converter], placeholder: str) -> Codec | None:
    """Return the codec of a column that a converter handles; None if none does.

    Args:
        column: the column.
        converters: the first one that handles the column is used.
        placeholder: the text for a value that the log does not hold.

    Raises:
        DecodeError: a converter failed, or returned a type that is not allowed.
    """
    for converter in converters:
        try:
            conversion = converter.converter_for(column)
        except Exception as exc:
            raise DecodeError(f"The converter {_name(converter)} fails for {column.full_name}: {exc}.") from exc
        if conversion is not None:
            return _codec(conversion, converter, column, placeholder)
    return None


def _codec(conversion: Conversion, converter: Converter, column: SourceColumn, placeholder: str) -> Codec:
    kind = conversion.kind
    if kind not in KINDS:
        raise DecodeError(
            f"The converter {_name(converter)} makes '{kind}' of {column.full_name}: it must be one of "
            f"{', '.join(KINDS)}."
        )
    arrow_type = KINDS[kind]

    def to_arrow(text: pa.StringArray) -> pa.Array:
        what = f"The converter {_name(converter)}, called for {column.full_name},"
        try:
            values = conversion.convert(text)
        except Exception as exc:
            raise DecodeError(f"{what} failed: {type(exc).__name__}: {exc}.") from exc
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array) or len(values) != len(text) or values.type != arrow_type:
            given = f"{len(values)} of {values.type}" if isinstance(values, pa.Array) else type(values).__name__
            raise DecodeError(f"{what} must return {len(text)} values of {arrow_type}; it returned {given}.")
        return values

    unavailable = {
        "string": json_string(placeholder),
        "bytes": f'"{base64.b64encode(placeholder.encode()).decode()}"',
    }
    return Codec(
        conversion.schema,
        lambda text: _json(kind, to_arrow(text)),
        _ZERO.get(kind, "0"),
        unavailable.get(kind, "null"),
        arrow_type,
        to_arrow,
    )


def _json(kind: str, values: pa.Array) -> Fragment:
    if kind == "string":
        return string(values)
    if kind == "bytes":
        return quoted(encode_base64(values))
    if kind == "boolean":
        return bare(pc.if_else(values, "true", "false"))
    if kind in ("float", "double"):
        return bare(java_number(values.cast(pa.string()), values.type, shortest=False))
    return bare(values.cast(pa.string()))


def _name(converter: Converter) -> str:
    return type(converter).__name__
