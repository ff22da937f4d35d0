"""Codec of arrays: the server's ``{1,NULL,"a b"}`` becomes a JSON array of values encoded by the element's codec.

All elements of a column are encoded together. Arrays of several dimensions become nested JSON arrays, although
the schema, which can't express dimensions, declares one: Debezium's values for them are meaningless. Bounds
(``[0:1]={…}``) are left out.

Typed rows hold lists of the element codec's Arrow values. There, an array is null if it has several dimensions or an
element that does not fit its type.
"""

from __future__ import annotations

import hashlib
import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import Mask, as_mask, valid, validity
from floodmark.codecs.codec import Codec, Settings, bare
from floodmark.connectors.postgres.types.tokens import Words, find_words, with_words
from floodmark.events.connect_schema import ConnectSchema, field_schema
from floodmark.events.json_text import Fragment, closed

_BRACES = {ord("{"): ord("["), ord("}"): ord("]"), ord(";"): ord(",")}
_INT_CODES = (23, 1082)
_LONG_CODES = (20,)
_UUID = 2950


def array(element: Codec, oid: int, settings: Settings, optional: bool = True, delimiter: str = ",") -> Codec:
    """Return the codec of an array type.

    Args:
        element: the codec of its elements.
        oid: the element type.
        settings: the options.
        optional: whether the schema lets elements be null.
        delimiter: the separator of elements (``pg_type.typdelim``).
    """
    punctuation = f"{{}}{delimiter}".encode()
    kind = pa.list_(pa.field("element", element.arrow_type))

    def encode(text: pa.StringArray) -> Fragment:
        words, bounds, values = _elements(text, punctuation)
        whole = with_words(words, closed(element.encode(values)), bounds, _BRACES)
        return bare(_with_nulls(whole, text))

    def to_arrow(text: pa.StringArray) -> pa.ListArray:
        words, bounds, values = _elements(text, punctuation)
        items = element.to_arrow(values)
        row = words.row()
        held = valid(text) & ~_nested(words, bounds)
        if items.null_count > values.null_count:
            held[row[valid(values) & ~valid(items)]] = False
        ends = np.cumsum(np.bincount(row, minlength=len(text)))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=pa.array(~held))

    items = field_schema(element.schema, optional or element.always_optional)
    return Codec(
        {"type": "array", "items": items},
        encode,
        "[]",
        _placeholder(element, oid, settings),
        kind,
        to_arrow,
        known=element.known,
    )


def _elements(text: pa.StringArray, punctuation: bytes) -> tuple[Words, Mask, pa.StringArray]:
    """Return the elements as words, a mask of the bytes that give bounds, and the elements' text with their nulls."""
    found = find_words(text.fill_null("{}") if text.null_count else text, punctuation)
    words, bounds = _without_bounds(found)
    null = ~words.quoted & as_mask(pc.equal(words.text, "NULL"))
    values = pc.if_else(pa.array(null), pa.scalar(None, pa.string()), words.text) if null.any() else words.text
    return words, bounds, values


def _without_bounds(words: Words) -> tuple[Words, Mask]:
    """Return the elements, and a mask of the bytes that give bounds: what comes before the first brace."""
    removed = np.zeros(len(words.data), bool)
    # An array without bounds starts with a brace, so a word at a value's start can only be bounds.
    leading = np.isin(words.start, words.bounds)
    if not leading.any():
        return words, removed
    edges = np.zeros(len(words.data) + 1, np.int64)
    edges[words.start[leading]] += 1
    edges[words.end[leading]] -= 1
    return words.select(~leading), np.cumsum(edges[:-1]) > 0


def _nested(words: Words, bounds: Mask) -> Mask:
    """Return which arrays have several dimensions: another brace follows the first at once. Shape (rows,)."""
    begins = words.bounds[:-1]
    # Bounds come first, so a value's first brace is as many bytes after its start as its bounds have.
    skipped = np.concatenate([[0], np.cumsum(bounds)])
    first = begins + skipped[words.bounds[1:]] - skipped[begins]
    nested: Mask = words.data[first + 1] == ord("{")
    return nested


def _with_nulls(whole: pa.StringArray, like: pa.StringArray) -> pa.StringArray:
    if not like.null_count:
        return whole
    _, offsets, data = whole.buffers()
    return pa.StringArray.from_buffers(len(like), offsets, data, validity(like))


def _placeholder(element: Codec, oid: int, settings: Settings) -> str:
    """Return the placeholder of an array that the log lacks; ``null`` where no element can be a placeholder."""
    raw = settings.placeholder_bytes
    schema = element.schema
    name = str(schema.get("name", ""))
    if oid == _UUID:
        return json.dumps([str(_name_uuid(raw))])
    if (oid in _INT_CODES and schema["type"] == "int32" and not name.startswith("org.")) or oid in _LONG_CODES:
        codes = np.frombuffer(raw, np.int8).tolist()
        return json.dumps(codes, separators=(",", ":"))
    return f"[{element.unavailable}]" if element.unavailable.startswith('"') and _holds_text(schema) else "null"


def _holds_text(schema: ConnectSchema) -> bool:
    return schema["type"] == "string" or (schema["type"] == "bytes" and "name" not in schema)


def _name_uuid(raw: bytes) -> uuid.UUID:
    """Return the UUID of a name without a namespace, as ``UUID.nameUUIDFromBytes`` does."""
    return uuid.UUID(bytes=hashlib.md5(raw, usedforsecurity=False).digest(), version=3)
