"""Values of columns, as scenarios give them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal

_EXACT = Context(prec=100)


@dataclass(frozen=True)
class Moment:
    """A date and time with nanoseconds.

    Attributes:
        time: up to microseconds; with a zone for columns that have one.
        nanos: the nanoseconds below the microsecond, 0 to 999.
    """

    time: datetime
    nanos: int = 0

    @property
    def fraction(self) -> str:
        """The nine digits after the second."""
        return f"{self.time.microsecond * 1000 + self.nanos:09d}"


def moment(value: datetime | Moment) -> Moment:
    """Return a value as a moment."""
    return value if isinstance(value, Moment) else Moment(value)


def number_text(value: Decimal) -> str:
    """Return a number as Oracle writes it: without needless zeros, and without the zero before the point."""
    # There is no negative zero.
    text = f"{value.normalize(_EXACT):f}" if value else "0"
    if "." in text and text.lstrip("-").startswith("0."):
        text = text.replace("0.", ".", 1)
    return text
