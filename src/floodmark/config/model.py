"""The base of all option models: declares options, parses mappings, and explains what is wrong."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from floodmark.config.debezium import Foreign, accept
from floodmark.config.patterns import Pattern, PatternError
from floodmark.errors import ConfigError
from floodmark.redact import shown_uri, without_login

SAME = "same"
OWN = "none (Floodmark's own)"
NO_EFFECT = "No effect: "
"""How the text of an option begins that is accepted without effect."""
ALL_OPTIONS = "None has a name like it; docs/options.md lists them all."

_RANGES = {"A-Z": "A to Z", "a-z": "a to z", "0-9": "0 to 9"}
_UNITS = {".ms": "milliseconds", ".bytes": "bytes"}
"""The units of numbers, by the ends of options' names."""
_FORMER_VALUES = {
    ("snapshot.mode", "exported"): "initial",
    ("snapshot.mode", "never"): "no_data",
    ("snapshot.mode", "schema_only"): "no_data",
    ("snapshot.mode", "schema_only_recovery"): "recovery",
}


def option(
    name: str,
    default: object,
    text: str,
    debezium: str = SAME,
    *,
    secret: bool = False,
    ge: int | None = None,
    le: int | None = None,
    pattern: str | None = None,
) -> Any:
    """Declare an option.

    Args:
        name: the property's name as users write it. One with ``<…>`` declares a family: every option that
            begins with the text before the first of them and ends with the text after the last.
        default: its default; ``...`` if it must be given.
        text: its meaning, for the option reference.
        debezium: ``SAME``, ``OWN`` or the Debezium property that it corresponds to.
        secret: whether its value must never be shown, although its type is not a secret one.
        ge: the least that a number may be.
        le: the most that a number may be.
        pattern: a regular expression that a text must match.
    """
    return Field(
        default,
        alias=name,
        description=text,
        json_schema_extra={"debezium": debezium, "secret": secret},
        ge=ge,
        le=le,
        pattern=pattern,
    )


def split_list(value: str) -> list[str]:
    r"""Split a comma-separated list, as Debezium does: ``\,`` is a comma inside an item."""
    items = re.split(r"(?<!\\),", value)
    return [item.strip().replace("\\,", ",") for item in items if item.strip()]


def patterns_in(value: str) -> tuple[Pattern, ...]:
    """Return the regular expressions of a comma-separated list; they ignore case.

    Raises:
        ValueError: an expression is wrong, or can't be matched in linear time.
    """
    return tuple(pattern_in(item) for item in split_list(value))


def pattern_in(text: str) -> Pattern:
    """Return a regular expression of an option; it ignores case.

    Raises:
        ValueError: the expression is wrong, or can't be matched in linear time.
    """
    try:
        return Pattern(text, ignore_case=True)
    except PatternError as exc:
        hint = "; '.*' stands for any text" if text.startswith("*") else ""
        raise ValueError(f"'{text}' is not a regular expression that can be used: {exc}{hint}") from None


def _as_patterns(value: object) -> object:
    return patterns_in(value) if isinstance(value, str) else value


def _as_words(value: object) -> object:
    return tuple(split_list(value)) if isinstance(value, str) else value


Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_as_patterns)]
"""A comma-separated list of regular expressions, each matched against a whole name, ignoring case."""

Words = Annotated[tuple[str, ...], BeforeValidator(_as_words)]
"""A comma-separated list of words."""

Family = dict[str, str]
"""The values of a family of options, by the text in place of its ``<…>``."""

SecretFamily = dict[str, SecretStr]
"""The same for options of which some hold secrets: no value is ever shown."""


def family_prefix(name: str) -> str:
    """Return the prefix of a family's options; empty if the option is no family."""
    return name[: name.index("<")] if "<" in name else ""


def _family_suffix(name: str) -> str:
    return name[name.rindex(">") + 1 :]


def statements(text: str) -> list[str]:
    """Split statements at single semicolons; two in a row are one semicolon in a statement."""
    parts = re.split(r"(?<!;);(?!;)", text)
    return [part.replace(";;", ";").strip() for part in parts if part.strip()]


