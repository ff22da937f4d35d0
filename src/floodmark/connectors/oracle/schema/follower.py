"""Follows the structures of the captured tables along the log.

LogMiner names columns by the dictionary as it is when it is asked. What was logged before a table was altered, and is
only read afterwards, it shows with numbers instead of names. Such a change can't be decoded, which its table's decoding
says, unless ``log.mining.strategy`` is ``hybrid`` and the structure is that of the change's time. Where a statement
doesn't say what it makes of a table, the dictionary does, but it may know of later statements: such a structure is
good enough for names, not for numbers (``Table.is_exact``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.connectors.oracle.ddl.changes import Kind, TableChange
from floodmark.connectors.oracle.ddl.statements import apply
from floodmark.connectors.oracle.decode.logged_statement import LoggedStatement
from floodmark.connectors.oracle.decode.rows_of_transactions import seconds_of
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import behind
from floodmark.connectors.oracle.schema.versions import TableVersions, Version
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.errors import DdlError
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

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables as they are now, by their names."""
        return self._now.tables

    def begin(self, position: str, is_exact: bool = True) -> str:
        """Begin with the tables as they are now; return the version's name.

        Args:
            position: from where they hold.
            is_exact: whether they were the same there.
        """
        self._now = _version(self._read(), is_exact)
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
            tables = {**stored.tables, **{known: _inexact(table.table) for known, table in added.items()}}
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

    def follow(self, row: pa.Table, holds_from: int, span: tuple[int, ...] = ()) -> list[tuple[Kind, LoggedStatement]]:
        """Take a statement over; return what it does to captured tables.

        Args:
            row: of the view, shape (1,).
            holds_from: the number from which the tables are as it makes them.
            span: of its transaction, as far as that is known.
        """
        (found,) = row.select(["SCN", "SEG_OWNER", "SQL_REDO", "INFO", "THREAD#", "RS_ID"]).to_pylist()
        text, owner = str(found["SQL_REDO"] or "").strip().removesuffix(";"), str(found["SEG_OWNER"] or "")
        if str(found["INFO"] or "").startswith(_INTERNAL) or not _OF_TABLES.match(text):
            return []
        tables = {(table.owner, table.name): table for table in self._now.tables.values()}
        try:
            changes = [one for one in apply(text, tables, owner, self._options.database) if self._concerns(one)]
        except DdlError as exc:
            # The dictionary has what the statement has made of the tables, unless they were altered again since.
            log.warning("statement_is_not_understood", scn=found["SCN"], error=exc.what)
            self.refresh(holds_from)
            return []
        if not changes:
            return []
        self._take_over(changes, holds_from)
        at = found["SCN"], found["THREAD#"], str(found["RS_ID"] or "").strip(), int(seconds_of(row)[0])
        return [(one.kind, replace(self._logged(one, text, at), span=span)) for one in changes]

    def _concerns(self, change: TableChange) -> bool:
        """Return whether a table is captured, by the name that it has or by the one that it had."""
        return any(self._options.captures(*name) for name in (change.name, change.previous) if name is not None)

    def _take_over(self, changes: Sequence[TableChange], scn: int) -> None:
        tables, objects = dict(self._now.tables), dict(self._now.objects)
        unknown = any(change.reread or change.kind is Kind.CREATE for change in changes)
        fresh = _version(self._read(), is_exact=False) if unknown else Version.of({}, {})
        objects |= fresh.objects
        for change in changes:
            name = ".".join(change.name)
            if change.previous is not None:
                former = ".".join(change.previous)
                tables.pop(former, None)
                objects = {number: name if known == former else known for number, known in objects.items()}
            if change.kind is Kind.DROP or not self._options.captures(*change.name):
                tables.pop(name, None)
            elif change.reread or change.table is None:
                tables |= {name: fresh.tables[name]} if name in fresh.tables else {}
            else:
                tables[name] = change.table
        self._begin_version(Version.of(tables, objects), scn)

    def _logged(self, change: TableChange, text: str, at: tuple[int, int, str, int]) -> LoggedStatement:
        owner, name = change.name
        former = [] if change.previous is None else [change.previous[1]]
        described = change.described(comments=self._options.include_schema_comments)
        return LoggedStatement(*at, self._options.database, owner, ",".join([*former, name]), text, described)

    def refresh(self, scn: int) -> None:
        """Read the dictionary again; what is different there holds from a change number on."""
        fresh = _version(self._read(), is_exact=False)
        # Dropped tables keep their numbers: LogMiner names what they have logged by these alone.
        objects = {**self._now.objects, **fresh.objects}
        same = {name: one for name, one in self._now.tables.items() if fresh.tables.get(name) == _inexact(one)}
        changed = Version.of({**fresh.tables, **same}, objects)
        if changed.tables == self._now.tables:
            return
        self._begin_version(changed, scn)

    def _begin_version(self, version: Version, scn: int) -> None:
        if version.tables != self._now.tables:
            names = {**version.tables, **self._now.tables}
            altered = sorted(name for name in names if version.tables.get(name) != self._now.tables.get(name))
            log.info("tables_were_altered", scn=scn, tables=altered)
        self._now = version
        self._versions.add(behind(scn - 1), version)

    def tables_of(self, rows: pa.Table, commit_scn: int) -> tuple[Mapping[str, Table], list[str]]:
        """Return the tables as they are now, and the names of those that rows are of and that aren't there.

        Tables that aren't known yet are looked up.

        Args:
            rows: of a transaction.
            commit_scn: of its commit.
        """
        names = pc.unique(pc.binary_join_element_wise(rows["SEG_OWNER"], rows["TABLE_NAME"], ".")).to_pylist()
        if any(name not in self._now.tables for name in names):
            self.refresh(commit_scn)
        return self._now.tables, [name for name in names if name not in self._now.tables]


def _version(tables: Sequence[StoredTable], is_exact: bool = True) -> Version:
    """Return the tables of the dictionary.

    Args:
        tables: as it has them now.
        is_exact: whether they are wanted as they are now, not as a statement has made them, to which others may have
            followed.
    """
    return Version.of(
        {table.full_name: table.table if is_exact else _inexact(table.table) for table in tables},
        {table.number: table.full_name for table in tables},
    )


def _inexact(table: Table) -> Table:
    return replace(table, is_exact=False)
