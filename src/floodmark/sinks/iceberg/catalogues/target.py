"""Iceberg tables of a catalogue as targets that can be compared with the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from floodmark.sinks.delta.format.log import DataFile, now_ms
from floodmark.sinks.delta.planning.counted_rows import CountedRows, counted, marked
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.delta.stores import FolderMarks, table_folder
from floodmark.sinks.iceberg.catalogues.table import CatalogueTable
from floodmark.sinks.iceberg.changes import Changes, files_of
from floodmark.sinks.iceberg.columns import renamed_columns
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.iceberg.protocols import Gone
from floodmark.sinks.iceberg.state import DELETES, Snapshot, TableState
from floodmark.sinks.iceberg.verifiable import MetadataView, until_deleted, verified_state
from floodmark.sinks.options import Mode


class CatalogueTarget:
    """A ``VerifiableTarget``.

    Args:
        location: the mirror's path.
        root: the folder of the table as Iceberg names it.
        name: the source's name of the table.
        table: the table.
        marks: those of tables that are set aside.
    """

    replaces_doubled = True

    def __init__(self, location: str, root: str, name: str, table: CatalogueTable, marks: FolderMarks) -> None:
        self._location = location
        self._root = root
        self._name = name
        self._table = table
        self._marks = marks
        self._kept = KeptRows()

    def exists(self) -> bool:
        """Return whether there is a table, or a mark of one that is set aside."""
        return not self._marks.is_removed(self._name)

    def view(self) -> CatalogueView:
        """Return the newest snapshot.

        Raises:
            TargetError: there is no table, or it is set aside, or can't be read.
        """
        with self._table.opened():
            state, head = verified_state(self._table, self._name, self._marks)
            try:
                layout = self._table.form().layout
                soft = state.properties.get(DELETES) == "soft"
                part = CataloguePart(self._location, self._root, self._name, layout, (), soft)
                files = part.opened()
                known = files_of(self._table.files(head), files, layout)
            except self._table.failures as error:
                raise self._table.failure(error) from error
        return CatalogueView(self._table, part, files, known, self._kept, state, head)

    def delete(self, rows: pa.Table, for_good: bool = False) -> int:  # noqa: ARG002
        """Delete rows that are as they were found (``VerifiableTarget.delete``)."""
        return until_deleted(self._name, lambda: self.view().deleted(rows))


class CatalogueView(MetadataView):
    """A ``TargetView``: a table at a snapshot.

    Args:
        table: the table.
        part: reads no file of it.
        files: its data files.
        known: those of the snapshot.
        kept: what views keep in memory.
        state: the table's.
        head: the snapshot.
    """

    def __init__(
        self,
        table: CatalogueTable,
        part: CataloguePart,
        files: IcebergFiles,
        known: Mapping[str, DataFile],
        kept: KeptRows,
        state: TableState,
        head: Snapshot,
    ) -> None:
        super().__init__(part.table, state, head.number)
        self._table = table
        self._part = part
        self._files = files
        self._known = known
        self._head = head
        rows = TargetRows(files, part.table, kept)
        self._counted = CountedRows(files, rows, known.values(), self.mode)

    @property
    def row_estimate(self) -> int:
        """How many rows it has, if all files tell."""
        return self._counted.estimate

    def parts(self) -> Sequence[CataloguePart]:
        """Return its files, small ones together."""
        given = (self._part.location, self._part.root, self._part.table, self._part.layout)
        return [CataloguePart(*given, files, self._part.soft) for files in self._counted.parts()]

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions."""
        return self._counted.with_keys(keys, columns)

    def deleted(self, rows: pa.Table) -> int | None:
        """Delete rows that are as they were found, or mark them; return how many, None if others were faster.

        Args:
            rows: the columns of the key, and positions.
        """
        actions, kept, count = self._counted.deleted(rows, self.key, False, self._state.columns, now_ms())
        if not actions:
            return 0
        actions += [{"add": add} for add in marked(self._files, kept, self.key)]
        changes = Changes.of(actions, self._known)
        with self._table.opened():
            try:
                return count if self._table.change(self._head, changes) else None
            except Gone:
                return None
            except self._table.failures as error:
                if self._table.is_conflict(error):
                    return None
                raise self._table.failure(error) from error


@dataclass(frozen=True)
class CataloguePart:
    """A ``TargetPart``: some of a table's files.

    Attributes:
        location: the mirror's path.
        root: the folder of the table as Iceberg names it.
        table: the source's name of the table.
        layout: the table's columns.
        soft: whether deleted rows are only marked.
    """

    location: str
    root: str
    table: str
    layout: Layout
    files: tuple[DataFile, ...]
    soft: bool

    @property
    def _mode(self) -> Mode:
        return "soft" if self.soft else "hard"

    def opened(self) -> IcebergFiles:
        """Return what reads the table's files."""
        renamed = renamed_columns(self.soft)
        return IcebergFiles(table_folder(self.location, self.table).store, self.root, self.table, self.layout, renamed)

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that equal the source's."""
        files, mode = self.opened(), self._mode
        for file in self.files:
            yield from counted(files, file, columns, mode)
