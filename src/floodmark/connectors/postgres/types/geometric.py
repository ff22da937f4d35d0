"""Codecs of ``point`` and of PostGIS's ``geometry`` and ``geography``.

Source of the binary form of points: OGC Simple Feature Access, part 1, "Well-known Binary"; of PostGIS's: its manual,
"EWKB": a flag in the type indicates that the spatial reference follows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import Mask, byte_at, strings
from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.codec import Codec, Settings, bare, unchanged
from floodmark.codecs.floats import java_number
from floodmark.codecs.geometry import EMPTY_GEOMETRY, POINT, ZERO_POINT, geometry_schema
from floodmark.connectors.postgres.types.binary import from_server
from floodmark.connectors.postgres.types.geometry_text import PUNCTUATION
from floodmark.connectors.postgres.types.tokens import find_words
from floodmark.events.json_text import Fragment

_POINT_HEAD = b"\x01\x01\x00\x00\x00"  # little-endian, type 1 (point)
_POINT_BYTES = 21
_HAS_SRID = 0x20000000
_HEAD_BYTES = 9  # byte order, type, spatial reference


def point(settings: Settings) -> Codec:
    """Return the codec of ``point``."""
    del settings
    return Codec(
        POINT,
        _points,
        ZERO_POINT,
        "null",
        pa.string(),
        unchanged,
    )


def _points(text: pa.StringArray) -> Fragment:
    # Each row, null or not, must have two words; `values` restores the nulls.
    words = find_words(text.fill_null("(0,0)") if text.null_count else text, PUNCTUATION)
    numbers = words.text.cast(pa.float64()).to_numpy().reshape(-1, 2)
    wkb = np.empty((len(text), _POINT_BYTES), np.uint8)
    wkb[:, : len(_POINT_HEAD)] = np.frombuffer(_POINT_HEAD, np.uint8)
    wkb[:, len(_POINT_HEAD) :] = np.ascontiguousarray(numbers, "<f8").view(np.uint8)
    ends = np.arange(0, (len(text) + 1) * _POINT_BYTES, _POINT_BYTES, dtype=np.int32)
    values = encode_base64(strings(ends, wkb, text).view(pa.binary()))
    shown = java_number(words.text, pa.float64())
    x, y = (shown.take(pa.array(np.arange(first, len(shown), 2))) for first in (0, 1))
    return bare(pc.binary_join_element_wise('{"x":', x, ',"y":', y, ',"wkb":"', values, '","srid":null}', ""))


def postgis(name: str, settings: Settings) -> Codec:
    """Return the codec of PostGIS's ``geometry`` or ``geography``, whose text is hexadecimal EWKB."""
    del settings
    return Codec(
        geometry_schema(name),
        _well_known_binary,
        EMPTY_GEOMETRY,
        "null",
        pa.string(),
        unchanged,
        always_optional=name == "Geometry",
    )


def _well_known_binary(text: pa.StringArray) -> Fragment:
    raw = from_server(text)
    values = encode_base64(raw)
    bytes_of = [byte_at(raw, index) for index in range(_HEAD_BYTES)]
    little = bytes_of[0] != 0
    known = _number(bytes_of[1:5], little) & _HAS_SRID != 0
    srid = pa.array(_number(bytes_of[5:9], little).astype(np.int32)).cast(pa.string())
    shown = pc.if_else(pa.array(known), srid, "null")
    return bare(pc.binary_join_element_wise('{"wkb":"', values, '","srid":', shown, "}", ""))


def _number(four: list[NDArray[np.uint8]], little: Mask) -> NDArray[np.int64]:
    """Combine four columns of bytes, each of shape (rows,), into unsigned 32-bit integers, shape (rows,)."""
    low = sum(byte.astype(np.int64) << 8 * place for place, byte in enumerate(four))
    high = sum(byte.astype(np.int64) << 8 * place for place, byte in enumerate(reversed(four)))
    return np.where(little, low, high)
