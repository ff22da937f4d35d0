"""Reads columns of JSON as Arrow arrays, by their Connect schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import as_mask, has_letters, mapped, strings, valid
from floodmark.codecs.base64_text import ends_of
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, value_bytes
from floodmark.transforms.structs import NULL, plain, read_lines

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = {"float": pa.float32(), "double": pa.float64()}
_TYPES = {**dict.fromkeys(INTEGERS, pa.int64()), **FLOATS, "boolean": pa.bool_()}
_ESCAPED_HALF = r"\\u[dD][89a-fA-F]"
_NOT_A_NUMBER = r'"(NaN|-?Infinity)"'
_NUMBER = r"(-?[0-9][-+.0-9Ee]*)"
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_OPEN, _CLOSE, _COMMA, _COLON = b"{},:"


def typed(fragment: Fragment, schema: ConnectSchema) -> pa.Array:
    """Return a column as an array; of bytes, their base64.

    Integers have 64 bits. Maps are lists of their keys and values, one after the other.

    Args:
        fragment: its JSON.
        schema: of its values.

    Raises:
        pa.ArrowInvalid: it holds something else.
    """
    kind = str(schema["type"])
    if kind in ("string", "bytes"):
        return _texts(fragment)
    text = fragment.text
    if kind == "boolean":
        return pc.equal(_with_nulls(text), "true")
    if kind in _TYPES:
        if kind in FLOATS and has_letters(text):
            text = pc.utf8_trim(text, '"')
        try:
            return text.cast(_TYPES[kind])
        except pa.ArrowInvalid:
            # What transforms write may have the word in the place of nulls.
            return _with_nulls(text).cast(_TYPES[kind])
    return _nested(_with_nulls(text), schema)


def fields_of(schema: ConnectSchema) -> Sequence[ConnectSchema]:
    """Return the schemas of a structure's fields."""
    return cast(Sequence[ConnectSchema], schema["fields"])


def part_of(schema: ConnectSchema, name: str) -> ConnectSchema:
    """Return the schema of an array's items, or of a map's keys or values."""
    return cast(ConnectSchema, schema[name])


def has_text_keys(schema: ConnectSchema) -> bool:
    """Return whether a map's keys are texts; other maps are arrays of pairs, in JSON and in Avro."""
    keys = part_of(schema, "keys")
    return keys["type"] == "string" and not keys.get("optional")


def _texts(fragment: Fragment) -> pa.StringArray:
    if not fragment.quoted:
        text = _with_nulls(fragment.text)
        fragment = Fragment(pc.binary_slice(text.cast(pa.binary()), 1, -1).cast(pa.string()), quoted=True)
    try:
        return plain(fragment)
    except pa.ArrowInvalid:
        # Text that was cut may end in half a surrogate pair. Java writes a question mark for it.
        halves = as_mask(pc.match_substring_regex(fragment.text, _ESCAPED_HALF))
        others = pc.if_else(pa.array(halves), pa.scalar(None, pa.string()), fragment.text)
        return mapped(plain(Fragment(others, quoted=True)), fragment.text, halves, _whole)


def _whole(escaped: str) -> str:
    text: str = json.loads(f'"{escaped}"')
    return text.encode("utf-8", "replace").decode()


def _with_nulls(text: pa.StringArray) -> pa.StringArray:
    """Return complete JSON with null in the place of the word."""
    return pc.if_else(pc.equal(text, NULL), pa.scalar(None, pa.string()), text)


def _nested(text: pa.StringArray, schema: ConnectSchema) -> pa.Array:
    """Return arrays, maps and structures as they are read; null stays null."""
    if _has_objects(schema):
        text = _as_pairs(text)
    try:
        return _read(text, _read_type(schema))
    except pa.ArrowInvalid:
        if not pc.any(pc.match_substring_regex(text, _NOT_A_NUMBER)).as_py():
            raise
    # In JSON, only a text can say that something isn't a number. So all of them become texts.
    return _cast(_read(_quoted_numbers(text, schema), _read_type(schema, as_text=True)), _read_type(schema))


