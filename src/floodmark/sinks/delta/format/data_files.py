"""Data files of a Delta table: reading them, and writing them with their statistics."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from floodmark.json_data import Json
from floodmark.sinks.delta.format.log import DataFile, as_text
from floodmark.sinks.delta.format.statistics import statistics
from floodmark.sinks.delta.format.vectors import Rows

POSITION = "_position"
"""The column with the position of each row's last change."""


def write_file(store: ObjectStore, rows: pa.Table, key: Sequence[str]) -> dict[str, Json]:
    """Write rows as a data file and return the content of the action that adds it.

    Args:
        rows: sorted by key, so that a reader can skip parts of the file.
        key: columns that the log's statistics must have, besides the positions.
    """
    content = io.BytesIO()
    pq.write_table(rows, content, compression="snappy", use_dictionary=_repetitive(rows.schema))
    path = f"part-{uuid4()}.parquet"
    obstore.put(store, path, content.getvalue())
    return {
        "path": path,
        "partitionValues": {},
        "size": content.getbuffer().nbytes,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": as_text(statistics(rows, key, POSITION)),
    }


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


def open_parquet(store: ObjectStore, file: DataFile) -> pq.ParquetFile:
    """Open a data file."""
    return pq.ParquetFile(_File(store, unquote(file.path)))


def read_columns(parquet: pq.ParquetFile, names: Sequence[str], kinds: pa.Schema) -> pa.Table:
    """Read columns of a data file.

    Args:
        kinds: their types; other writers may have kept another Arrow type, such as ``string_view``, in the file.
    """
    present = [name for name in names if name in parquet.schema_arrow.names]
    table = parquet.read(columns=present)
    for name in names:
        if name not in present:
            # The file is from before the column.
            table = table.append_column(name, pa.nulls(parquet.metadata.num_rows, kinds.field(name).type))
    return table.select(list(names)).cast(pa.schema([kinds.field(name) for name in names]))


def discard(store: ObjectStore, adds: Iterable[Mapping[str, Json] | None]) -> None:
    """Remove files that no commit names; those that can't be removed now are left to ``VACUUM``.

    Args:
        adds: what ``write_file`` returned; nothing is done for None.
    """
    for add in adds:
        if add is not None:
            with contextlib.suppress(OSError, BaseError):
                obstore.delete(store, str(add["path"]))


def plain_types(rows: pa.Table) -> pa.Table:
    """Return rows of a file of any writer without the types that only save memory, such as ``string_view``."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.large_string(): pa.string()}
    return rows.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in rows.schema]))


def living(table: pa.Table, deleted: Rows) -> pa.Table:
    """Return the rows of a data file that are not deleted.

    Args:
        table: all rows of the file, in their order.
    """
    kept = np.ones(table.num_rows, np.bool_)
    kept[deleted.astype(np.int64)] = False
    return table.filter(pa.array(kept))


def _repetitive(schema: pa.Schema) -> list[str]:
    """Return the columns for which a dictionary may pay: those of texts, but not positions."""
    return [field.name for field in schema if pa.types.is_string(field.type) and field.name != POSITION]
