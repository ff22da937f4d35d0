"""Options of Kafka Connect's own transforms."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from floodmark.config.java_patterns import Renaming
from floodmark.config.model import Options, option
from floodmark.config.transforms.renaming import checked_renaming


class RegexRouterOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.RegexRouter``."""

    regex: str = option("regex", ..., "A regular expression that must match the whole topic.")
    replacement: str = option("replacement", ..., "What its first match in the topic is replaced by.")

    @model_validator(mode="after")
    def _check_regex(self) -> Self:
        self.renaming  # noqa: B018
        return self

    @property
    def renaming(self) -> Renaming:
        """What becomes of topics."""
        return checked_renaming("regex", self.regex, "replacement", self.replacement)
