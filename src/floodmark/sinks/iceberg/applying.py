"""How the rows of a micro-batch come into an Iceberg table by Floodmark's own planning."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from floodmark.errors import TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.delta.format.log import DataFile, now_ms
from floodmark.sinks.delta.parts import Part, fitting
from floodmark.sinks.delta.planning.replacements import Replacements
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows
from floodmark.sinks.iceberg.changes import Changes, files_of
from floodmark.sinks.iceberg.data_files import FOLDER, IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.iceberg.protocols import CatalogTable, Form, Rows
from floodmark.sinks.iceberg.state import Snapshot
from floodmark.sinks.options import MirrorOptions

log = get_logger(__name__)

VECTORS_SINCE = 3
"""The first version of Iceberg's format with deletion vectors."""


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
        table: CatalogTable,
        files: IcebergFiles,
        options: MirrorOptions,
        kept: KeptRows,
        layouts: MutableMapping[str, Layout],
    ) -> None:
        self._table = table
        self.files = files
        self._vectors = options.has_vectors
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

    def apply(self, base: Snapshot, rows: Rows) -> bool:
        """Commit files and deletion vectors (``Applying``)."""
        form = self._table.form()
        if form.special:
            raise TargetUnfitError(
                f"The Iceberg table '{self.files.table}' has {form.special}, which Floodmark's own engine doesn't "
                "write.",
                "Set the mirror's option engine=spark, or remove the table.",
            )
        self.files.layout = form.layout
        if self._snapshot != base.number:
            self._known = files_of(self._table.files(base), self.files, form.layout)
            self._snapshot = base.number
        parts = [fitting(self.files, self.files.laid_out(part), rows.columns) for part in rows.parts]
        if rows.key:
            planner = Replacements(self.files, self._rows, self._has_vectors(form), self._soft)
            actions = planner.actions(parts, list(self._known.values()), rows.key, rows.columns, now_ms())
        else:
            actions = [{"add": add} for part in parts for add in part.adds]
        changes = Changes.of(actions, self._known)
        self._offered |= {str(add["path"]) for part in parts for add in part.adds}
        end = self._table.commit(base, changes, self.files, rows.application, rows.batch, rows.mark)
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
        if not self._vectors or form.version >= VECTORS_SINCE:
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
