"""Wraps keys or values in a structure, as ``org.apache.kafka.connect.transforms.HoistField`` does."""

from __future__ import annotations

from typing import cast

from floodmark.config.transforms.kafka import HoistFieldOptions
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records
from floodmark.transforms.structs import Struct


class HoistField(OneSide):
    """The transform."""

    option = "field"

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        if part is None:
            raise self._failure(records, f"they have no {self._side}, so that the structure would have no schema")
        name = cast(HoistFieldOptions, self._settings.options).field
        values = part if isinstance(part, Struct) else part.values
        return Struct({"type": "struct", "fields": []}, []).with_members([(name, part.schema, values)])
