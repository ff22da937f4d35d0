"""See that a target has exactly the rows of PostgreSQL's table."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyarrow import csv

from benchmarks.reference import run_client
from floodmark.demo.embedded import EmbeddedPostgres

TYPES = {
    "id": pa.int64(),
    "account": pa.int32(),
    "amount": pa.decimal128(10, 2),
    "note": pa.string(),
    "updated_at": pa.timestamp("us", "UTC"),
}
"""Those of `benchmarks.workload.CREATE`."""
MICROSECONDS = "(extract(epoch FROM updated_at) * 1000000)::bigint AS updated_at"


def expect_equal(server: EmbeddedPostgres, table: str, target: Path) -> None:
    """Compare all values of all rows.

    Args:
        server: where the source's table is.
        table: its name, in lower case.
        target: the Delta table's folder.

    Raises:
        RuntimeError: they differ.
    """
    _compare(table, _source_rows(server, table), _target_rows(target))


def expect_same(server: EmbeddedPostgres, table: str, database: str, target: str) -> None:
    """Compare all values of all rows with a table of another database of the server.

    Args:
        server: where both are.
        table: the source's name, in lower case.
        database: the target's database.
        target: its name.

    Raises:
        RuntimeError: they differ.
    """
    _compare(table, _source_rows(server, table), _source_rows(server, target, database))


def expect_rows(server: EmbeddedPostgres, table: str, found: pa.Table) -> None:
    """Compare all values of all rows with some that are in the order of ``id``.

    Args:
        server: where the source's table is.
        table: its name, in lower case.
        found: the rows.

    Raises:
        RuntimeError: they differ.
    """
    _compare(table, _source_rows(server, table), found.cast(pa.schema(TYPES)).combine_chunks())


def _compare(table: str, wanted: pa.Table, found: pa.Table) -> None:
    if not wanted.equals(found):
        different = [name for name in TYPES if not wanted[name].equals(found[name])]
        raise RuntimeError(
            f"the target has {found.num_rows:,} rows, {table} {wanted.num_rows:,}; different: {different}"
        )


def _source_rows(server: EmbeddedPostgres, table: str, database: str = "postgres") -> pa.Table:
    columns = ", ".join(name if name != "updated_at" else MICROSECONDS for name in TYPES)
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        run_client(
            str(server.bin / "psql"),
            "--no-psqlrc",
            f"--output={file.name}",
            f"--dbname={server.conninfo(database)}",
            f"--command=COPY (SELECT {columns} FROM {table} ORDER BY id) TO STDOUT (FORMAT csv, HEADER)",
        )
        types = csv.ConvertOptions(column_types={**TYPES, "updated_at": pa.int64()}, strings_can_be_null=False)
        rows = csv.read_csv(file.name, convert_options=types)
    return rows.set_column(4, "updated_at", rows["updated_at"].cast(TYPES["updated_at"])).combine_chunks()


def _target_rows(target: Path) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(str(target)))
    rows = pa.table(query.execute(f"SELECT {', '.join(TYPES)} FROM t").read_all()).cast(pa.schema(TYPES))
    return rows.take(pc.sort_indices(rows["id"])).combine_chunks()
