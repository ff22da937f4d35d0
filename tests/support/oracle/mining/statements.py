"""Makes SQL_REDO of redo records, with a dictionary or without one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.oracle.mining.large_values import statement_of_part
from tests.support.oracle.mining.literals import UNSUPPORTED, hexadecimal, literal
from tests.support.oracle.mining.session_formats import Formats
from tests.support.oracle.model.large_values import is_stored_apart
from tests.support.oracle.model.raw_values import raw_value
from tests.support.oracle.model.redo import Operation, RedoRecord
from tests.support.oracle.model.tables import Row, Structure, Table
from tests.support.oracle.model.types import CHARACTERS, LARGE

TEMPORARY = "/* No SQL_REDO for temporary tables */"
MISMATCH = "Dictionary Version Mismatch"
NOT_EXECUTABLE = 2


@dataclass(frozen=True)
class Dictionary:
    """What LogMiner knows of the tables.

    Attributes:
        structures: of each table that is known, the version that is known.
        tracked_from: the number from which statements about tables are followed, too (``DDL_DICT_TRACKING``).
    """

    structures: dict[int, Structure]
    tracked_from: int | None = None

    def find(self, table: Table, version: int) -> tuple[Structure, bool]:
        """Return a table's structure, and whether it is known.

        The columns of one that isn't have numbers for names.
        """
        logged = table.structure_at(version)
        known = self.structures.get(table.object_id)
        if self.tracked_from is None:
            return logged, known is not None and known.version == version
        if known is None:
            return logged, table.created_scn > self.tracked_from
        return logged, version >= known.version

    def name(self, table: Table, version: int) -> tuple[str, str]:
        """Return the names of a table and its schema."""
        structure, known = self.find(table, version)
        if self.tracked_from is None or not known:
            found = self.structures.get(table.object_id)
            return ("UNKNOWN", f"OBJ# {table.object_id}") if found is None else (found.owner, found.name)
        return structure.owner, structure.name


@dataclass(frozen=True)
class Shown:
    """What LogMiner shows of a record.

    Attributes:
        owner: ``SEG_OWNER``.
        table: ``TABLE_NAME``.
        statement: ``SQL_REDO``.
        status: ``STATUS``.
        info: ``INFO``.
    """

    owner: str | None
    table: str | None
    statement: str | None
    status: int
    info: str | None


class StatementWriter:
    """Writes statements for one mining session.

    Args:
        dictionary: what is known of the tables.
        formats: of the session.
        row_ids: whether statements have the ROWID (without ``NO_ROWID_IN_STMT``).
    """

    def __init__(self, dictionary: Dictionary, formats: Formats, row_ids: bool) -> None:
        self._dictionary = dictionary
        self._formats = formats
        self._row_ids = row_ids

    def show(self, record: RedoRecord, table: Table | None) -> Shown:
        """Return what is shown of a record of a table."""
        if table is None:
            return Shown(None, None, record.statement, record.status, record.info)
        structure, known = self._dictionary.find(table, record.version)
        if record.operation == Operation.DDL:
            # The redo of a statement has the names itself.
            return Shown(structure.owner, structure.name, record.statement, record.status, record.info)
        owner, name = self._dictionary.name(table, record.version)
        if record.part is not None:
            where = " and ".join(_Columns(structure, known, self._formats).conditions(record.before))
            text = statement_of_part(record.operation, record.part, structure, f'"{owner}"."{name}"', where)
            return Shown(owner, name, text, record.status, record.info)
        if record.statement is not None or record.operation not in (
            Operation.INSERT,
            Operation.UPDATE,
            Operation.DELETE,
        ):
            return Shown(owner, name, record.statement, record.status, record.info)
        if table.temporary:
            return Shown(owner, name, TEMPORARY, record.status, record.info)
        statement = self._statement(record, owner, name, structure, known)
        if known:
            return Shown(owner, name, statement, record.status, record.info)
        return Shown(owner, name, statement, NOT_EXECUTABLE, MISMATCH)

    def _statement(self, record: RedoRecord, owner: str, name: str, structure: Structure, known: bool) -> str:
        target = f'"{owner}"."{name}"'
        columns = _Columns(structure, known, self._formats)
        if record.operation == Operation.INSERT:
            values = columns.inserted(record.after)
            return f"insert into {target}({','.join(values)}) values ({','.join(values.values())});"
        row_id = f"ROWID = '{record.row_id}'"
        conditions = [row_id] if record.is_undo else columns.conditions(record.before)
        if self._row_ids and not record.is_undo:
            conditions.append(row_id)
        where = f" where {' and '.join(conditions)}"
        if record.operation == Operation.DELETE:
            return f"delete from {target}{where};"
        return f"update {target} set {', '.join(columns.assignments(record.after))}{where};"


@dataclass(frozen=True)
class _Columns:
    structure: Structure
    known: bool
    formats: Formats

    def inserted(self, row: Row) -> dict[str, str]:
        """Return the values of a new row by the columns' names."""
        return {name: text for name, text in self._values(row) if text != ""}

    def conditions(self, row: Row) -> list[str]:
        """Return what identifies a row: large objects are never in it, nor are texts that are stored like these."""
        large = {
            one.name
            for one in self.structure.columns
            if one.type.base in LARGE or (one.type.base in CHARACTERS and is_stored_apart(row.get(one.name)))
        }
        found = self._values({name: value for name, value in row.items() if name not in large})
        return [f"{name} IS NULL" if text == "NULL" else f"{name} = {text}" for name, text in found]

    def assignments(self, row: Row) -> list[str]:
        """Return what is set."""
        return [f"{name} = {text}" for name, text in self._values(row)]

    def _values(self, row: Row) -> Iterable[tuple[str, str]]:
        for number, one in enumerate(self.structure.columns, 1):
            if one.name not in row or one.type.base == "XMLTYPE":
                continue
            value = row[one.name]
            if self.known or one.type.base in UNSUPPORTED:
                yield f'"{one.name}"', literal(one.type, value, self.formats)
            else:
                yield f'"COL {number}"', hexadecimal(raw_value(one.type, value))
