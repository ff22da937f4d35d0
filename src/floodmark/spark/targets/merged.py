"""A target that Spark writes with ``MERGE``, from files that tasks and the driver have staged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.spark.targets.names import quoted
from floodmark.spark.versions import spark_schema

_GONE = "_floodmark_deleted"
"""The column of changes that says which rows are deleted."""


class MergedTable:
    """A target table, and the folder in which its changes are staged.

    Args:
        folder: the folder as Spark names it.
        name: the table's quoted name.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._renamed: dict[str, str] = {}
        """Names of staged columns that the table has under other names."""

    def append(self, session: SparkSession, files: Sequence[str], columns: pa.Schema) -> None:
        """Append the rows of files.

        Args:
            files: their names in the table's folder.
            columns: those of the table that they may have.
        """
        rows = self._read(session, files, columns).withColumnsRenamed(self._renamed)
        self._whole(session, rows).writeTo(self._name).append()

    def merge(
        self,
        session: SparkSession,
        files: Sequence[str],
        deletes: Sequence[str],
        key: Sequence[str],
        columns: pa.Schema,
        truncated: str,
    ) -> None:
        """Replace rows by newer ones of the same key, and delete some.

        Args:
            files: the names of files in the table's folder with rows that the table gets, each key once.
            deletes: those of files with the keys and positions of rows that are deleted.
            key: the columns of the key.
            columns: those of the table that the files may have.
            truncated: the position of a truncate, before which all other rows are deleted; empty without one.
        """
        changes = self._read(session, files, columns).withColumn(_GONE, F.lit(False))
        if deletes:
            changes = changes.unionAll(self._read(session, deletes, columns).withColumn(_GONE, F.lit(True)))
        held = session.table(self._name).columns
        new = {quoted(self._renamed.get(name, name)): _change(name) for name in columns.names}
        position = self._column(POSITION)
        newer = position.isNull() | (position < _change(POSITION))
        same = [self._column(name) == _change(name) for name in key]
        merge = changes.alias("s").mergeInto(self._name, _every(same))
        if deletes:
            merge = merge.whenMatched(newer & _change(_GONE)).delete()
        # Columns that only the target has are null in rows that come.
        left = {quoted(name): F.lit(None) for name in held if quoted(name) not in new}
        merge = merge.whenMatched(newer).update({**new, **left})
        merge = merge.whenNotMatched(~_change(_GONE)).insert(new)
        if truncated:
            merge = merge.whenNotMatchedBySource(position.isNull() | (position < F.lit(truncated))).delete()
        merge.merge()

    def _whole(self, session: SparkSession, rows: DataFrame) -> DataFrame:  # noqa: ARG002
        """Return rows with all columns that an append needs."""
        return rows

    def keys(self, session: SparkSession, key: pa.Schema) -> pa.Table:
        """Return the keys of all rows.

        Args:
            key: names and types of the key's columns.
        """
        return session.table(self._name).select(*map(quoted, key.names)).toArrow().cast(key)

    def with_keys(self, session: SparkSession, files: Sequence[str], key: pa.Schema, columns: pa.Schema) -> pa.Table:
        """Return columns of the rows that have one of some keys, after their keys.

        Args:
            files: the names of files in the table's folder with those keys.
            key: names and types of the key's columns.
            columns: names and types of the others.
        """
        wanted = self._read(session, files, key).alias("s")
        rows = session.table(self._name).alias("t")
        same = [F.col(f"t.{quoted(name)}") == _change(name) for name in key.names]
        found = rows.join(wanted, _every(same), "left_semi").select(*map(quoted, [*key.names, *columns.names]))
        return found.toArrow().cast(pa.schema([*key, *columns]))

    def _column(self, name: str) -> Column:
        return F.col(f"{self._name}.{quoted(name)}")

    def _read(self, session: SparkSession, files: Sequence[str], columns: pa.Schema) -> DataFrame:
        """Return the rows of files that tasks or the driver wrote; columns that one lacks are null."""
        kinds = spark_schema(columns)
        if not files:
            return session.createDataFrame([], kinds)
        # The files have days of the calendar that Spark has now, whatever a program sets for others.
        reader = session.read.schema(kinds).option("datetimeRebaseMode", "CORRECTED")
        return reader.parquet(*(f"{self._folder}/{file}" for file in files))


def _change(name: str) -> Column:
    return F.col(f"s.{quoted(name)}")


def _every(conditions: Iterable[Column]) -> Column:
    found, *others = conditions
    for one in others:
        found = found & one
    return found
