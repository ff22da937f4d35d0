"""Leaves out and renames fields, as ``org.apache.kafka.connect.transforms.ReplaceField`` does."""

from __future__ import annotations

from typing import cast

from floodmark.config.transforms.kafka import ReplaceFieldOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records, is_null


class ReplaceField(OneSide):
    """The transform.

    Args:
        settings: its name, its type and its options.
    """

    option = "renames"

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._options = options = cast(ReplaceFieldOptions, settings.options)
        self._new_names = options.new_names

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        if is_null(part):
            return part
        struct = self._with_defaults(self._struct(part, records))
        include, exclude = self._options.include, self._options.exclude
        kept = [
            (self._new_names.get(name, name), schema, values)
            for name, schema, values in struct.members()
            if name not in exclude and (not include or name in include)
        ]
        try:
            return struct.with_members(kept)
        except ValueError as exc:
            raise self._failure(records, f"two fields get the name '{exc}'") from None
