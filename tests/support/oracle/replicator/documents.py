"""Makes documents of redo records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tests.support.oracle.model.clock import PER_SECOND
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.redo import Operation, RedoRecord
from tests.support.oracle.model.tables import Column, Row, Structure
from tests.support.oracle.model.types import LARGE
from tests.support.oracle.replicator.writers import BufferWriter, Change, JsonWriter, Writer

TOGETHER = 100
"""How many records of commits are written at once at least, if there are as many."""
IDLE_S = 3
NONE = (1 << 64) - 1
"""How a number is written that there isn't."""
NEVER = datetime(1988, 1, 1, tzinfo=UTC)
"""The first time of Oracle's logs."""
ROW_CHANGES = {Operation.INSERT: "c", Operation.UPDATE: "u", Operation.DELETE: "d"}
PIECES = {
    *(Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, Operation.LOB_TRIM, Operation.LOB_ERASE),
    *(Operation.XML_BEGIN, Operation.XML_WRITE, Operation.XML_END),
    *(Operation.BEGIN_32K, Operation.WRITE_32K, Operation.END_32K),
}


@dataclass
class Format:
    """The server's options that documents depend on; the defaults are those of ``"type": "debezium"``.

    Attributes:
        whole: whether a transaction is one message (``message``, bit 1).
        sequences: whether changes are numbered (bit 2).
        begins, commits: whether there are messages where a transaction begins and ends (not bits 4 and 8).
        commit_scn: whether all messages have the number of the commit (``scn-type``, bit 8), and where it began.
        users: whether messages name who has made the changes, and the redo thread.
        row_ids: ``rid``.
        full: whether all columns are shown (``column`` 2).
        before: whether the row before is shown.
        checkpoints: whether checkpoints are sent (``flags``, 0x1000).
        statements: whether statements about tables are sent (0x20).
        xid: ``xid``: 3, or 0.
        units: how many of ``tm`` are in a second.
        times: whether all messages have the time, not only a transaction's first one (``timestamp-type``, bit 4).
        early_commits: whether the number of a commit is that of its transaction's beginning, as release 1.9.0 has it.
        database: whether messages name the database (``db``).
        idle: whether something is written to the log at once behind what tests have done.
        left_out: fields that aren't written, as a damaged or other server might do.
        protobuf: whether messages are protocol buffers, which never have statements.
    """

    whole: bool = False
    sequences: bool = True
    begins: bool = True
    commits: bool = True
    commit_scn: bool = True
    users: bool = True
    row_ids: bool = True
    full: bool = True
    before: bool = True
    checkpoints: bool = True
    statements: bool = True
    xid: int = 3
    units: int = 1000
    times: bool = True
    early_commits: bool = False
    database: bool = True
    idle: bool = True
    left_out: tuple[str, ...] = ()
    protobuf: bool = False


DEBEZIUM_3_6 = Format(commit_scn=False, users=False)
"""What Debezium 3.6 can read."""
RELEASE_1_9_0 = replace(DEBEZIUM_3_6, xid=0, units=1_000_000_000, early_commits=True)
"""Of the release; the others are of the sources up to February 2026, which have the same number."""
PROTOBUF = Format(commit_scn=False, users=False, statements=False, protobuf=True)


@dataclass
class Message:
    """A message.

    Attributes:
        scn: the number that it is compared by.
        index: the index that it is compared by: one less than what it shows.
        content: the document; empty: it isn't sent.
        begins: how many bytes were made before it.
    """

    scn: int
    index: int
    content: bytes
    begins: int = 0


@dataclass
class _Pending:
    begin: RedoRecord | None
    records: list[RedoRecord] = field(default_factory=list)


@dataclass
class Pieces:
    """What was written to the log at once.

    Attributes:
        ends: the number of a piece's last record by that of its first one, which the checkpoint behind the piece has.
        idle: numbers of pieces with nothing that is shown.
    """

    ends: dict[int, int] = field(default_factory=dict)
    idle: list[int] = field(default_factory=list)


