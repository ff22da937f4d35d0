"""Decides whether a query may write a micro-batch to a table: once each, and only to a table that is its own."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from floodmark.errors import TargetChangedError
from floodmark.sinks.column_rules import columns_of
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DeltaLog, State
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.layouts import is_clustered, prove_clustering, prove_partition, prove_partitioned
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.planning.agreement import Agreement
from floodmark.sinks.delta.protocols import TableListener
from floodmark.sinks.delta.tables import (
    DELETES_PROPERTY,
    OWNER_PROPERTY,
    creation,
    emptied,
    owner,
    prove_key,
    prove_mode,
)
from floodmark.sinks.micro_batches import comes_again, mark_of
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.table_properties import properties_of

LAST = "-last"
"""The end of the name under which the table's log keeps what tells the last micro-batch from others."""
_NOTE = "floodmark.last"


class Admission:
    """What every writer of a table asks before it writes.

    Args:
        files: the table's.
        application: names the query in the table's log.
        options: the mirror's.
        listener: what is told about the table.
        written: the last micro-batch that the table must have, if it is known.
    """

    def __init__(
        self,
        files: DataFiles,
        application: str,
        options: MirrorOptions,
        listener: TableListener,
        written: int | None = None,
    ) -> None:
        self._files = files
        self._name = files.table
        self._partition = columns_of(files.table, options.partition_by)
        self._application = application
        self._options = options
        self._listener = listener
        self._written = written

    def agreeing(self, batch: int, parts: Sequence[Part], log: DeltaLog, known: State) -> tuple[list[Part], pa.Schema]:
        """Return the parts that go with the newest one, and their columns.

        The others are left out only where the table is to be made, and then the source's is read again: a micro-batch
        with both would otherwise be in the way for ever.

        Args:
            known: an earlier state of the table.

        Raises:
            TargetUnfitError: there are others, and the table exists.
        """
        found = Agreement.of(parts)
        if found.others:
            state = log.state(known)
            if state.version >= 0 and state.transactions.get(self._application) != batch:
                raise found.torn(self._name)
            if state.version < 0:
                self._listener.is_missing(self._name, bool(found.key), torn=True)
            self._files.discard(add for part in found.others for add in part.adds)
        return list(found.parts), found.columns

    def properties(self, key: Sequence[str]) -> dict[str, str]:
        """Return the properties that the table is made with, besides its key."""
        mode = self._options.mode if key else "hard"
        own = {OWNER_PROPERTY: self._application, DELETES_PROPERTY: mode}
        return {**properties_of(self._name, self._options.table_properties), **own}

    def creation(self, source: pa.Schema, key: Sequence[str]) -> list[Action]:
        """Return the actions that create the table.

        Args:
            source: the source's columns.
            key: the columns of the key.

        Raises:
            TargetError: no table can be clustered, or partitioned, by the columns that the options name.
        """
        self._written = None
        clustering = columns_of(self._name, self._options.cluster_by)
        prove_clustering(source, clustering, self._name)
        prove_partition(source, self._partition, bool(clustering), self._name)
        vectors = self._options.deletion_vectors == "on"
        return creation(source, key, self.properties(key), vectors, clustering, self._partition)

    def emptying(self, state: State, source: pa.Schema, key: Sequence[str], at_ms: int) -> list[Action]:
        """Return the actions that remove all rows and make the table as if it were created now.

        Args:
            source: the source's columns.
            key: the columns of the key.
            at_ms: the time, in milliseconds since the epoch.

        Raises:
            TargetError: the table can't be partitioned by the columns that the options name.
        """
        prove_partition(source, self._partition, is_clustered(state), self._name)
        return emptied(state, source, key, self.properties(key), at_ms, self._partition)

    def prove_kept(self, log: DeltaLog, state: State) -> None:
        """Check that a table, which is written for the first time in this process, has what this query has written.

        Raises:
            TargetChangedError: it doesn't.
        """
        done = state.transactions.get(self._application)
        if self._written is not None and (done is None or done < self._written):
            raise TargetChangedError(
                f"The Delta table '{self._name}' lacks micro-batch {self._written}, which this query has written: the "
                "table was restored from a backup, or another one has taken its place.",
                "Put the table back as it was, or remove it and start the query with the mirror's option "
                "missing.tables=read.",
            )
        if done is not None and log.is_undone(state, self._application):
            raise self._undone()

    def must_be_emptied(self, state: State) -> bool:
        """Return whether the table is another query's, and is to be emptied before this one writes it.

        Raises:
            TargetChangedError: it is another query's now, or lacks what this one has written.
        """
        another = owner(state) not in (None, self._application)
        if self._application in state.transactions:
            self._prove_kept(another, self._application in state.undone)
            return False
        if state.files:
            self._prove_replaceable()
        return bool(state.files) or another

    def prove_made_for(self, state: State, key: Sequence[str]) -> None:
        """Check that the table was made for a key, a way in which rows are changed and deleted, and its partitions.

        Raises:
            TargetUnfitError: it was made for another key.
            TargetError: it was made for another way.
        """
        prove_key(state, key, self._name)
        prove_mode(state, self._options.mode if key else "hard", self._name)
        prove_partitioned(state, self._partition, self._name)

    def is_done(self, batch: int, parts: Sequence[Part], log: DeltaLog, state: State) -> bool:
        """Return whether a micro-batch is the last one of the table, which Spark delivers again.

        Raises:
            TargetChangedError: it is an earlier one, or another one with that number: the checkpoint is older than the
                table.
        """
        done = state.transactions.get(self._application)
        if done is None or done < batch:
            return False
        mark = mark_of(part.extent for part in parts)
        written = (state.transactions.get(self._application + LAST), _noted(log.note_of(state, self._application)))
        if done == batch and any(one is not None and comes_again(one, mark) for one in written):
            return True
        raise TargetChangedError(
            f"The checkpoint is older than the Delta table '{self._name}': it goes on with micro-batch {batch}, "
            f"but the table has {done} already, with other rows.",
            "Start the query with the checkpoint that belongs to the table. If it is lost, use a new one, with the "
            "mirror's option existing.tables=empty.",
        )

    def _prove_kept(self, another: bool, undone: bool) -> None:
        """Raise an error if another query has made the table its own, or an earlier version was restored."""
        if undone:
            raise self._undone()
        if another:
            raise TargetChangedError(
                f"Another query has emptied the Delta table '{self._name}' and writes it now.",
                "Give each query a path of its own. To take the table over, end the other one, and start this one with "
                "a new checkpoint and the mirror's option existing.tables=empty.",
            )

    def _undone(self) -> TargetChangedError:
        return TargetChangedError(
            f"The Delta table '{self._name}' was restored to an earlier version, so it lacks what this query has "
            "written since.",
            "Start the query with a new checkpoint and the mirror's option existing.tables=empty.",
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


def outrun(name: str, attempts: int) -> TargetChangedError:
    """Return the error for a table that others changed each time that a micro-batch was to be written."""
    return TargetChangedError(
        f"Other writers changed the Delta table '{name}' each of the {attempts} times that a micro-batch was to be "
        "written.",
        "Let them pause, or write less often, and start the query again. Nothing is lost.",
    )


def note(parts: Sequence[Part]) -> str:
    """Return the mark of a micro-batch as text that a commit can carry, where it can have only one transaction."""
    return json.dumps({_NOTE: mark_of(part.extent for part in parts)})


def _noted(text: str) -> int | None:
    """Return the mark in such a text; None: it is another one."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    value = found.get(_NOTE) if isinstance(found, dict) else None
    return value if isinstance(value, int) else None