def matches(patterns: tuple[Pattern, ...], name: str) -> bool:
    """Return whether any pattern matches the whole name."""
    return any(pattern.fullmatch(name) for pattern in patterns)


Advise: TypeAlias = Callable[[type["Options"], str], tuple[str, str]]
"""Describes an option that a model lacks: what it is, as the end of a sentence or empty, and what to do about it."""


def _nearest_option(model: type[Options], key: str) -> tuple[str, str]:
    return "", nearest(key, model.names()) or ALL_OPTIONS


class Options(BaseModel):
    """Base of the option models. Instances are immutable and hold no live resource."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )

    accepted: ClassVar[Mapping[str, Foreign]] = {}
    """Debezium's options that are accepted without effect."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Debezium's options that are refused, and why."""
    similar: ClassVar[Mapping[str, str]] = {}
    """Options of other connectors, in lower case, and the most similar ones of this one."""

    @classmethod
    def parse(cls, options: Mapping[str, str], advise: Advise = _nearest_option) -> Self:
        """Parse options as Spark or a YAML file passes them.

        Args:
            options: their values as text, by name.
            advise: describes an option that is not known.

        Raises:
            ConfigError: an option is wrong. It names the first one, its value, what is allowed and the nearest match.
        """
        names = {name.lower(): name for name in cls.names()}
        given: dict[str, str] = {}
        families: dict[str, Family] = {}
        for key, value in options.items():
            name = names.get(key.lower())
            family, member = cls._family(key, options)
            if family and name is None:
                families.setdefault(family, {})[member] = value
            elif name in given:
                raise ConfigError(f"Option '{name}' is given twice: option names ignore case.", "Remove one of them.")
            elif name is not None:
                given[name] = value
            elif not accept(key, value, cls.accepted, cls.refused):
                what, cure = advise(cls, key)
                raise ConfigError(f"Unknown option '{_without_salt(key)}'{what}.", cure)
        try:
            return cls.model_validate({**given, **families})
        except ValidationError as exc:
            raise _explain(cls, given, exc) from None

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all options, in the order of their declaration."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def field_of(cls, key: str) -> tuple[str, FieldInfo] | None:
        """Return an option's name, or its family's, and its declaration; None if the model lacks it."""
        fields = {(field.alias or name): field for name, field in cls.model_fields.items()}
        own = next((name for name in fields if name.lower() == key.lower()), cls._family(key, {})[0])
        return (own, fields[own]) if own else None

    @classmethod
    def knows(cls, key: str) -> bool:
        """Return whether an option is one of the model's, by its own name or as one of a family."""
        return cls.field_of(key) is not None

    @classmethod
    def _family(cls, key: str, options: Mapping[str, str]) -> tuple[str, str]:  # noqa: ARG003
        """Return the family of an option, and the text in place of its ``<…>``; both empty if it has none."""
        found = ("", "")
        longest = 0
        for name in cls.names():
            prefix = family_prefix(name)
            if len(prefix) <= longest or not key.lower().startswith(prefix):
                continue
            suffix = _family_suffix(name)
            if len(key) > len(prefix) + len(suffix) and key.lower().endswith(suffix):
                longest = len(prefix)
                found = name, key[longest : len(key) - len(suffix)]
        return found

    def values(self) -> dict[str, object]:
        """Return the value of every option by its name, without secret ones."""
        return {
            field.alias or name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if not is_secret(field)
        }


def nearest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """Return a hint with the nearest of some names; empty if none is near."""
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=cutoff)
    return f"Did you mean '{close[0]}'?" if close else ""


def _without_salt(key: str) -> str:
    """Return an option's name without the salt of a hash, which must not be shown."""
    return re.sub(r"(?i)(salt\.).*", r"\1…", key)


