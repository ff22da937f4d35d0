"""Writes the shadow of an Iceberg table: data files as the table has them, which a Delta log names meanwhile.

The shadow has files of its own. A file that a table once had must not be added to it again: what expires snapshots may
take it for one that nothing needs any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from floodmark.errors import TargetUnfitError
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.planning.agreement import Agreement
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.rebuilding.shadows import ShadowListener, altered
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.iceberg.applying import VECTORS_SINCE
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.protocols import CatalogTable, Form, Gone
from floodmark.sinks.options import MirrorOptions

_OPTIONS = {"compact.files": "0", "vacuum.hours": "0"}


class IcebergShadow:
    """Writes a shadow (``SharingWriter``).

    Args:
        table: the table, which nothing else uses through this object.
        files: its data files.
        folder: the table's.
        log_folder: the folder with the shadow's log.
        application: names the query.
        vectors: whether the mirror's options ask for deletion vectors.
        pool: where a ``DeltaWriter`` does what it does beside.
    """

    def __init__(
        self,
        table: CatalogTable,
        files: IcebergFiles,
        folder: TableFolder,
        log_folder: TableFolder,
        application: str,
        vectors: bool,
        pool: Executor,
    ) -> None:
        self._table = table
        self._files = files
        self._folder = folder
        self._log_folder = log_folder
        self._application = application
        self._vectors = vectors
        self._pool = pool
        self._writer: DeltaWriter | None = None

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Write a micro-batch to the shadow.

        Raises:
            TargetUnfitError: the table was altered since the shadow was begun, or has what isn't written here.
            TargetError: the table can't be looked at.
        """
        form = self._form()
        if not set(Agreement.of(parts).columns.names) <= set(form.layout.columns.names):
            raise altered(self._files.table)
        self._files.layout = form.layout
        return self._made(form).write(batch, [self._files.copied(part) for part in parts])

    def share_files(self, shared: bool) -> None:
        """Do nothing: all files are the shadow's own."""

    def _form(self) -> Form:
        with self._table.opened():
            try:
                form = self._table.form()
            except Gone:
                raise TargetUnfitError(f"The Iceberg table '{self._files.table}' is gone.") from None
            except self._table.failures as error:
                raise self._table.failure(error) from error
        if form.special:
            raise TargetUnfitError(f"The Iceberg table '{self._files.table}' has {form.special}.")
        return form

    def _made(self, form: Form) -> DeltaWriter:
        if self._writer is None:
            vectors = self._vectors and form.version >= VECTORS_SINCE
            options = MirrorOptions.parse({**_OPTIONS, "deletion.vectors": "on" if vectors else "off"})
            self._writer = DeltaWriter(
                self._folder,
                self._application,
                self._files.table,
                options,
                KeptRows(),
                ShadowListener(),
                self._pool,
                log_folder=self._log_folder,
                files=self._files,
            )
        return self._writer
