"""Codecs of pgvector's types: ``vector``, ``halfvec`` and ``sparsevec``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import int64_values, valid
from floodmark.codecs.codec import Codec, Settings, bare, unchanged
from floodmark.codecs.floats import java_number
from floodmark.connectors.postgres.types.hstore import slots_for
from floodmark.connectors.postgres.types.tokens import find_words, with_words
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment

_DENSE = b"[],"
_SPARSE = b"{}:,/;"
_LARGEST = 32_767
_SPARSE_SCHEMA: ConnectSchema = {
    "type": "struct",
    "fields": [
        {"type": "int16", "optional": False, "field": "dimensions"},
        {
            "type": "map",
            "keys": {"type": "int16", "optional": False},
            "values": {"type": "double", "optional": False},
            "optional": False,
            "field": "vector",
        },
    ],
    "name": "io.debezium.data.SparseDoubleVector",
    "version": 1,
    "doc": "Sparse double vector",
}


def vector(name: str, kind: str, arrow_type: pa.DataType, settings: Settings) -> Codec:
    """Return the codec of ``vector`` or ``halfvec``.

    Args:
        name: the schema's semantic name.
        kind: Connect's name of the elements' type.
        arrow_type: the elements' type.
        settings: the options.
    """
    del settings

    def encode(text: pa.StringArray) -> Fragment:
        words = find_words(text.fill_null("[]") if text.null_count else text, _DENSE)
        numbers = java_number(words.text, arrow_type, shortest=arrow_type == pa.float32())
        whole = with_words(words, numbers, np.zeros(len(words.data), bool), {})
        return bare(_nulls_of(text, whole))

    schema: ConnectSchema = {
        "type": "array",
        "items": {"type": kind, "optional": False},
        "name": f"io.debezium.data.{name}",
        "version": 1,
    }
    return Codec(schema, encode, "[]", "null", pa.string(), unchanged)


def sparse(settings: Settings) -> Codec:
    """Return the codec of ``sparsevec``; more than 32,767 dimensions don't fit into its schema and are null."""
    del settings
    return Codec(_SPARSE_SCHEMA, _sparse, '{"dimensions":0,"vector":[]}', "null", pa.string(), unchanged)


def _sparse(text: pa.StringArray) -> Fragment:
    """Encode ``{1:0.5,3:2}/5``: the last word is the number of dimensions; the others alternate index and value."""
    words = find_words(pc.binary_join_element_wise(text.fill_null("{}/0"), ";", ""), _SPARSE)
    row = words.row()
    last = np.flatnonzero(np.diff(row, append=-1))
    inner = np.delete(np.arange(len(row)), last)
    index, value = words.text.take(pa.array(inner[0::2])), words.text.take(pa.array(inner[1::2]))
    owner = row[inner[0::2]]
    counts = np.bincount(owner, minlength=len(text)).astype(np.int64)
    # Debezium's HashMap, whose order this reproduces, starts with a slot per entry, rounded up to a power of two.
    least = np.where(counts > 1, 1 << np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), 1)
    slot = int64_values(index.cast(pa.int64())) & (slots_for(counts, least)[owner] - 1)
    order = np.lexsort((np.arange(len(owner)), slot, owner))
    pairs = pc.binary_join_element_wise("[", index, ",", java_number(value, pa.float64(), shortest=False), "]", "")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pairs.take(pa.array(order)))
    dimensions = words.text.take(pa.array(last))
    whole = pc.binary_join_element_wise(
        '{"dimensions":', dimensions, ',"vector":[', pc.binary_join(lists, ","), "]}", ""
    )
    fitting = pc.less_equal(dimensions.cast(pa.int64()), _LARGEST)
    return bare(pc.if_else(pc.and_(fitting, pa.array(valid(text))), whole, pa.scalar(None, pa.string())))


def _nulls_of(like: pa.StringArray, whole: pa.StringArray) -> pa.StringArray:
    if not like.null_count:
        return whole
    return pc.if_else(pa.array(valid(like)), whole, pa.scalar(None, pa.string()))