def _explain(cls: type[Options], given: Mapping[str, str], exc: ValidationError) -> ConfigError:
    """Turn pydantic's report into one sentence about the first wrong option."""
    error = exc.errors()[0]
    if not error["loc"]:
        return ConfigError(str(error["msg"]).removeprefix("Value error, ").strip())
    name = str(error["loc"][0])
    field = next(f for f in cls.model_fields.values() if f.alias == name)
    if error["type"] == "missing":
        return ConfigError(f"Option '{name}' is required: {field.description}")
    value = given.get(name)
    # A family's name doesn't show which of its options is wrong; the reason does.
    shown = (
        f" has the value '{without_login(shown_uri(value))}', which"
        if isinstance(value, str) and not is_secret(field)
        else ""
    )
    problem = f"Option '{name}'{shown} is not allowed:"
    choices = allowed_values(field)
    if choices:
        hint = _former_value(name, str(value), choices) or nearest(str(value), choices)
        return ConfigError(f"{problem} it must be one of {', '.join(choices)}.", hint)
    return ConfigError(f"{problem} {_reason(name, field, error)}.")


def _reason(name: str, field: FieldInfo, error: ErrorDetails) -> str:
    """Describe what a value must be, in the user's terms."""
    kind = str(error["type"])
    if kind.startswith("bool"):
        return "it must be true or false"
    if kind.startswith("int") or kind in ("greater_than_equal", "less_than_equal"):
        unit = next((f" of {words}" for end, words in _UNITS.items() if name.endswith(end)), "")
        return f"it must be a whole number{unit}{limits(field)}"
    if kind == "string_pattern_mismatch":
        return _letters(str(error["ctx"]["pattern"]))
    reason = str(error["msg"]).removeprefix("Value error, ").strip()
    return f"{reason[:1].lower()}{reason[1:]}"


def limits(field: FieldInfo) -> str:
    """Return the limits of a number, as text that follows its type; empty if it has none."""
    low = next((item.ge for item in field.metadata if hasattr(item, "ge")), None)
    high = next((item.le for item in field.metadata if hasattr(item, "le")), None)
    if low is not None and high is not None:
        return f", {low} to {high}"
    return "" if low is None else f", at least {low}"


def _letters(pattern: str) -> str:
    """Describe the texts that match a pattern of one repeated character class."""
    if length := re.fullmatch(r"\^\.\{(\d+),(\d+)\}\$", pattern):
        return f"it must have {length[1]} to {length[2]} characters"
    found = re.fullmatch(r"\^\[(.+)\](?:\{1,(\d+)\}|\+)\$", pattern)
    if found is None:
        return f"it must match {pattern}"
    letters = found[1].replace("\\", "")
    named = []
    for sign, name in _RANGES.items():
        if sign in letters:
            letters = letters.replace(sign, "")
            named.append(name)
    most = f", and {found[2]} characters at most" if found[2] else ""
    named += [f"'{letter}'" for letter in letters]
    return f"it may hold only {', '.join(named)}{most}"


def current_value(name: str, value: str) -> str:
    """Return today's name of an option's value, if Debezium 1.x or 2.x had another one; else the value."""
    return _FORMER_VALUES.get((name.lower(), value.lower()), value)


def _former_value(name: str, value: str, choices: Sequence[str]) -> str:
    """Return a hint with today's name of a value of Debezium 1.x; empty if it is no choice now."""
    today = _FORMER_VALUES.get((name, value.lower()))
    return f"Debezium 1.x's '{value}' is '{today}' today." if today in choices else ""


def allowed_values(field: FieldInfo) -> list[str]:
    """Return the values of an option that is a choice; empty for others."""
    values = get_args(field.annotation)
    return list(values) if values and all(isinstance(value, str) for value in values) else []


def without_none(annotation: object) -> object:
    """Return the type of an option's values if one is given."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def is_secret(field: FieldInfo) -> bool:
    """Return whether the option's value must never be shown."""
    extra = field.json_schema_extra
    marked = isinstance(extra, dict) and bool(extra.get("secret"))
    return marked or field.annotation is SecretStr or SecretStr in get_args(field.annotation)
