"""Makes keys of fields of values, as ``org.apache.kafka.connect.transforms.ValueToKey`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from floodmark.config.transforms.kafka import ValueToKeyOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.records import Part, Records
from floodmark.transforms.structs import Struct


class ValueToKey(OneSide):
    """The transform.

    Args:
        settings: its name and its options.
    """

    option = "fields"

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._names = cast(ValueToKeyOptions, settings.options).fields

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with other keys.

        Raises:
            SourceStateError: they have no value, or lack a field.
        """
        return (replace(records, key=self._applied(records.value, records)),)

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        struct = self._with_defaults(self._struct(part, records))
        members = {member[0]: member for member in struct.members()}
        for name in self._names:
            if name not in members:
                raise self._failure(records, f"they have no field '{name}'")
        return Struct({"type": "struct", "fields": []}, []).with_members([members[name] for name in self._names])
