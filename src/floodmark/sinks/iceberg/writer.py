"""Commits what tasks have staged of a micro-batch to an Iceberg table."""

from __future__ import annotations

import time
from collections.abc import Sequence

from floodmark.errors import TargetChangedError, TargetDamagedError, TargetError, TargetUnfitError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.format.data_files import with_position
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.planning.agreement import Agreement
from floodmark.sinks.delta.protocols import TableListener
from floodmark.sinks.iceberg.admission import Admission
from floodmark.sinks.iceberg.columns import fitted, new_columns
from floodmark.sinks.iceberg.protocols import Applying, CatalogTable, Gone, Rows
from floodmark.sinks.iceberg.staging import prepare
from floodmark.sinks.iceberg.state import TableState
from floodmark.sinks.micro_batches import mark_of
from floodmark.sinks.options import MirrorOptions

log = get_logger(__name__)

_ATTEMPTS = 20
"""How often the table is looked at again because it has changed."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
"""How long to leave the others alone: each time twice as long, up to a limit."""
_TIERS_BYTES = (1 << 23, 1 << 26)
"""Files below the first size are written again most often; those of the second and larger ones seldom."""
_EXPIRE_EVERY_S = 3600.0


class IcebergWriter:
    """Writes micro-batches of one table.

    Args:
        table: the table.
        applying: brings rows into the table.
        application: names this query in the table's properties, for exactly-once delivery.
        options: the mirror's.
        listener: what is told about the table.
        written: the last micro-batch that the table must have, if it is known.
    """

    def __init__(
        self,
        table: CatalogTable,
        applying: Applying,
        application: str,
        options: MirrorOptions,
        listener: TableListener,
        written: int | None = None,
    ) -> None:
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
        with self._table.opened():
            try:
                written = self._until_written(batch, agreed)
            except (TargetUnfitError, TargetDamagedError) as error:
                if not self._applying.has_offered:
                    raise
                # The files of a target that is set aside are removed.
                raise TargetError(error.what, f"Start the query again. {error.cure}") from error
            if written:
                self._tidy()
        self._applying.leftovers(parts)
        return written

    def share_files(self, shared: bool) -> None:
        """Do nothing: the shadow of a table that is rebuilt has files of its own (``SharingWriter``)."""

    def _until_written(self, batch: int, agreed: Agreement) -> bool:
        """Write a micro-batch, and try it again while others change the table."""
        last: Exception | None = None
        missing = 0
        for number in range(_ATTEMPTS):
            try:
                written = self._attempt(batch, agreed)
            except Gone as error:
                written, last = None, error
            except FileNotFoundError as error:
                # Others may have written files again and removed them; once more, and they are just gone.
                written, last, missing = None, error, missing + 1
                if missing > 1:
                    raise
            except self._table.failures as error:
                if not self._table.is_conflict(error):
                    raise self._table.failure(error) from error
                written, last = None, error
                time.sleep(min(_PAUSE_S * 2**number, _LONGEST_PAUSE_S))
            if written is not None:
                return written
        raise TargetChangedError(
            f"Other writers changed the Iceberg table '{self._name}' each of the {_ATTEMPTS} times that a micro-batch "
            "was to be written, or the catalogue didn't tell what became of it.",
            "Let them pause, or write less often, and start the query again. Nothing is lost.",
        ) from last

    def _attempt(self, batch: int, agreed: Agreement) -> bool | None:
        """Return whether the table was changed; None: it was altered, and is to be looked at again."""
        state = self._table.state(self._application)
        if state is None:
            self._create(agreed)
            return None
        if not self._is_own(state, agreed):
            return None
        head = state.head
        if head is None:
            self._table.begin()
            return None
        parts = agreed.parts
        number = mark_of(part.extent for part in parts)
        if self._admission.is_done(batch, number, state):
            return False
        if agreed.others and (state.has_rows or state.done(self._application) is not None):
            raise agreed.torn(self._name)
        columns, wider = fitted(state.columns, agreed.columns, self._name)
        added = new_columns(state.columns, with_position(columns), self._name)
        if wider:
            log.warning("columns_get_other_types", table=self._name, columns={one: str(wider[one]) for one in wider})
            self._table.widen(wider)
            return None
        if added.names:
            if state.has_rows and agreed.key:
                self._listener.gets_columns(self._name, added.names)
            self._table.add_columns(added)
        rows = Rows(parts, agreed.key, columns, state.has_rows, self._application, batch, number)
        return True if self._applying.apply(head, rows) else None

    def _create(self, agreed: Agreement) -> None:
        key, self._must_have = agreed.key, None
        if agreed.others:
            self._listener.is_missing(self._name, bool(key), torn=True)
        self._listener.is_missing(self._name, bool(key))
        self._table.create(agreed.columns, self._properties(key), replace=False)

    def _properties(self, key: Sequence[str]) -> dict[str, str]:
        return {**self._applying.properties(), **self._admission.properties(key)}

    def _is_own(self, state: TableState, agreed: Agreement) -> bool:
        """Return whether the table is this query's; if not, it is made so, and is to be looked at again."""
        key = agreed.key
        if not self._admission.is_own(state):
            replaced = self._admission.must_be_replaced(state)
            # If the query had made one, that is gone.
            self._listener.is_missing(self._name, bool(key))
            self._must_have = None
            if replaced:
                self._table.create(agreed.columns, self._properties(key), replace=True)
            else:
                self._table.set(self._admission.own_properties(key))
            return False
        if not self._seen:
            self._admission.prove_written(state, self._must_have)
            prepare(self._applying.files.store, self._name)
            self._listener.exists(self._name)
            self._seen = True
        self._admission.prove_made_for(state, key)
        return True

    def _tidy(self) -> None:
        """Write small files again and remove old snapshots, which doesn't matter for what the table holds."""
        self._written += 1
        every, hours = self._options.compact_files, self._options.vacuum_hours
        if not every or self._written % every:
            return
        try:
            self._table.compact(every, _below(self._written, every))
            if hours and time.monotonic() - self._expired >= _EXPIRE_EVERY_S:
                self._table.expire(hours)
                self._expired = time.monotonic()
        except Gone:
            return
        except self._table.failures as error:
            log.warning("a_table_is_not_tidied", table=self._name, error=describe(error))


def _below(written: int, every: int) -> int | None:
    """Return the size of files that are left alone after so many micro-batches; None: as the table's properties say.

    A row is so written again once for each tier, not each time.
    """
    for tier, size in enumerate(_TIERS_BYTES, start=2):
        if written % every**tier:
            return size
    return None
