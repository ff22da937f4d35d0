"""Puts what a table's shadow has in the place of what the table has, by one commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

import obstore

from floodmark.errors import TargetChangedError, TargetDamagedError
from floodmark.json_data import JsonObject
from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vectors import damaged
from floodmark.sinks.delta.rebuilding.marks import REBUILT_PROPERTY, RebuildMarks
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.delta.tables import owner, properties_in, with_features_of
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced

_AGAIN = "Rebuild the table again."
_REMOVED_AT_ONCE = 1000


class Replacement:
    """Replaces one table.

    Args:
        location: a path or a URI, below which the tables' folders are.
        mark: the table's.
        application: names the query in the table's log.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str, mark: RebuildMark, application: str) -> None:
        self._marks = RebuildMarks(location)
        self._mark = mark
        self._application = application
        self._store = table_folder(location, mark.table).store
        self._table = DeltaLog(self._store)
        self._shadow = DeltaLog(self._marks.shadow(mark).store)

    def is_done(self) -> bool:
        """Return whether the table has the shadow's rows already."""
        return _is_by(self._mark, self._table.state())

    def attempt(self, empty: bool) -> Replaced:
        """Try to replace the table.

        Args:
            empty: whether the source's table had no rows when it was read, so that there may be no shadow.

        Raises:
            TargetChangedError: the table is gone or another query's, or the shadow lacks what the table has.
            TargetDamagedError: the shadow lacks files.
        """
        # In this order: the shadow gets each micro-batch first.
        new, old = self._shadow.state(), self._table.state()
        if _is_by(self._mark, old):
            return Replaced.DONE
        self._prove_own(old)
        if not self._goes_with(new, old, empty):
            return Replaced.LATER
        self._prove_complete(new)
        at_ms = now_ms()
        actions = [commit_info("REPLACE TABLE", at_ms), *_replacing(self._mark, new, old, at_ms)]
        return Replaced.DONE if self._table.commit(old.version + 1, actions) else Replaced.LATER

    def discard(self) -> int:
        """Remove the files that only the shadow has, of a table that isn't replaced; return how many.

        None is removed while the query may be about to add one to the table.
        """
        new, old = self._shadow.state(), self._table.state()
        done, known = (state.transactions.get(self._application, -1) for state in (new, old))
        if new.version < 0 or done > known or _is_by(self._mark, old):
            return 0
        kept = set(_paths([*old.files.values(), *self._table.removed_since(0)]))
        unused = sorted(set(_paths(new.files.values())) - kept)
        for first in range(0, len(unused), _REMOVED_AT_ONCE):
            obstore.delete(self._store, unused[first : first + _REMOVED_AT_ONCE])
        return len(unused)

    def _prove_own(self, old: State) -> None:
        if old.version < 0:
            raise TargetChangedError(f"The Delta table '{self._mark.table}' is gone.", _AGAIN)
        if owner(old) != self._application:
            raise TargetChangedError(
                f"Another query writes the Delta table '{self._mark.table}' now.",
                "Give the checkpoint of the query that writes it.",
            )

    def _goes_with(self, new: State, old: State, empty: bool) -> bool:
        """Return whether both have the same micro-batches; False: the table is about to get the shadow's last one."""
        # After the table's state was read: if the shadow lacks a micro-batch of it, that was noted before.
        self._marks.prove_current(self._mark)
        done, known = (state.transactions.get(self._application) for state in (new, old))
        if done is None:
            if empty:
                return True
            raise TargetChangedError(
                f"The query has written no shadow of the table '{self._mark.table}': it writes another path, or runs "
                "an earlier Floodmark or with engine=spark.",
                "Start the query with this Floodmark, and rebuild the table again.",
            )
        if known is None or known > done or self._application in old.undone:
            raise TargetChangedError(
                f"The Delta table '{self._mark.table}' has other micro-batches than its shadow: it was restored, or "
                "another Floodmark has written it meanwhile.",
                _AGAIN,
            )
        return known == done

    def _prove_complete(self, new: State) -> None:
        """Check that no file is missing, as another writer's ``VACUUM`` knows only those of the table."""
        wanted = set(_paths(new.files.values()))
        if not wanted:
            return
        for page in obstore.list(self._store, chunk_size=_REMOVED_AT_ONCE):
            wanted -= {str(one["path"]) for one in page}
        if wanted:
            raise TargetDamagedError(
                f"The shadow of '{self._mark.table}' lacks the file {min(wanted)}, among {len(wanted)}: something has "
                "removed files of the folder that the table doesn't name.",
                "Let no VACUUM with a short retention run meanwhile, and rebuild the table again.",
            )


def _replacing(mark: RebuildMark, new: State, old: State, at_ms: int) -> Iterable[Action]:
    """Yield the actions that make a table what its shadow is."""
    properties = {**properties_in(old), REBUILT_PROPERTY: mark.id}
    metadata = JsonObject(old.metadata, f"The metadata of '{mark.table}'", damaged).content()
    if new.version >= 0:
        other = JsonObject(new.metadata, f"The metadata of the shadow of '{mark.table}'", damaged)
        metadata |= {name: other.value(name) for name in ("schemaString", "partitionColumns")}
        yield from with_features_of(old.protocol, new.protocol, mark.table)
    yield {"metaData": {**metadata, "configuration": properties}}
    for identity, file in old.files.items():
        if identity not in new.files:
            yield file.removed(at_ms)
    for identity, file in new.files.items():
        if identity not in old.files:
            add = {name: value for name, value in file.add.items() if value is not None}
            yield {"add": {**add, "dataChange": True}}


def _is_by(mark: RebuildMark, state: State) -> bool:
    return state.version >= 0 and properties_in(state).get(REBUILT_PROPERTY) == mark.id


def _paths(files: Iterable[DataFile]) -> Sequence[str]:
    """Return the paths of data files, and of their deletion vectors."""
    vectors = [file.vector.path for file in files if file.vector is not None and file.vector.offset is not None]
    return [*(unquote(file.path) for file in files), *vectors]
