"""What other programs find in a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import duckdb_extension_delta
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.support.delta_spark import DeltaSpark


def read_by_all(table: Path, spark: DeltaSpark) -> dict[str, pa.Table]:
    """Return the rows of a table that each of the readers finds that know deletion vectors."""
    rows = QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT * FROM t")
    return {
        "deltalake": pa.table(rows.read_all()),
        "polars": pl.read_delta(str(table)).to_arrow(),
        "DuckDB": read_by_duckdb(table),
        "Spark": spark.rows(f"SELECT * FROM delta.`{table}`"),
    }


def read_by_duckdb(table: Path) -> pa.Table:
    """Return the rows of a table."""
    with duckdb_session() as session:
        return session.execute("SELECT * FROM delta_scan(?)", [str(table)]).to_arrow_table()


@contextmanager
def duckdb_session() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a session that can read Delta tables."""
    (extension,) = Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as session:
        # The path is the package's own.
        session.execute(f"LOAD '{extension}'")
        session.execute("SET TimeZone = 'UTC'")
        yield session
