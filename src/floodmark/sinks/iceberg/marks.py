"""Marks of Iceberg tables that are set aside."""

from __future__ import annotations

from collections.abc import Callable

from floodmark.sinks.delta.stores import FolderMarks
from floodmark.sinks.iceberg.protocols import CatalogTable


class IcebergMarks(FolderMarks):
    """Marks in the folders of the tables' own files, or those that are staged.

    Args:
        location: the mirror's path.
        make_table: returns a table, by the source's name of it.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str, make_table: Callable[[str], CatalogTable]) -> None:
        super().__init__(location)
        self._make_table = make_table

    def is_removed(self, table: str) -> bool:
        """Return whether neither the table nor its mark is there any more.

        Raises:
            TargetError: the catalogue can't be asked.
        """
        if self.get(table) is not None:
            return False
        target = self._make_table(table)
        with target.opened():
            try:
                return not target.exists()
            except target.failures as error:
                raise target.failure(error) from error

    def place(self, table: str) -> str:
        """Return what a user removes to take a table back, without secrets."""
        return f"the table {self._make_table(table).name} and {super().place(table)}"
