"""The base of transforms whose type ends in ``$Key`` or ``$Value``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.failures import failure
from floodmark.transforms.records import Part, Records, is_null
from floodmark.transforms.structs import Struct

_ABSENT = {"key": "they have no key", "value": "they have no value, as tombstones"}


class OneSide(ABC):
    """A transform of keys or of values.

    Args:
        settings: its name, its type and its options.
    """

    option = "type"
    """The option that errors name."""

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._side = settings.kind.side

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with other keys or values.

        Raises:
            SourceStateError: they are such that the transform can't be applied to them.
        """
        if self._side == "key":
            return (replace(records, key=self._applied(records.key, records)),)
        return (replace(records, value=self._applied(records.value, records)),)

    @abstractmethod
    def _applied(self, part: Part | None, records: Records) -> Part | None:
        """Return what becomes of the keys or values of records."""

    def _struct(self, part: Part | None, records: Records) -> Struct:
        """Return keys or values that must be structures, and not null."""
        if is_null(part):
            raise self._failure(records, _ABSENT[self._side])
        if not isinstance(part, Struct):
            raise self._failure(records, f"their {self._side} is no structure any more")
        return part

    def _failure(self, records: Records, problem: str, option: str = "") -> Exception:
        return failure(self._settings, option or self.option, records, problem)

    def _with_defaults(self, struct: Struct) -> Struct:
        """Return structures with defaults in the place of nulls, unless an option says otherwise."""
        return struct.with_defaults() if getattr(self._settings.options, "replace_null_with_default", True) else struct
