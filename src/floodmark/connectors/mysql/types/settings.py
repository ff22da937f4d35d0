"""The options that the codecs of MySQL's types depend on."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.codecs.codec import Settings


@dataclass(frozen=True)
class MysqlSettings(Settings):
    """The options that codecs depend on, by the names of ``BinlogOptions``."""

    bigint_unsigned_handling_mode: str
    enable_time_adjuster: bool
