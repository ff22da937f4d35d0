"""Takes a source's log over from Debezium, hands it back, and moves a query to another place of the log.

What this needs of a connector is optional: its module ``handover`` has a function ``make_handover(options)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from floodmark.connectors.contract.key_forms import KeyForm
from floodmark.connectors.contract.table_key import TableKey
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
        structures: the tables' structures there, which ``Handover.settle`` stores; None: they need not be.
    """

    source: dict[str, str]
    position: str
    bookmark: dict[str, Json] | None
    shown: str
    notes: tuple[str, ...] = ()
    structures: object = None


@dataclass(frozen=True)
class HandedBack:
    """From where Debezium goes on.

    Attributes:
        fields: those of its offset.
        history: the records of a schema history that holds all structures there, the oldest first; None: Debezium's
            connector keeps no history.
    """

    fields: dict[str, Json]
    history: tuple[Mapping[str, Json], ...] | None = None


class Handover(Protocol):
    """Finds places in a source's log. Reads only; the source's log must not be read by anything else meanwhile.

    Attributes:
        catalog: what Debezium writes before the names of tables that events have; empty: nothing.
    """

    catalog: str

    def taken_over(
        self, offset: Mapping[str, Json], history: Iterable[Mapping[str, Json]] | None, before: str | None
    ) -> Place:
        """Return the place where Debezium's offset lies.

        Args:
            offset: its fields.
            history: Debezium's schema history, the oldest record first; None: it isn't given.
            before: the position of the query that is to go on there; None: it is new.

        Raises:
            OffsetError: Debezium would not go on from it without a new snapshot, it is of another server, or the log
                doesn't reach back to it.
            FloodmarkError: the source can't be reached, or can't be captured.
        """

    def handed_back(self, position: str, bookmark: Mapping[str, Json] | None) -> HandedBack:
        """Return the offset from which Debezium goes on at a query's position.

        Raises:
            OffsetError: it would lose something there.
            FloodmarkError: the source can't be reached.
        """

    def chosen(self, text: str, before: str | None) -> Place:
        """Return the place that a user names in the source's notation, or by a log position.

        Args:
            text: what names it.
            before: the position of the query that is moved there; None: it is new.

        Raises:
            OffsetError: it isn't such a text, lies in the future, or the source doesn't reach back to it.
            FloodmarkError: the source can't be reached, or can't be captured.
        """

    def latest(self, before: str | None) -> Place:
        """Return the end of the log; ``before`` as in ``chosen``.

        Raises:
            FloodmarkError: the source can't be reached, or can't be captured.
        """

    def key_forms(self, oid: int, key: TableKey) -> tuple[KeyForm | None, ...]:
        """Return how the values of a key's columns are written; None: not in the same way by Debezium and here.

        Args:
            oid: the table.
            key: as ``TableCatalog.key_of`` returned it.

        Raises:
            FloodmarkError: the source can't be reached.
        """

    def settle(self, place: Place) -> dict[str, Json] | None:
        """Store what a query needs beside its checkpoint to go on at a place, and return the place's bookmark.

        Raises:
            FloodmarkError: it can't be written.
        """

    def close(self) -> None:
        """Close all connections."""
