"""The rows that a target has, as Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.keys import FileKeys, KeyIndex
from floodmark.spark.targets.merged import MergedTable

Numbers = npt.NDArray[np.int64]


class HeldBySpark:
    """The rows that a target has, as Spark reads them.

    Args:
        table: the target.
        session: the one that reads.
        key: names and types of the key's columns.
        stage: writes keys that are looked for and returns the file's name.
    """

    def __init__(
        self, table: MergedTable, session: SparkSession, key: pa.Schema, stage: Callable[[pa.Table, Sequence[str]], str]
    ) -> None:
        self._table = table
        self._session = session
        self._key = key
        self._stage = stage

    def keys(self) -> pa.Table:
        """Return the keys of all rows."""
        return self._table.keys(self._session, self._key)

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> list[ArrowRows]:
        """Return the rows that have one of some keys.

        Args:
            keys: their columns.
            columns: the columns that are read of them.
        """
        if not keys.num_rows:
            return []
        # Every file that is written here has positions.
        wanted = keys.append_column(POSITION, pa.nulls(keys.num_rows, pa.string()))
        file = self._stage(wanted, self._key.names)
        return [ArrowRows(self._table.with_keys(self._session, [file], self._key, columns), self._key.names)]


class ArrowRows:
    """Rows in memory.

    Args:
        rows: their columns.
        key: the columns of the key.
    """

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        self._rows = rows
        self._keys = FileKeys(rows.select(list(key)).combine_chunks())

    def find(self, index: KeyIndex) -> tuple[Numbers, Numbers]:
        """Return which of them have a key of an index, ascending, and which key each of these has."""
        return index.find(self._keys)

    def column(self, field: pa.Field) -> pa.ChunkedArray:
        """Return a column of all of them.

        Args:
            field: its name and type.
        """
        return self._rows[field.name].cast(field.type)
