"""Data files of a Delta table: reading them, and writing them with their statistics."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from floodmark.json_data import Json
from floodmark.sinks.delta.format.log import DataFile, as_text
from floodmark.sinks.delta.format.partitions import Values, constant, folder_of, partitions_of
from floodmark.sinks.delta.format.statistics import statistics
from floodmark.sinks.delta.format.vectors import Rows, VectorFile

POSITION = "_position"
"""The column with the position of each row's last change."""


def with_position(rows: pa.Schema) -> pa.Schema:
    """Return the columns of a target for the source's columns."""
    return rows.append(pa.field(POSITION, pa.string()))


class DataFiles:
    """The data files of a table.

    Args:
        store: the table's folder.
        table: the table's name, for errors.
        partition: the columns by which it is partitioned.

    Attributes:
        shared: whether another table's log may name files that this one's doesn't, so that none may be removed.
    """

    def __init__(self, store: ObjectStore, table: str, partition: Sequence[str] = ()) -> None:
        self.store = store
        self.table = table
        self.shared = False
        self._partition = partition

    def sorting(self, columns: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
        """Return by what rows are sorted: by partition, and there by columns, so that readers can skip parts of a file.

        Args:
            columns: such as the key's.
            names: the columns that the rows have.
        """
        return [(name, "ascending") for name in dict.fromkeys([*self._partition, *columns]) if name in names]

    def in_order(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return rows sorted by ``sorting``."""
        return rows.take(pc.sort_indices(rows, sort_keys=self.sorting(columns, rows.column_names)))

    def write(self, rows: pa.Table, described: Sequence[str]) -> list[dict[str, Json]]:
        """Write rows in their order, a file for each partition; return the contents of the actions that add them.

        Args:
            rows: in order; at least one.
            described: columns that the log's statistics must have, besides the positions.

        Raises:
            TargetUnfitError: a row can't be in a partition.
            TargetError: there are too many partitions.
        """
        if not self._partition:
            return [self.write_one(rows, described, {})]
        parts = partitions_of(rows, self._partition, self.table)
        stored = rows.drop_columns([name for name in self._partition if name in rows.column_names])
        return [self.write_one(stored.slice(begin, end - begin), described, values) for begin, end, values in parts]

    def write_one(self, rows: pa.Table, described: Sequence[str], partition: Values) -> dict[str, Json]:
        """Write rows as a data file and return the content of the action that adds it.

        Args:
            rows: without the partition columns.
            described: columns that the log's statistics must have, besides the positions and those of the partition.
            partition: the values of the partition columns.
        """
        content, (stored, folder, more) = io.BytesIO(), self._stored(rows)
        pq.write_table(stored, content, compression="snappy", use_dictionary=_repetitive(stored.schema))
        path = f"{folder}{folder_of(partition)}part-{uuid4()}.parquet"
        obstore.put(self.store, path, content.getvalue())
        return {
            "path": quote(path, safe="/="),
            "partitionValues": dict(partition),
            "size": content.getbuffer().nbytes,
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": as_text(statistics(rows, [name for name in described if name not in partition], POSITION)),
            **more,
        }

    def read(self, file: DataFile, kinds: pa.Schema | None = None) -> pa.Table:
        """Read all rows of a data file, deleted ones included.

        Args:
            kinds: the types of partition columns, which are texts without; None: the partition columns are left out.
        """
        rows = _plain_types(self._opened(file).read())
        rows = rows.drop_columns([name for name in file.partition if name in rows.column_names])
        if kinds is not None:
            for name, text in file.partition.items():
                kind = kinds.field(name).type if name in kinds.names else pa.string()
                rows = rows.append_column(name, constant(text, kind, rows.num_rows))
        return rows

    def read_columns(self, file: DataFile, columns: pa.Schema) -> pa.Table:
        """Read columns of all rows of a data file, deleted ones included.

        Args:
            columns: their names and types; other writers may have kept another Arrow type, such as ``string_view``.
        """
        return self._columns_of(file, self._opened(file), columns)

    def groups(
        self, file: DataFile, columns: pa.Schema, rows: npt.NDArray[np.int64] | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the row groups of a data file, deleted rows included, each with the number of its first row.

        Args:
            columns: as for ``read_columns``.
            rows: numbers of rows, ascending; groups without any of them are left out. None: all are read.
        """
        parquet, first = self._opened(file), 0
        for number in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(number).num_rows
            if rows is None or np.diff(np.searchsorted(rows, [first, first + count]))[0]:
                yield first, self._columns_of(file, parquet, columns, number)
            first += count

    def _columns_of(
        self, file: DataFile, parquet: pq.ParquetFile, columns: pa.Schema, group: int | None = None
    ) -> pa.Table:
        """Return columns of all rows, or of those of a row group."""
        partition, metadata, found = file.partition, parquet.metadata, self._names_in(parquet)
        present = {name: found[name] for name in columns.names if name in found and name not in partition}
        names = list(present.values())
        table = parquet.read(columns=names) if group is None else parquet.read_row_group(group, columns=names)
        count = metadata.num_rows if group is None else metadata.row_group(group).num_rows
        # A file without the column is from before it, or has one value of it only.
        values = [
            table[present[one.name]].cast(one.type)
            if one.name in present
            else constant(partition.get(one.name), one.type, count)
            for one in columns
        ]
        return pa.table(values, schema=columns)

    def discard(self, adds: Iterable[Mapping[str, Json] | None]) -> None:
        """Remove files that no commit names; those that can't be removed now are left to ``VACUUM``.

        Args:
            adds: what was returned when they were written; nothing is done for None.
        """
        for add in adds:
            if add is not None and not self.shared:
                with contextlib.suppress(OSError, BaseError):
                    obstore.delete(self.store, unquote(str(add["path"])))

    def bytes_of(self, path: str, offset: int, size: int) -> bytes:
        """Return a part of a file (``ReadBytes``)."""
        store, within = self._place(path)
        return bytes(obstore.get_range(store, within, start=offset, length=size))

    def vector_file(self) -> VectorFile:
        """Return a file that gets the deletion vectors of one commit."""
        return VectorFile()

    def _opened(self, file: DataFile) -> pq.ParquetFile:
        return pq.ParquetFile(_File(*self._place(unquote(file.path))))

    def _place(self, path: str) -> tuple[ObjectStore, str]:
        """Return the store that has a file of the table, and the file's path there."""
        return self.store, path

    def _stored(self, rows: pa.Table) -> tuple[pa.Table, str, Mapping[str, Json]]:
        """Return rows as a data file has them, where in the table's folder it is, and more members of its action."""
        return rows, "", {}

    def _names_in(self, parquet: pq.ParquetFile) -> Mapping[str, str]:
        """Return the names that columns have in a file, by those that they have in the table."""
        return {name: name for name in parquet.schema_arrow.names}


class _File(io.RawIOBase):
    """A file of a store, as PyArrow takes it: it closes others after the first read."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._reader = obstore.open_reader(store, path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(self._reader.read(None if size < 0 else size))

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


def _plain_types(rows: pa.Table) -> pa.Table:
    """Return rows of a file of any writer without the types that only save memory, such as ``string_view``."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.large_string(): pa.string()}
    return rows.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in rows.schema]))


def living(table: pa.Table, deleted: Rows) -> pa.Table:
    """Return the rows of a data file that are not deleted.

    Args:
        table: all rows of the file, in their order.
    """
    return table.filter(pa.array(alive(table.num_rows, deleted)))


def alive(count: int, deleted: Rows) -> npt.NDArray[np.bool_]:
    """Return which rows of a data file are not deleted, shape (count,).

    Args:
        count: how many rows it has.
        deleted: numbers of rows.
    """
    mask = np.ones(count, np.bool_)
    mask[deleted.astype(np.int64)] = False
    return mask


def _repetitive(schema: pa.Schema) -> list[str]:
    """Return the columns for which a dictionary may pay: those of texts, but not positions."""
    return [field.name for field in schema if pa.types.is_string(field.type) and field.name != POSITION]