def _has_objects(schema: ConnectSchema) -> bool:
    """Return whether values are maps with keys of text, or arrays of such."""
    inner = part_of(schema, "items") if schema["type"] == "array" else schema
    return inner["type"] == "map" and has_text_keys(inner)


def _read(text: pa.StringArray, kind: pa.DataType) -> pa.Array:
    lines = pc.binary_join_element_wise('{"v":', text.fill_null(NULL), "}\n", "")
    return read_lines(lines, pa.schema([("v", kind)])).column("v").combine_chunks()


def _read_type(schema: ConnectSchema, as_text: bool = False) -> pa.DataType:
    """Return the type as which values are read.

    Args:
        schema: theirs.
        as_text: whether floating-point numbers are texts.
    """
    kind = str(schema["type"])
    if kind == "array":
        return pa.list_(_read_type(part_of(schema, "items"), as_text))
    if kind == "map":
        # A pair has one type: where it isn't a text, that of its value, in which its key has room.
        return pa.list_(pa.list_(_read_type(part_of(schema, "values"), as_text)))
    if kind == "struct":
        return pa.struct([(str(field["field"]), _read_type(field, as_text)) for field in fields_of(schema)])
    return pa.string() if as_text and kind in FLOATS else _TYPES.get(kind, pa.string())


def _quoted_numbers(text: pa.StringArray, schema: ConnectSchema) -> pa.StringArray:
    if schema["type"] != "struct":
        return pc.replace_substring_regex(text, _NUMBER, r'"\1"')
    for field in fields_of(schema):
        if field["type"] in FLOATS:
            name = f'"{field["field"]}":'
            text = pc.replace_substring_regex(text, f"{name}{_NUMBER}", rf'{name}"\1"')
    return text


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with numbers in the place of texts."""
    if pa.types.is_list(kind):
        ends = array.offsets
        items = _cast(array.values, kind.value_type)
        return pa.ListArray.from_arrays(ends, items, mask=pc.is_null(array) if array.null_count else None)
    if pa.types.is_struct(kind):
        parts = [_cast(array.field(number), kind.field(number).type) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pc.is_null(array))
    return array if array.type == kind else array.cast(kind)


def _as_pairs(text: pa.StringArray) -> pa.StringArray:
    """Return objects of texts as arrays of pairs, also within arrays; null stays null."""
    filled = text.fill_null("{}")
    data = value_bytes(filled)
    places = np.arange(len(data))
    backslash = data == _BACKSLASH
    # Of a run of backslashes, every second one is escaped, and so is what follows an odd number of them.
    runs = np.maximum.accumulate(np.where(backslash & ~np.r_[False, backslash[:-1]], places, 0))
    escaping = backslash & ((places - runs) % 2 == 0)
    quotes = (data == _QUOTE) & ~np.r_[False, escaping[:-1]]
    outside = np.cumsum(quotes) % 2 == 0
    opening, closing = outside & (data == _OPEN), outside & (data == _CLOSE)
    within = np.cumsum(opening) > np.cumsum(closing)
    # An object without entries has no pairs.
    empty = opening & np.r_[closing[1:], False]
    instead = {
        b"[": empty,
        b"]": np.r_[False, empty[:-1]],
        b"[[": opening & ~empty,
        b"]]": closing & ~np.r_[False, empty[:-1]],
        b"],[": outside & within & (data == _COMMA),
        b",": outside & within & (data == _COLON),
    }
    sizes = np.ones(len(data), np.int64)
    for written, where in instead.items():
        sizes[where] = len(written)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    result = np.repeat(data, sizes)
    for written, where in instead.items():
        at = starts[:-1][where]
        for number, byte in enumerate(written):
            result[at + number] = byte
    lengths = np.asarray(pc.binary_length(filled))
    pairs = strings(starts[ends_of(lengths)].astype(np.int32), result)
    return pairs if not text.null_count else pc.if_else(pa.array(valid(text)), pairs, pa.scalar(None, pa.string()))
