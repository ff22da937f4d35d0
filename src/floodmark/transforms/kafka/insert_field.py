"""Adds fields to keys or values, as ``org.apache.kafka.connect.transforms.InsertField`` does."""

from __future__ import annotations

from typing import cast

from floodmark.config.transforms.kafka import InsertedField, InsertFieldOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import dumps, string
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records, is_null
from floodmark.transforms.structs import NULL, Member, Values

_TEXT: ConnectSchema = {"type": "string"}
_NUMBER: ConnectSchema = {"type": "int32"}
_TIME: ConnectSchema = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1}


class InsertField(OneSide):
    """The transform.

    Args:
        settings: its name, its type and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._options = cast(InsertFieldOptions, settings.options)

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        if is_null(part):
            return part
        struct = self._with_defaults(self._struct(part, records))
        try:
            return struct.with_fields(self._added(records))
        except ValueError as exc:
            problem = f"it adds the field '{exc}', and their {self._side} has one of that name"
            raise self._failure(records, problem, self._option_of(str(exc))) from None

    def _option_of(self, name: str) -> str:
        """Return the option that adds a field."""
        named = {"topic.field": self._options.topic_field, "static.field": self._options.static_field}
        named |= {"partition.field": self._options.partition_field, "timestamp.field": self._options.timestamp_field}
        return next(option for option, text in named.items() if text and InsertedField.parse(text).name == name)

    def _added(self, records: Records) -> list[Member]:
        options, topic = self._options, records.topic
        topics: Values = dumps(topic) if isinstance(topic, str) else string(topic)
        every: tuple[tuple[str, ConnectSchema, Values], ...] = (
            (options.topic_field, _TEXT, topics),
            (options.partition_field, _NUMBER, NULL),
            (options.timestamp_field, _TIME, NULL),
            (options.static_field, _TEXT, dumps(options.static_value)),
        )
        added: list[Member] = []
        for text, schema, values in every:
            if text:
                field = InsertedField.parse(text)
                added.append((field.name, {**schema, "optional": field.optional}, values))
        return added
