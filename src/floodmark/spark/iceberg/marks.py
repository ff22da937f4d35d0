"""Marks of Iceberg tables that are set aside."""

from __future__ import annotations

from floodmark.sinks.delta.stores import FolderMarks
from floodmark.spark.iceberg.failures import SPARK_ERRORS, target_error
from floodmark.spark.iceberg.table import IcebergTable
from floodmark.spark.targets.sessions import Sessions


class IcebergMarks(FolderMarks):
    """Marks in the folders in which the tables' changes are staged.

    Args:
        location: the mirror's path.
        schema: the catalogue and its schema that have the tables.
        sessions: sessions of Spark.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str, schema: str, sessions: Sessions) -> None:
        super().__init__(location)
        self._schema = schema
        self._sessions = sessions

    def is_removed(self, table: str) -> bool:
        """Return whether neither the table nor its mark is there any more.

        Raises:
            TargetError: the catalogue can't be asked.
        """
        if self.get(table) is not None:
            return False
        with self._sessions.one() as session:
            try:
                return not self._table(table).exists(session)
            except SPARK_ERRORS as error:
                raise target_error(table, error) from error

    def place(self, table: str) -> str:
        """Return what a user removes to take a table back, without secrets."""
        return f"the table {self._table(table).name} and {super().place(table)}"

    def _table(self, table: str) -> IcebergTable:
        return IcebergTable(self._location, table, self._schema)
