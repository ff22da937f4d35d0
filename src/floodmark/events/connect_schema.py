"""Connect schemas as Kafka's JsonConverter writes them (``schemas.enable=true``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from floodmark.events.json_text import dumps
from floodmark.json_data import Json

ORDER = (
    "type",
    "items",
    "keys",
    "values",
    "fields",
    "optional",
    "name",
    "version",
    "doc",
    "parameters",
    "default",
    "field",
)


ConnectSchema: TypeAlias = Mapping[str, Json]
"""A schema; the order of its members is that of Debezium's JSON."""


class Raw(str):
    """JSON text that a schema includes as it is: a default in the form that values have."""


OPTIONAL_INT64: ConnectSchema = {"type": "int64", "optional": True}

TRANSACTION_BLOCK: ConnectSchema = {
    "type": "struct",
    "fields": [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ],
    "optional": True,
    "name": "event.block",
    "version": 1,
}

SNAPSHOT_MARKER: ConnectSchema = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
    "default": "false",
}


def field_schema(schema: ConnectSchema, optional: bool, name: str | None = None) -> dict[str, Json]:
    """Return a type's schema as that of a field, its members in the converter's order."""
    members = {**schema, "optional": optional}
    if name is not None:
        members["field"] = name
    return {key: members[key] for key in ORDER if key in members}


def struct(fields: Sequence[ConnectSchema], optional: bool, name: str, version: int | None = None) -> dict[str, Json]:
    """Return the schema of a structure."""
    schema: dict[str, Json] = {"type": "struct", "fields": list(fields), "optional": optional, "name": name}
    if version is not None:
        schema["version"] = version
    return schema


def envelope(topic: str, row: Sequence[ConnectSchema], source: ConnectSchema) -> dict[str, Json]:
    """Return the schema of a change event.

    Args:
        topic: the event's topic, which names the schemas.
        row: the fields of a row.
        source: the schema of the source block.
    """
    value = struct(row, True, f"{topic}.Value")
    return struct(
        [
            field_schema(value, True, "before"),
            field_schema(value, True, "after"),
            field_schema(source, False, "source"),
            field_schema(TRANSACTION_BLOCK, True, "transaction"),
            field_schema({"type": "string"}, False, "op"),
            field_schema(OPTIONAL_INT64, True, "ts_ms"),
            field_schema(OPTIONAL_INT64, True, "ts_us"),
            field_schema(OPTIONAL_INT64, True, "ts_ns"),
        ],
        False,
        f"{topic}.Envelope",
        2,
    )


def source_struct(fields: Sequence[ConnectSchema], name: str) -> dict[str, Json]:
    """Return the schema of a source block: the fields of all connectors, then the connector's own.

    Args:
        fields: the connector's own.
        name: the schema's name.
    """
    text: ConnectSchema = {"type": "string"}
    number: ConnectSchema = {"type": "int64"}
    shared = [
        field_schema(text, False, "version"),
        field_schema(text, False, "connector"),
        field_schema(text, False, "name"),
        field_schema(number, False, "ts_ms"),
        field_schema(SNAPSHOT_MARKER, True, "snapshot"),
        field_schema(text, False, "db"),
        field_schema(text, True, "sequence"),
        field_schema(number, True, "ts_us"),
        field_schema(number, True, "ts_ns"),
    ]
    return struct([*shared, *fields], False, name, 1)


def schema_text(schema: Json) -> str:
    """Return a schema as compact JSON text."""
    if isinstance(schema, Raw):
        return str(schema)
    if isinstance(schema, Mapping):
        return "{" + ",".join(f"{dumps(key)}:{schema_text(value)}" for key, value in schema.items()) + "}"
    if isinstance(schema, list):
        return "[" + ",".join(map(schema_text, schema)) + "]"
    return dumps(schema)


def schema_start(schema: Json) -> str:
    """Return the text before a payload that carries its schema; ``}`` follows the payload."""
    return f'{{"schema":{schema_text(schema)},"payload":'


def carrying_schema(text: str, schema: Json, wanted: bool) -> str:
    """Return JSON text, with its schema if ``wanted``."""
    return f"{schema_start(schema)}{text}}}" if wanted else text
