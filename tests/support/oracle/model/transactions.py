"""Transactions: what users change, and how that gets into the redo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.large_values import (
    Apart,
    Content,
    Later,
    Part,
    erased,
    parts,
    plain,
    shown_first,
    trimmed,
    units,
    written,
)
from tests.support.oracle.model.redo import NO_ROW, Operation, RedoRecord
from tests.support.oracle.model.tables import Row, Table

if TYPE_CHECKING:
    from tests.support.oracle.model.database import OracleDatabase

UNKNOWN_SEQUENCE = "FFFFFFFF"
XML = (Operation.XML_BEGIN, Operation.XML_WRITE, Operation.XML_END)
_INFO = {(True, True): "XML sql_redo not re-executable", (True, False): "XML sql_redo"}
"""``INFO`` by whether it is XML, and binary."""


@dataclass(frozen=True)
class _Change:
    """What one statement did to one row.

    Attributes:
        number: identifies it in its transaction.
        table: the table.
        operation: what it did.
        place: the row's ROWID.
        names: the columns that an update sets.
        before: the row before.
        after: the row after.
    """

    number: int
    table: Table
    operation: Operation
    place: str
    names: Sequence[str]
    before: Row | None
    after: Row | None


class Transaction:
    """A transaction. Its records are written at once; its rows are seen by others when it is committed.

    Args:
        database: where.
        xid: identifies it.
        user: who makes the changes.
        thread: the redo thread.
        client: ``CLIENT_ID``.

    Attributes:
        in_doubt: whether it was prepared, and its instance was restarted since.
    """

    def __init__(self, database: OracleDatabase, xid: str, user: str, thread: int, client: str | None) -> None:
        self._database = database
        self.xid = xid
        self._user = user
        self._thread = thread
        self._client = client
        self._changes: list[_Change] = []
        self._savepoints: dict[str, int] = {}
        self._rows: dict[tuple[int, str], Row | None] = {}
        self._numbered = 0
        self.start_scn = 0
        self.in_doubt = False

    def start(self) -> None:
        """Write its beginning, which the first change does otherwise."""
        if not self.start_scn:
            record = self._write(Operation.START, statement="set transaction read write;")
            self.start_scn = record.scn
            self._database.transactions[self.xid] = self

    def insert(self, table: Table, **values: Any) -> str:
        """Insert a row, and return its ROWID; columns that aren't given are null."""
        structure = table.structure
        for name in values:
            structure.column(name)
        row = {one.name: values.get(one.name) for one in structure.columns}
        place = table.new_row_id()
        self._change(Operation.INSERT, table, place, None, row)
        return place

    def update(self, table: Table, where: Mapping[str, Any] | str, **values: Any) -> None:
        """Change a row.

        Args:
            table: the table.
            where: values that only this row has, or its ROWID.
            values: what the statement sets.
        """
        place, row = self._find(table, where)
        for name in values:
            table.structure.column(name)
        self._change(Operation.UPDATE, table, place, row, values)

    def delete(self, table: Table, where: Mapping[str, Any] | str) -> None:
        """Delete a row; see ``update``."""
        place, row = self._find(table, where)
        self._change(Operation.DELETE, table, place, row, {})

    def lob_write(
        self, table: Table, where: Mapping[str, Any] | str, column: str, *writes: tuple[int, Content]
    ) -> None:
        """Write into a large object by ``DBMS_LOB.WRITE``.

        Args:
            table: the table.
            where: see ``update``.
            column: the large object's column.
            writes: where, from 1, and what.
        """
        content = self._find(table, where)[1][column]
        for offset, data in writes:
            content = written(content, offset, data)
        records = [(Operation.LOB_WRITE, Part(column, data, offset, units(data))) for offset, data in writes]
        self._piecewise(table, where, column, content, records)

    def lob_trim(self, table: Table, where: Mapping[str, Any] | str, column: str, length: int) -> None:
        """Shorten a large object by ``DBMS_LOB.TRIM``; see ``lob_write``."""
        content = trimmed(self._find(table, where)[1][column], length)
        self._piecewise(table, where, column, content, [(Operation.LOB_TRIM, Part(column, length=length))])

    def lob_erase(self, table: Table, where: Mapping[str, Any] | str, column: str, amount: int, offset: int) -> None:
        """Erase a part of a large object by ``DBMS_LOB.ERASE``; see ``lob_write``."""
        content = erased(self._find(table, where)[1][column], amount, offset)
        part = Part(column, offset=offset, length=amount)
        self._piecewise(table, where, column, content, [(Operation.LOB_ERASE, part)])

    def lob_select(self, table: Table, where: Mapping[str, Any] | str, column: str) -> None:
        """Lock a large object, and change nothing."""
        self._piecewise(table, where, column, self._find(table, where)[1][column], [])

    def savepoint(self, name: str) -> None:
        """Remember what is to be kept by ``rollback_to``."""
        self._savepoints[name] = len(self._changes)

    def rollback_to(self, name: str, unknown_sequence: bool = False) -> None:
        """Undo what came after a savepoint: the redo has a record for each change that is undone.

        Args:
            name: the savepoint.
            unknown_sequence: whether LogMiner has lost the transaction's sequence.
        """
        self._undo(self._savepoints[name], unknown_sequence)

    def commit(self) -> int:
        """Commit, and return the number that the changes are seen from; 0: there were none."""
        if not self.start_scn:
            return 0
        scn = self._write(Operation.COMMIT, statement="commit;").scn
        for (object_id, place), row in self._rows.items():
            table = self._database.object(object_id)
            assert table is not None
            table.write(scn, place, row)
        del self._database.transactions[self.xid]
        return scn

    def rollback(self, unknown_sequence: bool = False) -> None:
        """Undo all; see ``rollback_to``."""
        if not self.start_scn:
            return
        self._undo(0, unknown_sequence)
        self._write(Operation.ROLLBACK, xid=self._xid(unknown_sequence), statement="rollback;")
        del self._database.transactions[self.xid]

    def write(self, operation: Operation, table: Table, row_id: str | None = NO_ROW, **fields: Any) -> RedoRecord:
        """Write a record that changes no row, such as a part of a large object."""
        self.start()
        return self._write(operation, table=table, row_id=row_id, **fields)

    def seen(self, table: Table, rows: Mapping[str, Row]) -> dict[str, Row]:
        """Return a table's rows as the transaction sees them.

        Args:
            table: the table.
            rows: those that are committed, by their ROWIDs.
        """
        own = {place: row for (number, place), row in self._rows.items() if number == table.object_id}
        return {place: row for place, row in {**rows, **own}.items() if row is not None}

    def _piecewise(
        self,
        table: Table,
        where: Mapping[str, Any] | str,
        column: str,
        content: Content,
        records: Sequence[tuple[Operation, Part]],
    ) -> None:
        """Change a large object where it is; here LogMiner knows the row's ROWID."""
        place, row = self._find(table, where)
        after = {**row, column: content}
        number = self._remember(table, Operation.SELECT_LOB_LOCATOR, place, [column], row, after)
        for operation, part in ((Operation.SELECT_LOB_LOCATOR, Part(column)), *records):
            self._write(operation, table=table, row_id=place, before=after, part=part, change=number)

    def _change(
        self, operation: Operation, table: Table, place: str, before: Row | None, values: Mapping[str, Any]
    ) -> None:
        """Write what a statement does to a row.

        Where a value comes apart from the statement, LogMiner knows the row's ROWID in the last record only.
        """
        structure = table.structure
        after = None if operation == Operation.DELETE else {**(before or {}), **plain(values)}
        number = self._remember(table, operation, place, list(values), before, after)
        apart = {name: one for name, one in values.items() if isinstance(one, Apart)}
        later = {name: one.value for name, one in values.items() if isinstance(one, Later)}
        set_ = shown_first(structure, values)
        if operation == Operation.UPDATE:
            # An update doesn't empty what it sets anew.
            set_ = {name: one for name, one in set_.items() if name not in apart and name not in later}
        logged = self._logged(table, before or {}, set_) if operation == Operation.UPDATE else before or {}
        first = 0
        if set_ or operation == Operation.DELETE:
            row_id = table.unknown_row_id if apart or later else place
            record = self._write(operation, table=table, row_id=row_id, before=logged, after=set_, change=number)
            first = record.scn
        for name, value in apart.items():
            first = self._write_apart(table, after or {}, name, value, number, first, operation)
        if later:
            self._write(
                Operation.UPDATE,
                table=table,
                row_id=place,
                before=self._logged(table, after or {}, later),
                after=later,
                change=number,
            )

    def _write_apart(
        self, table: Table, row: Row, name: str, value: Apart, number: int, first: int, statement: Operation
    ) -> int:
        """Write a value that comes apart; return the record whose number its first row has."""
        for operation, part in parts(table.structure, name, value, statement == Operation.UPDATE):
            begins = operation in (Operation.SELECT_LOB_LOCATOR, Operation.BEGIN_32K)
            record = self._write(
                operation,
                table=table,
                row_id=table.unknown_row_id,
                before=row,
                part=part,
                change=number,
                same_record=first if begins else 0,
                info=_INFO.get((operation in XML, part.is_binary)),
            )
            first = first or record.scn
        return first

    def _remember(
        self,
        table: Table,
        operation: Operation,
        place: str,
        names: Sequence[str],
        before: Row | None,
        after: Row | None,
    ) -> int:
        self.start()
        # What indexes and undo segments get is in the redo, too.
        self._write(Operation.INTERNAL, table=table, info="INTERNAL")
        self._numbered += 1
        self._changes.append(_Change(self._numbered, table, operation, place, names, before, after))
        self._rows[table.object_id, place] = after
        return self._numbered

    def _undo(self, kept: int, unknown_sequence: bool) -> None:
        inverse = {
            Operation.INSERT: Operation.DELETE,
            Operation.DELETE: Operation.INSERT,
            Operation.UPDATE: Operation.UPDATE,
            Operation.SELECT_LOB_LOCATOR: Operation.UPDATE,
        }
        while len(self._changes) > kept:
            change = self._changes.pop()
            values = change.before or {}
            if inverse[change.operation] == Operation.UPDATE:
                values = {name: values[name] for name in change.names}
            self._write(
                inverse[change.operation],
                table=change.table,
                xid=self._xid(unknown_sequence),
                row_id=change.place,
                after=values,
                is_undo=True,
                change=change.number,
            )
            self._rows[change.table.object_id, change.place] = change.before

    def _find(self, table: Table, where: Mapping[str, Any] | str) -> tuple[str, Row]:
        found = self._at(table, where) if isinstance(where, str) else self._having(table, where)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of {table.name} match {where}.")
        place = found[0][0]
        for other in self._database.transactions.values():
            if other is not self and (table.object_id, place) in other._rows:
                raise OracleError(54)
        return found[0]

    def _at(self, table: Table, place: str) -> list[tuple[str, Row]]:
        """Return the row with a ROWID as the transaction sees it; none if there is none."""
        own = table.object_id, place
        row = self._rows[own] if own in self._rows else table.row_at(place, self._database.clock.scn)
        return [] if row is None else [(place, row)]

    def _having(self, table: Table, values: Mapping[str, Any]) -> list[tuple[str, Row]]:
        """Return the rows with some values as the transaction sees them."""
        seen = self.seen(table, dict(table.rows_at(self._database.clock.scn)))
        return [
            (place, row) for place, row in seen.items() if all(row.get(name) == value for name, value in values.items())
        ]

    def _logged(self, table: Table, row: Row, values: Mapping[str, Any]) -> Row:
        if table.structure.supplemental:
            return dict(row)
        return {name: value for name, value in row.items() if name in table.structure.key or name in values}

    def _xid(self, unknown_sequence: bool) -> str:
        return self.xid[:8] + UNKNOWN_SEQUENCE if unknown_sequence else self.xid

    def _write(self, operation: Operation, table: Table | None = None, xid: str = "", **fields: Any) -> RedoRecord:
        if table is not None:
            fields |= {
                "object_id": table.object_id,
                "data_object_id": table.data_object_id,
                "version": table.structure.version,
            }
        return self._database.write(
            self._thread,
            xid or self.xid,
            operation,
            user=self._user,
            client=self._client,
            container=self._database.home if table is None else table.structure.container,
            **fields,
        )
