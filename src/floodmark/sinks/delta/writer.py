"""Commits what tasks have written of a micro-batch to a Delta table.

That adds their data files, and one deletion vector for each file that holds an earlier version of a changed row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Lock
from typing import Protocol

import pyarrow as pa
from obstore.exceptions import BaseError

from floodmark.logger import get_logger
from floodmark.sinks.column_rules import columns_of
from floodmark.sinks.delta.admission import LAST, Admission, outrun
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import NO_TABLE, DataFile, DeltaLog, commit_info, now_ms
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.parts import Part, fitting
from floodmark.sinks.delta.planning.histories import Histories, has_ended
from floodmark.sinks.delta.planning.replacements import Replacements
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.delta.protocols import MakeWriter, TableListener, TableWriter
from floodmark.sinks.delta.rebuilding.marks import MarksOfBatch
from floodmark.sinks.delta.rebuilding.shadows import ShadowedWriter, ShadowListener
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.delta.tables import evolution, fitted, prove_writable, widened
from floodmark.sinks.delta.upkeep import AtOnce, Upkeep
from floodmark.sinks.history import VALID_TO
from floodmark.sinks.micro_batches import mark_of
from floodmark.sinks.options import MirrorOptions

log = get_logger(__name__)


_ATTEMPTS = 20
"""How often a commit is planned again because another writer was faster."""
_THREADS = 4


class Planner(Protocol):
    """Decides what a micro-batch adds to a table with a key, and what it deletes there."""

    def actions(
        self, parts: Sequence[Part], files: list[DataFile], key: Sequence[str], columns: pa.Schema, at_ms: int
    ) -> list[Action]:
        """Return the actions for the log; what they name is written here.

        Args:
            parts: at least one.
            files: those of the table.
            key: the columns of the key.
            columns: those of the parts with the types that they have in the table.
            at_ms: the time, in milliseconds since the epoch.
        """


class DeltaWriter:
    """Writes micro-batches of one table.

    Args:
        folder: the table's.
        application: names this query in the table's log, for exactly-once delivery.
        name: the table's, for errors.
        options: the mirror's.
        kept: what all tables of a mirror keep in memory.
        listener: what is told about the table.
        pool: where files are rewritten beside the micro-batches.
        written: the last micro-batch that the table must have, if it is known.
        log_folder: the folder with the table's log, if that isn't the one with its files.
        files: the table's data files, if they aren't Delta's own.
    """

    def __init__(
        self,
        folder: TableFolder,
        application: str,
        name: str,
        options: MirrorOptions,
        kept: KeptRows,
        listener: TableListener,
        pool: Executor,
        written: int | None = None,
        log_folder: TableFolder | None = None,
        files: DataFiles | None = None,
    ) -> None:
        log_folder = log_folder or folder
        self._partition = columns_of(name, options.partition_by)
        self._files = files or DataFiles(folder.store, name, self._partition)
        self._name = name
        self._application = application
        self._options = options
        self._vectors = options.deletion_vectors == "on"
        self._listener = listener
        self._admission = Admission(self._files, application, options, listener, written)
        self._log = DeltaLog(log_folder.store)
        self._state = NO_TABLE
        self._rows = TargetRows(self._files, name, kept)
        self._mode = options.mode
        self._lock = Lock()
        kind = has_ended if self._mode == "history" else _alike
        # Copies of files win against a rewriting beside them each time.
        beside = pool if self._vectors else AtOnce()
        self._upkeep = Upkeep(self._log, self._files, self._rows, log_folder.uri, options, kind, beside, self._lock)
        self._planner: Planner = (
            Histories(self._files, self._rows, self._vectors)
            if self._mode == "history"
            else Replacements(self._files, self._rows, self._vectors, self._mode == "soft")
        )

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch, and return whether that changed the table (``TableWriter``)."""
        with self._lock:
            written = self._write(batch, parts)
            state = self._state
        if not written:
            return False
        self._upkeep.begin(state, self._order(parts[0].key))
        return True

    def share_files(self, shared: bool) -> None:
        """Say whether another log may name files that the table's doesn't, so that none may be removed."""
        self._files.shared = shared

    def _write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch; return whether it hadn't been applied already."""
        parts, source = self._admission.agreeing(batch, parts, self._log, self._state)
        key = parts[0].key
        for _ in range(_ATTEMPTS):
            columns = self._refresh(key, source)
            if columns is None:
                continue
            if self._admission.is_done(batch, parts, self._log, self._state):
                self._files.discard(add for part in parts for add in part.adds)
                return False
            parts = [fitting(self._files, part, columns) for part in parts]
            now = now_ms()
            try:
                actions = self._actions(batch, parts, key, columns, now)
            except (BaseError, OSError):
                # Where a disk is full, they would stay with each further try.
                self._files.discard(add for part in parts for add in part.adds)
                raise
            if self._commit("MERGE", now, actions):
                self._state = self._state.after(actions)
                return True
        raise outrun(self._name, _ATTEMPTS)

    def _refresh(self, key: Sequence[str], source: pa.Schema) -> pa.Schema | None:
        """Read what others have committed, and make the table one that can take the rows.

        Args:
            key: the columns of the key.
            source: the columns of the rows.

        Returns:
            The columns with the types that they have in the table; None if it was altered and is to be read again.
        """
        state = self._log.state(self._state)
        if state.version < 0:
            self._listener.is_missing(self._name, bool(key))
            # Another writer may have been faster.
            self._log.commit(0, self._admission.creation(source, key))
            state = self._log.state()
        if self._state.version < 0:
            self._admission.prove_kept(self._log, state)
        if (state.protocol, state.metadata) != (self._state.protocol, self._state.metadata):
            prove_writable(state, self._name, self._vectors)
        if self._state.version < 0:
            self._listener.exists(self._name)
        self._state, now = state, now_ms()
        if self._admission.must_be_emptied(state):
            self._commit("TRUNCATE", now, self._admission.emptying(state, source, key, now))
            return None
        self._admission.prove_made_for(state, key)
        columns, wider = fitted(state, source, self._name)
        if wider:
            self._widen(wider, key, now)
            return None
        return columns

    def _widen(self, wider: Mapping[str, pa.DataType], key: Sequence[str], at_ms: int) -> None:
        """Give columns types that hold more, which rewrites all files, unless another writer is faster."""
        shown = {name: str(kind) for name, kind in wider.items()}
        log.warning("columns_get_other_types", table=self._name, columns=shown, effect="all files are rewritten")
        files = list(self._state.files.values())
        with ThreadPoolExecutor(_THREADS) as pool:
            alone = [[(file, self._rows.deleted(file))] for file in files]
            adds = list(pool.map(lambda one: rewritten(self._files, one, self._order(key), wider).add, alone))
        removed = [file.removed(at_ms, changes_data=False) for file in files]
        added: list[Action] = [{"add": add} for add in adds if add is not None]
        if not self._commit("CHANGE COLUMN", at_ms, [widened(self._state, wider, self._name), *removed, *added]):
            self._files.discard(adds)
        elif wider.keys() & set(self._partition):
            # Readers built on Delta's kernel parse the values of removed files, too, unless a checkpoint hides them.
            self._upkeep.checkpoint(self._state.version + 1)

    def _order(self, key: Sequence[str]) -> Sequence[str]:
        """Return the columns by which files are sorted."""
        return [*key, VALID_TO] if key and self._mode == "history" else key

    def _commit(self, operation: str, at_ms: int, actions: Sequence[Action]) -> bool:
        """Commit the next version of the table; return whether no other writer was faster."""
        return self._log.commit(self._state.version + 1, [commit_info(operation, at_ms), *actions])

    def _actions(
        self, batch: int, parts: Sequence[Part], key: Sequence[str], columns: pa.Schema, now: int
    ) -> list[Action]:
        """Return the actions of a commit, whose vectors are written here."""
        # The new columns come with the first rows that have them.
        actions, added = evolution(self._state, columns, self._name)
        files = list(self._state.files.values())
        if added and files and key:
            self._listener.gets_columns(self._name, added)
        if key:
            actions += self._planner.actions(parts, files, key, columns, now)
        else:
            actions += [{"add": add} for part in parts for add in part.adds]
        done = {self._application: batch, self._application + LAST: mark_of(part.extent for part in parts)}
        transactions: list[Action] = [
            {"txn": {"appId": name, "version": version, "lastUpdated": now}} for name, version in done.items()
        ]
        return [*actions, *transactions]


def own_writers(location: str, options: MirrorOptions) -> MakeWriter:
    """Return what makes the writers of a mirror's tables.

    Args:
        location: the mirror's path, or its URI.
        options: the mirror's.
    """
    # One table's files at a time are rewritten, since that takes memory.
    kept, pool, marks = KeptRows(), ThreadPoolExecutor(1), MarksOfBatch(location)

    def made(
        table: str, folder: TableFolder, application: str, listener: TableListener, written: int | None
    ) -> TableWriter:
        target = DeltaWriter(folder, application, table, options, kept, listener, pool, written)

        def shadow(log_folder: TableFolder) -> DeltaWriter:
            listens = ShadowListener()
            return DeltaWriter(folder, application, table, options, KeptRows(), listens, pool, log_folder=log_folder)

        return ShadowedWriter(table, target, shadow, marks)

    return made


def _alike(_: DataFile) -> bool:
    return True
