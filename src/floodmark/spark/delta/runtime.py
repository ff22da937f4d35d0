"""Delta's runtime for Spark: which release goes with which Spark, and whether a session has it."""

from __future__ import annotations

import os

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession
from pyspark.version import __version__

from floodmark.errors import ConfigError
from floodmark.spark.targets.names import quoted
from floodmark.spark.versions import minor_version

ARTIFACT = "delta-spark"
RELEASE = "4.4.0"
"""The release of Delta with which mirrors are tested."""
BUILT_FOR = ((4, 0), (4, 1), (4, 2))
"""The versions of Spark that it has jars for."""
EXTENSIONS = "spark.sql.extensions"
SETTINGS = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Properties without which Spark takes no statements of Delta."""
_NEEDED = ", ".join(["spark.jars.packages={}", *(f"{name}={value}" for name, value in SETTINGS.items())])
_MANAGED = "DATABRICKS_RUNTIME_VERSION"
"""An environment variable of platforms that have Delta built in, under names of their own."""


def delta_package(version: str = __version__) -> str:
    """Return the coordinates of Delta's jars for a version of Spark.

    Raises:
        ConfigError: there are none.
    """
    minor = minor_version(version)
    if minor not in BUILT_FOR:
        newest = ".".join(map(str, BUILT_FOR[-1]))
        raise ConfigError(
            f"The mirror's option engine=spark needs Delta's runtime, which has no release for Spark {version} yet.",
            f"Use Spark {newest}, or leave out engine: Floodmark itself writes Delta tables with every Spark.",
        )
    return f"io.delta:{ARTIFACT}_{'.'.join(map(str, minor))}_2.13:{RELEASE}"


def require_delta(spark: SparkSession, schema: str | None = None) -> None:
    """Check that a session can write Delta tables.

    Args:
        schema: the catalogue's schema that has them; None: they are named by their folders.

    Raises:
        ConfigError: it lacks Delta's jars, a property or the schema.
    """
    if _MANAGED not in os.environ:
        _require_runtime(spark)
    if schema is not None and not spark.catalog.databaseExists(".".join(map(quoted, schema.split(".")))):
        raise ConfigError(
            f"The mirror's option catalog.schema is '{schema}', which Spark doesn't find.",
            f"Create it with CREATE SCHEMA {schema}, or correct the name.",
        )


def _require_runtime(spark: SparkSession) -> None:
    context = spark.sparkContext
    # Jars for another Spark can be loaded, and fail at the first statement.
    package = delta_package(context.version)
    assert context._jvm is not None
    if not isinstance(context._jvm.io.delta.sql.DeltaSparkSessionExtension, JavaClass):
        raise ConfigError(
            "The mirror's option engine=spark needs Delta's runtime, which this Spark doesn't have.",
            f"Start Spark with {_NEEDED.format(package)}; configure_spark_with_delta_pip of the "
            f"package {ARTIFACT}=={RELEASE} sets the first.",
        )
    for name, value in SETTINGS.items():
        if not spark.conf.get(name, ""):
            raise ConfigError(
                f"The mirror's option engine=spark needs the Spark property {name}, which is not set.",
                f"Start Spark with {name}={value}.",
            )
