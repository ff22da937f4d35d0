"""Adds to envelopes how the source describes their columns.

As ``io.debezium.transforms.ExtractSchemaToNewRecord`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from floodmark.config.transforms.debezium import ExtractSchemaToNewRecordOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema, field_schema, struct
from floodmark.events.json_text import dumps
from floodmark.events.names import adjusted_schema_name
from floodmark.json_data import Json
from floodmark.transforms.failures import failure, member
from floodmark.transforms.records import Records, is_envelope
from floodmark.transforms.structs import Struct, Values

_FIELD = "sourceSchema"
_SCHEMAS = "io.debezium.connector.source."
_PARAMETER = "__debezium.source.column."
_TEXT: ConnectSchema = {"type": "string"}
_NUMBER: ConnectSchema = {"type": "int32"}
_PROPAGATE = (
    "Set 'column.propagate.source.type' to '.*', or limit the transform to the topics of the tables that it names by "
    "a predicate."
)


class ExtractSchemaToNewRecord:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        mode = cast(ExtractSchemaToNewRecordOptions, settings.options).schema_name_adjustment_mode
        column = struct(
            [
                field_schema(_TEXT, False, "name"),
                field_schema(_TEXT, False, "typeName"),
                field_schema(_NUMBER, True, "length"),
                field_schema(_NUMBER, True, "scale"),
                field_schema(_TEXT, True, "comment"),
            ],
            False,
            adjusted_schema_name(_SCHEMAS + "schema.Column", mode),
            1,
        )
        columns: ConnectSchema = {"type": "array", "items": column}
        self._table = struct([field_schema(columns, False, "columns")], False, _SCHEMAS + "schema.Table", 1)
        fields = [field_schema(_TEXT, False, "id"), field_schema(self._table, False, "table")]
        self._schema = struct(fields, False, adjusted_schema_name(_SCHEMAS + "Schema", mode), 1)

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with the field ``sourceSchema``.

        Raises:
            SourceStateError: their schemas don't have what the source says of its columns.
        """
        value = records.value
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        before, after, source = (
            member(self._settings, "type", records, value, name) for name in ("before", "after", "source")
        )
        if before.values is None and after.values is None:
            return (records,)
        columns = dumps([self._column(field, records) for field in after.fields])
        values: list[Values] = [source.value("table"), Struct(self._table, [columns])]
        added = Struct(self._schema, values)
        fields: list[Json] = [dict(field) for field in value.fields]
        schema = {**value.schema, "fields": [*fields, field_schema(self._schema, False, _FIELD)]}
        return (replace(records, value=Struct(schema, [*(one for _, _, one in value.members()), added])),)

    def _column(self, field: ConnectSchema, records: Records) -> Mapping[str, Json]:
        parameters = cast(Mapping[str, str], field.get("parameters", {}))
        found = {name: parameters.get(_PARAMETER + name) for name in ("name", "type", "length", "scale", "comment")}
        if found["name"] is None or found["type"] is None:
            problem = f"the schema of the column '{field['field']}' doesn't have its name and type in the source"
            raise failure(self._settings, "type", records, problem, _PROPAGATE)
        length, scale = (None if found[name] is None else int(str(found[name])) for name in ("length", "scale"))
        return {
            "name": found["name"],
            "typeName": found["type"],
            "length": length,
            "scale": scale,
            "comment": found["comment"],
        }
