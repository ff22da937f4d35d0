"""Puts a field in the place of the whole, as ``org.apache.kafka.connect.transforms.ExtractField`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from floodmark.config.transforms.kafka import ExtractFieldOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import closed, dumps
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records
from floodmark.transforms.structs import NULL, Plain, Struct, Values, Written, with_default


class ExtractField(OneSide):
    """The transform.

    Args:
        settings: its name, its type and its options.
    """

    option = "field"

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._options = options = cast(ExtractFieldOptions, settings.options)
        self._path = options.path

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        if part is None:
            return None
        if not isinstance(part, Struct):
            raise self._failure(records, f"their {self._side} is no structure any more")
        schema: ConnectSchema = part.schema
        absent = False
        values: Values = part
        for name in self._path:
            struct = self._opened(schema, values, records)
            absent = struct.values is None
            field = struct.field(name)
            if field is None:
                raise self._failure(records, f"they have no field '{self._options.field}'")
            schema, values = field, struct.value(name)
        if self._options.replace_null_with_default and not absent:
            values = with_default(values, schema)
        return values if isinstance(values, Struct) else Plain(schema, values)

    def _opened(self, schema: ConnectSchema, values: Values, records: Records) -> Struct:
        """Return values as structures."""
        if isinstance(values, Struct):
            return values
        if values == NULL:
            return Struct(schema, None)
        if schema["type"] != "struct":
            problem = f"a field before the last of '{self._options.field}' is of the type {schema['type']}"
            raise self._failure(records, problem)
        if isinstance(values, str):
            return Written(schema, [values], records.rows)
        fields = cast(Sequence[ConnectSchema], schema["fields"])
        nothing = "{" + ",".join(f"{dumps(str(field['field']))}:null" for field in fields) + "}"
        return Written(schema, [closed(values.filled(nothing))], records.rows)
