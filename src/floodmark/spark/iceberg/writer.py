"""Commits what tasks have staged of a micro-batch to an Iceberg table."""

from __future__ import annotations

import time
from collections.abc import MutableMapping, Sequence

from pyspark.sql import SparkSession

from floodmark.errors import TargetChangedError, TargetDamagedError, TargetError, TargetUnfitError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.planning.agreement import Agreement, mark
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.protocols import MakeWriter, TableListener, TableWriter
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.admission import Admission
from floodmark.spark.iceberg.applying import Applying, Rows, applying_for
from floodmark.spark.iceberg.columns import fitted, new_columns
from floodmark.spark.iceberg.failures import SPARK_ERRORS, is_conflict, target_error
from floodmark.spark.iceberg.staging import prepare
from floodmark.spark.iceberg.state import TableState
from floodmark.spark.iceberg.table import Gone, IcebergTable
from floodmark.spark.targets.merged import with_position
from floodmark.spark.targets.names import spark_folder
from floodmark.spark.targets.sessions import Sessions

log = get_logger(__name__)

_ATTEMPTS = 20
"""How often the table is looked at again because it has changed."""
_TIERS_BYTES = (1 << 23, 1 << 26)
"""Files below the first size are written again most often; those of the second and larger ones seldom."""
_EXPIRE_EVERY_S = 3600.0


