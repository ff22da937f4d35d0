"""Reads the options that name transforms and predicates."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from floodmark.config.model import Options
from floodmark.config.transforms.kinds import PREDICATES, TRANSFORMS, TransformKind
from floodmark.config.transforms.outbox import EventRouterOptions
from floodmark.config.transforms.partitions import PartitionRoutingOptions
from floodmark.errors import ConfigError

T = TypeVar("T")

OUR_OWN = ("type", "predicate", "negate")
"""What every transform has beside the options of its type."""


@dataclass(frozen=True)
class TransformSettings:
    """A transform, as the options give it.

    Attributes:
        name: as ``transforms`` has it.
        kind: its type.
        options: those of its type.
        predicate: the options of the predicate's type; None: it is applied to all records.
        negate: whether it is applied to those for which the predicate is false.
    """

    name: str
    kind: TransformKind
    options: Options
    predicate: Options | None
    negate: bool


def chooses_partitions(settings: TransformSettings) -> bool:
    """Return whether a transform decides on the partitions of records."""
    options = settings.options
    if isinstance(options, EventRouterOptions):
        return bool(options.placed("partition"))
    return isinstance(options, PartitionRoutingOptions)


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
    kind = _known(place, given.get("type"), TRANSFORMS)
    options = _parsed(place, kind.options, own)
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
        return TransformSettings(name, kind, options, None, negate=False)
    members = conditions.get(wanted.strip().lower())
    if members is None:
        raise ConfigError(
            f"Option '{place}.predicate' has the value '{wanted}', which is not allowed: 'predicates' doesn't name it."
        )
    predicate = f"predicates.{wanted}"
    rest = {key: value for key, value in members.items() if key != "type"}
    condition = _parsed(predicate, _known(predicate, members.get("type"), PREDICATES), rest)
    return TransformSettings(name, kind, options, condition, negate == "true")


def _known(place: str, name: str | None, known: Mapping[str, T]) -> T:
    if name is None:
        raise ConfigError(f"Option '{place}.type' is required.")
    found = known.get(name.strip())
    if found is None:
        close = [one for one in known if one.startswith(f"{name.strip()}$")]
        close = close or difflib.get_close_matches(name, list(known), 1, 0.9)
        problem = f"Option '{place}.type' has the value '{name}', which is not supported"
        if close:
            raise ConfigError(f"{problem}.", "Did you mean '" + "' or '".join(close) + "'?")
        choices = [one.replace("$Key", "$Key or …$Value") for one in known if not one.endswith("$Value")]
        raise ConfigError(
            f"{problem}: it must be one of {', '.join(choices)}.", "Else transform the DataFrame in Spark."
        )
    return found


def _parsed(place: str, model: type[Options], given: Mapping[str, str]) -> Options:
    try:
        return model.parse(given)
    except ConfigError as exc:
        raise ConfigError(exc.what.replace("ption '", f"ption '{place}.", 1), exc.cure) from None
