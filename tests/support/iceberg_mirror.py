"""An Iceberg table of a mirror, which Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floodmark.sinks.delta.protocols import TableWriter
from tests.support.delta_mirror import Mirror, in_order
from tests.support.delta_spark import FOLDER, DeltaSpark
from tests.unit.test_last_changes import KINDS


class IcebergMirror(Mirror):
    """An Iceberg table and what writes it.

    Args:
        folder: where changes are staged; its name is ``FOLDER``.
        key: which of ``KINDS`` its columns are.
        lake: the Spark that writes it.
        schema: the catalogue and its schema.
        options: the mirror's.
    """

    def __init__(self, folder: Path, key: tuple[str, ...], lake: DeltaSpark, schema: str, /, **options: str) -> None:
        assert folder.name == FOLDER
        self.schema = schema
        self.table = f"{self.schema}.{FOLDER}"
        self.lake = lake
        super().__init__(folder, key, lake, **options)

    def another(self, application: str, **options: str) -> TableWriter:
        """Return what writes the table for another query."""
        given = {**options, "format": "iceberg", "engine": "spark", "catalog.schema": self.schema}
        return self.lake.writer(Path(self.path).parent, application, given, self.listener)

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
