"""Makes records of the redo of committed transactions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.oracle.fronts.json_lines import value_text
from tests.support.oracle.model.database import OracleDatabase, xid_numbers
from tests.support.oracle.model.redo import Operation, RedoRecord
from tests.support.oracle.model.tables import Row, Structure
from tests.support.oracle.model.types import LARGE, OracleType
from tests.support.oracle.replicator.documents import PIECES, ROW_CHANGES

_COMMANDS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}
_LONGEST = {"VARCHAR2": 4000, "NVARCHAR2": 2000}
_CHUNK_TYPES = {"VARCHAR2": "CLOB", "NVARCHAR2": "NCLOB"}
CHUNK = 1000
"""Characters or bytes of a chunk."""


@dataclass(frozen=True)
class Record:
    """A record, and its position."""

    position: bytes
    commit_scn: int
    fields: dict[str, Any] = field(compare=False)


def position_of(commit_scn: int, xid: str, scn: int, place: int) -> bytes:
    """Return a position, in which Java's side of the stand-in finds the numbers again."""
    return struct.pack(">Q8sQIB", commit_scn, bytes.fromhex(xid), scn, place, 2)


def before_all_of(commit_scn: int) -> bytes:
    """Return the position before all that is committed at a number or later."""
    return position_of(commit_scn, "00" * 8, commit_scn, 0)


class RecordMaker:
    """Makes records of what was committed since the last call.

    Args:
        database: whose redo it is.

    Attributes:
        erases_apart: whether parts of large objects are records of their own, and not the whole value.
    """

    def __init__(self, database: OracleDatabase) -> None:
        self._database = database
        self._done: dict[tuple[int, int], int] = {}
        self._pending: dict[str, list[RedoRecord]] = {}
        self.erases_apart = False

    def records(self) -> Iterator[Record]:
        """Yield them; the database must be locked."""
        for record in sorted(self._new_records(), key=lambda one: one.scn):
            if record.operation == Operation.INTERNAL:
                continue
            pending = self._pending.setdefault(record.xid, [])
            if record.operation == Operation.COMMIT:
                yield from self._transaction(self._pending.pop(record.xid), record)
            elif record.operation == Operation.ROLLBACK:
                del self._pending[record.xid]
            elif record.is_undo:
                self._pending[record.xid] = [one for one in pending if one.change != record.change]
            elif record.operation != Operation.START:
                pending.append(record)

    def _new_records(self) -> Iterator[RedoRecord]:
        for thread in self._database.threads.values():
            for log in thread.logs:
                done = self._done.get((log.thread, log.sequence), 0)
                yield from log.records[done:]
                self._done[log.thread, log.sequence] = len(log.records)

    def _transaction(self, records: Sequence[RedoRecord], commit: RedoRecord) -> Iterator[Record]:
        made = 0
        place = 0
        while place < len(records):
            first, end = records[place], place + 1
            while end < len(records) and first.change and records[end].change == first.change:
                end += 1
            structure = self._structure(first)
            if structure.owner != self._database.account and structure.container == self._database.home:
                made += 1
                yield self._record(first, commit, made, self._fields(records[place:end], structure))
            place = end
        yield self._record(commit, commit, made + 1, {"command": "COMMIT"})

    def _record(self, record: RedoRecord, commit: RedoRecord, place: int, fields: dict[str, Any]) -> Record:
        position = position_of(commit.scn, commit.xid, record.scn, place)
        time = self._database.clock.time_of(record.scn).replace(tzinfo=None, microsecond=0)
        head = {
            "position": position.hex(),
            "transaction": ".".join(map(str, xid_numbers(commit.xid))),
            "time": time.isoformat(),
            "database": self._database.home,
        }
        return Record(position, commit.scn, {**head, **fields})

    def _structure(self, record: RedoRecord) -> Structure:
        table = self._database.object(record.object_id)
        assert table is not None
        return table.structure_at(record.version)

    def _fields(self, records: Sequence[RedoRecord], structure: Structure) -> dict[str, Any]:
        first = records[0]
        names = {"owner": structure.owner, "name": structure.name}
        if first.operation == Operation.DDL:
            text = str(first.statement).removesuffix(";")
            words = text.split()[:2]
            return {**names, "command": " ".join(words).upper(), "statement": text}
        if self.erases_apart and first.operation == Operation.SELECT_LOB_LOCATOR:
            kinds = {one.operation for one in records}
            if Operation.LOB_ERASE in kinds:
                return {**names, "command": "LOB ERASE"}
        large = {one.name for one in structure.columns if one.type.base in LARGE or is_long(one.type)}
        operation = ROW_CHANGES.get(first.operation, "u")
        before, after, set_ = _rows(records, operation)
        row_id = next((one.row_id for one in reversed(records) if one.row_id), None)
        found: dict[str, Any] = {
            **names,
            "command": _COMMANDS[operation],
            "row_id": row_id,
            "old": [],
            "new": [],
            "chunks": [],
        }
        if operation != "c":
            found["old"] = _values(structure, before, large)
        if operation != "d":
            found["new"] = _values(structure, after, large)
            chunks = [
                chunk
                for one in structure.columns
                if one.name in large & set_
                for chunk in _chunks(one.name, one.type.base, after.get(one.name))
            ]
            if chunks:
                chunks[-1]["last"] = True
            found["chunks"] = chunks
        return found


def _rows(records: Sequence[RedoRecord], operation: str) -> tuple[Row, Row, set[str]]:
    """Return the row before and after a change, and the columns that it sets."""
    first = records[0]
    pieces = [one for one in records if one.operation in PIECES]
    set_ = {name for one in records if one.operation not in PIECES for name in one.after}
    set_ |= {one.part.column for one in pieces if one.part is not None}
    before = dict(first.before)
    after: Row = {**before, **first.after}
    for one in records[1:]:
        after |= one.before if one.operation in PIECES else one.after
    if first.operation in PIECES:
        after |= records[-1].before
    return before, after, set_ if operation != "d" else set()


def _values(structure: Structure, row: Row, large: set[str]) -> list[list[Any]]:
    return [
        [one.name, one.type.base, value_text(one.type, row.get(one.name))]
        for one in structure.columns
        if one.name not in large
    ]


def is_long(type_: OracleType) -> bool:
    """Return whether values of a type come apart, as large objects do (``MAX_STRING_SIZE=EXTENDED``)."""
    return type_.length > _LONGEST.get(type_.base, type_.length)


def _chunks(name: str, type_: str, value: str | bytes | None) -> list[dict[str, Any]]:
    head = {"name": name, "type": _CHUNK_TYPES.get(type_, type_)}
    if value is None:
        return [{**head, "data": None}]
    if not value:
        return [{**head, "data": "", "empty": True}]
    parts = [value[begin : begin + CHUNK] for begin in range(0, len(value), CHUNK)]
    return [{**head, "data": part.hex() if isinstance(part, bytes) else part} for part in parts]
