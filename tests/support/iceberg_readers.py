"""What programs other than Spark find in an Iceberg table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
from pyiceberg.table import StaticTable

from tests.support.delta_spark import DeltaSpark


def metadata_of(spark: DeltaSpark, table: str) -> str:
    """Return the newest file of metadata of a table."""
    query = f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1"
    (found,) = spark.rows(query).to_pylist()
    return str(found["file"])


def read_by_pyiceberg(metadata: str) -> pa.Table:
    """Return the rows of a table.

    Args:
        metadata: its newest file of metadata.
    """
    return StaticTable.from_metadata(metadata).scan().to_arrow()


def read_by_duckdb(metadata: str) -> pa.Table:
    """Return the rows of a table.

    Args:
        metadata: its newest file of metadata.
    """
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as session:
        for package, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
            (extension,) = Path(str(package.__file__)).parent.glob(f"extensions/*/{name}.duckdb_extension")
            # The path is the package's own.
            session.execute(f"LOAD '{extension}'")
        session.execute("SET TimeZone = 'UTC'")
        return session.execute("SELECT * FROM iceberg_scan(?)", [metadata]).to_arrow_table()
