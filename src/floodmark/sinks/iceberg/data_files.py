"""Data files of an Iceberg table: in Parquet, with the numbers of their columns.

Format: the Iceberg table specification, section "Appendix A: Format-specific Requirements" (Parquet).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import LocalStore, ObjectStore, from_url

from floodmark.changes.schema_changes import holds
from floodmark.errors import TargetUnfitError
from floodmark.json_data import Json
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.iceberg.layout import Layout, number_of, stored
from floodmark.sinks.iceberg.puffin import PuffinFile

FOLDER = "data/"
"""Where data files and deletion vectors are in a table's folder. Files beside it are only staged."""
_LAYOUT = "layout"
"""The member of an ``add`` action that says by which layout a file was written."""
_URI = re.compile(r"(?:([a-z][a-z0-9+.-]*):(?://([^/]*))?)?/(.*)", re.DOTALL)
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
_MOST_SIZES = 10_000
"""How many sizes of files are kept."""


class IcebergFiles(DataFiles):
    """The data files of a table, and those that are staged before the table's columns are known.

    Args:
        store: the table's folder.
        root: the folder's URI as Iceberg's Java library names it.
        table: the table's name, for errors.
        layout: the table's columns, as far as it is known; rows that don't go with it are staged.
        renamed: columns of the mirror's own that the table has under other names.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        table: str,
        layout: Layout | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, table)
        self._root = root
        self._renamed = renamed or {}
        self._stores: dict[str, ObjectStore] = {}
        self._sizes: dict[str, int] = {}
        self.layout = layout

    @property
    def layout(self) -> Layout | None:
        """The table's columns; None: they aren't known yet."""
        return self._layout

    @layout.setter
    def layout(self, layout: Layout | None) -> None:
        self._layout = layout
        self._fields = {} if layout is None else layout.named(self._renamed)

    def location(self, path: str) -> str:
        """Return what Iceberg calls a file.

        Args:
            path: its path in the table's folder, or its URI, as a ``DataFile`` has them.
        """
        path = unquote(path)
        return path if _URI.fullmatch(path) else f"{self._root}/{path}"

    def path(self, location: str) -> str:
        """Return a file's path in the table's folder, or its URI if it is elsewhere.

        Args:
            location: what Iceberg calls it.
        """
        # No other spelling of the folder's URI: a deletion vector must name the file as the table does.
        return location.removeprefix(f"{self._root}/")

    def vector_file(self) -> PuffinFile:
        """Return a file that gets the deletion vectors of one commit."""
        return PuffinFile(FOLDER, self.location)

    def parquet_metadata(self, file: DataFile) -> pq.FileMetaData:
        """Return what the end of a data file says of it."""
        return self._opened(file).metadata

    def size_of(self, location: str) -> int:
        """Return how many bytes a file has.

        Args:
            location: what Iceberg calls it.
        """
        if location not in self._sizes:
            if len(self._sizes) >= _MOST_SIZES:
                self._sizes.clear()
            store, path = self._place(self.path(location))
            self._sizes[location] = int(obstore.head(store, path)["size"])
        return self._sizes[location]

    def read(self, file: DataFile, kinds: pa.Schema | None = None) -> pa.Table:
        """Read all rows of a data file, deleted ones included (``DataFiles``)."""
        if self._layout is None:
            return super().read(file, kinds)
        found = self._names_in(self._opened(file))
        return self.read_columns(file, pa.schema([pa.field(name, self._fields[name].type) for name in found]))

    def laid_out(self, part: Part) -> Part:
        """Return a part whose files are in the table's layout; those that aren't are written again.

        Raises:
            TargetUnfitError: the table wants values that rows lack.
        """
        assert self._layout is not None
        fits = self._layout.identity
        adds = [add if add.get(_LAYOUT) == fits else self._again(add, part.key) for add in part.adds]
        return replace(part, adds=adds)

    def copied(self, part: Part) -> Part:
        """Return a part with files of its own that have the same rows, in the table's layout.

        Raises:
            TargetUnfitError: the table wants values that rows lack.
        """
        return replace(part, adds=[self._again(add, part.key) for add in part.adds])

    def _again(self, add: Mapping[str, Json], key: Sequence[str]) -> Mapping[str, Json]:
        """Write a file again in the table's layout, and return the content of the action that adds it."""
        # By name: what number a column had when a task wrote it says nothing of which one it is now.
        rows = super().read(DataFile.from_json(dict(add)))
        staged = {name: own for own, name in self._renamed.items()}
        rows = rows.rename_columns([staged.get(name, name) for name in rows.column_names])
        made = self.write_one(rows, key, {})
        if _LAYOUT not in made:
            raise self._unfit(rows)
        return made

    def _stored(self, rows: pa.Table) -> tuple[pa.Table, str, Mapping[str, Json]]:
        if self._layout is None or not self._fits(rows):
            return rows, "", {}
        fields = {name: field for name, field in self._fields.items() if name in rows.column_names}
        columns = [rows[name].cast(field.type) for name, field in fields.items()]
        laid_out = pa.table(columns, schema=pa.schema(list(fields.values())))
        return laid_out, FOLDER, {_LAYOUT: self._layout.identity}

    def _fits(self, rows: pa.Table) -> bool:
        """Return whether rows can be in the layout; otherwise the table is altered before they are."""
        assert self._layout is not None
        known = all(one.name in self._fields and _takes(self._fields[one.name].type, one.type) for one in rows.schema)
        return known and next(self._lacking(rows), None) is None

    def _lacking(self, rows: pa.Table) -> Iterator[str]:
        """Yield the columns that want values which rows lack."""
        for name, field in self._fields.items():
            if not field.nullable and (name not in rows.column_names or rows[name].null_count):
                yield field.name
        yield from self._layout.required if self._layout is not None else ()

    def _unfit(self, rows: pa.Table) -> TargetUnfitError:
        column = next(self._lacking(rows), None)
        if column is None:
            return TargetUnfitError(
                f"Rows for the Iceberg table '{self.table}' don't go with its columns, which somebody else altered.",
                "Remove the table.",
            )
        return TargetUnfitError(
            f"The column '{column}' of the Iceberg table '{self.table}' must not be null, but rows have no value.",
            f"Let it take nulls: ALTER TABLE … ALTER COLUMN {column} DROP NOT NULL, or remove the table.",
        )

    def _names_in(self, parquet: pq.ParquetFile) -> Mapping[str, str]:
        if self._layout is None:
            return super()._names_in(parquet)
        held = parquet.schema_arrow
        by_number = {number: one.name for one in held if (number := number_of(one)) is not None}
        if not by_number:
            # It was staged.
            return {name: name for name in self._fields if name in held.names}
        numbers = {name: number_of(field) for name, field in self._fields.items()}
        return {name: by_number[number] for name, number in numbers.items() if number in by_number}

    def _place(self, path: str) -> tuple[ObjectStore, str]:
        elsewhere = _URI.fullmatch(path)
        if elsewhere is None:
            return self.store, path
        scheme, host, within = elsewhere.groups()
        if scheme in (None, "file"):
            return self._stores.setdefault("", LocalStore("/")), within
        # Hadoop's names of the schemes that others know.
        root = f"{_SCHEMES.get(scheme, scheme)}://{host or ''}"
        if root not in self._stores:
            self._stores[root] = from_url(root)
        return self._stores[root], within


def _takes(kind: pa.DataType, given: pa.DataType) -> bool:
    """Return whether a column has all values of a type as they are."""
    return bool(kind == stored(given)) or (not pa.types.is_string(kind) and holds(kind, given))
