"""The options that the codecs of PostgreSQL's types depend on."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.codecs.codec import Settings


@dataclass(frozen=True)
class PostgresSettings(Settings):
    """The options that codecs depend on, named as in ``PostgresOptions``."""

    interval_handling_mode: str
    money_fraction_digits: int
    hstore_handling_mode: str
    include_unknown_datatypes: bool
