"""Commits data files and deletion vectors that Floodmark has written, with Iceberg's Java library.

Interface: ``RowDelta``, ``DataFiles`` and ``FileMetadata`` of the Iceberg API.
"""

from __future__ import annotations

from typing import Any

from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.vectors import FRAME_BYTES, Descriptor
from floodmark.sinks.iceberg.changes import Changes, rows_in
from floodmark.sinks.iceberg.data_files import IcebergFiles


class RowDelta:
    """What Java makes of changes.

    Args:
        jvm: Spark's.
        table: the table as Iceberg has it.
        files: those of the table.
    """

    def __init__(self, jvm: Any, table: Any, files: IcebergFiles) -> None:
        self._iceberg = jvm.org.apache.iceberg
        self._table = table
        self._files = files
        self._spec = table.spec()

    def commit(self, transaction: Any, changes: Changes, branch: str, base: int) -> None:
        """Make the changes in a branch, as a part of a transaction.

        Args:
            base: the snapshot that the branch begins with; without it, earlier deletion vectors look as if somebody
                else had added them meanwhile.
        """
        delta = transaction.newRowDelta().toBranch(branch).validateFromSnapshot(base)
        metrics = self._iceberg.MetricsConfig.forTable(self._table)
        for file in changes.added:
            delta.addRows(self._added(file, metrics))
        for file in changes.removed:
            delta.removeRows(self._known(file))
        for file in (*changes.removed, *changes.before):
            if file.vector is not None:
                delta.removeDeletes(self._vector(file, file.vector))
        for file in (*changes.added, *changes.after):
            if file.vector is not None:
                delta.addDeletes(self._vector(file, file.vector))
        delta.commit()

    def _added(self, file: DataFile, metrics: Any) -> Any:
        # Java reads the statistics where the values are, in the types that its readers expect. That it can read the
        # file is proved so, too.
        location = self._files.location(file.path)
        found = self._iceberg.parquet.ParquetUtil.fileMetrics(self._table.io().newInputFile(location), metrics)
        return self._file(file).withMetrics(found).build()

    def _known(self, file: DataFile) -> Any:
        return self._file(file).withRecordCount(rows_in(file)).build()

    def _file(self, file: DataFile) -> Any:
        builder = self._iceberg.DataFiles.builder(self._spec).withPath(self._files.location(file.path))
        return builder.withFormat("PARQUET").withFileSizeInBytes(file.add["size"])

    def _vector(self, file: DataFile, vector: Descriptor) -> Any:
        size = self._files.size_of(vector.path)
        builder = self._iceberg.FileMetadata.deleteFileBuilder(self._spec).ofPositionDeletes()
        builder = builder.withPath(vector.path).withFormat("PUFFIN").withFileSizeInBytes(size)
        builder = builder.withReferencedDataFile(self._files.location(file.path)).withRecordCount(vector.rows)
        return builder.withContentOffset(vector.offset).withContentSizeInBytes(vector.size + FRAME_BYTES).build()
