"""How the rows of a micro-batch come into an Iceberg table by ``MERGE`` in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floodmark.sinks.delta.format.data_files import DataFiles, with_position
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.iceberg.protocols import Rows
from floodmark.sinks.iceberg.state import Snapshot
from floodmark.spark.iceberg.table import IcebergTable
from floodmark.spark.targets.staged import stage


class ByMerge:
    """Spark finds the rows that are replaced, and writes files.

    Args:
        table: the table.
        files: writes what is staged.
        soft: whether deleted rows are only marked.
    """

    def __init__(self, table: IcebergTable, files: DataFiles, soft: bool) -> None:
        self._table = table
        self.files = files
        self._soft = soft

    def properties(self) -> Mapping[str, str]:
        """Return none."""
        return {}

    def apply(self, base: Snapshot, rows: Rows) -> bool:
        """Write a branch, and let readers see it (``Applying``)."""
        table, columns = self._table, with_position(rows.columns)
        session = table.session
        table.open_branch(base)
        staged, truncated = stage(self.files, table, session, rows.parts, rows.key, rows.columns, self._soft)
        try:
            if rows.key and rows.replaces:
                table.merge(session, staged.rows, staged.deletes, rows.key, columns, truncated)
            elif staged.rows:
                table.append(session, staged.rows, columns)
        finally:
            staged.discard(keep=rows.parts)
        return table.publish(base, rows.application, rows.batch, rows.mark)

    @property
    def has_offered(self) -> bool:
        """Whether files of parts may be in the table: never."""
        return False

    def leftovers(self, parts: Sequence[Part]) -> None:
        """Remove all of them."""
        self.files.discard(add for part in parts for add in part.adds)
