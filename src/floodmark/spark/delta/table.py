"""A Delta table as Spark writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.delta.format.data_files import with_position
from floodmark.sinks.delta.tables import KEY_PROPERTY, needs_local_times
from floodmark.spark.targets.merged import MergedTable
from floodmark.spark.targets.names import catalog_name, literal, quoted, spark_folder
from floodmark.spark.versions import spark_schema

_LOCAL_TIMES = "delta.feature.timestampNtz"
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that columns can't have, unless the table maps their names."""


class SparkTable(MergedTable):
    """A target table.

    Args:
        location: the mirror's path.
        table: the source's name of the table, ``schema.table``.
        schema: the catalogue's schema through which it is written, such as ``main.shop``; None: it is named by its
            folder.
    """

    def __init__(self, location: str, table: str, schema: str | None) -> None:
        folder = spark_folder(location, table)
        self._table = table
        self._by_folder = f"delta.{quoted(folder)}"
        super().__init__(folder, self._by_folder if schema is None else catalog_name(schema, table))

    def prove_names(self, columns: pa.Schema) -> None:
        """Check that Spark takes columns with their names.

        Raises:
            TargetUnfitError: it doesn't.
        """
        for name in columns.names:
            if _REFUSED.search(name):
                raise TargetUnfitError(
                    f"The column '{name}' of the table '{self._table}' has a character that Spark doesn't take in "
                    "names of a Delta table's columns.",
                    "Leave it out with column.exclude.list, rename it, or leave out the mirror's option engine=spark.",
                )

    def register(self, session: SparkSession, identity: str) -> None:
        """See to it that the catalogue, if it is written through one, has the table under its name.

        Args:
            identity: the id of the table.

        Raises:
            TargetError: it has another one under that name.
        """
        if self._name == self._by_folder:
            return
        if not session.catalog.tableExists(self._name):
            try:
                session.catalog.createTable(self._name, path=self._folder, source="delta")
            except AnalysisException as error:
                if "ALREADY_EXISTS" not in str(error):
                    raise
        found = session.sql(f"DESCRIBE DETAIL {self._name}").first()
        if found is None or found["id"] != identity:
            raise TargetError(
                f"The catalogue has another table with the name {self._name} than the target of '{self._table}'.",
                "Give the mirror's option catalog.schema a schema of its own, or drop that table.",
            )

    def empty(self, session: SparkSession, rows: pa.Schema, key: Sequence[str], properties: Mapping[str, str]) -> None:
        """Remove all rows, and make the columns and the key those of the source.

        Args:
            rows: the source's columns.
            key: the columns of the key.
            properties: further properties that the table gets.
        """
        self.prove_names(rows)
        # Before the rows: without them it could seem that nothing is left to be done.
        self._set(session, {**properties, KEY_PROPERTY: ",".join(key)}, rows)
        self._overwrite(session, session.createDataFrame([], spark_schema(with_position(rows))))

    def add_columns(self, session: SparkSession, columns: pa.Schema) -> None:
        """Add columns, in which all rows have null.

        Raises:
            TargetUnfitError: Spark takes no column with such a name.
        """
        self.prove_names(columns)
        if needs_local_times(columns):
            self._set(session, {}, columns)
        session.createDataFrame([], spark_schema(columns)).writeTo(self._name).option("mergeSchema", "true").append()

    def widen(self, session: SparkSession, wider: Mapping[str, pa.DataType]) -> None:
        """Give columns types that hold more, which writes all rows again.

        Args:
            wider: the types by the columns' names.
        """
        kinds = {one.name: one.dataType for one in spark_schema(pa.schema(list(wider.items())))}
        rows = session.table(self._name)
        cast = [
            F.col(quoted(name)).cast(kinds[name]).alias(name) if name in kinds else F.col(quoted(name))
            for name in rows.columns
        ]
        self._overwrite(session, rows.select(cast))

    def optimize(self, session: SparkSession) -> None:
        """Rewrite small files as larger ones."""
        session.sql(f"OPTIMIZE {self._name}")

    def _set(self, session: SparkSession, properties: Mapping[str, str], rows: pa.Schema) -> None:
        """Give the table properties, and the features that columns need."""
        features = {_LOCAL_TIMES: "supported"} if needs_local_times(rows) else {}
        session.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({_listed({**properties, **features})})")

    def _overwrite(self, session: SparkSession, rows: DataFrame) -> None:
        detail = session.sql(f"DESCRIBE DETAIL {self._name}").first()
        rows.writeTo(self._name).option("overwriteSchema", "true").overwrite(F.lit(True))
        if detail is not None and detail["clusteringColumns"] and set(detail["clusteringColumns"]) <= set(rows.columns):
            # Delta takes a table with other columns for one that isn't clustered.
            clustering = ", ".join(map(quoted, detail["clusteringColumns"]))
            session.sql(f"ALTER TABLE {self._name} CLUSTER BY ({clustering})")


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
