"""Turns Connect schemas into Avro's, as ``AvroData`` of Confluent's converter does.

Sources: the specification of Apache Avro 1.11, and Confluent's documentation and sources of ``AvroData``. The text is
what Avro's Java library would write, since a registry gives the same schema the same id.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote_plus

import pyarrow as pa

from floodmark.codecs.floats import java_number
from floodmark.errors import ConfigError
from floodmark.events.connect_schema import ConnectSchema, Raw
from floodmark.json_data import Json
from floodmark.transforms.avro.values import FLOATS, fields_of, has_text_keys, part_of

NAMESPACE = "io.confluent.connect.avro"
_UNNAMED = "ConnectDefault"
_PAIR = "MapEntry"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISION = "connect.decimal.precision"
_DEFAULT_PRECISION = 64
_LOGICAL = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
_PRIMITIVE = {
    **dict.fromkeys(("int8", "int16", "int32"), "int"),
    "int64": "long",
    **{name: name for name in ("float", "double", "boolean", "string", "bytes")},
}
_SMALL = ("int8", "int16")
"""Types that Avro lacks, so that their name is a property."""
_KEPT_BY_URLS = "*-._"
_NOT_PLAIN = re.compile("[^A-Za-z0-9_]")
_CONTROL = re.compile(r"\\\\|\\u00[0-9a-f]{2}")
_PROPERTIES_OF_AVRO = "avro."


@dataclass(frozen=True)
class SchemaSettings:
    """How Avro schemas are made.

    Attributes:
        metadata: whether they keep what Avro has no place for, as properties ``connect.…``.
        scrub: whether names that Avro doesn't allow are replaced.
    """

    metadata: bool = True
    scrub: bool = False


def avro_schema(schema: ConnectSchema, settings: SchemaSettings) -> str:
    """Return the Avro schema of a Connect schema, as JSON text.

    Raises:
        ConfigError: a name isn't one of Avro's, or two different structures have the same.
    """
    return _text(_Writer(settings).any(schema, None))


def record_name(schema: ConnectSchema, settings: SchemaSettings) -> str | None:
    """Return the full name of the record that a Connect schema becomes; None if it becomes something else."""
    if schema["type"] != "struct" or schema.get("optional"):
        return None
    space, name = _split(schema, settings.scrub)
    return name if not space else f"{space}.{name}"


@dataclass
class _Writer:
    """Makes one schema.

    Attributes:
        settings: how.
        seen: the structures that have been defined, by their full names.
        unnamed: how many had no name.
    """

    settings: SchemaSettings
    seen: dict[str, ConnectSchema] = field(default_factory=dict)
    unnamed: int = 0

    def any(self, schema: ConnectSchema, space: str | None) -> Json:
        """Return the Avro schema of a Connect schema.

        Args:
            schema: what to describe.
            space: the namespace of the record around it.
        """
        if schema["type"] == "struct":
            record = self._record(schema, space)
            return ["null", record] if schema.get("optional") else record
        properties = self._properties(schema)
        base = self._base(schema, space)
        avro: Json = {**base, **properties} if properties or len(base) > 1 else base["type"]
        if not schema.get("optional"):
            return avro
        return ["null", avro] if schema.get("default") is None else [avro, "null"]

    def _base(self, schema: ConnectSchema, space: str | None) -> dict[str, Json]:
        kind = str(schema["type"])
        if kind == "array":
            return {"type": "array", "items": self.any(part_of(schema, "items"), space)}
        if kind == "map" and has_text_keys(schema):
            return {"type": "map", "values": self.any(part_of(schema, "values"), space)}
        if kind == "map":
            return {"type": "array", "items": self._pair(schema, space)}
        if schema.get("name") == _DECIMAL:
            scale, precision = _digits(schema)
            return {"type": "bytes", "scale": scale, "precision": precision}
        return {"type": _PRIMITIVE[kind]}

    def _pair(self, schema: ConnectSchema, space: str | None) -> Json:
        """Return the record of a map's key and value, for maps whose keys aren't texts."""
        named = "name" in schema
        own, name = self._named(schema) if named else (NAMESPACE, _PAIR)
        full = f"{own}.{name}" if own else name
        if full in self.seen:
            return name if own == space else full
        self.seen[full] = schema
        parts = [{**part_of(schema, f"{part}s"), "field": part} for part in ("key", "value")]
        fields: list[Json] = [self._field(one, own) for one in parts]
        internal: dict[str, Json] = {"connect.internal.type": _PAIR} if named else {}
        return {"type": "record", "name": name, **_space(own, space), "fields": fields, **internal}

    def _record(self, schema: ConnectSchema, space: str | None) -> Json:
        own, name = self._named(schema)
        full = f"{own}.{name}" if own else name
        before = self.seen.get(full)
        if before is not None:
            if _layout(before) != _layout(schema):
                raise ConfigError(
                    f"Two different structures have the name '{full}', which Avro doesn't allow.",
                    "Give one of them another name, by a transform or another topic.",
                )
            return name if own == space else full
        self.seen[full] = schema
        fields: list[Json] = []
        names: dict[str, str] = {}
        for one in fields_of(schema):
            made = self._field(one, own)
            shown, original = str(made["name"]), str(one["field"])
            if shown in names:
                raise ConfigError(
                    f"The fields '{names[shown]}' and '{original}' of '{full}' both get the name '{shown}'.",
                    "Rename one of them, or set field.name.adjustment.mode=avro_unicode.",
                )
            names[shown] = original
            fields.append(made)
        return {"type": "record", "name": name, **_space(own, space), "fields": fields, **self._properties(schema)}

    def _field(self, schema: ConnectSchema, space: str | None) -> dict[str, Json]:
        name = _scrubbed(str(schema["field"]), self.settings.scrub)
        if not _is_name(name):
            raise ConfigError(
                f"The name '{name}' of a field isn't one of Avro's, which have letters, digits and underscores, and "
                "don't begin with a digit.",
                "Set field.name.adjustment.mode=avro, or rename the column.",
            )
        avro = self.any(schema, space)
        if schema.get("default") is not None and not (schema["type"] == "struct" and schema.get("optional")):
            default = self._default(schema, _parsed(schema["default"]))
            if schema["type"] not in FLOATS:
                return {"name": name, "type": avro, "default": default}
            # A default that isn't a number is none in Avro, which has no way to write it.
            number = (
                {"default": _widened(default, FLOATS[str(schema["type"])])}
                if not isinstance(default, str) or isinstance(default, Raw)
                else {}
            )
            return {"name": name, "type": avro, **number}
        return {"name": name, "type": avro, **({"default": None} if schema.get("optional") else {})}

    def _properties(self, schema: ConnectSchema) -> dict[str, Json]:
        """Return what a schema has besides its type."""
        found: dict[str, Json] = {}
        parameters = cast(Mapping[str, str], schema.get("parameters") or {})
        if self.settings.metadata:
            if "doc" in schema:
                found["connect.doc"] = schema["doc"]
            if "version" in schema:
                found["connect.version"] = schema["version"]
            if parameters:
                found["connect.parameters"] = dict(parameters)
            if schema.get("default") is not None:
                found["connect.default"] = self._default(schema, _parsed(schema["default"]))
            if "name" in schema:
                found["connect.name"] = schema["name"]
            if schema["type"] in _SMALL:
                found["connect.type"] = schema["type"]
        name = str(schema.get("name"))
        if name in _LOGICAL:
            found["logicalType"] = _LOGICAL[name]
        elif name == _DECIMAL:
            scale, precision = _digits(schema)
            if 0 <= scale <= precision or _PRECISION in parameters:
                found["logicalType"] = "decimal"
        return {**found, **{key: text for key, text in parameters.items() if key.startswith(_PROPERTIES_OF_AVRO)}}

    def _default(self, schema: ConnectSchema, value: Json) -> Json:
        """Return a default in the form that Avro has for it.

        Args:
            schema: of the value.
            value: as in Connect's JSON.
        """
        kind = schema["type"]
        if kind == "bytes" and isinstance(value, str):
            return base64.b64decode(value).decode("latin-1")
        if kind == "array" and isinstance(value, list):
            return [self._default(part_of(schema, "items"), one) for one in value]
        if kind == "map" and isinstance(value, dict):
            return {key: self._default(part_of(schema, "values"), one) for key, one in value.items()}
        if kind == "struct" and isinstance(value, dict):
            of = {str(one["field"]): one for one in fields_of(schema)}
            return {_scrubbed(key, self.settings.scrub): self._default(of[key], one) for key, one in value.items()}
        return value

    def _named(self, schema: ConnectSchema) -> tuple[str | None, str]:
        """Return the namespace and the name of a record."""
        if "name" not in schema:
            self.unnamed += 1
            return NAMESPACE, f"{_UNNAMED}{self.unnamed if self.unnamed > 1 else ''}"
        own, name = _split(schema, self.settings.scrub)
        if not _is_name(name):
            raise ConfigError(
                f"The schema's name '{schema['name']}' isn't one of Avro's: its parts have letters, digits and "
                "underscores, and don't begin with a digit.",
                "Set schema.name.adjustment.mode=avro, or another topic.prefix.",
            )
        return own, name


def _split(schema: ConnectSchema, scrub: bool) -> tuple[str | None, str]:
    if "name" not in schema:
        return NAMESPACE, _UNNAMED
    parts = [_scrubbed(part, scrub) for part in str(schema["name"]).split(".")]
    return ".".join(parts[:-1]) or None, parts[-1]


def _space(own: str | None, around: str | None) -> dict[str, Json]:
    """Return the namespace of a record, if it isn't that of the one around it."""
    return {} if own == around else {"namespace": own or ""}


