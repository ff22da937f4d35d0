"""Commits what tasks have written of a micro-batch to a Delta table.

That adds their data files, and one deletion vector for each file that holds an earlier version of a changed row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from hashlib import blake2b
from threading import Lock
from typing import Protocol

import pyarrow as pa

from floodmark.errors import TargetChangedError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.column_rules import columns_of
from floodmark.sinks.delta.compaction import rewritten
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import NO_TABLE, Action, DataFile, DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.histories import Histories, has_ended
from floodmark.sinks.delta.layouts import is_clustered, prove_clustering, prove_partition, prove_partitioned
from floodmark.sinks.delta.parts import OPERATION, Part, fitting
from floodmark.sinks.delta.replacements import Replacements
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.delta.tables import (
    DELETES_PROPERTY,
    OWNER_PROPERTY,
    creation,
    emptied,
    evolution,
    fitted,
    owner,
    prove_key,
    prove_mode,
    prove_writable,
    widened,
)
from floodmark.sinks.delta.target_rows import KeptRows, TargetRows
from floodmark.sinks.delta.upkeep import AtOnce, Upkeep
from floodmark.sinks.history import VALID_TO
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.table_properties import properties_of

log = get_logger(__name__)


_ATTEMPTS = 20
"""How often a commit is planned again because another writer was faster."""
_THREADS = 4
_LAST = "-last"
"""The end of the name under which the table's log keeps what tells the last micro-batch from others."""


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


