"""An Iceberg table of a mirror, which Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obstore.store import LocalStore
from pyiceberg.table import StaticTable

from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.folders import table_name
from floodmark.sinks.iceberg.columns import renamed_columns
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.spark.targets.names import spark_folder
from tests.support.delta_mirror import Mirror, in_order
from tests.support.delta_spark import TABLE, DeltaSpark
from tests.support.iceberg_readers import metadata_of
from tests.unit.test_last_changes import KINDS


class IcebergMirror(Mirror):
    """An Iceberg table and what writes it.

    Args:
        folder: where changes are staged; its name is ``TABLE``.
        key: which of ``KINDS`` its columns are.
        lake: the Spark that writes it.
        schema: the catalogue and its schema.
        options: the mirror's.
    """

    engine = "spark"

    def __init__(self, folder: Path, key: tuple[str, ...], lake: DeltaSpark, schema: str, /, **options: str) -> None:
        assert folder.name == TABLE
        self.schema = schema
        self.table = f"{self.schema}.{table_name(TABLE)}"
        self.lake = lake
        super().__init__(folder, key, lake, **options)

    def another(self, application: str, **options: str) -> TableWriter:
        """Return what writes the table for another query."""
        given = {**options, "engine": self.engine, "format": "iceberg", "catalog.schema": self.schema}
        return self.lake.writer(Path(self.path).parent, application, given, self.listener)

    def task_files(self) -> DataFiles:
        """Return what a task writes files with: one that knows the table's columns, if there is the table."""
        exists = f"SHOW TABLES IN {self.schema} LIKE '{table_name(TABLE)}'"
        if self.engine == "spark" or not self.lake.rows(exists).num_rows:
            return super().task_files()
        found = StaticTable.from_metadata(metadata_of(self.lake, self.table)).metadata
        identity = f"{found.table_uuid}/{found.current_schema_id}"
        layout = Layout.from_json(found.schema().model_dump_json(), identity)
        renamed = renamed_columns(self.options.get("deletes") == "soft")
        root = spark_folder(str(Path(self.path).parent), TABLE)
        return IcebergFiles(LocalStore(self.path), root, TABLE, layout, renamed)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as Spark reads them."""
        names = ", ".join(f"`{name}`" for name in KINDS[self.key].names)
        return in_order(self.lake.rows(f"SELECT {names} FROM {self.table}").to_pylist())

    def snapshots(self) -> list[dict[str, Any]]:
        """Return the snapshots that readers have seen, the first one first."""
        query = (
            f"SELECT s.snapshot_id, s.operation FROM {self.table}.history h "
            f"JOIN {self.table}.snapshots s ON s.snapshot_id = h.snapshot_id ORDER BY h.made_current_at, s.committed_at"
        )
        found: list[dict[str, Any]] = self.lake.rows(query).to_pylist()
        return found
