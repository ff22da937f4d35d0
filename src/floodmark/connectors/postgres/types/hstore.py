"""Codec of ``hstore``: JSON text or a map, by ``hstore.handling.mode``.

Debezium keeps the entries in a ``java.util.HashMap``, whose iteration order is reproduced here.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import valid
from floodmark.codecs.codec import Codec, bare, json_string, semantic, unchanged
from floodmark.connectors.postgres.types.settings import PostgresSettings
from floodmark.connectors.postgres.types.tokens import find_words
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import escape, string

JSON = "io.debezium.data.Json"

_MAP: ConnectSchema = {
    "type": "map",
    "keys": {"type": "string", "optional": False},
    "values": {"type": "string", "optional": True},
}
_PUNCTUATION = b"=>, ;"
_SLOTS = 16


def hstore(settings: PostgresSettings) -> Codec:
    """Return the codec of ``hstore``."""
    placeholder = f"{{{settings.placeholder}:{settings.placeholder}}}"
    if settings.hstore_handling_mode == "map":
        return Codec(
            _MAP, lambda text: bare(_objects(text, surrogates=True)), "{}", placeholder, pa.string(), unchanged
        )
    return Codec(
        semantic("string", JSON),
        lambda text: string(_objects(text, surrogates=False)),
        '"{}"',
        json_string(placeholder),
        pa.string(),
        unchanged,
    )


def _objects(text: pa.StringArray, surrogates: bool) -> pa.StringArray:
    """Return hstores as JSON objects.

    Args:
        text: as the server writes them: ``"a"=>"1", "b"=>NULL``.
        surrogates: whether characters beyond U+FFFF are escaped.
    """
    # Every value must end in punctuation.
    words = find_words(pc.binary_join_element_wise(text.fill_null(""), ";", ""), _PUNCTUATION)
    at = np.arange(0, len(words.start), 2)  # the keys; each is followed by its value
    keys, values = words.text.take(pa.array(at)), words.text.take(pa.array(at + 1))
    shown = pc.binary_join_element_wise('"', escape(values, surrogates), '"', "")
    shown = pc.if_else(pa.array(words.quoted[at + 1]), shown, "null")
    entries = pc.binary_join_element_wise('"', escape(keys, surrogates), '":', shown, "")
    row = words.row()[at]
    counts = np.bincount(row, minlength=len(text)).astype(np.int64)
    # Within each row by slot, then by insertion, as a HashMap iterates.
    order = np.lexsort((np.arange(len(row)), _slots(keys, slots_for(counts, _SLOTS)[row]), row))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), entries.take(pa.array(order)))
    whole = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(pa.array(valid(text)), whole, pa.scalar(None, pa.string())) if text.null_count else whole


def slots_for(counts: NDArray[np.int64], least: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of slots of ``HashMap``s with so many entries: they double when more than 3/4 full.

    Args:
        counts: the entries of each map, shape (rows,).
        least: the slots that the maps start with.
    """
    slots = np.broadcast_to(np.asarray(least, np.int64), counts.shape).copy()
    while (full := counts > slots * 3 // 4).any():
        slots[full] *= 2
    return slots


def _slots(keys: pa.StringArray, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slot of each key, shape (keys,)."""
    coded = keys.dictionary_encode()
    hashes = np.array([_java_hash(key) for key in coded.dictionary.to_pylist()], np.int64)
    spread = hashes ^ (hashes >> 16)
    result: NDArray[np.int64] = spread[np.asarray(coded.indices)] & (slots - 1)
    return result


def _java_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number."""
    raw = text.encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2))
    return list(accumulate(units, lambda total, unit: (total * 31 + unit) & 0xFFFFFFFF, initial=0))[-1]