def _scrubbed(name: str, scrub: bool) -> str:
    """Return a name with ``_`` for what Avro doesn't allow, after it has been encoded as in a URL."""
    if not scrub or not name or (not _NOT_PLAIN.search(name) and not name[0].isdigit()):
        return name
    encoded = quote_plus(name, safe=_KEPT_BY_URLS)
    return _NOT_PLAIN.sub("_", f"x{encoded}" if encoded[0].isdigit() else encoded)


def _is_name(name: str) -> bool:
    """Return whether Avro's Java library takes a name: it allows the letters of all scripts."""
    kinds = [unicodedata.category(char) for char in name]
    return bool(name) and all(
        char == "_" or kind.startswith("L") or (kind == "Nd" and place > 0)
        for place, (char, kind) in enumerate(zip(name, kinds, strict=True))
    )


def _layout(schema: ConnectSchema) -> Json:
    """Return what of a structure decides on how its values are written."""
    kept = ("type", "items", "keys", "values", "optional", "field")
    found: dict[str, Json] = {}
    for name in kept:
        value = schema.get(name)
        if value is not None:
            found[name] = _layout(value) if isinstance(value, Mapping) else value
    if schema["type"] == "struct":
        found["fields"] = [_layout(one) for one in fields_of(schema)]
        # A structure may be null in one place and not in another, under different names.
        found.pop("optional", None)
        found.pop("field", None)
    else:
        found["default"] = schema.get("default") is not None
    return found


def _digits(schema: ConnectSchema) -> tuple[int, int]:
    """Return the scale and the precision of decimals."""
    parameters = cast(Mapping[str, str], schema.get("parameters") or {})
    return int(parameters.get("scale", 0)), int(parameters.get(_PRECISION, _DEFAULT_PRECISION))


def _parsed(default: Json) -> Json:
    """Return a default, which may be JSON text; numbers with a point stay as they are written."""
    parsed: Json = json.loads(default, parse_float=Raw) if isinstance(default, Raw) else default
    return parsed


def _widened(default: Json, kind: pa.DataType) -> Json:
    """Return the default of a floating-point field as Avro's library takes it: as a number of 64 bits."""
    if not isinstance(default, Raw):
        return default
    exact = pa.array([default], pa.string()).cast(kind).cast(pa.float64())
    return Raw(java_number(exact.cast(pa.string()), pa.float64())[0].as_py())


def _text(value: Json) -> str:
    """Return JSON as Jackson writes it into a string, in which characters beyond U+FFFF stay as they are."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(key)}:{_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROL.sub(lambda found: found[0] if found[0] == "\\\\" else f"\\u{found[0][2:].upper()}", text)
