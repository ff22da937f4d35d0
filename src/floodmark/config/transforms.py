"""The options of transforms and predicates, ``transforms.<name>.…`` and ``predicates.<name>.…``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from floodmark.config.columns import java_pattern
from floodmark.config.model import Options, Words, option
from floodmark.config.patterns import Pattern, PatternError
from floodmark.errors import ConfigError

OUR_OWN = ("type", "predicate", "negate")
"""What every transform has beside the options of its type."""
STRUCTS = ("source", "transaction", "before", "after")
"""The structures of an envelope that fields can be taken of."""


_REPLACED = "since Debezium 2.6 'delete.tombstone.handling.mode' says what becomes of deletes and tombstones"


@dataclass(frozen=True)
class AddedField:
    """A field of the envelope that is added to a row, or to its headers.

    Attributes:
        struct: the structure that has it; empty: the envelope itself.
        field: its name there.
        name: the name that it gets.
    """

    struct: str
    field: str
    name: str

    @classmethod
    def parse(cls, text: str, prefix: str) -> AddedField:
        """Return the field that a text such as ``op``, ``source.ts_ms`` or ``lsn:position`` names.

        Raises:
            ValueError: it names none.
        """
        path, *renamed = text.split(":")
        struct, dot, field = path.rpartition(".")
        if len(renamed) > 1 or not field or (dot and struct not in STRUCTS) or "" in renamed:
            raise ValueError(
                f"'{text}' names no field: it must be a field of the event or of its source, or "
                f"{', '.join(f'{name}.<field>' for name in STRUCTS)}, each with ':<new name>' behind it or not"
            )
        name = renamed[0] if renamed else path.replace(".", "_")
        return cls(struct or _struct_of(field), field, prefix + name)


def _struct_of(field: str) -> str:
    if field in ("id", "total_order", "data_collection_order"):
        return "transaction"
    return "" if field in ("op", "ts_ms", "ts_us", "ts_ns") else "source"


class ExtractNewRecordStateOptions(Options):
    """Options of ``io.debezium.transforms.ExtractNewRecordState``."""

    delete_tombstone_handling_mode: Literal[
        "tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"
    ] = option("delete.tombstone.handling.mode", "tombstone", "What becomes of deletes and their tombstones.")
    add_fields: Words = option("add.fields", (), "Fields of the envelope that rows get.")
    add_fields_prefix: str = option("add.fields.prefix", "__", "What their names begin with.")
    add_headers: Words = option("add.headers", (), "Fields of the envelope that become headers.")
    add_headers_prefix: str = option("add.headers.prefix", "__", "What their names begin with.")
    route_by_field: str = option("route.by.field", "", "The column whose value is the topic; a text.")
    replace_null_with_default: bool = option(
        "replace.null.with.default", True, "Whether `rewrite` writes nulls of columns with a default as the default."
    )

    refused: ClassVar[Mapping[str, str]] = {
        "delete.handling.mode": _REPLACED,
        "drop.tombstones": _REPLACED,
        "drop.fields.<option>": "only a header of ExtractChangedRecordState drops fields, which isn't supported",
    }

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name, texts in (("add.fields", self.add_fields), ("add.headers", self.add_headers)):
            for text in texts:
                try:
                    AddedField.parse(text, "")
                except ValueError as exc:
                    raise ValueError(f"Option '{name}' is wrong: {exc}.") from None
        return self

    @property
    def fields(self) -> tuple[AddedField, ...]:
        """The fields that rows get."""
        return tuple(AddedField.parse(text, self.add_fields_prefix) for text in self.add_fields)

    @property
    def headers(self) -> tuple[AddedField, ...]:
        """The fields that become headers."""
        return tuple(AddedField.parse(text, self.add_headers_prefix) for text in self.add_headers)


class NoOptions(Options):
    """Those of a type that has none."""


class TopicNameMatchesOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.predicates.TopicNameMatches``."""

    pattern: str = option("pattern", ..., "A regular expression that must match the whole topic.")

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        try:
            java_pattern(self.pattern)
        except PatternError as exc:
            raise ValueError(f"Option 'pattern' ({self.pattern}) is wrong: {exc}.") from None
        return self

    @property
    def compiled(self) -> Pattern:
        """The pattern."""
        return java_pattern(self.pattern)


class HasHeaderKeyOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.predicates.HasHeaderKey``."""

    name: str = option("name", ..., "The header's name.")


TRANSFORMS: Mapping[str, type[Options]] = {
    "io.debezium.transforms.ExtractNewRecordState": ExtractNewRecordStateOptions,
}
"""The types of transforms that there are, and their options."""
PREDICATES: Mapping[str, type[Options]] = {
    "org.apache.kafka.connect.transforms.predicates.TopicNameMatches": TopicNameMatchesOptions,
    "org.apache.kafka.connect.transforms.predicates.HasHeaderKey": HasHeaderKeyOptions,
    "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone": NoOptions,
}
"""The types of predicates that there are, and their options."""


@dataclass(frozen=True)
class TransformSettings:
    """A transform, as the options give it.

    Attributes:
        name: as ``transforms`` has it.
        options: those of its type, which they tell.
        predicate: the options of the predicate's type; None: it is applied to all records.
        negate: whether it is applied to those for which the predicate is false.
    """

    name: str
    options: Options
    predicate: Options | None
    negate: bool


def parse_transforms(
    names: Sequence[str],
    transforms: Mapping[str, str],
    conditions: Sequence[str] = (),
    predicates: Mapping[str, str] = MappingProxyType({}),
) -> tuple[TransformSettings, ...]:
    """Return the transforms that options name, in their order.

    Args:
        names: the option ``transforms``.
        transforms: the options ``transforms.<option>``, by what takes the place of ``<option>``.
        conditions: the option ``predicates``.
        predicates: the options ``predicates.<option>``.

    Raises:
        ConfigError: one of them is wrong.
    """
    return _parse(tuple(names), tuple(transforms.items()), tuple(conditions), tuple(predicates.items()))


@lru_cache(maxsize=64)
def _parse(
    names: tuple[str, ...],
    transforms: tuple[tuple[str, str], ...],
    conditions: tuple[str, ...],
    predicates: tuple[tuple[str, str], ...],
) -> tuple[TransformSettings, ...]:
    own, others = _by_name("transforms", names, transforms), _by_name("predicates", conditions, predicates)
    return tuple(_settings(name, own[name.lower()], others) for name in names)


def _by_name(family: str, names: Sequence[str], options: Sequence[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """Return the options of each transform or predicate, by names in lower case, since Spark drops the case."""
    known = {name.lower(): name for name in names}
    if len(known) < len(names):
        raise ConfigError(f"Option '{family}' has a name twice: {', '.join(names)}.", "Case doesn't distinguish names.")
    found: dict[str, dict[str, str]] = {name: {} for name in known}
    for key, value in options:
        name, dot, rest = key.lower().partition(".")
        if name not in known:
            hint = difflib.get_close_matches(name, list(known), 1)
            raise ConfigError(
                f"Option '{family}.{key}' belongs to '{name}', which '{family}' doesn't name.",
                f"Did you mean '{known[hint[0]]}'?" if hint else f"Add it to '{family}', or remove the option.",
            )
        if not dot:
            raise ConfigError(f"Option '{family}.{key}' lacks a name: it must be '{family}.<name>.<option>'.")
        found[name][rest] = value
    return found


def _settings(name: str, given: Mapping[str, str], conditions: Mapping[str, Mapping[str, str]]) -> TransformSettings:
    place = f"transforms.{name}"
    own = {key: value for key, value in given.items() if key not in OUR_OWN}
    options = _typed(place, given.get("type"), TRANSFORMS, own)
    negate = given.get("negate", "false").strip().lower()
    if negate not in ("true", "false"):
        raise ConfigError(
            f"Option '{place}.negate' has the value '{given['negate']}', which is not allowed: "
            "it must be true or false."
        )
    wanted = given.get("predicate")
    if wanted is None:
        if "negate" in given:
            raise ConfigError(f"Option '{place}.negate' needs '{place}.predicate'.")
        return TransformSettings(name, options, None, negate=False)
    members = conditions.get(wanted.strip().lower())
    if members is None:
        raise ConfigError(
            f"Option '{place}.predicate' has the value '{wanted}', which is not allowed: 'predicates' doesn't name it."
        )
    predicate = f"predicates.{wanted}"
    rest = {key: value for key, value in members.items() if key != "type"}
    condition = _typed(predicate, members.get("type"), PREDICATES, rest)
    return TransformSettings(name, options, condition, negate == "true")


def _typed(place: str, kind: str | None, known: Mapping[str, type[Options]], given: Mapping[str, str]) -> Options:
    if kind is None:
        raise ConfigError(f"Option '{place}.type' is required.")
    model = known.get(kind.strip())
    if model is None:
        close = difflib.get_close_matches(kind, list(known), 1, 0.9)
        raise ConfigError(
            f"Option '{place}.type' has the value '{kind}', which is not supported: it must be one of "
            f"{', '.join(known)}.",
            f"Did you mean '{close[0]}'?" if close else "Transform the DataFrame in Spark instead.",
        )
    try:
        return model.parse(given)
    except ConfigError as exc:
        raise ConfigError(exc.what.replace("ption '", f"ption '{place}.", 1), exc.cure) from None
