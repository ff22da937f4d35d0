"""Takes a source's log over from Debezium, hands it back, and moves a query to another place of the log.

What this needs of a connector is optional: its module ``handover`` has a function ``make_handover(options)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from floodmark.json_data import Json


@dataclass(frozen=True)
class Place:
    """A place in a source's log at which a query can go on, verified at the source.

    Attributes:
        source: what identifies the source (``Source.identity``).
        position: the log position.
        bookmark: what is needed besides it (``LogSource.bookmark``).
        shown: the place in the source's own notation.
        notes: what users should know: what comes again, and why; sentences.
    """

    source: dict[str, str]
    position: str
    bookmark: dict[str, Json] | None
    shown: str
    notes: tuple[str, ...] = field(default=())


class Handover(Protocol):
    """Finds places in a source's log. Reads only; the source's log must not be read by anything else meanwhile."""

    def taken_over(self, offset: Mapping[str, Json]) -> Place:
        """Return the place where Debezium's offset lies.

        Args:
            offset: its fields.

        Raises:
            OffsetError: Debezium would not go on from it without a new snapshot, it is of another server, or the log
                doesn't reach back to it.
            FloodmarkError: the source can't be reached, or can't be captured.
        """

    def handed_back(self, position: str, bookmark: Mapping[str, Json] | None) -> dict[str, Json]:
        """Return the offset from which Debezium goes on at a query's position.

        Raises:
            OffsetError: it would lose something there.
            FloodmarkError: the source can't be reached.
        """

    def stored_history(self, records: Iterable[Mapping[str, Json]], place: Place) -> str | None:
        """Store the tables' structures at a place for the query.

        Args:
            records: Debezium's schema history, the oldest first.
            place: where the query goes on.

        Returns:
            What the bookmark must name; None: the connector keeps no history.
        """

    def close(self) -> None:
        """Close all connections."""
