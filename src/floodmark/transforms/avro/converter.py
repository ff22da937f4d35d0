"""Writes the keys or the values of records in Confluent's wire format: a zero, the schema's id, and Avro.

Source: Confluent's documentation, "Wire format". As with ``AvroConverter``, null stays null, and a schema that is
nothing but bytes has no length before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from floodmark.capture.retry import RetryPolicy
from floodmark.codecs.base64_text import decode_base64
from floodmark.config.avro import AvroOptions
from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, Text
from floodmark.schema_registry.client import Registry, registry_of
from floodmark.transforms.avro.binary import Cells, joined
from floodmark.transforms.avro.encoding import encode
from floodmark.transforms.avro.schemas import SchemaSettings, avro_schema, record_name
from floodmark.transforms.avro.values import typed
from floodmark.transforms.records import Part, Records, is_null, nulls
from floodmark.transforms.structs import Plain

_MAGIC = b"\0"
_KEPT = 64
"""How many schemas are remembered with their text; those of a table's rows are the same objects."""


def avro_converters(options: CommonOptions) -> dict[str, AvroConverter]:
    """Return the converters of a source's options, by the column that they write: ``key``, ``value``."""
    policy = RetryPolicy.from_options(options)
    return {
        side: AvroConverter(given, side, registry_of(given, policy))
        for side, given in (("key", options.key_avro), ("value", options.value_avro))
        if given is not None
    }


class AvroConverter:
    """Writes one side of records.

    Args:
        options: of the converter.
        side: ``key`` or ``value``.
        registry: gives ids to schemas.
    """

    def __init__(self, options: AvroOptions, side: str, registry: Registry) -> None:
        self._settings = SchemaSettings(options.metadata, options.scrub)
        self._defaults = not options.ignores_defaults
        self._registry = registry
        self._side = side
        self._strategy = (options.key_strategy if side == "key" else options.value_strategy).rpartition(".")[2]
        self._schemas: dict[int, tuple[ConnectSchema, ConnectSchema, str]] = {}

    def column(self, part: Part | None, records: Records) -> pa.BinaryArray:
        """Return the keys or the values, shape (rows,); null where they are null.

        Args:
            part: of the records.
            records: whose they are.

        Raises:
            ConfigError: a name isn't one of Avro's, or a schema has no name though its subject needs one.
            ConnectError: the registry can't be reached.
            DecodeError: a value isn't what its schema says.
            RegistryError: the registry refuses the schema, or lacks it.
        """
        rows = records.rows
        if part is None or is_null(part) or not rows:
            return pa.nulls(rows, pa.binary())
        schema, text = self._schema(part)
        missing = nulls(part, rows)
        if missing.all():
            return pa.nulls(rows, pa.binary())
        chosen = part.take(np.flatnonzero(~missing)) if missing.any() else part
        topic: Text = records.topic
        if missing.any() and not isinstance(topic, str):
            topic = topic.filter(pa.array(~missing))
        count = rows - int(missing.sum())
        written = joined([self._start(schema, text, topic), *self._content(chosen, schema, count)], count)
        if not missing.any():
            return written
        places = pa.array(np.cumsum(~missing) - 1, mask=missing)
        return written.take(places)

    def _schema(self, part: Part) -> tuple[ConnectSchema, str]:
        """Return the Connect schema of keys or values, not as a field, and its Avro schema."""
        known = self._schemas.get(id(part.schema))
        if known is None:
            schema: ConnectSchema = {name: member for name, member in part.schema.items() if name != "field"}
            if len(self._schemas) >= _KEPT:
                self._schemas.clear()
            # The object is kept, so that no other one gets its number.
            known = self._schemas[id(part.schema)] = part.schema, schema, avro_schema(schema, self._settings)
        return known[1:]

    def _content(self, part: Part, schema: ConnectSchema, rows: int) -> Sequence[Cells]:
        if not isinstance(part, Plain):
            return encode(part, schema, rows, self._defaults)
        if schema["type"] != "bytes" or schema.get("optional"):
            return encode(part.values, schema, rows, self._defaults)
        text = part.values if isinstance(part.values, Fragment) else Fragment(pa.repeat(pa.scalar(part.values), rows))
        return [decode_base64(typed(text, schema))]

    def _start(self, schema: ConnectSchema, text: str, topic: Text) -> Cells:
        """Return what comes before the values, which is the same for those of one topic."""
        subject = self._subject(schema)
        if isinstance(topic, str):
            return self._frame(subject(topic), text)
        coded = topic.dictionary_encode()
        frames = [self._frame(subject(one), text) for one in coded.dictionary.to_pylist()]
        return pa.array(frames, pa.binary()).take(coded.indices)

    def _frame(self, subject: str, text: str) -> bytes:
        return _MAGIC + self._registry.id_of(subject, text).to_bytes(4, "big")

    def _subject(self, schema: ConnectSchema) -> Callable[[str], str]:
        """Return what makes a subject of a topic."""
        if self._strategy == "TopicNameStrategy":
            return lambda topic: f"{topic}-{self._side}"
        name = record_name(schema, self._settings)
        if name is None:
            raise ConfigError(
                f"A {self._side} isn't a structure, so it has no name that {self._strategy} could make a subject of.",
                f"Set {self._side}.converter.{self._side}.subject.name.strategy to TopicNameStrategy.",
            )
        return (lambda _: name) if self._strategy == "RecordNameStrategy" else (lambda topic: f"{topic}-{name}")
