"""The Connect schemas of the schema change topic's events, which Debezium's connectors share."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.events.connect_schema import ConnectSchema, field_schema, struct
from floodmark.json_data import Json

_PACKAGE = "io.debezium.connector"
_STRING: Mapping[str, Json] = {"type": "string"}
_INT32: Mapping[str, Json] = {"type": "int32"}
_BOOLEAN: Mapping[str, Json] = {"type": "boolean"}


def key_schema(connector: str) -> dict[str, Json]:
    """Return the schema of the keys.

    Args:
        connector: Debezium's name of it.
    """
    return struct([field_schema(_STRING, False, "databaseName")], False, f"{_PACKAGE}.{connector}.SchemaChangeKey", 1)


def value_schema(connector: str, source: Mapping[str, Json]) -> dict[str, Json]:
    """Return the schema of the values.

    Args:
        connector: Debezium's name of it.
        source: the schema of its source block.
    """
    return struct(
        [
            field_schema(source, False, "source"),
            field_schema({"type": "int64"}, False, "ts_ms"),
            field_schema(_STRING, True, "databaseName"),
            field_schema(_STRING, True, "schemaName"),
            field_schema(_STRING, True, "ddl"),
            field_schema({"type": "array", "items": _change_schema()}, False, "tableChanges"),
        ],
        False,
        f"{_PACKAGE}.{connector}.SchemaChangeValue",
        1,
    )


def _change_schema() -> ConnectSchema:
    names: ConnectSchema = {"type": "array", "items": field_schema(_STRING, False)}
    column = struct(
        [
            field_schema(_STRING, False, "name"),
            field_schema(_INT32, False, "jdbcType"),
            field_schema(_INT32, True, "nativeType"),
            field_schema(_STRING, False, "typeName"),
            field_schema(_STRING, True, "typeExpression"),
            field_schema(_STRING, True, "charsetName"),
            field_schema(_INT32, True, "length"),
            field_schema(_INT32, True, "scale"),
            field_schema(_INT32, False, "position"),
            field_schema(_BOOLEAN, True, "optional"),
            field_schema(_BOOLEAN, True, "autoIncremented"),
            field_schema(_BOOLEAN, True, "generated"),
            field_schema(_STRING, True, "comment"),
            field_schema(_STRING, True, "defaultValueExpression"),
            field_schema(names, True, "enumValues"),
        ],
        False,
        f"{_PACKAGE}.schema.Column",
        1,
    )
    table = struct(
        [
            field_schema(_STRING, True, "defaultCharsetName"),
            field_schema(names, True, "primaryKeyColumnNames"),
            field_schema({"type": "array", "items": column}, False, "columns"),
            field_schema(_STRING, True, "comment"),
        ],
        True,
        f"{_PACKAGE}.schema.Table",
        1,
    )
    return struct(
        [field_schema(_STRING, False, "type"), field_schema(_STRING, False, "id"), field_schema(table, True, "table")],
        False,
        f"{_PACKAGE}.schema.Change",
        1,
    )
