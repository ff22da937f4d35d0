"""Keeps the files of a Delta table few and its log short, beside the micro-batches.

Neither matters for what the table holds, so that a failure is only a warning.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import TypeVar

import numpy as np
import obstore
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from floodmark.errors import TargetError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.compaction import Rewritten, due, rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.format.log_cleanup import clean_log, retention_of
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vacuum import vacuum
from floodmark.sinks.delta.format.vectors import Rows, VectorFile
from floodmark.sinks.delta.planning.target_rows import TargetRows
from floodmark.sinks.delta.tables import features_in, properties_in
from floodmark.sinks.options import MirrorOptions

logger = get_logger(__name__)

T = TypeVar("T")
_CHECKPOINT_EVERY = 50
"""How many versions a checkpoint of the log comes after."""
_REMOVE_EVERY_MS = 3_600_000
"""How much time is at least between two times that a table's old files are removed in this process."""
_BEHIND = 3
"""How often as many files as are rewritten together may come meanwhile; then a micro-batch waits."""
_ATTEMPTS = 5
"""How often a commit is tried when other writers are faster."""


class AtOnce(Executor):
    """Does what is submitted before it returns."""

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
        """Call a function and return its result as that of a future that is done."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Upkeep:
    """What is done for a table beside its micro-batches.

    Args:
        log: the table's.
        files: the table's.
        rows: their rows.
        uri: names the table for delta-rs.
        options: the mirror's.
        kind: tells files apart that don't become one.
        pool: where it is done.
        lock: is held while a version is planned and committed.
    """

    def __init__(
        self,
        log: DeltaLog,
        files: DataFiles,
        rows: TargetRows,
        uri: str,
        options: MirrorOptions,
        kind: Callable[[DataFile], bool],
        pool: Executor,
        lock: Lock,
    ) -> None:
        self._log = log
        self._files = files
        self._rows = rows
        self._uri = uri
        self._together = options.compact_files
        self._vacuum_hours = options.vacuum_hours
        self._removed_ms = 0
        self._kind = kind
        self._pool = pool
        self._lock = lock
        self._running: Future[None] | None = None
        self._meanwhile = 0
        self._seen = -1

    def begin(self, known: State, order: Sequence[str]) -> None:
        """Begin to do what is due after a micro-batch, unless that goes on; wait for it where it falls behind.

        Args:
            known: the table's state.
            order: the columns by which files are sorted.
        """
        # The micro-batch itself is a version.
        self._seen = known.version - 1 if self._seen < 0 else self._seen
        if not self._together and not self._needs_checkpoint(known.version):
            return
        if self._running is not None:
            self._meanwhile += 1
            if not self._running.done() and self._meanwhile <= _BEHIND * self._together:
                return
            self._running.result()
        self._meanwhile = 0
        self._running = self._pool.submit(self._tidy, known, order)

    def checkpoint(self, version: int) -> None:
        """Give the log a checkpoint."""
        try:
            DeltaTable(self._uri).create_checkpoint()
        except DeltaError as error:
            self._warn(version, error)

    def _tidy(self, known: State, order: Sequence[str]) -> None:
        state = known
        try:
            state = self._log.state(known)
            if self._together:
                for group in due(state.files.values(), self._together, self._kind):
                    state = self._compact(state, group, order)
            if self._needs_checkpoint(state.version):
                self.checkpoint(state.version)
                state = self._remove(state)
        except (pa.ArrowException, BaseError, MemoryError, OSError, TargetError) as error:
            self._warn(state.version, error)
        self._seen = state.version

    def _needs_checkpoint(self, version: int) -> bool:
        return version // _CHECKPOINT_EVERY > self._seen // _CHECKPOINT_EVERY

    def _remove(self, state: State) -> State:
        """Remove files that nobody needs any more, unless that was done a short while ago; return the new state."""
        now, store, removed = now_ms(), self._files.store, 0
        if now - self._removed_ms < _REMOVE_EVERY_MS:
            return state
        self._removed_ms = now
        retention = retention_of(properties_in(state), features_in(state, self._files.table))
        if retention is not None:
            removed += clean_log(store, retention, dt.datetime.fromtimestamp(now / 1000, dt.UTC))
        if self._vacuum_hours and not self._files.shared:
            state = self._log.state(state)
            removed += vacuum(store, self._log, state, self._vacuum_hours, now)
        if removed:
            logger.info("old_files_are_removed", table=self._files.table, files=removed)
        return state

    def _compact(self, state: State, group: Sequence[DataFile], order: Sequence[str]) -> State:
        """Rewrite files as one, and return the table's state then."""
        before = [self._rows.deleted(file) for file in group]
        made = rewritten(self._files, list(zip(group, before, strict=True)), order)
        with self._lock:
            for _ in range(_ATTEMPTS):
                state = self._log.state(state)
                actions = self._replacing(state, group, made, before)
                if actions is None:
                    break
                if self._log.commit(state.version + 1, [commit_info("OPTIMIZE", now_ms()), *actions]):
                    return self._log.state(state)
        self._files.discard([made.add])
        return state

    def _replacing(
        self, state: State, group: Sequence[DataFile], made: Rewritten, before: Sequence[Rows]
    ) -> list[Action] | None:
        """Return the actions that replace files, of which rows may have been deleted meanwhile.

        Args:
            before: which rows of each file were deleted when they were rewritten.

        Returns:
            None if any of the files isn't in the table any more, or has rows again that were deleted.
        """
        paths = {file.path: file for file in state.files.values()}
        present = [paths[file.path] for file in group if file.path in paths]
        if len(present) < len(group):
            return None
        at_ms = now_ms()
        deleted = [self._rows.deleted(file).astype(np.int64) for file in present]
        if not all(np.isin(rows.astype(np.int64), now).all() for rows, now in zip(before, deleted, strict=True)):
            return None
        lost = np.concatenate([places[rows] for places, rows in zip(made.places, deleted, strict=True)])
        lost = np.sort(lost[lost >= 0]).astype(np.uint64)
        actions: list[Action] = [file.removed(at_ms, changes_data=False) for file in present]
        if made.add is None or len(lost) == made.rows:
            return actions
        if not len(lost):
            return [*actions, {"add": made.add}]
        vectors = VectorFile()
        added = DataFile.from_json(dict(made.add)).without(vectors.add(lost))
        obstore.put(self._files.store, vectors.path, vectors.content)
        return [*actions, added]

    def _warn(self, version: int, error: Exception) -> None:
        logger.warning("a_table_is_not_tidied", table=self._files.table, version=version, error=describe(error))
