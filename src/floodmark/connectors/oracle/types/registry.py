"""Finds the codec of a column: a table from types to the functions that create codecs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from floodmark.codecs import text_codecs
from floodmark.codecs.binary import binary
from floodmark.codecs.codec import Codec, unchanged
from floodmark.codecs.intervals import interval
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.types.moments import moment, zoned
from floodmark.connectors.oracle.types.numbers import binary_floating, floating, number
from floodmark.connectors.oracle.types.settings import OracleSettings
from floodmark.errors import SourceStateError

Factory = Callable[[Column, OracleSettings], Codec]
XML = "io.debezium.data.Xml"


def _text(column: Column, settings: OracleSettings) -> Codec:
    del column
    return text_codecs.text(settings)


def _bytes(column: Column, settings: OracleSettings) -> Codec:
    del column
    codec = binary(settings, unchanged, pa.binary(), unchanged)
    if settings.binary_handling_mode != "hex":
        return codec
    # Unlike with the other databases, Debezium encodes the placeholder as any value.
    return replace(codec, unavailable=f'"{settings.placeholder_bytes.hex()}"')


def _interval(column: Column, settings: OracleSettings) -> Codec:
    del column
    return interval(settings.interval_handling_mode, settings, micros_apart=True)


FACTORIES: Mapping[str, Factory] = {
    "NUMBER": number,
    "FLOAT": floating,
    "BINARY_FLOAT": lambda _column, _settings: binary_floating("float", pa.float32()),
    "BINARY_DOUBLE": lambda _column, _settings: binary_floating("double", pa.float64()),
    **dict.fromkeys(("CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2", "CLOB", "NCLOB", "ROWID"), _text),
    "XMLTYPE": lambda _column, settings: text_codecs.text(settings, XML),
    **dict.fromkeys(("RAW", "BLOB"), _bytes),
    **dict.fromkeys(("DATE", "TIMESTAMP"), moment),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH LOCAL TIME ZONE"), zoned),
    **dict.fromkeys(("INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND"), _interval),
}
"""The factories by ``Column.type``."""


@lru_cache(maxsize=4096)
def codec_with(column: Column, settings: OracleSettings) -> Codec:
    """Return the codec of a column.

    Raises:
        SourceStateError: its type is unknown.
    """
    factory = FACTORIES.get(column.type)
    if factory is None:
        raise SourceStateError(
            f"The column '{column.name}' has the type '{column.type}', whose values Oracle's log doesn't show.",
            "Leave it out with column.exclude.list.",
        )
    return factory(column, settings)
