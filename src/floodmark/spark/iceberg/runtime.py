"""Iceberg's runtime for Spark: which release goes with which Spark, and whether a session has it and a catalogue."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession
from pyspark.version import __version__

from floodmark.errors import ConfigError
from floodmark.sinks.iceberg.catalogues.catalogue import Catalogue
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.failures import SPARK_ERRORS, reason_of
from floodmark.spark.targets.names import quoted
from floodmark.spark.targets.sessions import class_location
from floodmark.spark.versions import minor_version

ARTIFACT = "iceberg-spark-runtime"
RELEASES = {(4, 0): "1.11.0", (4, 1): "1.12.0"}
"""The release of Iceberg with which mirrors are tested, for each version of Spark that it has jars for."""
CATALOG = "spark.sql.catalog."
CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
_CLASSES = (CATALOG_CLASS, "org.apache.iceberg.spark.SparkSessionCatalog")
_JAR = re.compile(rf"{ARTIFACT}-(\d+\.\d+)_")


def iceberg_package(version: str = __version__) -> str:
    """Return the coordinates of Iceberg's jar for a version of Spark.

    Raises:
        ConfigError: there is none.
    """
    minor = minor_version(version)
    if minor not in RELEASES:
        have = " or ".join(".".join(map(str, one)) for one in RELEASES)
        raise ConfigError(
            f"A mirror with format=iceberg needs Iceberg's runtime, which has no release for Spark {version}.",
            f"Use Spark {have}; or name the catalogue in the mirror's options catalog.type, catalog.uri and so on, to "
            "which Floodmark commits without the runtime then; or format=delta.",
        )
    return f"org.apache.iceberg:{ARTIFACT}-{'.'.join(map(str, minor))}_2.13:{RELEASES[minor]}"


def require_iceberg(spark: SparkSession, schema: str) -> None:
    """Check that a session can write Iceberg tables.

    Args:
        schema: the catalogue's schema that has them, such as ``lake.shop``.

    Raises:
        ConfigError: it lacks Iceberg's jar, the catalogue or the schema.
    """
    package = iceberg_package(spark.sparkContext.version)
    found = class_location(spark, CATALOG_CLASS)
    if found is None:
        raise ConfigError(
            "A mirror with format=iceberg needs Iceberg's runtime, which this Spark doesn't have.",
            f"Start Spark with spark.jars.packages={package}.",
        )
    jar = _JAR.search(found)
    if jar is not None and jar[1] != ".".join(map(str, minor_version(spark.sparkContext.version))):
        raise ConfigError(
            f"Spark has Iceberg's runtime for Spark {jar[1]}, but it is {spark.sparkContext.version}.",
            f"Start Spark with spark.jars.packages={package} in its place.",
        )
    _require_schema(spark, schema)


def require_catalogue(options: MirrorOptions) -> None:
    """Check that Floodmark itself can commit to the catalogue that a mirror's options name.

    Raises:
        ConfigError: the catalogue can't be used, or lacks the schema, or a package is missing.
    """
    try:
        import pyiceberg.table  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"A mirror with the option catalog.{next(iter(options.catalog))} needs pyiceberg: {error}.",
            "Install it with: pip install 'floodmark[iceberg]'",
        ) from None
    Catalogue(options.catalog_schema or "", options.catalogue).prove_usable()


def _require_schema(spark: SparkSession, schema: str) -> None:
    catalog = schema.split(".", maxsplit=1)[0]
    kind = spark.conf.get(f"{CATALOG}{catalog}", "")
    if kind not in _CLASSES:
        raise ConfigError(
            f"The mirror's option catalog.schema is '{schema}', but Spark has no Iceberg catalogue '{catalog}'.",
            f"Start Spark with {CATALOG}{catalog}={CATALOG_CLASS} and with what names the catalogue, such as "
            f"{CATALOG}{catalog}.type=rest and {CATALOG}{catalog}.uri=….",
        )
    try:
        exists = spark.catalog.databaseExists(".".join(map(quoted, schema.split("."))))
    except SPARK_ERRORS as error:
        raise ConfigError(
            f"The Iceberg catalogue '{catalog}' can't be used: {reason_of(error)}.",
            f"Check the properties that begin with {CATALOG}{catalog}, and whether the catalogue can be reached.",
        ) from error
    if not exists:
        raise ConfigError(
            f"The mirror's option catalog.schema is '{schema}', which Spark doesn't find.",
            f"Create it with CREATE SCHEMA {schema}, or correct the name.",
        )
