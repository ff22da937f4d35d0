"""An Iceberg table that is committed to its catalogue through pyiceberg.

Interface: ``Transaction``, ``UpdateSchema`` and the snapshot producers of pyiceberg 0.12, which writes format version 2
without delete files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.delta.format.data_files import with_position
from floodmark.sinks.folders import table_name
from floodmark.sinks.iceberg.catalogues.catalogue import Catalogue, CatalogueError
from floodmark.sinks.iceberg.catalogues.files import (
    added_file,
    described,
    has_rows,
    iceberg_type,
    removed_file,
    snapshot_of,
)
from floodmark.sinks.iceberg.catalogues.upkeep import compact, expire
from floodmark.sinks.iceberg.changes import Changes
from floodmark.sinks.iceberg.columns import as_staged, prove_names, renamed_columns
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout, stored
from floodmark.sinks.iceberg.protocols import Form, Gone
from floodmark.sinks.iceberg.state import Done, Snapshot, TableState, done_property

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as PyDataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot as PySnapshot

_MAIN = "main"
_VERSION = 2
"""The version of Iceberg's format that pyiceberg writes with copies of files."""
_ENCRYPTED = "encryption.key-id"
_PROPERTIES = {"commit.manifest-merge.enabled": "true"}
"""Otherwise each commit of pyiceberg leaves a manifest of its own."""


