"""Delta tables as targets that can be rebuilt."""

from __future__ import annotations

from floodmark.errors import TargetError
from floodmark.logger import get_logger
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.replacing import Replacement
from floodmark.sinks.delta.tables import application_of
from floodmark.sinks.delta.targets import unwritable
from floodmark.sinks.delta.verifiable import DeltaTarget, DeltaView
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced

log = get_logger(__name__)


class RebuildableDeltaTable:
    """A ``RebuildableTarget``.

    Args:
        location: a path or a URI, below which the tables' folders are.
        table: the source's name of the table.
        query: the id of the query that writes it.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str, table: str, query: str) -> None:
        self._location = location
        self._table = table
        self._application = application_of(query)
        self._marks = RebuildMarks(location)
        self._target = DeltaTarget(location, table)
        self._replacement: Replacement | None = None

    def view(self) -> DeltaView:
        """Return the newest version (``RebuildableTarget``)."""
        return self._target.view()

    def prove_written(self) -> None:
        """Check that the table gets rows (``RebuildableTarget``)."""
        self._target.prove_written()

    def mark(self) -> RebuildMark | None:
        """Return the table's mark (``RebuildableTarget``)."""
        return self._marks.get(self._table)

    def begin(self, mark: RebuildMark) -> bool:
        """Mark the table, unless it is marked (``RebuildableTarget``)."""
        self._marks.remove_shadows(self._table)
        return self._marks.add(mark)

    def is_replaced(self, mark: RebuildMark) -> bool:
        """Return whether the table has the shadow's rows already (``RebuildableTarget``)."""
        return self._replacing(mark).is_done()

    def attempt(self, mark: RebuildMark, empty: bool) -> Replaced:
        """Try to replace the table by one commit (``RebuildableTarget``)."""
        if self._replacement is None:
            # It keeps what it has read of the logs.
            self._replacement = self._replacing(mark)
        return self._replacement.attempt(empty)

    def finish(self, mark: RebuildMark) -> None:  # noqa: ARG002
        """Remove the mark and the shadow's log (``RebuildableTarget``)."""
        self._marks.remove(self._table)
        self._marks.remove_shadows(self._table)

    def give_up(self, mark: RebuildMark) -> None:
        """Remove the mark, the shadow's log and the files that only the shadow has (``RebuildableTarget``)."""
        # The query looks for the mark with each micro-batch, and forgets the shadow then.
        self._marks.remove(self._table)
        files = self._replacing(mark).discard()
        self._marks.remove_shadows(self._table)
        log.info("files_of_a_shadow_are_removed", table=self._table, id=mark.id, files=files)

    def failure(self, error: Exception) -> TargetError:
        """Return the error for a store that can't be used (``RebuildableTarget``)."""
        return unwritable(self._location, self._table, error)

    def _replacing(self, mark: RebuildMark) -> Replacement:
        return Replacement(self._location, mark, self._application)
