"""Follows the structures of the captured tables along the log.

LogMiner names columns by the dictionary as it is when it is asked (``log.mining.strategy=online_catalog``), so the
structures behind a statement are those of the dictionary. What was logged before a table was altered, and is only read
afterwards, it shows with numbers instead of names: such a change can't be decoded, which its table's decoding says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import behind
from floodmark.connectors.oracle.schema.versions import TableVersions, Version
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.logger import get_logger

log = get_logger(__name__)

_INTERNAL = "INTERNAL DDL"
_OF_TABLES = re.compile(r"\s*(?:/\*.*?\*/\s*)*(?:CREATE|ALTER|DROP|RENAME|FLASHBACK|COMMENT|TRUNCATE)\b", re.I | re.S)


class SchemaFollower:
    """The captured tables at each position, and at the end of what was read.

    Args:
        options: the source's options.
        read: returns the captured tables as the dictionary has them now.
    """

    def __init__(self, options: OracleOptions, read: Callable[[], Sequence[StoredTable]]) -> None:
        self._options = options
        self._read = read
        self._versions = TableVersions(StateDirFiles(options.state_dir, options.owner))
        self._now = Version.of({}, {})

    @property
    def objects(self) -> Mapping[int, str]:
        """The names of the tables by their numbers, which they keep when they are dropped."""
        return self._now.objects

    def begin(self, position: str) -> str:
        """Begin with the tables as they are now; return the version's name."""
        self._now = _version(self._read())
        self._versions.begin(position, self._now)
        return self._now.name

    def restore(self, position: str, name: str) -> None:
        """Begin with the version that an offset names; tables that are captured since are added.

        Raises:
            SchemaHistoryError: its file is gone or damaged.
        """
        stored = self._versions.read(name)
        added = {table.full_name: table for table in self._read() if table.full_name not in stored.tables}
        self._now = stored
        if added:
            tables = {**stored.tables, **{known: table.table for known, table in added.items()}}
            objects = {**stored.objects, **{table.number: known for known, table in added.items()}}
            self._now = Version.of(tables, objects)
        self._versions.begin(position, self._now)

    def rewind(self, position: str) -> None:
        """Go back to what holds at a position."""
        self._now = self._versions.at(position)

    def version_at(self, position: str) -> str:
        """Return the name of the version at a position."""
        return self._versions.at(position).name

    def forget(self, position: str) -> None:
        """Remove what only earlier positions need."""
        self._versions.forget(position)

    def follow(self, row: pa.Table) -> None:
        """Take a statement over.

        Args:
            row: of the view, shape (1,).
        """
        (found,) = row.select(["SCN", "SEG_OWNER", "SQL_REDO", "INFO"]).to_pylist()
        statement = found["SQL_REDO"] or ""
        if str(found["INFO"] or "").startswith(_INTERNAL) or not _OF_TABLES.match(statement):
            return
        self.refresh(found["SCN"])

    def refresh(self, scn: int) -> None:
        """Read the dictionary again; what is different there holds from a change number on."""
        fresh = _version(self._read())
        # Dropped tables keep their numbers: LogMiner names what they have logged by these alone.
        objects = {**self._now.objects, **fresh.objects}
        changed = Version.of(fresh.tables, objects)
        if changed.tables == self._now.tables:
            return
        names = sorted(name for name in {**fresh.tables, **self._now.tables} if _differs(name, fresh, self._now))
        log.info("tables_were_altered", scn=scn, tables=names)
        self._now = changed
        self._versions.add(behind(scn - 1), changed)

    def tables_of(self, rows: pa.Table) -> tuple[Mapping[str, Table], list[str]]:
        """Return the tables as they are now, and the names of those that rows are of and that aren't there.

        Tables that aren't known yet are looked up.
        """
        names = pc.unique(pc.binary_join_element_wise(rows["SEG_OWNER"], rows["TABLE_NAME"], ".")).to_pylist()
        if any(name not in self._now.tables for name in names):
            self.refresh(rows["SCN"][0].as_py())
        return self._now.tables, [name for name in names if name not in self._now.tables]


def _version(tables: Sequence[StoredTable]) -> Version:
    return Version.of(
        {table.full_name: table.table for table in tables}, {table.number: table.full_name for table in tables}
    )


def _differs(name: str, one: Version, other: Version) -> bool:
    return one.tables.get(name) != other.tables.get(name)