class CatalogueTable:
    """A target table (``CatalogTable``).

    Args:
        catalogue: it has the table.
        table: the source's name of the table, ``schema.table``.
        files: the table's data files.
        soft: whether deleted rows are only marked.
    """

    failures = (CatalogueError,)

    def __init__(self, catalogue: Catalogue, table: str, files: IcebergFiles, soft: bool = False) -> None:
        self._catalogue = catalogue
        self._table = table
        self._files = files
        self._renamed = renamed_columns(soft)
        self._identifier = (catalogue.schema, table_name(table))
        self._known: Table | None = None

    @property
    def name(self) -> str:
        """Its name in the catalogue."""
        return ".".join((self._catalogue.name, *self._identifier))

    @property
    def renamed(self) -> Mapping[str, str]:
        """Columns of the mirror's own that the table has under other names."""
        return self._renamed

    def is_conflict(self, error: Exception) -> bool:
        """Return whether the table may be another one now (``CatalogTable``)."""
        return isinstance(error, CatalogueError) and error.is_conflict

    def failure(self, error: Exception) -> TargetError:
        """Return the error that a user gets (``CatalogTable``)."""
        return self._catalogue.failure(self._table, error)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let this thread use the table (``CatalogTable``)."""
        try:
            yield
        finally:
            self._known = None

    def exists(self) -> bool:
        """Return whether the catalogue has a table of its name."""
        with self._catalogue.asked():
            return bool(self._catalogue.client.table_exists(self._identifier))

    def state(self, since: str) -> TableState | None:
        """Return the newest state (``CatalogTable``); what follows is about that one."""
        self._known = self._loaded()
        if self._known is None:
            return None
        metadata = self._known.metadata
        columns = as_staged(self._columns(), self._renamed)
        newest = metadata.current_snapshot()
        if newest is None:
            return TableState(metadata.properties, columns, None, False)
        head = snapshot_of(newest)
        found = TableState(metadata.properties, columns, head, has_rows(newest))
        done = found.done(since)
        if done is None or done.snapshot == head.number:
            return found

        def known(number: int) -> Snapshot | None:
            one = metadata.snapshot_by_id(number)
            return None if one is None else snapshot_of(one)

        return found.since(done, known)

    def create(self, rows: pa.Schema, properties: Mapping[str, str], replace: bool) -> None:
        """Make the table, without rows (``CatalogTable``).

        To replace one it is dropped before: pyiceberg doesn't do both in one commit.
        """
        prove_names(rows, self._table, self._renamed)
        columns = pa.schema([self._stored(one) for one in with_position(rows)])
        with self._catalogue.asked():
            if replace:
                self._catalogue.client.drop_table(self._identifier)
            self._catalogue.client.create_table(self._identifier, columns, properties={**_PROPERTIES, **properties})

    def begin(self) -> None:
        """Give the table a first snapshot, without rows."""
        with self._catalogue.asked(), self._open().transaction() as change:
            change.update_snapshot().fast_append().commit()

    def set(self, properties: Mapping[str, str]) -> None:
        """Give the table properties."""
        with self._catalogue.asked(), self._open().transaction() as change:
            change.set_properties(dict(properties))

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns, in which all rows have null (``CatalogTable``)."""
        prove_names(columns, self._table, self._renamed)
        with self._catalogue.asked(), self._open().update_schema() as change:
            for one in columns:
                made = self._stored(one)
                change.add_column((made.name,), iceberg_type(made.type))

    def widen(self, wider: Mapping[str, pa.DataType]) -> None:
        """Give columns types that hold more (``CatalogTable``)."""
        with self._catalogue.asked(), self._open().update_schema() as change:
            for name, kind in wider.items():
                change.update_column((self._renamed.get(name, name),), field_type=iceberg_type(stored(kind)))

    def form(self) -> Form:
        """Return how the table's files are made (``CatalogTable``)."""
        metadata = self._open().metadata
        if metadata.format_version != _VERSION:
            raise TargetUnfitError(
                f"The Iceberg table '{self._table}' has format version {metadata.format_version}; pyiceberg writes "
                f"{_VERSION}.",
                "Leave out the mirror's options that begin with 'catalog.' but catalog.schema, and start Spark with "
                "Iceberg's runtime and the catalogue; or remove the table.",
            )
        special = "" if metadata.spec().is_unpartitioned() else "partitions"
        return Form(
            self._layout(), metadata.format_version, "encrypted files" if _ENCRYPTED in metadata.properties else special
        )

    def files(self, snapshot: Snapshot) -> list[Mapping[str, Any]]:
        """Return the files of a snapshot (``CatalogTable``)."""
        with self._catalogue.asked():
            found = self._open().metadata.snapshot_by_id(snapshot.number)
            if found is None:
                raise Gone
            return [described(file) for file in self._living(found)]

    def commit(
        self,
        base: Snapshot,
        changes: Changes,
        files: IcebergFiles,
        application: str,
        batch: int,
        mark: int,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Change the table's files, and say which micro-batch that is (``CatalogTable``)."""

        def done(end: Snapshot) -> Mapping[str, str]:
            name, value = done_property(application, Done(batch, mark, end.number, end.sequence))
            return {name: value, **(properties or {})}

        return self._committed(base, changes, files, done)

    def change(self, base: Snapshot, changes: Changes) -> bool:
        """Change the table's files by a commit that is no micro-batch; return whether that was done.

        Args:
            base: what readers must see before it.
        """
        return self._committed(base, changes, self._files, lambda _: {}) is not None

    def compact(self, least_files: int, below_bytes: int | None) -> None:
        """Write small files again as larger ones (``CatalogTable``)."""
        compact(self, self._files, least_files, below_bytes)

    def expire(self, hours: int) -> None:
        """Remove old snapshots, and the files that only they need (``CatalogTable``)."""
        table = self._loaded()
        if table is None:
            raise Gone
        with self._catalogue.asked():
            expire(table, self._files, dt.timedelta(hours=hours))

    def _committed(
        self,
        base: Snapshot,
        changes: Changes,
        files: IcebergFiles,
        properties: Callable[[Snapshot], Mapping[str, str]],
    ) -> Snapshot | None:
        table = self._open()
        main = table.metadata.current_snapshot()
        if main is None or main.snapshot_id != base.number:
            return None
        with self._catalogue.asked():
            change = table.transaction()
            end = base if changes.is_empty else self._changed(table, change, changes, files)
            change.set_properties(dict(properties(end)))
        # Pyiceberg's own commit is tried again on what others have committed meanwhile, and removes the manifests of
        # one that failed, though a catalogue whose answer was lost may have them.
        from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

        required = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": _MAIN, "snapshot-id": base.number}),
        )
        with self._catalogue.asked(unknown_is_conflict=True):
            done = table.catalog.commit_table(table, required, change._updates)
            table.metadata, table.metadata_location = done.metadata, done.metadata_location
        return end

    def _changed(self, table: Table, change: Transaction, changes: Changes, files: IcebergFiles) -> Snapshot:
        """Add a snapshot with changes of files to a transaction."""
        update = change.update_snapshot()
        producer: Any = update.overwrite() if changes.removed else update.merge_append()
        for file in changes.added:
            producer.append_data_file(added_file(table, file, files))
        for file in changes.removed:
            producer.delete_data_file(removed_file(table, file, files))
        producer.commit()
        found = change.table_metadata.current_snapshot()
        assert found is not None
        return snapshot_of(found)

    def _living(self, snapshot: PySnapshot) -> Iterator[PyDataFile]:
        io = self._open().io
        for manifest in snapshot.manifests(io):
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                yield entry.data_file

    def _layout(self) -> Layout:
        metadata = self._open().metadata
        schema = metadata.schema()
        return Layout.from_json(schema.model_dump_json(), f"{metadata.table_uuid}/{schema.schema_id}")

    def _columns(self) -> pa.Schema:
        """Return all columns; those of types that the sources' tables don't have as such without values."""
        known = self._layout().columns
        return pa.schema(
            [
                known.field(one.name) if one.name in known.names else pa.field(one.name, pa.null(), not one.required)
                for one in self._open().schema().fields
            ]
        )

    def _stored(self, column: pa.Field) -> pa.Field:
        """Return a column as the table has it: it can be null, whatever the source's can."""
        return pa.field(self._renamed.get(column.name, column.name), stored(column.type))

    def _open(self) -> Table:
        """Return the table as it was loaded last, which must be there."""
        if self._known is None:
            self._known = self._loaded()
        if self._known is None:
            raise Gone
        return self._known

    def _loaded(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        with self._catalogue.asked():
            try:
                return self._catalogue.client.load_table(self._identifier)
            except NoSuchTableError:
                return None
