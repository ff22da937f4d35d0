"""Values of events in the form that the Avro converter takes, and what fastavro, which knows nothing of it, reads."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from floodmark.config.avro import AVRO
from floodmark.events.connect_schema import ConnectSchema, Raw, schema_text
from floodmark.events.json_text import Fragment
from floodmark.transforms.avro.binary import joined
from floodmark.transforms.avro.encoding import encode
from floodmark.transforms.structs import Struct, Values

_HALF = re.compile("[\ud800-\udfff]")
_IN_COLUMNS = (".Value", ".Source", ".block")
"""How the names end of fields that are columns of fields, not columns of JSON."""


def read_event(text: str) -> tuple[ConnectSchema, Any]:
    """Return the schema and the payload of a key or a value, with the numbers as they are written."""
    event = json.loads(text, parse_float=Raw)
    return _with_raw_defaults(event["schema"]), event["payload"]


def columns(schema: ConnectSchema, rows: Sequence[Any], whole: bool = True) -> Values:
    """Return payloads with one schema as transforms have them.

    Args:
        schema: theirs.
        rows: the payloads.
        whole: whether they are keys or values, not fields of such.
    """
    if all(row is None for row in rows):
        return "null"
    in_columns = whole or str(schema.get("name", "")).endswith(_IN_COLUMNS)
    if schema["type"] == "struct" and in_columns and None not in rows:
        fields: Any = schema["fields"]
        return Struct(schema, [columns(field, [row[field["field"]] for row in rows], False) for field in fields])
    texts = [None if row is None else _shown(row) for row in rows]
    return Fragment(pa.array(texts, pa.string()))


def encoded(schema: ConnectSchema, rows: Sequence[Any], defaults: bool = True) -> list[bytes]:
    """Return payloads in Avro."""
    cells: list[bytes] = joined(encode(columns(schema, rows), schema, len(rows), defaults), len(rows)).to_pylist()
    return cells


def read(avro: str, content: bytes) -> Any:
    """Return what fastavro reads, as Connect's JSON would have it; all bytes must be used."""
    stream = io.BytesIO(content)
    parsed = json.loads(avro, object_hook=_without_logical)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(parsed), None)
    assert stream.read() == b""
    return plain(found)


def _without_logical(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}


def avro_options(url: str, *sides: str, **more: str) -> dict[str, str]:
    """Return the options of converters that write Avro.

    Args:
        url: of their registry.
        sides: which of ``key`` and ``value`` do; none: both.
        more: of the converters, with ``_`` for ``.``.
    """
    options: dict[str, str] = {}
    for side in sides or ("key", "value"):
        options[f"{side}.converter"] = AVRO
        options[f"{side}.converter.schema.registry.url"] = url
        options |= {f"{side}.converter.{name.replace('_', '.')}": value for name, value in more.items()}
    return options


class Consumer:
    """Reads keys and values as Confluent's consumers do: it knows only the registry."""

    def __init__(self, url: str) -> None:
        self._read = AvroDeserializer(SchemaRegistryClient({"url": url}))

    def __call__(self, row: Mapping[str, Any], side: str) -> Any:
        field = MessageField.KEY if side == "key" else MessageField.VALUE
        return self._read(row[side], SerializationContext(row["topic"], field))


def plain(value: Any) -> Any:
    """Return what was read as Connect's JSON would have it."""
    if isinstance(value, Decimal):
        digits = int(value.scaleb(-int(value.as_tuple().exponent)))
        value = digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04X}", schema_text(value) if value is not None else "null")


def _with_raw_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: Raw(schema_text(one)) if name == "default" else _with_raw_defaults(one) for name, one in value.items()
        }
    return [_with_raw_defaults(one) for one in value] if isinstance(value, list) else value
