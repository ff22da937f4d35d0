"""Brings tables together in one topic, as ``io.debezium.transforms.ByLogicalTableRouter`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from floodmark.config.transforms.debezium import ByLogicalTableRouterOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema, field_schema
from floodmark.events.json_text import dumps
from floodmark.events.names import adjusted_schema_name
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.transforms.failures import failure, member
from floodmark.transforms.records import Part, Records, by_topic, is_envelope
from floodmark.transforms.structs import Struct

_TEXT: ConnectSchema = {"type": "string", "optional": False}

log = get_logger(__name__)


class ByLogicalTableRouter:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = options = cast(ByLogicalTableRouterOptions, settings.options)
        self._renaming, self._key_renaming = options.renaming, options.key_renaming

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with their new topics, and keys that tell which tables they are of.

        Raises:
            SourceStateError: a key has a field of the name that is added, or has no fields.
        """
        return [self._routed(part, topic) for topic, part in by_topic(records)]

    def _routed(self, records: Records, former: str) -> Records:
        topic = self._renaming(former)
        if topic is None:
            return records
        if not topic:
            log.warning("a_topic_would_have_no_name", transform=self._settings.name, topic=former, effect="it stays")
            return records
        value = records.value
        if is_envelope(value):
            assert isinstance(value, Struct)
            value = self._envelopes(value, topic, records)
        return replace(records, topic=topic, key=self._keys(records, former, topic), value=value)

    def _keys(self, records: Records, former: str, topic: str) -> Part | None:
        key = records.key
        if key is None:
            return None
        if not isinstance(key, Struct):
            raise failure(self._settings, "topic.regex", records, "their keys aren't structures any more")
        name = self._options.key_field_name
        added = [(name, _TEXT, dumps(self._identifier(former)))] if self._options.key_enforce_uniqueness else []
        try:
            extended = key.with_fields(added)
        except ValueError:
            raise failure(
                self._settings,
                "key.field.name",
                records,
                f"it adds the field '{name}' to keys, and they have one of that name",
                "Choose another name, or set 'key.enforce.uniqueness' to false if all tables' keys differ.",
            ) from None
        return extended.with_schema(self._named(extended.schema, f"{topic}.Key"))

    def _identifier(self, former: str) -> str:
        renamed = None if self._key_renaming is None else self._key_renaming(former)
        return former if renamed is None else renamed

    def _envelopes(self, value: Struct, topic: str, records: Records) -> Struct:
        before = member(self._settings, "topic.regex", records, value, "before")
        row = self._named(before.schema, f"{topic}.Value")
        fields: list[Json] = []
        members = []
        for name, schema, inner in value.members():
            if name in ("before", "after"):
                fields.append(field_schema(row, bool(row["optional"]), name))
                members.append(inner.with_schema(row) if isinstance(inner, Struct) else inner)
            else:
                fields.append(dict(schema))
                members.append(inner)
        return Struct({**self._named(value.schema, f"{topic}.Envelope"), "fields": fields}, members)

    def _named(self, schema: ConnectSchema, name: str) -> ConnectSchema:
        return {**schema, "name": adjusted_schema_name(name, self._options.schema_name_adjustment_mode)}
