"""Writes vectors as JSON texts, as ``io.debezium.transforms.VectorToJsonConverter`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.floats import java_number
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema, field_schema
from floodmark.events.json_text import Fragment
from floodmark.json_data import Json
from floodmark.transforms.failures import failure
from floodmark.transforms.records import Records, is_null
from floodmark.transforms.structs import Member, Struct, Values, Written, read_lines, with_default

_DENSE = ("io.debezium.data.DoubleVector", "io.debezium.data.FloatVector")
_SPARSE = "io.debezium.data.SparseDoubleVector"
_JSON: Mapping[str, Json] = {"type": "string", "name": "io.debezium.data.Json", "version": 1}
_PAIRS = pa.schema([("dimensions", pa.int64()), ("vector", pa.list_(pa.list_(pa.float64())))])


class VectorToJsonConverter:
    """The transform.

    Args:
        settings: its name.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records whose values have texts for vectors.

        Raises:
            SourceStateError: their values are no structures.
        """
        value = records.value
        if is_null(value):
            return (records,)
        if not isinstance(value, Struct):
            raise failure(self._settings, "type", records, "their value is no structure any more")
        return (replace(records, value=_converted(value)),)


def _converted(struct: Struct) -> Struct:
    if isinstance(struct, Written):
        # It was made of the fields of a connector, none of which is a vector.
        return struct
    members = [_member(*member) for member in struct.members()]
    fields: list[Json] = [field_schema(schema, bool(schema["optional"]), name) for name, schema, _ in members]
    schema = {**struct.schema, "fields": fields}
    return Struct(schema, None if struct.values is None else [values for _, _, values in members])


def _member(name: str, schema: ConnectSchema, values: Values) -> Member:
    kind = schema.get("name")
    if kind in _DENSE or kind == _SPARSE:
        convert = _sparse if kind == _SPARSE else _dense
        return (
            name,
            {**_JSON, "optional": schema["optional"]},
            convert(values) if isinstance(values, Fragment) else values,
        )
    if isinstance(values, Struct):
        inner = _converted(values)
        return name, {**inner.schema, "optional": schema["optional"]}, inner
    return name, schema, with_default(values, schema)


def _dense(values: Fragment) -> Fragment:
    """Return ``[1.0,2.0]`` as the text ``{ "values": [1.0, 2.0] }``."""
    spaced = pc.replace_substring(values.text, ",", ", ")
    return Fragment(pc.binary_join_element_wise('{ \\"values\\": ', spaced, " }", ""), quoted=True)


def _sparse(values: Fragment) -> Fragment:
    """Return ``{"dimensions":3,"vector":[[1,2.0]]}`` as the text ``{ "dimensions": 3, "vector": { "1": 2.0 } }``."""
    text = values.text
    lines = pc.binary_join_element_wise(text.fill_null('{"dimensions":0,"vector":[]}'), "\n", "")
    table = read_lines(lines, _PAIRS)
    dimensions, vectors = (table.column(name).combine_chunks() for name in _PAIRS.names)
    pairs = vectors.flatten().flatten().to_numpy().reshape(-1, 2)
    counts = pc.list_value_length(vectors).to_numpy()
    keys = pairs[:, 0].astype(np.int64)
    # Java's TreeMap sorts them.
    order = np.lexsort((keys, np.repeat(np.arange(len(text)), counts)))
    numbers = java_number(pa.array(pairs[order, 1]).cast(pa.string()), pa.float64())
    shown = pc.binary_join_element_wise('\\"', pa.array(keys[order]).cast(pa.string()), '\\": ', numbers, "")
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), shown), ", ")
    whole = pc.binary_join_element_wise(
        '{ \\"dimensions\\": ', dimensions.cast(pa.string()), ', \\"vector\\": { ', joined, " } }", ""
    )
    return Fragment(pc.if_else(pc.is_null(text), pa.scalar(None, pa.string()), whole), quoted=True)