class TableListener(Protocol):
    """Is told about tables before something happens to them."""

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        """Called before a table is made.

        Args:
            keyed: whether its rows have a key.
            torn: whether earlier rows of the micro-batch are left out, since they don't go with later ones.
        """

    def exists(self, table: str) -> None:
        """Called when a table is written for the first time in this process, as soon as it exists."""

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        """Called before a table that has rows gets columns that the source's rows have."""


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
    ) -> None:
        self._partition = columns_of(name, options.partition_by)
        self._files = DataFiles(folder.store, name, self._partition)
        self._name = name
        self._application = application
        self._options = options
        self._vectors = options.deletion_vectors == "on"
        self._listener = listener
        self._log = DeltaLog(folder.store)
        self._state = NO_TABLE
        self._rows = TargetRows(self._files, name, kept)
        self._mode = options.mode
        self._lock = Lock()
        kind = has_ended if self._mode == "history" else _alike
        # Copies of files win against a rewriting beside them each time.
        beside = pool if self._vectors else AtOnce()
        self._upkeep = Upkeep(self._log, self._files, self._rows, folder.uri, options, kind, beside, self._lock)
        self._planner: Planner = (
            Histories(self._files, self._rows, self._vectors)
            if self._mode == "history"
            else Replacements(self._files, self._rows, self._vectors, self._mode == "soft")
        )

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch; return whether that changed the table, which it doesn't if it had been applied before.

        Args:
            batch: its number.
            parts: what its tasks have made of the table's rows; at least one.

        Raises:
            TargetChangedError: other writers were faster each time.
            TargetError: the table can't be written.
        """
        with self._lock:
            before = self._write(batch, parts)
        if before is None:
            return False
        self._upkeep.begin(before, self._order(parts[0].key))
        return True

    def _write(self, batch: int, parts: Sequence[Part]) -> State | None:
        """Commit a micro-batch; return the state before, None if it had been applied already."""
        parts, source = self._agreeing(batch, parts)
        key = parts[0].key
        for _ in range(_ATTEMPTS):
            columns = self._refresh(key, source)
            if columns is None:
                continue
            done = self._state.transactions.get(self._application)
            if done is not None and done >= batch:
                self._prove_repeated(batch, done, parts)
                self._files.discard(add for part in parts for add in part.adds)
                return None
            parts = [fitting(self._files, part, columns) for part in parts]
            now = now_ms()
            if self._commit("MERGE", now, self._actions(batch, parts, key, columns, now)):
                return self._state
        raise TargetChangedError(
            f"Other writers changed the Delta table '{self._name}' each of the {_ATTEMPTS} times that a micro-batch "
            "was to be written.",
            "Let them pause, or write less often, and start the query again. Nothing is lost.",
        )

    def _prove_repeated(self, batch: int, done: int, parts: Sequence[Part]) -> None:
        """Prove that a micro-batch is the last one of the table, which Spark delivers again, and no other.

        Raises:
            TargetChangedError: the checkpoint is older than the table.
        """
        if done > batch or self._state.transactions.get(self._application + _LAST) != _mark(parts):
            raise TargetChangedError(
                f"The checkpoint is older than the Delta table '{self._name}': it goes on with micro-batch {batch}, "
                f"but the table has {done} already, with other rows.",
                "Start the query with the checkpoint that belongs to the table. If it is lost, use a new one, with the "
                "mirror's option existing.tables=empty.",
            )

    def _agreeing(self, batch: int, parts: Sequence[Part]) -> tuple[list[Part], pa.Schema]:
        """Return the parts that go with the newest one, and their columns.

        The others are left out only where the table is to be made, and then the source's is read again: a micro-batch
        with both would otherwise be in the way for ever.

        Raises:
            TargetUnfitError: there are others, and the table exists.
        """
        newest, *older = sorted(parts, key=lambda part: part.last, reverse=True)
        chosen, columns, others = [newest], newest.columns, []
        for part in older:
            try:
                both = pa.unify_schemas([columns, part.columns], promote_options="permissive")
            except pa.ArrowException:
                both = None
            if both is None or part.key != newest.key:
                others.append(part)
            else:
                chosen.append(part)
                columns = both
        if others:
            what = "key" if others[0].key != newest.key else "types"
            state = self._log.state(self._state)
            if state.version >= 0 and state.transactions.get(self._application) != batch:
                raise TargetUnfitError(
                    f"The {what} of the table '{self._name}' changed within a micro-batch: its rows in the target "
                    "can't be told apart any more, or have no type in common.",
                    "Remove the target table, and start the query with the mirror's option missing.tables=read.",
                )
            if state.version < 0:
                self._listener.is_missing(self._name, bool(newest.key), torn=True)
            self._files.discard(add for part in others for add in part.adds)
        return chosen, columns if newest.key else columns.append(pa.field(OPERATION, pa.string()))

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
            clustering = columns_of(self._name, self._options.cluster_by)
            prove_clustering(source, clustering, self._name)
            prove_partition(source, self._partition, bool(clustering), self._name)
            properties = self._properties(key)
            self._log.commit(0, creation(source, key, properties, self._vectors, clustering, self._partition))
            state = self._log.state()
        if (state.protocol, state.metadata) != (self._state.protocol, self._state.metadata):
            prove_writable(state, self._name, self._vectors)
        if self._state.version < 0:
            self._listener.exists(self._name)
        self._state, now = state, now_ms()
        another = owner(state) not in (None, self._application)
        if self._application in state.transactions:
            self._prove_kept(another, self._application in state.undone)
        elif state.files or another:
            if state.files:
                self._prove_replaceable()
            prove_partition(source, self._partition, is_clustered(state), self._name)
            again = emptied(state, source, key, self._properties(key), now, self._partition)
            self._commit("TRUNCATE", now, again)
            return None
        prove_key(state, key, self._name)
        prove_mode(state, self._mode if key else "hard", self._name)
        prove_partitioned(state, self._partition, self._name)
        columns, wider = fitted(state, source, self._name)
        if wider:
            self._widen(wider, key, now)
            return None
        return columns

    def _properties(self, key: Sequence[str]) -> dict[str, str]:
        """Return the properties that the table is made with."""
        own = {OWNER_PROPERTY: self._application, DELETES_PROPERTY: self._mode if key else "hard"}
        return {**properties_of(self._name, self._options.table_properties), **own}

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
        done = {self._application: batch, self._application + _LAST: _mark(parts)}
        transactions: list[Action] = [
            {"txn": {"appId": name, "version": version, "lastUpdated": now}} for name, version in done.items()
        ]
        return [*actions, *transactions]

    def _prove_kept(self, another: bool, undone: bool) -> None:
        """Raise an error if another query has made the table its own, or an earlier version was restored."""
        if undone:
            raise TargetChangedError(
                f"The Delta table '{self._name}' was restored to an earlier version, so it lacks what this query has "
                "written since.",
                "Start the query with a new checkpoint and the mirror's option existing.tables=empty.",
            )
        if another:
            raise TargetChangedError(
                f"Another query has emptied the Delta table '{self._name}' and writes it now.",
                "Give each query a path of its own. To take the table over, end the other one, and start this one with "
                "a new checkpoint and the mirror's option existing.tables=empty.",
            )

    def _prove_replaceable(self) -> None:
        """Raise an error unless the option says that what another query has written may be removed."""
        if self._options.existing_tables == "fail":
            raise TargetChangedError(
                f"The Delta table '{self._name}' has rows that this query has not written; its checkpoint is new, or "
                "another one's. Rows that the source deleted in between would stay.",
                "Set the mirror's option existing.tables to 'empty', remove the table, give the query another path, or "
                "start it with the checkpoint that belongs to the table.",
            )


def _alike(_: DataFile) -> bool:
    return True


def _mark(parts: Sequence[Part]) -> int:
    """Return a number for the position at which a micro-batch ends for a table."""
    last = max(part.last for part in parts)
    return int.from_bytes(blake2b(last.encode(), digest_size=8).digest(), "big") >> 1
