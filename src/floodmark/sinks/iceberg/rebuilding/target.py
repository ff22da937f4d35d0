"""Iceberg tables as targets that can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote

import obstore

from floodmark.errors import TargetChangedError, TargetDamagedError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State
from floodmark.sinks.delta.rebuilding.marks import REBUILT_PROPERTY, RebuildMarks
from floodmark.sinks.delta.stores import FolderMarks
from floodmark.sinks.delta.tables import application_of
from floodmark.sinks.delta.targets import unwritable
from floodmark.sinks.iceberg.changes import Changes, Files, files_of
from floodmark.sinks.iceberg.data_files import FOLDER, IcebergFiles
from floodmark.sinks.iceberg.protocols import CatalogTable, Gone
from floodmark.sinks.iceberg.state import OWNER, TableState
from floodmark.sinks.iceberg.verifiable import prove_written
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced
from floodmark.sinks.verifiable import TargetView, VerifiableTarget

log = get_logger(__name__)

_AGAIN = "Rebuild the table again."
_AT_ONCE = 1000


class RebuildableIcebergTable:
    """A ``RebuildableTarget``.

    Args:
        location: the mirror's path.
        name: the source's name of the table.
        table: the table.
        files: its data files.
        target: the same table, to look at.
        aside: the marks of tables that are set aside.
        query: the id of the query that writes it.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(
        self,
        location: str,
        name: str,
        table: CatalogTable,
        files: IcebergFiles,
        target: VerifiableTarget,
        aside: FolderMarks,
        query: str,
    ) -> None:
        self._location = location
        self._name = name
        self._table = table
        self._files = files
        self._target = target
        self._aside = aside
        self._application = application_of(query)
        self._marks = RebuildMarks(location)

    def view(self) -> TargetView:
        """Return the newest snapshot (``RebuildableTarget``)."""
        return self._target.view()

    def prove_written(self) -> None:
        """Check that the table gets rows (``RebuildableTarget``)."""
        prove_written(self._name, self._aside)

    def mark(self) -> RebuildMark | None:
        """Return the table's mark (``RebuildableTarget``)."""
        return self._marks.get(self._name)

    def begin(self, mark: RebuildMark) -> bool:
        """Mark the table, unless it is marked (``RebuildableTarget``)."""
        self._marks.remove_shadows(self._name)
        return self._marks.add(mark)

    def is_replaced(self, mark: RebuildMark) -> bool:
        """Return whether the table has the shadow's rows already (``RebuildableTarget``)."""
        with self._opened():
            state = self._table.state(self._application)
            return state is not None and _is_by(mark, state)

    def attempt(self, mark: RebuildMark, empty: bool) -> Replaced:
        """Try to replace the table's files by one commit (``RebuildableTarget``)."""
        # In this order: the shadow gets each micro-batch first.
        new = self._shadow(mark).state()
        try:
            with self._table.opened():
                return self._attempt(mark, new, empty)
        except Gone:
            raise TargetChangedError(f"The Iceberg table '{self._name}' is gone.", _AGAIN) from None
        except self._table.failures as error:
            if self._table.is_conflict(error):
                return Replaced.LATER
            raise self._table.failure(error) from error

    def _attempt(self, mark: RebuildMark, new: State, empty: bool) -> Replaced:
        state = self._table.state(self._application)
        if state is None or state.head is None:
            raise Gone
        if _is_by(mark, state):
            return Replaced.DONE
        done = state.done(self._application)
        if done is None or state.properties.get(OWNER) != self._application or state.lacks(done):
            raise TargetChangedError(
                f"Another query writes the Iceberg table '{self._name}' now, or it was brought back to an earlier "
                "snapshot.",
                "Give the checkpoint of the query that writes it.",
            )
        self._marks.prove_current(mark)
        written = new.transactions.get(self._application)
        if written is None and not empty:
            raise TargetChangedError(
                f"The query has written no shadow of the table '{self._name}': it writes another path, or runs an "
                "earlier Floodmark or with engine=spark.",
                "Start the query with this Floodmark, and rebuild the table again.",
            )
        if written is not None and done.batch > written:
            raise TargetChangedError(
                f"The Iceberg table '{self._name}' has other micro-batches than its shadow: another Floodmark has "
                "written it meanwhile.",
                _AGAIN,
            )
        if written is not None and done.batch < written:
            return Replaced.LATER
        form = self._table.form()
        self._files.layout = form.layout
        known = files_of(self._table.files(state.head), self._files, form.layout)
        wanted = {file.path: file for file in new.files.values()}
        self._prove_complete(wanted)
        # They have no file in common.
        changes = Changes(list(wanted.values()), list(known.values()))
        rebuilt = {REBUILT_PROPERTY: mark.id}
        end = self._table.commit(state.head, changes, self._files, self._application, done.batch, done.mark, rebuilt)
        return Replaced.LATER if end is None else Replaced.DONE

    def _prove_complete(self, wanted: Files) -> None:
        """Check that no file is missing: for others, those of the shadow look as if nothing needs them."""
        missing = set(self._paths(wanted))
        if not missing:
            return
        for page in obstore.list(self._files.store, FOLDER.rstrip("/"), chunk_size=_AT_ONCE):
            missing -= {str(one["path"]) for one in page}
        if missing:
            raise TargetDamagedError(
                f"The shadow of '{self._name}' lacks the file {min(missing)}, among {len(missing)}: something has "
                "removed files of the folder that the table doesn't name.",
                "Let nothing remove orphan files that are younger than the rebuilding, and rebuild the table again.",
            )

    def finish(self, mark: RebuildMark) -> None:  # noqa: ARG002
        """Remove the mark and the shadow's log (``RebuildableTarget``)."""
        self._marks.remove(self._name)
        self._marks.remove_shadows(self._name)

    def give_up(self, mark: RebuildMark) -> None:
        """Remove the mark, the shadow's log and its files (``RebuildableTarget``)."""
        # The query looks for the mark with each micro-batch, and forgets the shadow then.
        self._marks.remove(self._name)
        paths = self._paths({file.path: file for file in self._shadow(mark).state().files.values()})
        for first in range(0, len(paths), _AT_ONCE):
            obstore.delete(self._files.store, paths[first : first + _AT_ONCE])
        self._marks.remove_shadows(self._name)
        log.info("files_of_a_shadow_are_removed", table=self._name, id=mark.id, files=len(paths))

    def failure(self, error: Exception) -> TargetError:
        """Return the error for a store that can't be used (``RebuildableTarget``)."""
        return unwritable(self._location, self._name, error)

    def _shadow(self, mark: RebuildMark) -> DeltaLog:
        return DeltaLog(self._marks.shadow(mark).store)

    def _paths(self, files: Mapping[str, DataFile]) -> list[str]:
        """Return the paths of data files and of their deletion vectors, in the table's folder."""
        vectors = {self._files.path(file.vector.path) for file in files.values() if file.vector is not None}
        return sorted({*(unquote(path) for path in files), *vectors})

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._table.opened():
            try:
                yield
            except self._table.failures as error:
                raise self._table.failure(error) from error


def _is_by(mark: RebuildMark, state: TableState) -> bool:
    return state.properties.get(REBUILT_PROPERTY) == mark.id