class IcebergWriter:
    """Writes micro-batches of one table.

    Args:
        sessions: sessions of Spark.
        table: the table as Spark writes it.
        applying: brings rows into the table.
        application: names this query in the table's properties, for exactly-once delivery.
        options: the mirror's.
        listener: what is told about the table.
        written: the last micro-batch that the table must have, if it is known.
    """

    def __init__(
        self,
        sessions: Sessions,
        table: IcebergTable,
        applying: Applying,
        application: str,
        options: MirrorOptions,
        listener: TableListener,
        written: int | None = None,
    ) -> None:
        self._sessions = sessions
        self._table = table
        self._applying = applying
        self._name = applying.files.table
        self._application = application
        self._options = options
        self._listener = listener
        self._admission = Admission(self._name, application, options)
        self._seen = False
        self._must_have = written
        self._written = 0
        self._expired = -_EXPIRE_EVERY_S

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch, and return whether that changed the table (``TableWriter``)."""
        agreed = Agreement.of(parts)
        with self._sessions.one() as session:
            try:
                written = self._until_written(session, batch, agreed)
            except (TargetUnfitError, TargetDamagedError) as error:
                if not self._applying.has_offered:
                    raise
                # The files of a target that is set aside are removed.
                raise TargetError(error.what, f"Start the query again. {error.cure}") from error
            if written:
                self._tidy(session)
        self._applying.leftovers(parts)
        return written

    def _until_written(self, session: SparkSession, batch: int, agreed: Agreement) -> bool:
        """Write a micro-batch, and try it again while others change the table."""
        last: Exception | None = None
        missing = 0
        for _ in range(_ATTEMPTS):
            try:
                written = self._attempt(session, batch, agreed)
            except Gone as error:
                written, last = None, error
            except FileNotFoundError as error:
                # Others may have written files again and removed them; once more, and they are just gone.
                written, last, missing = None, error, missing + 1
                if missing > 1:
                    raise
            except SPARK_ERRORS as error:
                if not is_conflict(error):
                    raise target_error(self._name, error) from error
                written, last = None, error
            if written is not None:
                return written
        raise TargetChangedError(
            f"Other writers changed the Iceberg table '{self._name}' each of the {_ATTEMPTS} times that a micro-batch "
            "was to be written, or the catalogue didn't tell what became of it.",
            "Let them pause, or write less often, and start the query again. Nothing is lost.",
        ) from last

    def _attempt(self, session: SparkSession, batch: int, agreed: Agreement) -> bool | None:
        """Return whether the table was changed; None: it was altered, and is to be looked at again."""
        state = self._table.state(session, self._application)
        if state is None:
            self._create(session, agreed)
            return None
        if not self._is_own(session, state, agreed):
            return None
        head = state.head
        if head is None:
            self._table.begin(session)
            return None
        parts, number = agreed.parts, mark(agreed.parts)
        if self._admission.is_done(batch, number, state):
            return False
        if agreed.others and (state.has_rows or state.done(self._application) is not None):
            raise agreed.torn(self._name)
        columns, wider = fitted(state.columns, agreed.columns, self._name)
        added = new_columns(state.columns, with_position(columns), self._name)
        if wider:
            log.warning("columns_get_other_types", table=self._name, columns={one: str(wider[one]) for one in wider})
            self._table.widen(session, wider)
            return None
        if added.names:
            if state.has_rows and agreed.key:
                self._listener.gets_columns(self._name, added.names)
            self._table.add_columns(session, added)
        rows = Rows(parts, agreed.key, columns, state.has_rows, self._application, batch, number)
        return True if self._applying.apply(session, head, rows) else None

    def _create(self, session: SparkSession, agreed: Agreement) -> None:
        key, self._must_have = agreed.key, None
        if agreed.others:
            self._listener.is_missing(self._name, bool(key), torn=True)
        self._listener.is_missing(self._name, bool(key))
        self._table.create(session, agreed.columns, self._properties(key), replace=False)

    def _properties(self, key: Sequence[str]) -> dict[str, str]:
        return {**self._applying.properties(), **self._admission.properties(key)}

    def _is_own(self, session: SparkSession, state: TableState, agreed: Agreement) -> bool:
        """Return whether the table is this query's; if not, it is made so, and is to be looked at again."""
        key = agreed.key
        if not self._admission.is_own(state):
            replaced = self._admission.must_be_replaced(state)
            # If the query had made one, that is gone.
            self._listener.is_missing(self._name, bool(key))
            self._must_have = None
            if replaced:
                self._table.create(session, agreed.columns, self._properties(key), replace=True)
            else:
                self._table.set(session, self._admission.own_properties(key))
            return False
        if not self._seen:
            self._admission.prove_written(state, self._must_have)
            prepare(self._applying.files.store, self._name)
            self._listener.exists(self._name)
            self._seen = True
        self._admission.prove_made_for(state, key)
        return True

    def _tidy(self, session: SparkSession) -> None:
        """Write small files again and remove old snapshots, which doesn't matter for what the table holds."""
        self._written += 1
        every, hours = self._options.compact_files, self._options.vacuum_hours
        if not every or self._written % every:
            return
        try:
            self._table.compact(session, every, _below(self._written, every))
            if hours and time.monotonic() - self._expired >= _EXPIRE_EVERY_S:
                self._table.expire(session, hours)
                self._expired = time.monotonic()
        except (*SPARK_ERRORS, Gone) as error:
            log.warning("a_table_is_not_tidied", table=self._name, error=describe(error))


def _below(written: int, every: int) -> int | None:
    """Return the size of files that are left alone after so many micro-batches; None: as the table's properties say.

    A row is so written again once for each tier, not each time.
    """
    for tier, size in enumerate(_TIERS_BYTES, start=2):
        if written % every**tier:
            return size
    return None


def iceberg_writers(
    sessions: Sessions, location: str, options: MirrorOptions, layouts: MutableMapping[str, Layout]
) -> MakeWriter:
    """Return what makes the writers of a mirror's tables.

    Args:
        sessions: sessions of Spark.
        location: the mirror's path, or its URI.
        options: the mirror's.
        layouts: gets the columns of tables that Floodmark writes itself, for the tasks.
    """
    kept = KeptRows()

    def made(
        name: str, folder: TableFolder, application: str, listener: TableListener, written: int | None
    ) -> TableWriter:
        table = IcebergTable(location, name, options.catalog_schema or "", options.mode == "soft")
        applying = applying_for(table, folder.store, spark_folder(location, name), name, options, kept, layouts)
        return IcebergWriter(sessions, table, applying, application, options, listener, written)

    return made
