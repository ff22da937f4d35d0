"""An Iceberg table of a mirror that Floodmark itself commits to a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.folders import table_name
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.tables import IcebergTables, iceberg_files
from floodmark.spark.targets.sessions import Sessions
from tests.support.delta_mirror import Mirror, in_order
from tests.support.delta_spark import TABLE
from tests.unit.test_last_changes import KINDS

SHOP = "shop"


class CatalogueMirror(Mirror):
    """A table and what writes it.

    Args:
        lake: the mirror's path.
        key: which of ``KINDS`` its columns are.
        catalogue: properties of the catalogue.
        options: the mirror's.

    Attributes:
        layouts: the columns of tables that the driver has told the tasks.
    """

    def __init__(self, lake: Path, key: tuple[str, ...], catalogue: Mapping[str, str], /, **options: str) -> None:
        self.given = {
            "format": "iceberg",
            "catalog.schema": f"lake.{SHOP}",
            **{f"catalog.{name}": value for name, value in catalogue.items()},
        }
        self.layouts: dict[str, Layout] = {}
        super().__init__(lake / TABLE, key, None, **{**self.given, **options})
        self.catalogue: Catalog = load_catalog("lake", **catalogue)
        self.catalogue.create_namespace_if_not_exists(SHOP)

    def another(self, application: str, **options: str) -> TableWriter:
        """Return what writes the table for another query."""
        parsed, location = MirrorOptions.parse({**self.given, **options}), str(Path(self.path).parent)
        # Nothing of Spark is used.
        make = IcebergTables(cast(Sessions, None), location, parsed).writers(self.layouts)
        return make(TABLE, table_folder(location, TABLE), application, self.listener, self.written)

    def task_files(self) -> DataFiles:
        """Return what a task writes files with: one that knows the table's columns, if the driver has told them."""
        location = str(Path(self.path).parent)
        return iceberg_files(location, TABLE, MirrorOptions.parse(self.options), self.layouts.get(TABLE))

    @property
    def identifier(self) -> tuple[str, str]:
        """The table's name in the catalogue."""
        return SHOP, table_name(TABLE)

    @property
    def table(self) -> Table:
        """The table as pyiceberg has it."""
        return self.catalogue.load_table(self.identifier)

    def scanned(self) -> pa.Table:
        """Return all rows and columns."""
        return self.table.scan().to_arrow()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as pyiceberg reads them."""
        return in_order(self.scanned().select(KINDS[self.key].names).to_pylist())
