"""Spark with Iceberg's runtime, beside the tests: it writes the tables of mirrors, reads them and changes them.

Iceberg has no release for the Spark that the tests run on, so the newest older one runs in a process of its own, or the
one that ``FLOODMARK_ICEBERG_SPARK`` says. Its catalogue is a PostgreSQL database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.runtime import CATALOG, CATALOG_CLASS
from floodmark.spark.iceberg.tables import IcebergTables
from floodmark.spark.targets.sessions import Sessions
from tests.support.delta_spark import TABLE, DeltaSpark, Told, Writers, main, running_process
from tests.support.maven import jar
from tests.support.older import installed

_RUNTIMES = {
    "4.0.5": (
        "org/apache/iceberg/iceberg-spark-runtime-4.0_2.13/1.11.0/iceberg-spark-runtime-4.0_2.13-1.11.0.jar",
        "63c3b812549dc232c1920865ff42436df8604a9bbacd693930985c06bd97e6dc",
    ),
    "4.1.4": (
        "org/apache/iceberg/iceberg-spark-runtime-4.1_2.13/1.12.0/iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
}
SPARK = os.environ.get("FLOODMARK_ICEBERG_SPARK", "4.1.4")
LAKE, REST = "lake", "rest"
"""The names of the catalogues: one in a database, and one behind a server."""
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""Statements about tags and branches need them; mirrors don't, and their queries run without."""
_JARS = {
    _RUNTIMES[SPARK][0]: _RUNTIMES[SPARK][1],
    "org/postgresql/postgresql/42.7.14/postgresql-42.7.14.jar": (
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"
    ),
}


def iceberg_jars() -> list[Path]:
    """Return the jars; those that aren't there are downloaded."""
    return [jar(path, digest, "iceberg") for path, digest in _JARS.items()]


def iceberg_environment() -> dict[str, str]:
    """Return the variables with which Python imports Iceberg's Spark, and not the tests' own."""
    spark = installed(SPARK)
    assert spark is not None
    return {
        "SPARK_HOME": str(spark / "pyspark"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(spark), os.environ.get("PYTHONPATH")])),
    }


def properties(catalogues: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the properties with which that Spark has Iceberg's runtime and catalogues.

    Args:
        catalogues: the properties of each, by name.
    """
    found = {"spark.jars": ",".join(map(str, iceberg_jars()))}
    for catalogue, values in catalogues.items():
        prefix = f"{CATALOG}{catalogue}"
        found |= {prefix: CATALOG_CLASS, **{f"{prefix}.{name}": value for name, value in values.items()}}
    return found


def catalogue_in(server: EmbeddedPostgres, warehouse: Path) -> dict[str, str]:
    """Return the properties of a new catalogue in a database.

    Args:
        warehouse: the directory of its tables.
    """
    name = f"catalogue_{uuid4().hex[:8]}"
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return {
        "uri": f"jdbc:postgresql://127.0.0.1:{server.port}/{name}",
        "jdbc.user": server.user,
        "jdbc.schema-version": "V1",
        "warehouse": f"file://{warehouse}",
        # What other sessions have changed is seen at once.
        "cache-enabled": "false",
    }


class IcebergWriters(Writers):
    """The writers of Iceberg tables."""

    def _sessions_like(self, spark: SparkSession) -> Sessions:
        return Sessions(spark, active=True)

    def _writer(
        self, location: str, application: str, options: MirrorOptions, told: Told, written: int | None
    ) -> TableWriter:
        make_writer = IcebergTables(self._sessions, location, options).writers({})
        return make_writer(TABLE, table_folder(location, TABLE), application, told, written)


@contextmanager
def running_iceberg_spark(catalogues: Mapping[str, Mapping[str, str]]) -> Iterator[DeltaSpark]:
    """Yield a session; it ends with the block.

    Args:
        catalogues: the properties of each, by name.
    """
    module, spark = "tests.support.iceberg_spark", {**properties(catalogues), "spark.sql.extensions": _EXTENSIONS}
    with running_process(module, spark, iceberg_environment()) as (process, log):
        yield DeltaSpark(process, log)


if __name__ == "__main__":
    main(IcebergWriters)
