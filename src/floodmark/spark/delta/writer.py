"""Commits what tasks have written of a micro-batch to a Delta table with Spark's ``MERGE``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from obstore.exceptions import BaseError
from pyspark.sql import SparkSession

from floodmark.errors import TargetError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.admission import Admission, note, outrun
from floodmark.sinks.delta.compaction import due
from floodmark.sinks.delta.format.data_files import DataFiles, with_position
from floodmark.sinks.delta.format.log import NO_TABLE, DeltaLog
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.protocols import TableListener
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.delta.tables import evolution, fitted, identity, prove_vectors
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.delta.failures import SPARK_ERRORS, is_conflict, target_error
from floodmark.spark.delta.table import SparkTable
from floodmark.spark.targets.sessions import Sessions, settings
from floodmark.spark.targets.staged import stage

log = get_logger(__name__)

_ATTEMPTS = 20
"""How often a commit is planned again because another writer was faster."""
_SPARSE = "0.5"
"""A file of which more is deleted is rewritten, whatever its size."""


class SparkWriter:
    """Writes micro-batches of one table.

    Spark's ``MERGE`` takes the application transaction of one writer, as the writer of Floodmark does. What tells the
    last micro-batch from others is a text of the same commit.

    Args:
        sessions: sessions of Spark.
        table: the table as Spark writes it.
        folder: the table's.
        application: names this query in the table's log, for exactly-once delivery.
        name: the table's, for errors.
        options: the mirror's.
        listener: what is told about the table.
        written: the last micro-batch that the table must have, if it is known.
    """

    def __init__(
        self,
        sessions: Sessions,
        table: SparkTable,
        folder: TableFolder,
        application: str,
        name: str,
        options: MirrorOptions,
        listener: TableListener,
        written: int | None = None,
    ) -> None:
        self._sessions = sessions
        self._table = table
        self._files = DataFiles(folder.store, name)
        self._application = application
        self._name = name
        self._options = options
        self._vectors = options.deletion_vectors == "on"
        self._listener = listener
        self._admission = Admission(self._files, application, options, listener, written)
        self._log = DeltaLog(folder.store)
        self._state = NO_TABLE

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch, and return whether that changed the table (``TableWriter``)."""
        parts, source = self._admission.agreeing(batch, parts, self._log, self._state)
        with self._sessions.one() as session:
            for _ in range(_ATTEMPTS):
                try:
                    written = self._attempt(session, batch, parts, source)
                except SPARK_ERRORS as error:
                    if not is_conflict(error):
                        raise target_error(self._name, error) from error
                    written = None
                if written and self._options.compact_files:
                    self._tidy(session)
                if written is not None:
                    return written
        raise outrun(self._name, _ATTEMPTS)

    def _attempt(self, session: SparkSession, batch: int, parts: Sequence[Part], source: pa.Schema) -> bool | None:
        """Return whether the table was changed; None: it was altered, and is to be read again."""
        key = parts[0].key
        columns = self._refresh(session, key, source)
        if columns is None:
            return None
        if self._admission.is_done(batch, parts, self._log, self._state):
            self._files.discard(add for part in parts for add in part.adds)
            return False
        _, added = evolution(self._state, columns, self._name)
        if added:
            if self._state.files and key:
                self._listener.gets_columns(self._name, added)
            self._table.add_columns(session, pa.schema([columns.field(name) for name in added]))
        transaction = {
            "spark.databricks.delta.write.txnAppId": self._application,
            "spark.databricks.delta.write.txnVersion": str(batch),
            "spark.databricks.delta.commitInfo.userMetadata": note(parts),
        }
        soft = self._options.mode == "soft"
        staged, truncated = stage(self._files, self._table, session, parts, key, columns, soft)
        try:
            with settings(session, transaction):
                if key and self._state.files:
                    self._table.merge(session, staged.rows, staged.deletes, key, with_position(columns), truncated)
                else:
                    self._table.append(session, staged.rows, with_position(columns))
        except SPARK_ERRORS as error:
            # They are needed once more only if this is tried again.
            if not is_conflict(error):
                staged.discard()
            raise
        staged.discard()
        return True

    def _refresh(self, session: SparkSession, key: Sequence[str], source: pa.Schema) -> pa.Schema | None:
        """Read what others have committed, and make the table one that can take the rows.

        Args:
            key: the columns of the key.
            source: the columns of the rows.

        Returns:
            The columns with the types that they have in the table; None if it was altered and is to be read again.
        """
        state = self._log.state(self._state)
        if state.version < 0:
            self._table.prove_names(source)
            self._listener.is_missing(self._name, bool(key))
            # By the log itself: Spark makes no table where files are, and what tasks have written is there.
            self._log.commit(0, self._admission.creation(source, key))
            state = self._log.state()
        if self._state.version < 0:
            self._admission.prove_kept(self._log, state)
        if state.metadata != self._state.metadata:
            prove_vectors(state, self._name, self._vectors)
        if self._state.version < 0:
            self._table.register(session, identity(state))
            self._listener.exists(self._name)
        self._state = state
        if self._admission.must_be_emptied(state):
            self._table.empty(session, source, key, self._admission.properties(key))
            return None
        self._admission.prove_made_for(state, key)
        columns, wider = fitted(state, source, self._name)
        if wider:
            shown = {name: str(kind) for name, kind in wider.items()}
            log.warning("columns_get_other_types", table=self._name, columns=shown, effect="all files are rewritten")
            self._table.widen(session, wider)
            return None
        return columns

    def _tidy(self, session: SparkSession) -> None:
        """Rewrite small files, which doesn't matter for what the table holds."""
        try:
            self._state = self._log.state(self._state)
            groups = due(self._state.files.values(), self._options.compact_files, lambda _: True)
            if groups:
                small = (file for group in groups if len(group) > 1 for file in group)
                least = max((int(str(file.add["size"])) for file in small), default=0) + 1
                limits = {"minFileSize": str(least), "maxDeletedRowsRatio": _SPARSE}
                named = {f"spark.databricks.delta.optimize.{name}": value for name, value in limits.items()}
                with settings(session, named):
                    self._table.optimize(session)
        except (*SPARK_ERRORS, BaseError, OSError, TargetError) as error:
            log.warning("a_table_is_not_tidied", table=self._name, version=self._state.version, error=describe(error))
