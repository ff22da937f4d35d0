"""Encodes columns with Connect schemas in Avro's binary encoding, with the unions that ``schemas`` has for them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import valid
from floodmark.codecs.base64_text import decode_base64
from floodmark.errors import DecodeError
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment
from floodmark.transforms.avro.binary import Cells, blocks, fixed, joined, long_bytes, longs, sized, spread
from floodmark.transforms.avro.values import FLOATS, INTEGERS, fields_of, has_text_keys, part_of, typed
from floodmark.transforms.structs import NULL, Struct, Values, Written, with_default

_NULL_FIRST = long_bytes(0), long_bytes(1)
_BRANCHES = _NULL_FIRST[::-1]


def encode(values: Values, schema: ConnectSchema, rows: int, defaults: bool = True) -> list[Cells]:
    """Return values as columns of bytes that follow each other.

    Args:
        values: of each row, or of all.
        schema: their Connect schema, as a field.
        rows: how many.
        defaults: whether nulls become the default of their field, if it has one.

    Raises:
        DecodeError: a value is null though its schema doesn't allow that, or isn't what the schema says.
    """
    if defaults:
        values = with_default(values, schema)
    null, lead = branches(schema)
    if isinstance(values, Struct):
        if not isinstance(values, Written) and values.values is None:
            return [null or _refused(schema)]
        cells: list[Cells] = [lead]
        for name, field, value in _members(values):
            cells += _within(name, value, field, rows, defaults)
        return cells
    if isinstance(values, str):
        if values == NULL:
            return [null or _refused(schema)]
        alone = encode(Fragment(pa.array([values])), schema, 1, defaults)
        return [joined(alone, 1)[0].as_py()]
    try:
        return _of_array(typed(values, schema), schema)
    except (pa.ArrowInvalid, ValueError) as error:
        raise DecodeError(f"A value isn't {schema['type']}, as its schema says: {error}") from None


def branches(schema: ConnectSchema) -> tuple[bytes, bytes]:
    """Return what stands for null, and what comes before other values; both are empty if there is no union.

    The first branch of a union must be that of the default, which is null unless there is another.
    """
    if not schema.get("optional"):
        return b"", b""
    return _BRANCHES if schema.get("default") is not None and schema["type"] != "struct" else _NULL_FIRST


def _members(struct: Struct) -> list[tuple[str, ConnectSchema, Values]]:
    """Return the fields of structures; of written ones each by itself, since most are the same for all rows."""
    return [(str(field["field"]), field, struct.value(str(field["field"]))) for field in struct.fields]


def _within(name: str, values: Values, schema: ConnectSchema, rows: int, defaults: bool) -> list[Cells]:
    try:
        return encode(values, schema, rows, defaults)
    except DecodeError as error:
        raise DecodeError(f"In the field '{name}': {error}") from None


def _refused(schema: ConnectSchema) -> bytes:
    raise DecodeError(f"A value of the type {schema['type']} is null, which its schema doesn't allow.")


def _of_array(array: pa.Array, schema: ConnectSchema) -> list[Cells]:
    """Return the values of an array, in the form that ``typed`` gives them."""
    kind = str(schema["type"])
    null, lead = branches(schema)
    if array.null_count and not null:
        _refused(schema)
    if kind == "string":
        return list(sized(array.cast(pa.binary()), lead, null))
    if kind == "bytes":
        return list(sized(decode_base64(array), lead, null))
    present = valid(array)
    absent = ~present if array.null_count else None
    if kind in INTEGERS:
        numbers = array.fill_null(0) if array.null_count else array
        return [longs(numbers.to_numpy(), lead, absent, null)]
    if kind in FLOATS:
        numbers = array.fill_null(0.0) if array.null_count else array
        values = np.ascontiguousarray(numbers.to_numpy(), numbers.type.to_pandas_dtype())
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return [fixed(little.view(np.uint8).reshape(len(values), values.itemsize), lead, absent, null)]
    if kind == "boolean":
        flags = (array.fill_null(False) if array.null_count else array).to_numpy(zero_copy_only=False)
        return [fixed(flags.astype(np.uint8).reshape(-1, 1), lead, absent, null)]
    cells: list[Cells] = [lead, *_of_nested(array.drop_null() if array.null_count else array, schema)]
    if absent is None:
        return cells
    return [spread(joined(cells, int(present.sum())), present, null)]


def _of_nested(array: pa.Array, schema: ConnectSchema) -> list[Cells]:
    """Return structures, arrays or maps without nulls."""
    if schema["type"] == "struct":
        cells: list[Cells] = []
        for field, values in zip(fields_of(schema), array.flatten(), strict=True):
            cells += _of_array(values, field)
        return cells
    counts = np.asarray(pc.list_value_length(array)).astype(np.int64)
    items = array.flatten()
    if schema["type"] == "array":
        within = _of_array(items, part_of(schema, "items"))
    else:
        # Each item is a pair.
        both = items.flatten()
        keys, values = both.take(pa.array(np.arange(0, len(both), 2))), both.take(pa.array(np.arange(1, len(both), 2)))
        kind = part_of(schema, "keys")
        keys = keys if has_text_keys(schema) else keys.cast(pa.int64())
        within = [*_of_array(keys, kind), *_of_array(values, part_of(schema, "values"))]
    return blocks(counts, joined(within, len(items)))
