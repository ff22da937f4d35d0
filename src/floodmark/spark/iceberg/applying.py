"""How the rows of a micro-batch come into an Iceberg table: by ``MERGE`` in Spark, or by Floodmark's own planning."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from obstore.store import ObjectStore
from pyspark.sql import SparkSession

from floodmark.errors import TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DataFile, now_ms
from floodmark.sinks.delta.parts import Part, fitting
from floodmark.sinks.delta.planning.replacements import Replacements
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.iceberg.changes import Changes, files_of
from floodmark.sinks.iceberg.data_files import FOLDER, IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.state import Snapshot
from floodmark.spark.iceberg.table import Form, IcebergTable
from floodmark.spark.targets.merged import with_position
from floodmark.spark.targets.staged import stage

log = get_logger(__name__)

_VECTORS_SINCE = 3
"""The first version of Iceberg's format with deletion vectors."""


@dataclass(frozen=True)
class Rows:
    """What a micro-batch has of a table.

    Attributes:
        parts: what its tasks have made; at least one.
        key: the columns of the key; empty without one.
        columns: those of the parts with the types that they have in the table.
        replaces: whether the table may have rows that these replace.
        application: the query.
        batch: the number of the micro-batch.
        mark: tells it from others with that number.
    """

    parts: Sequence[Part]
    key: Sequence[str]
    columns: pa.Schema
    replaces: bool
    application: str
    batch: int
    mark: int


class Applying(Protocol):
    """Brings rows into a table."""

    @property
    def files(self) -> DataFiles:
        """What writes the files of the table, or what is staged for it."""

    def properties(self) -> Mapping[str, str]:
        """Return properties that a table gets when it is made."""

    def apply(self, session: SparkSession, base: Snapshot, rows: Rows) -> bool:
        """Commit a micro-batch, unless readers don't see ``base`` any more; return whether it was done."""

    def leftovers(self, parts: Sequence[Part]) -> None:
        """Remove the files of parts that the table doesn't have; they are done with."""

    @property
    def has_offered(self) -> bool:
        """Whether files of parts may be in the table, though no commit is known to have succeeded."""


class ByMerge:
    """Spark finds the rows that are replaced, and writes files.

    Args:
        table: the table.
        files: writes what is staged.
        soft: whether deleted rows are only marked.
    """

    def __init__(self, table: IcebergTable, files: DataFiles, soft: bool) -> None:
        self._table = table
        self.files = files
        self._soft = soft

    def properties(self) -> Mapping[str, str]:
        """Return none."""
        return {}

    def apply(self, session: SparkSession, base: Snapshot, rows: Rows) -> bool:
        """Write a branch, and let readers see it (``Applying``)."""
        table, columns = self._table, with_position(rows.columns)
        table.open_branch(session, base)
        staged, truncated = stage(self.files, table, session, rows.parts, rows.key, rows.columns, self._soft)
        try:
            if rows.key and rows.replaces:
                table.merge(session, staged.rows, staged.deletes, rows.key, columns, truncated)
            elif staged.rows:
                table.append(session, staged.rows, columns)
        finally:
            staged.discard(keep=rows.parts)
        return table.publish(session, base, rows.application, rows.batch, rows.mark)

    @property
    def has_offered(self) -> bool:
        """Whether files of parts may be in the table: never."""
        return False

    def leftovers(self, parts: Sequence[Part]) -> None:
        """Remove all of them."""
        self.files.discard(add for part in parts for add in part.adds)


class ByOwnRows:
    """The driver finds the rows that are replaced; what tasks have written are the table's data files.

    Args:
        table: the table.
        files: its data files.
        options: the mirror's.
        kept: what all tables of a mirror keep in memory.
        layouts: gets the table's columns, so that tasks write as they are, by the table's name.
    """

    def __init__(
        self,
        table: IcebergTable,
        files: IcebergFiles,
        options: MirrorOptions,
        kept: KeptRows,
        layouts: MutableMapping[str, Layout],
    ) -> None:
        self._table = table
        self.files = files
        self._vectors = options.deletion_vectors == "on"
        self._soft = options.mode == "soft"
        self._rows = TargetRows(files, files.table, kept)
        self._layouts = layouts
        self._snapshot: int | None = None
        self._known: Mapping[str, DataFile] = {}
        self._offered: set[str] = set()
        self._told = False

    @property
    def has_offered(self) -> bool:
        """Whether files of parts may be in the table, though no commit is known to have succeeded."""
        return bool(self._offered)

    def properties(self) -> Mapping[str, str]:
        """Return where Spark writes files, too, and that readers can skip files by positions."""
        place = self.files.location(FOLDER.rstrip("/"))
        return {"write.data.path": place, "write.metadata.metrics.column._position": "full"}

    def apply(self, session: SparkSession, base: Snapshot, rows: Rows) -> bool:
        """Commit files and deletion vectors (``Applying``)."""
        form = self._table.form(session)
        if form.special:
            raise TargetUnfitError(
                f"The Iceberg table '{self.files.table}' has {form.special}, which Floodmark's own engine doesn't "
                "write.",
                "Set the mirror's option engine=spark, or remove the table.",
            )
        self.files.layout = form.layout
        if self._snapshot != base.number:
            self._known = files_of(self._table.files(session, base), self.files, form.layout)
            self._snapshot = base.number
        parts = [fitting(self.files, self.files.laid_out(part), rows.columns) for part in rows.parts]
        if rows.key:
            planner = Replacements(self.files, self._rows, self._has_vectors(form), self._soft)
            actions = planner.actions(parts, list(self._known.values()), rows.key, rows.columns, now_ms())
        else:
            actions = [{"add": add} for part in parts for add in part.adds]
        changes = Changes.of(actions, self._known)
        self._offered |= {str(add["path"]) for part in parts for add in part.adds}
        end = self._table.commit(session, base, changes, self.files, rows.application, rows.batch, rows.mark)
        if end is None:
            return False
        self._known, self._snapshot = changes.applied(self._known), end.number
        self._layouts[self.files.table] = form.layout
        return True

    def leftovers(self, parts: Sequence[Part]) -> None:
        """Remove those that were in no commit; whether one failed isn't always known."""
        self.files.discard(add for part in parts for add in part.adds if str(add["path"]) not in self._offered)
        self._offered.clear()

    def _has_vectors(self, form: Form) -> bool:
        """Return whether replaced rows are marked in deletion vectors; otherwise their files are written again."""
        if not self._vectors or form.version >= _VECTORS_SINCE:
            return self._vectors
        if not self._told:
            self._told = True
            log.warning(
                "a_table_has_no_deletion_vectors",
                table=self.files.table,
                format_version=form.version,
                effect="files that hold replaced rows are written again",
            )
        return False


def applying_for(
    table: IcebergTable,
    store: ObjectStore,
    root: str,
    name: str,
    options: MirrorOptions,
    kept: KeptRows,
    layouts: MutableMapping[str, Layout],
) -> Applying:
    """Return how rows come into a table with the engine that the options name.

    Args:
        table: the table.
        store: the folder in which files are written or staged.
        root: the folder's URI as Spark names it.
        name: the source's name of the table.
        options: the mirror's.
        kept: what all tables of a mirror keep in memory.
        layouts: gets the columns of tables that Floodmark writes itself, for the tasks.
    """
    if options.engine == "spark":
        return ByMerge(table, DataFiles(store, name), options.mode == "soft")
    return ByOwnRows(table, IcebergFiles(store, root, name, renamed=table.renamed), options, kept, layouts)
