"""Options of Kafka Connect's predicates."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from floodmark.config.java_patterns import java_pattern
from floodmark.config.model import Options, option
from floodmark.config.patterns import Pattern, PatternError


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
