"""The options that the codecs of Oracle's types depend on."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.codecs.codec import Settings


@dataclass(frozen=True)
class OracleSettings(Settings):
    """The options that codecs depend on, by their names with ``_`` for ``.``."""

    interval_handling_mode: str
    legacy_decimal_handling_strategy: bool = False

    @property
    def placeholder_bytes(self) -> bytes:
        """The placeholder of an unavailable value: Debezium reads ``hex:`` as text here."""
        return self.unavailable_value_placeholder.encode()
