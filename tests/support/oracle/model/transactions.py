"""Transactions: what users change, and how that gets into the redo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.redo import NO_ROW, Operation, RedoRecord
from tests.support.oracle.model.tables import Row, Table

if TYPE_CHECKING:
    from tests.support.oracle.model.database import OracleDatabase

UNKNOWN_SEQUENCE = "FFFFFFFF"


@dataclass(frozen=True)
class _Change:
    """What one statement did to one row."""

    table: Table
    record: RedoRecord
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
        self.start_scn = 0

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
        self._change(Operation.INSERT, table, place, {}, row, None, row)
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
        self._change(Operation.UPDATE, table, place, self._logged(table, row, values), values, row, {**row, **values})

    def delete(self, table: Table, where: Mapping[str, Any] | str) -> None:
        """Delete a row; see ``update``."""
        place, row = self._find(table, where)
        self._change(Operation.DELETE, table, place, row, {}, row, None)

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

    def write(self, operation: Operation, table: Table, row_id: str = NO_ROW, **fields: Any) -> RedoRecord:
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

    def _change(
        self,
        operation: Operation,
        table: Table,
        place: str,
        logged: Row,
        set_: Row,
        before: Row | None,
        after: Row | None,
    ) -> None:
        self.start()
        # What indexes and undo segments get is in the redo, too.
        self._write(Operation.INTERNAL, table=table, info="INTERNAL")
        record = self._write(operation, table=table, row_id=place, before=logged, after=set_)
        self._changes.append(_Change(table, record, before, after))
        self._rows[table.object_id, place] = after

    def _undo(self, kept: int, unknown_sequence: bool) -> None:
        inverse = {
            Operation.INSERT: Operation.DELETE,
            Operation.DELETE: Operation.INSERT,
            Operation.UPDATE: Operation.UPDATE,
        }
        while len(self._changes) > kept:
            change = self._changes.pop()
            record = change.record
            values = change.before or {}
            if record.operation == Operation.UPDATE:
                values = {name: values[name] for name in record.after}
            self._write(
                inverse[record.operation],
                table=change.table,
                xid=self._xid(unknown_sequence),
                row_id=record.row_id,
                after=values,
                is_undo=True,
            )
            self._rows[change.table.object_id, record.row_id] = change.before

    def _find(self, table: Table, where: Mapping[str, Any] | str) -> tuple[str, Row]:
        def matches(place: str, row: Row) -> bool:
            if isinstance(where, str):
                return place == where
            return all(row.get(name) == value for name, value in where.items())

        scn = self._database.clock.scn
        seen = self.seen(table, dict(table.rows_at(scn)))
        found = [(place, row) for place, row in seen.items() if matches(place, row)]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of {table.name} match {where}.")
        place = found[0][0]
        for other in self._database.transactions.values():
            if other is not self and (table.object_id, place) in other._rows:
                raise OracleError(54)
        return found[0]

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
