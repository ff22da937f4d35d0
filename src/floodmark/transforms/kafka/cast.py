"""Casts fields, or keys and values as a whole, as ``org.apache.kafka.connect.transforms.Cast`` does."""

from __future__ import annotations

from typing import cast

from floodmark.config.transforms.kafka import CastOptions, CastType
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema, Raw
from floodmark.events.json_text import dumps
from floodmark.json_data import Json
from floodmark.transforms.kafka.casting import JSON_NAMES, cast_values
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records, is_null
from floodmark.transforms.structs import Member, Plain, Struct, Values


class Cast(OneSide):
    """The transform.

    Args:
        settings: its name, its type and its options.
    """

    option = "spec"

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._options = options = cast(CastOptions, settings.options)
        self._whole, self._types = options.whole, options.types

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        if part is None or is_null(part):
            return part
        if self._whole is not None:
            if isinstance(part, Struct):
                raise self._failure(records, f"their {self._side} is a structure, which can't be cast")
            values = self._cast(None, part.schema, part.values, self._whole, records)
            assert not isinstance(values, Struct)
            return Plain(self._schema(None, part.schema, self._whole, records, keeps_name=True), values)
        struct = self._with_defaults(self._struct(part, records))
        changed = struct.with_members([self._member(*member, records) for member in struct.members()])
        kept = {key: struct.schema[key] for key in ("optional", "default") if key in struct.schema}
        return changed.with_schema({**changed.schema, **kept})

    def _member(self, name: str, schema: ConnectSchema, values: Values, records: Records) -> Member:
        target = self._types.get(name)
        if target is None:
            return name, schema, values
        made = self._cast(name, schema, values, target, records)
        return name, self._schema(name, schema, target, records), made

    def _cast(
        self, name: str | None, schema: ConnectSchema, values: Values, target: CastType, records: Records
    ) -> Values:
        try:
            return cast_values(values, schema, target)
        except ValueError as exc:
            raise self._failure(records, f"{exc}" if name is None else f"in the field '{name}', {exc}") from None

    def _schema(
        self, name: str | None, schema: ConnectSchema, target: CastType, records: Records, keeps_name: bool = False
    ) -> ConnectSchema:
        """Return the schema of values that have been cast."""
        made: dict[str, Json] = {"type": JSON_NAMES.get(target, target), "optional": schema["optional"]}
        if keeps_name:
            made |= {key: schema[key] for key in ("name", "version", "doc", "parameters") if key in schema}
        if schema.get("default") is not None:
            default = schema["default"]
            text = str(default) if isinstance(default, Raw) else dumps(default)
            made["default"] = Raw(str(self._cast(name, schema, text, target, records)))
        return made
