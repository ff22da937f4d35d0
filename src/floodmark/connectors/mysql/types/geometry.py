"""Codecs of geometries and vectors.

Source of the internal form of geometries: MySQL's manual, "Geometry Storage": the number of the reference system in
four bytes, then Well-known Binary.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import byte_at, lengths_of, offsets_of, slices, valid
from floodmark.codecs.base64_text import encode_base64, ends_of
from floodmark.codecs.codec import Codec, bare, unchanged
from floodmark.codecs.floats import java_number
from floodmark.codecs.geometry import EMPTY_GEOMETRY, POINT, ZERO_POINT, geometry_schema
from floodmark.events.json_text import Fragment, value_bytes
from floodmark.json_data import Json

_SRID_BYTES = 4
_POINT_BYTES = 25
_X_AT, _Y_AT = 9, 17
_NO_POINT = bytes(_POINT_BYTES)
_FLOAT_BYTES = 4
_VECTOR: dict[str, Json] = {
    "type": "array",
    "items": {"type": "float", "optional": False},
    "name": "io.debezium.data.FloatVector",
    "version": 1,
}


def geometry() -> Codec:
    """Return the codec of geometries."""
    return Codec(geometry_schema("Geometry"), _geometries, EMPTY_GEOMETRY, "null", pa.binary(), unchanged)


def point() -> Codec:
    """Return the codec of ``point``."""
    return Codec(POINT, _points, ZERO_POINT, "null", pa.binary(), unchanged)


def _geometries(values: pa.BinaryArray) -> Fragment:
    wkb = _well_known(values)
    return bare(pc.binary_join_element_wise('{"wkb":"', wkb, '","srid":', _srid(values), "}", ""))


def _points(values: pa.BinaryArray) -> Fragment:
    filled = values.fill_null(_NO_POINT) if values.null_count else values
    matrix = value_bytes(filled).reshape(-1, _POINT_BYTES)
    # Only contiguous bytes can be viewed as numbers, hence the copies.
    x, y = (
        java_number(pa.array(matrix[:, at : at + 8].copy().view("<f8")[:, 0]).cast(pa.string()), pa.float64())
        for at in (_X_AT, _Y_AT)
    )
    wkb = _well_known(values)
    parts = ('{"x":', x, ',"y":', y, ',"wkb":"', wkb, '","srid":', _srid(values), "}")
    return bare(pc.binary_join_element_wise(*parts, ""))


def _well_known(values: pa.BinaryArray) -> pa.StringArray:
    """Return base64 of Well-known Binary; null stays null.

    Raises:
        ValueError: a value is too short for a geometry.
    """
    offsets = offsets_of(values).astype(np.int64)
    lengths = lengths_of(values) - np.int64(_SRID_BYTES)
    present = valid(values)
    if (lengths[present] < 0).any():
        raise ValueError("a geometry is cut off")
    starts = offsets[:-1] - offsets[0] + np.where(present, _SRID_BYTES, 0)
    wkb = slices(value_bytes(values), starts, np.where(present, lengths, 0), present)
    return encode_base64(wkb.view(pa.binary()))


def _srid(values: pa.BinaryArray) -> pa.StringArray:
    """Return the numbers of reference systems as JSON; null for 0, which is none."""
    number = sum(byte_at(values, place).astype(np.int64) << 8 * place for place in range(_SRID_BYTES))
    return pc.if_else(pa.array(number == 0), "null", pa.array(number).cast(pa.string()))


def vector() -> Codec:
    """Return the codec of ``vector``: numbers of four bytes."""

    def to_arrow(values: pa.BinaryArray) -> pa.ListArray:
        filled = values.fill_null(b"") if values.null_count else values
        numbers = pa.array(np.frombuffer(value_bytes(filled).tobytes(), "<f4"))
        offsets = ends_of(lengths_of(filled) // _FLOAT_BYTES)
        lists = pa.ListArray.from_arrays(pa.array(offsets), numbers)
        return pc.if_else(pc.is_valid(values), lists, pa.scalar(None, lists.type)) if values.null_count else lists

    def encode(values: pa.BinaryArray) -> Fragment:
        lists = to_arrow(values)
        flat = lists.flatten()
        texts = java_number(flat.cast(pa.string()), pa.float32())
        offsets = ends_of(lengths_of(values) // _FLOAT_BYTES)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), ",")
        whole = pc.binary_join_element_wise("[", joined, "]", "")
        return bare(pc.if_else(pc.is_valid(values), whole, pa.scalar(None, pa.string())))

    return Codec(_VECTOR, encode, "[]", "null", pa.list_(pa.float32()), to_arrow)
