"""Columns of typed values, and the fields of records as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.expressions.tree import Constant, Field
from floodmark.events.connect_schema import ConnectSchema
from floodmark.transforms.kafka.casting import unscaled
from floodmark.transforms.kafka.types import BITS, decimal_scale
from floodmark.transforms.records import Part, Records
from floodmark.transforms.structs import NULL, Struct, Values, texts, with_default

Kind: TypeAlias = Literal["null", "boolean", "int", "bigint", "float", "double", "decimal", "string", "other"]
"""A type of Spark's; ``null`` is that of NULL, and ``other`` one of which only null is known."""

SHOWN = {
    "null": "NULL",
    "boolean": "BOOLEAN",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "string": "STRING",
    "other": "a structure, an array or bytes",
}
ARROW: dict[Kind, pa.DataType] = {
    "null": pa.bool_(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "other": pa.bool_(),
}
"""How values are held; decimals have a scale of their own."""


class EvaluationError(ValueError):
    """An expression can't be evaluated; its text says why."""


@dataclass(frozen=True)
class Column:
    """Values of one type.

    Attributes:
        kind: their type.
        values: shape (rows,).
    """

    kind: Kind
    values: pa.Array


def nothing(rows: int) -> Column:
    """Return NULL for each row."""
    return Column("null", pa.nulls(rows, pa.bool_()))


def constant(value: Constant, rows: int) -> Column:
    """Return the same value for each row."""
    if value.kind == "null":
        return nothing(rows)
    if value.kind == "decimal":
        whole, _, fraction = str(value.value).partition(".")
        kind = pa.decimal128(38, len(fraction))
        return Column("decimal", pa.repeat(pa.scalar(f"{whole or '0'}.{fraction or '0'}").cast(kind), rows))
    return Column(value.kind, pa.repeat(pa.scalar(value.value, ARROW[value.kind]), rows))


def field_column(records: Records, field: Field) -> Column:
    """Return a field of each record.

    Raises:
        EvaluationError: records have no such field.
    """
    root, *names = field.path
    if root == "topic":
        topic = records.topic
        return Column("string", pa.repeat(pa.scalar(topic), records.rows) if isinstance(topic, str) else topic)
    if root == "header":
        header = records.header(names[0])
        return nothing(records.rows) if header is None else _typed(header.schema, header.values, records.rows, field)
    return _of_part(records.key if root == "key" else records.value, names, records.rows, field)


def _of_part(part: Part | None, names: Sequence[str], rows: int, field: Field) -> Column:
    if part is None:
        return nothing(rows)
    schema: ConnectSchema = part.schema
    values: Values = part if isinstance(part, Struct) else part.values
    for name in names:
        if values == NULL:
            return nothing(rows)
        found = values.field(name) if isinstance(values, Struct) else None
        if found is None:
            raise EvaluationError(f"they have no field '{field}'")
        assert isinstance(values, Struct)
        # As in events, and in Debezium, a null is the default of its field.
        schema, values = found, with_default(values.value(name), found) if values.values is not None else NULL
    return _typed(schema, values, rows, field)


def _typed(schema: ConnectSchema, values: Values, rows: int, field: Field) -> Column:
    if isinstance(values, Struct):
        absent = values.values is None
        return Column("other", pa.nulls(rows, pa.bool_()) if absent else pa.repeat(pa.scalar(True), rows))
    kind, scale = str(schema["type"]), decimal_scale(schema)
    text = texts(values, rows)
    if scale is not None:
        return Column("decimal", _decimals(text, scale, field))
    read = _READERS.get(kind)
    if read is None:
        return Column("other", pc.if_else(pc.is_valid(text), pa.scalar(True), pa.scalar(None, pa.bool_())))
    return Column(_KINDS[kind], read(text))


def _decimals(text: pa.StringArray, scale: int, field: Field) -> pa.Array:
    numbers = unscaled(text)
    if numbers.null_count != text.null_count:
        raise EvaluationError(f"the field '{field}' has a number of more than 38 digits")
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(text), numbers.buffers(), numbers.null_count)


def _floats(kind: pa.DataType) -> Callable[[pa.StringArray], pa.Array]:
    # What is no number is written as a text.
    return lambda text: pc.utf8_trim(text, '"').cast(kind)


_KINDS: dict[str, Kind] = {
    **{name: "bigint" if name == "int64" else "int" for name in BITS},
    "boolean": "boolean",
    "float": "float",
    "double": "double",
    "string": "string",
}
_READERS: dict[str, Callable[[pa.StringArray], pa.Array]] = {
    **dict.fromkeys(BITS, lambda text: text.cast(pa.int64())),
    "boolean": lambda text: pc.equal(text, "true"),
    "float": _floats(pa.float32()),
    "double": _floats(pa.float64()),
    "string": lambda text: text,
}