class Builder:
    """Makes messages of redo.

    Args:
        database: whose redo it is.
        format_: the options.
        first: transactions that were committed up to this number are left out.
        begin: the redo before this number isn't there.
        pieces: of the log, as far as it was read before.
    """

    def __init__(
        self, database: OracleDatabase, format_: Format, first: int, begin: int, pieces: Pieces | None = None
    ) -> None:
        self._pieces = pieces or Pieces()
        self._idle = 0
        self._database = database
        self._format = format_
        self._writer: Writer = BufferWriter() if format_.protobuf else JsonWriter()
        self._first = first
        self._begin = begin
        self._read = begin - 1
        self._done: dict[tuple[int, int], int] = {}
        self._pending: dict[str, _Pending] = {}
        self._scn = -1
        self._index = 0
        self._newest: tuple[RedoRecord, RedoRecord] | None = None

    def messages(self) -> Iterator[Message]:
        """Yield the messages of what was written since the last call; the database must be locked."""
        new = sorted(self._new_records(), key=lambda record: record.scn)
        for piece in self._divided(new):
            yield from self._marked(piece[0].scn)
            for record in piece:
                yield from self._of_record(record)
            self._read = piece[-1].scn
            self._pieces.ends[piece[0].scn] = self._read
            yield from self._checkpoint(piece[0].scn)
        now = self._database.clock.scn
        if now > self._read or (new and self._format.idle):
            self._read = now
            if not self._pieces.idle or self._pieces.idle[-1] < now:
                self._pieces.idle.append(now)
        yield from self._marked(now + 1)

    def _marked(self, scn: int) -> Iterator[Message]:
        """Yield the checkpoints of pieces below a number that have nothing else."""
        idle = self._pieces.idle
        while self._idle < len(idle) and idle[self._idle] < scn:
            self._idle += 1
            yield from self._checkpoint(idle[self._idle - 1])

    def _divided(self, records: Sequence[RedoRecord]) -> Iterator[list[RedoRecord]]:
        """Yield the records that were written at once: the database writes at commits, some of them together, and at
        least every few seconds."""
        ends = set(self._pieces.ends.values())
        found: list[RedoRecord] = []
        for record in records:
            is_late = found and record.scn > found[-1].scn + IDLE_S * PER_SECOND
            is_long = len(found) >= TOGETHER and found[-1].operation == Operation.COMMIT
            if found and (is_late or is_long or record.scn in self._pieces.ends or found[-1].scn in ends):
                yield found
                found = []
            found.append(record)
        if found:
            yield found

    def _new_records(self) -> Iterator[RedoRecord]:
        for thread in self._database.threads.values():
            # Few logs have anything new.
            for log in reversed(thread.logs):
                done = self._done.get((log.thread, log.sequence), 0)
                yield from (one for one in log.records[done:] if one.scn > self._read)
                self._done[log.thread, log.sequence] = len(log.records)
                if done:
                    break

    def _of_record(self, record: RedoRecord) -> Iterator[Message]:
        if record.operation == Operation.INTERNAL:
            return
        pending = self._pending.setdefault(record.xid, _Pending(None))
        if record.operation == Operation.START:
            pending.begin = record
        elif record.operation == Operation.COMMIT:
            del self._pending[record.xid]
            # A transaction whose beginning wasn't read is left out, which only the server's own log tells.
            if record.scn > self._first and pending.begin is not None:
                yield from self._transaction(pending, record)
        elif record.operation == Operation.ROLLBACK:
            del self._pending[record.xid]
        elif record.is_undo:
            pending.records = [one for one in pending.records if one.change != record.change]
        else:
            pending.records.append(record)

    def _transaction(self, pending: _Pending, commit: RedoRecord) -> Iterator[Message]:
        begin = pending.begin
        assert begin is not None
        entries = list(self._entries(pending.records))
        self._newest = begin, commit
        if not entries:
            return
        writer = self._writer
        if self._format.whole:
            yield self._message(begin, begin, commit, *(entry for _, entry in entries))
            return
        if self._format.begins:
            yield self._message(begin, begin, commit, writer.mark("begin"))
        for record, entry in entries:
            yield self._message(record, begin, commit, entry)
        if self._format.commits:
            yield self._message(commit, begin, commit, writer.mark("commit"))

    def _message(self, record: RedoRecord, begin: RedoRecord, commit: RedoRecord, *entries: bytes) -> Message:
        format_ = self._format
        index = self._numbered(begin.scn)
        shown = begin if format_.early_commits else record
        head: dict[str, object] = {"scn": shown.scn, **self._bounds()}
        if format_.times or record is begin:
            head["tm"] = self._time(record.scn)
        head |= {"c_scn": begin.scn, "c_idx": index + 1, "xid": self._xid(record.xid)}
        if format_.database:
            head["db"] = self._database.pluggable or self._database.settings.name
        if format_.users:
            head["usr"] = begin.user
        return Message(begin.scn, index, self._written(head, *entries))

    def _checkpoint(self, scn: int) -> Iterator[Message]:
        """Yield the message that all has been read up to a piece with a number."""
        if scn <= self._first or scn < 1:
            return
        index = self._numbered(scn)
        head = {"scn": scn, **self._bounds(), "tm": self._time(scn), "c_scn": scn, "c_idx": index + 1}
        entry = self._writer.mark("chkpt", seq=15, offset=1024)
        yield Message(scn, index, self._written(head, entry) if self._format.checkpoints else b"")

    def _bounds(self) -> dict[str, object]:
        """Return what messages say of where the newest transaction began and ended, checkpoints as well."""
        found: dict[str, object] = {}
        begin, commit = self._newest or (None, None)
        if self._format.commit_scn:
            found |= {"b_scn": NONE if begin is None else begin.scn, "e_scn": NONE if commit is None else commit.scn}
            found |= {
                name: self._time(None if one is None else one.scn) for name, one in (("b_tm", begin), ("e_tm", commit))
            }
        if self._format.users:
            found["rth"] = 0 if begin is None else begin.thread
        return found

    def _numbered(self, scn: int) -> int:
        if scn != self._scn:
            self._scn, self._index = scn, 0
        self._index += 1
        return self._index - 1

    def _written(self, head: Mapping[str, object], *entries: bytes) -> bytes:
        kept = {name: value for name, value in head.items() if name not in self._format.left_out}
        return self._writer.message(kept, entries)

    def _time(self, scn: int | None) -> int:
        if scn is None:
            return int(NEVER.timestamp()) * self._format.units
        return int(self._database.clock.time_of(scn).timestamp()) * self._format.units

    def _xid(self, xid: str) -> str:
        if self._format.xid == 3:
            return xid.lower()
        raw = bytes.fromhex(xid)
        segment, slot, sequence = (int.from_bytes(one, "little") for one in (raw[:2], raw[2:4], raw[4:]))
        return f"0x{segment:04x}.{slot:03x}.{sequence:08x}"

    def _entries(self, records: Sequence[RedoRecord]) -> Iterator[tuple[RedoRecord, bytes]]:
        """Yield the changes of a transaction: all records of one change are one, whatever large values it has."""
        place, number = 0, 0
        while place < len(records):
            first = records[place]
            end = place + 1
            while end < len(records) and first.change and records[end].change == first.change:
                end += 1
            structure = self._structure(first)
            if first.operation == Operation.DDL:
                if self._format.statements:
                    text = str(first.statement).removesuffix(";")
                    yield first, self._writer.statement(structure, first.object_id, text)
                    number += 1
            elif self._is_sent(structure):
                yield first, self._entry(records[place:end], structure, number)
                number += 1
            place = end

    def _is_sent(self, structure: Structure) -> bool:
        return structure.owner != self._database.account and structure.container == self._database.home

    def _added(self, object_id: int, structure: Structure) -> set[str]:
        """Return the names of columns that a table hasn't been made with."""
        table = self._database.object(object_id)
        assert table is not None
        return {one.name for one in structure.columns} - {one.name for one in table.structure_at(1).columns}

    def _structure(self, record: RedoRecord) -> Structure:
        table = self._database.object(record.object_id)
        assert table is not None
        return table.structure_at(record.version)

    def _entry(self, records: Sequence[RedoRecord], structure: Structure, number: int) -> bytes:
        first = records[0]
        columns = list(structure.columns)
        large = {one.name for one in columns if one.type.base in LARGE}
        operation = ROW_CHANGES.get(first.operation, "u")
        before, after = self._rows(records, large)
        if operation == "u" and not self._format.full:
            changed = {name for name in after if after[name] != before.get(name)} | set(structure.key)
            before, after = _only(before, changed), _only(after, changed)
        elif operation == "u" and structure.supplemental:
            # Where all columns are logged, the redo also has those that are newer than the row.
            added = self._added(first.object_id, structure) - large
            before, after = {**dict.fromkeys(added), **before}, {**dict.fromkeys(added), **after}
        elif operation != "u":
            # Of rows as a whole, what isn't in the redo is shown as null, or left out if it is null.
            before, after = (self._whole(row, columns, structure.key) for row in (before, after))
        change = Change(
            operation,
            first.object_id,
            number if self._format.sequences else None,
            next(one.row_id for one in reversed(records) if one.row_id) if self._format.row_ids else None,
            before if operation != "c" and self._format.before else None,
            after if operation != "d" else None,
        )
        return self._writer.change(structure, change)

    def _whole(self, row: Row, columns: list[Column], key: Sequence[str]) -> Row:
        whole = {one.name: row.get(one.name) for one in columns}
        if self._format.full:
            return whole
        return {name: value for name, value in whole.items() if value is not None or name in key}

    def _rows(self, records: Sequence[RedoRecord], large: set[str]) -> tuple[Row, Row]:
        """Return the rows before and after a change; the log never has large objects as they were before."""
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
            before = {name: value for name, value in after.items() if name not in set_}
        kept = {name: value for name, value in after.items() if name not in large or name in set_}
        return {name: value for name, value in before.items() if name not in large}, kept


def _only(row: Row, names: set[str]) -> Row:
    return {name: value for name, value in row.items() if name in names}
