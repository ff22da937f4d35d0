"""Options of Debezium's converter of time zones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import model_validator

from floodmark.config.model import Options, Words, nearest, option

_OFFSET = re.compile(r"([+-])(\d\d):([0-5]\d)(?::([0-5]\d))?")
_MOST_S = 18 * 3600
"""The farthest that a place's time may be from UTC in Java."""
Matched: TypeAlias = Literal["topic", "source", ""]
"""What a rule's name is compared with: topics, tables, or first the one and then the other."""
_FORMS = "source:<table>, source:<table>:<field>, topic:<topic>, topic:<topic>:<field> or <table or topic>:<field>"


@dataclass(frozen=True)
class Rules:
    """Which fields are converted, or which aren't.

    Attributes:
        excluded: whether those of the rules aren't.
        fields: the fields by what they are matched with and by name; no fields: all of them.
    """

    excluded: bool = False
    fields: Mapping[tuple[Matched, str], frozenset[str]] = field(default_factory=dict)

    def of(self, topic: str, table: str) -> frozenset[str] | None:
        """Return the fields that the rules name for records; None: no rule matches them."""
        kinds: tuple[tuple[Matched, str], ...] = (("topic", topic), ("source", table), ("", topic), ("", table))
        return next((self.fields[kind] for kind in kinds if kind in self.fields), None)


class TimezoneConverterOptions(Options):
    """Options of ``io.debezium.transforms.TimezoneConverter``."""

    converted_timezone: str = option(
        "converted.timezone", ..., "A time zone such as `America/Lima`, or an offset such as `+08:00`."
    )
    include_list: Words = option("include.list", (), "Rules that say which fields are converted; without them, all.")
    exclude_list: Words = option("exclude.list", (), "Rules that say which fields aren't converted.")

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.include_list and self.exclude_list:
            raise ValueError("Options 'include.list' and 'exclude.list' exclude each other: give only one.")
        self.rules  # noqa: B018
        if self.fixed_offset is None:
            name = self.converted_timezone
            try:
                ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                hint = nearest(name, sorted(available_timezones()))
                raise ValueError(
                    f"Option 'converted.timezone' has the value '{name}', which is not allowed: it must be a time zone "
                    f"such as America/Lima, or an offset from -18:00 to +18:00.{' ' if hint else ''}{hint}"
                ) from None
        return self

    @property
    def fixed_offset(self) -> int | None:
        """The offset from UTC in seconds; None: it depends on the time."""
        found = _OFFSET.fullmatch(self.converted_timezone)
        if found is None:
            return None
        sign, hours, minutes, seconds = found.groups()
        offset = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
        return None if offset > _MOST_S else -offset if sign == "-" else offset

    @property
    def rules(self) -> Rules:
        """Which fields are converted.

        Raises:
            ValueError: a rule is none.
        """
        name = "exclude.list" if self.exclude_list else "include.list"
        return Rules(bool(self.exclude_list), _fields(name, self.exclude_list or self.include_list))


def _fields(option_name: str, rules: Sequence[str]) -> dict[tuple[Matched, str], frozenset[str]]:
    """Return the fields that rules name. One without a prefix has that of the rule before, as in Debezium."""
    found: dict[tuple[Matched, str], frozenset[str]] = {}
    prefix: Matched = ""
    for rule in rules:
        parts = [part.strip() for part in rule.split(":")]
        kind = parts[0].lower()
        if kind in ("source", "topic") and len(parts) > 1:
            prefix, parts = ("topic" if kind == "topic" else "source"), parts[1:]
        if "" in parts or len(parts) > 2 or (not prefix and len(parts) == 1):
            raise ValueError(f"Option '{option_name}' is wrong: '{rule}' is not of the form {_FORMS}.")
        key = prefix, parts[0]
        found[key] = found.get(key, frozenset()) | frozenset(parts[1:])
    return found
