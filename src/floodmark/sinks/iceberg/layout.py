"""The columns of an Iceberg table as its data files have them: each is known by a number, not by its name.

Format: the Iceberg table specification, sections "Schemas and Data Types", "Column Projection" and "Appendix C: JSON
Serialization"; "Appendix A" for Parquet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from floodmark.errors import TargetUnfitError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.vectors import damaged

FIELD_ID = b"PARQUET:field_id"
"""The key under which Arrow keeps a column's number."""
_SIMPLE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_NARROW = (pa.int8(), pa.int16())
"""Types that Iceberg has no equal of: it stores them as 32 bits."""
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Layout:
    """The columns of a table at one time.

    Attributes:
        identity: tells layouts apart.
        columns: names, types and numbers; columns of types that the sources' tables don't have are left out.
        required: the names of columns that are left out and can't be null.
    """

    identity: str
    columns: pa.Schema
    required: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str, identity: str) -> Layout:
        """Create a layout from a schema.

        Args:
            text: the schema as the table's metadata has it.

        Raises:
            TargetDamagedError: it is none.
            TargetUnfitError: rows that were written before a column have a value there.
        """
        columns, required = [], []
        for field in _object(text).members("fields"):
            if field.value("initial-default") is not None:
                raise TargetUnfitError(
                    f"The column '{field.text('name')}' was added to the Iceberg table with a default for the rows "
                    "that it had, which Floodmark's own engine doesn't read.",
                    "Set the mirror's option engine=spark.",
                )
            kind = _type(field.value("type"))
            if kind is not None:
                columns.append(_numbered(field, "id", field.text("name"), kind, "required"))
            elif field.value("required"):
                required.append(field.text("name"))
        return cls(identity, pa.schema(columns), tuple(required))

    def named(self, renamed: Mapping[str, str]) -> dict[str, pa.Field]:
        """Return the columns by the names that they have in a mirror's rows.

        Args:
            renamed: names of the table's columns, by those.
        """
        staged = {name: own for own, name in renamed.items()}
        return {staged.get(one.name, one.name): one for one in self.columns}


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column has in an Iceberg table."""
    if kind in _NARROW:
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(kind.field(0).with_type(stored(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(stored(one.type)) for one in kind])
    return kind


def name_of(kind: pa.DataType) -> str:
    """Return what Iceberg calls the type that a column has in a table."""
    kind = stored(kind)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_list(kind):
        return f"list<{name_of(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{name_of(kind.key_type)}, {name_of(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{one.name}: {name_of(one.type)}' for one in kind)}>"
    return next((name for name, simple in _SIMPLE.items() if simple == kind), str(kind))


def number_of(field: pa.Field) -> bytes | None:
    """Return the number that a column has; None: it has none."""
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found


def _numbered(data: JsonObject, number: str, name: str, kind: pa.DataType, required: str) -> pa.Field:
    nullable = not data.value(required)
    return pa.field(name, kind, nullable, metadata={FIELD_ID: str(data.integer(number)).encode()})


def _type(data: Json) -> pa.DataType | None:
    """Return the type of a column in Arrow; None: no source has such."""
    if isinstance(data, str):
        digits = _DECIMAL.fullmatch(data)
        return pa.decimal128(int(digits[1]), int(digits[2])) if digits else _SIMPLE.get(data)
    given = _object(data)
    if given.text("type") == "list":
        element = _type(given.value("element"))
        return element and pa.list_(_numbered(given, "element-id", "element", element, "element-required"))
    if given.text("type") == "map":
        key, value = _type(given.value("key")), _type(given.value("value"))
        if key is None or value is None:
            return None
        named = pa.field("key", key, False, metadata={FIELD_ID: str(given.integer("key-id")).encode()})
        return pa.map_(named, _numbered(given, "value-id", "value", value, "value-required"))
    fields = [(one, _type(one.value("type"))) for one in given.members("fields")]
    if any(kind is None for _, kind in fields):
        return None
    return pa.struct([_numbered(one, "id", one.text("name"), kind, "required") for one, kind in fields])


def _object(data: Json) -> JsonObject:
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except ValueError:
            data = None
    return JsonObject(data, "The schema of an Iceberg table", damaged)
