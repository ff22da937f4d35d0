"""The options that say how keys, values and headers are written: Kafka Connect's converters, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import SecretStr, model_validator

from floodmark.config.avro import AVRO, AvroOptions
from floodmark.config.debezium import find
from floodmark.config.model import Family, Options, SecretFamily, Words, option
from floodmark.errors import ConfigError

CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"
_SCHEMAS = ("key.converter.schemas.enable", "value.converter.schemas.enable", "schemas.enable")
_SOURCES = ("value", "id:generate", "type:generate", "traceparent:header", "dataSchemaName:generate")
_SOURCE = "value.converter.metadata.source"
_OF_CLOUD_EVENTS = (
    "value.converter.serializer.type",
    "value.converter.data.serializer.type",
    "value.converter.json.schemas.enable",
    "value.converter.json.replace.null.with.default",
    "value.converter.extension.attributes.enable",
    _SOURCE,
)
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SIDES = ("key", "value")
_FAMILIES = {f"{side}.converter": f"{side}.converter.<option>" for side in _SIDES}
_REPLACES_NULL = "value.converter.replace.null.with.default"
_FOR_CLOUD_EVENTS = f"With `value.converter={CLOUD_EVENTS}`:"


class ConverterOptions(Options):
    """Options of converters."""

    schemas_enable: bool = option(
        "schemas.enable",
        False,
        "Whether keys and values carry their Connect schema.",
        "key.converter.schemas.enable, value.converter.schemas.enable",
    )
    key_converter_schemas_enable: bool | None = option(
        "key.converter.schemas.enable",
        None,
        "Debezium's way to set `schemas.enable`; must equal `value.converter.schemas.enable`.",
        "same; true by default",
    )
    value_converter_schemas_enable: bool | None = option(
        "value.converter.schemas.enable",
        None,
        "Debezium's way to set `schemas.enable`; must equal `key.converter.schemas.enable`.",
        "same; true by default",
    )
    key_converter: Literal["org.apache.kafka.connect.json.JsonConverter", "io.confluent.connect.avro.AvroConverter"] = (
        option(
            "key.converter",
            "org.apache.kafka.connect.json.JsonConverter",
            f"How keys are written: as JSON, or in [Avro](avro.md) (`{AVRO}`). Only with `format=events`.",
        )
    )
    value_converter: Literal[
        "org.apache.kafka.connect.json.JsonConverter",
        "io.debezium.converters.CloudEventsConverter",
        "io.confluent.connect.avro.AvroConverter",
    ] = option(
        "value.converter",
        "org.apache.kafka.connect.json.JsonConverter",
        f"How values are written: as JSON, as [CloudEvents](cloud-events.md) (`{CLOUD_EVENTS}`), or in "
        f"[Avro](avro.md) (`{AVRO}`). Only with `format=events`.",
    )
    key_converter_options: SecretFamily = option(
        _FAMILIES["key.converter"],
        {},
        "An [option of the Avro converter](avro.md#options) of keys, such as `key.converter.schema.registry.url`.",
    )
    value_converter_options: SecretFamily = option(
        _FAMILIES["value.converter"],
        {},
        "An [option of the Avro converter](avro.md#options) of values, such as `value.converter.schema.registry.url`.",
    )
    value_converter_replace_null_with_default: bool = option(
        "value.converter.replace.null.with.default",
        True,
        "Whether a null in a column with a default is written as the default.",
    )
    cloud_events_serializer: Literal["json"] = option(
        "value.converter.serializer.type", "json", f"{_FOR_CLOUD_EVENTS} the format; only JSON."
    )
    cloud_events_data_serializer: Literal["json"] = option(
        "value.converter.data.serializer.type", "json", f"{_FOR_CLOUD_EVENTS} the format of the data; only JSON."
    )
    cloud_events_schemas: bool = option(
        "value.converter.json.schemas.enable", True, f"{_FOR_CLOUD_EVENTS} whether the data carry their Connect schema."
    )
    cloud_events_defaults: bool = option(
        "value.converter.json.replace.null.with.default",
        True,
        f"{_FOR_CLOUD_EVENTS} whether a null in a column with a default is written as the default.",
    )
    cloud_events_extensions: bool = option(
        "value.converter.extension.attributes.enable",
        True,
        f"{_FOR_CLOUD_EVENTS} whether the operation, the source block and the transaction block are attributes.",
    )
    cloud_events_source: Words = option(
        _SOURCE,
        _SOURCES,
        f"{_FOR_CLOUD_EVENTS} where attributes come from; only from the value (`value`), and generated.",
    )
    header_converter: Literal[
        "org.apache.kafka.connect.storage.SimpleHeaderConverter", "org.apache.kafka.connect.json.JsonConverter"
    ] = option(
        "header.converter",
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "How headers are written: texts and numbers as they are, or as JSON.",
    )
    header_schemas: bool = option(
        "header.converter.schemas.enable",
        False,
        "With Kafka Connect's JsonConverter as `header.converter`: whether headers carry their Connect schema.",
        "same; true by default",
    )

    @classmethod
    def _family(cls, key: str, options: Mapping[str, str]) -> tuple[str, str]:
        found = super()._family(key, options)
        if found[0] not in _FAMILIES.values():
            return found
        # Other converters' options have names of their own, or are Debezium's.
        own = key.lower().split(".converter.")[0] + ".converter"
        given = next((value for name, value in options.items() if name.lower() == own), AVRO if not options else "")
        return found if given == AVRO and find(cls.accepted, key) is None else ("", "")

    @model_validator(mode="before")
    @classmethod
    def _take_schemas_from_converters(cls, given: dict[str, str | Family]) -> dict[str, str | Family]:
        values = {name: str(given[name]).lower() for name in _SCHEMAS if name in given}
        in_avro = [side for side in _SIDES if given.get(f"{side}.converter") == AVRO]
        if in_avro:
            # Avro has no schemas in its values, so this is only about the others.
            values = {name: text for name, text in values.items() if name.partition(".")[0] not in in_avro}
            chosen = {} if len(in_avro) == len(_SIDES) else values
            return {**given, "schemas.enable": next(iter(chosen.values()), "false")}
        if not set(values) & set(_SCHEMAS[:2]):
            return given
        if given.get("value.converter") == CLOUD_EVENTS:
            # Its values have a schema of their own option.
            values.pop(_SCHEMAS[1], None)
            return {**given, "schemas.enable": next(iter(values.values()))} if values else given
        if len(set(values.values())) > 1 or not (set(_SCHEMAS[:2]) <= set(values) or _SCHEMAS[2] in values):
            raise ValueError(
                "Options 'key.converter.schemas.enable' and 'value.converter.schemas.enable' must be given together "
                "and be equal: keys and values both carry their schema, or neither. Set schemas.enable instead."
            )
        return {**given, "schemas.enable": next(iter(values.values()))}

    @model_validator(mode="after")
    def _check_cloud_events(self) -> Self:
        given = {type(self).model_fields[name].alias for name in self.model_fields_set}
        for name in _OF_CLOUD_EVENTS if not self.makes_cloud_events else ():
            if name in given:
                raise ValueError(
                    f"Option '{name}' has no effect with 'value.converter={self.value_converter}': set that to "
                    f"{CLOUD_EVENTS}, or leave the option out."
                )
        for word in self.cloud_events_source:
            if word not in (*_SOURCES, "traceparent:generate"):
                raise ValueError(
                    f"Option '{_SOURCE}' has the part '{word}', which is not allowed: attributes come from the value, "
                    f"as with {','.join(_SOURCES)}."
                )
        return self

    @model_validator(mode="after")
    def _check_headers(self) -> Self:
        if self.header_schemas and not self.writes_json_headers:
            raise ValueError(
                "Option 'header.converter.schemas.enable' has no effect with "
                f"'header.converter={self.header_converter}': set that to {_JSON}, or leave the option out."
            )
        return self

    @model_validator(mode="after")
    def _check_avro(self) -> Self:
        self.key_avro  # noqa: B018
        if self.value_avro is not None and "value_converter_replace_null_with_default" in self.model_fields_set:
            raise ValueError(
                f"Option '{_REPLACES_NULL}' has no effect with 'value.converter={AVRO}': set "
                "value.converter.ignore.default.for.nullables."
            )
        return self

    @property
    def key_avro(self) -> AvroOptions | None:
        """How keys are written in Avro; None: they aren't."""
        return _parsed("key.converter", self.key_converter_options) if self.key_converter == AVRO else None

    @property
    def value_avro(self) -> AvroOptions | None:
        """How values are written in Avro; None: they aren't."""
        return _parsed("value.converter", self.value_converter_options) if self.value_converter == AVRO else None

    @property
    def binary_columns(self) -> tuple[str, ...]:
        """The columns of events, of ``key`` and ``value``, that hold bytes instead of text."""
        return tuple(
            name for name, kind in (("key", self.key_converter), ("value", self.value_converter)) if kind == AVRO
        )

    @property
    def writes_json_headers(self) -> bool:
        """Whether headers are JSON."""
        return self.header_converter == _JSON

    @property
    def makes_cloud_events(self) -> bool:
        """Whether values are written as CloudEvents."""
        return self.value_converter == CLOUD_EVENTS

    @property
    def writes_schemas(self) -> bool:
        """Whether anything of an event tells its table's structure."""
        of_cloud_events = self.makes_cloud_events and self.cloud_events_schemas
        return self.schemas_enable or of_cloud_events or bool(self.binary_columns)


def _parsed(place: str, given: Mapping[str, SecretStr]) -> AvroOptions:
    try:
        return AvroOptions.parse({name.lower(): value.get_secret_value() for name, value in given.items()})
    except ConfigError as exc:
        raise ConfigError(exc.what.replace("ption '", f"ption '{place}.", 1), exc.cure) from None
