"""What the tests of the codecs share."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from floodmark.codecs.codec import Codec
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.events.json_text import closed
from tests.support.options import REQUIRED

OIDS = {
    "bool": 16,
    "bytea": 17,
    "int8": 20,
    "int2": 21,
    "int4": 23,
    "text": 25,
    "oid": 26,
    "json": 114,
    "xml": 142,
    "float4": 700,
    "float8": 701,
    "money": 790,
    "date": 1082,
    "time": 1083,
    "timestamp": 1114,
    "timestamptz": 1184,
    "interval": 1186,
    "timetz": 1266,
    "bit": 1560,
    "varbit": 1562,
    "numeric": 1700,
    "uuid": 2950,
}


def options(**given: str) -> PostgresOptions:
    """Return options; ``_`` in a name stands for ``.``."""
    return PostgresOptions.model_validate(
        {**REQUIRED, **{name.replace("_", "."): value for name, value in given.items()}}
    )


def codec(kind: str, modifier: int = -1, **given: str) -> Codec:
    """Return the codec of a built-in type."""
    return codec_for(OIDS[kind], modifier, {}, options(**given))


def numeric_modifier(precision: int, scale: int) -> int:
    """Return the modifier of ``numeric(precision, scale)``."""
    return ((precision << 16) | (scale & 0x7FF)) + 4


def strings(values: Sequence[str | None]) -> pa.StringArray:
    """Return a string array."""
    return pa.array(values, pa.string())


def encoded(one: Codec, values: Sequence[str | None]) -> list[str]:
    """Return the JSON of values that are encoded together."""
    texts: list[str] = closed(one.encode(strings(values))).to_pylist()
    return texts
