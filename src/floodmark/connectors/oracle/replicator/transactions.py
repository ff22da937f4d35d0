"""Puts committed transactions together from documents; no I/O.

The server sends a transaction once it is committed, and all of it at once: as one document, or as documents that follow
each other, of which the last one says that it is the end. ``c_scn`` is no measure of how far the log has been read: in
release 1.9.0 it is where the transaction began, and only in checkpoints how far the server is. So everything is ordered
by the numbers of the commits, in whose order transactions are sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from floodmark.connectors.oracle.capture.sent_changes import SentChanges
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.replicator.documents import NEEDED, Documents, Kind, Numbers
from floodmark.errors import SourceStateError

Key = tuple[int, int]
_NUMBER = "SEQUENCE#"


@dataclass(frozen=True)
class Changes(SentChanges):
    """Consecutive changes of a committed transaction, or one statement about tables.

    Attributes:
        key: the highest ``c_scn`` and ``c_idx`` of the transaction's documents up to these; None: the server must keep
            them, because of what follows, or because it divides the transaction, whose changes it then numbers anew.
    """

    key: Key | None


@dataclass(frozen=True)
class Checkpoint:
    """How far the server has read the log: it has sent all that was committed up to a number.

    Attributes:
        scn: the number.
        key: ``c_scn`` and ``c_idx`` of the document.
    """

    scn: int
    key: Key


@dataclass
class _Open:
    """A transaction that documents are of."""

    xid: str
    commit_scn: int
    pieces: list[pa.Table] = field(default_factory=list)
    last: int = 0
    seconds: int = 0
    size: int = 0
    key: Key = (0, 0)


class Transactions:
    """Transactions whose documents follow each other.

    Args:
        most_bytes: how many bytes of a transaction are collected before those are returned, if its commit is known.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._open: _Open | None = None
        self._ended: tuple[str, int, int] = ("", 0, 0)

    @property
    def is_inside(self) -> bool:
        """Whether the documents have ended inside a transaction."""
        return self._open is not None

    def add(self, documents: Documents) -> Iterator[Changes | Checkpoint]:
        """Take documents over, and yield what they complete.

        Raises:
            SourceStateError: they lack what is needed.
        """
        bounds = np.searchsorted(documents.place, np.arange(len(documents) + 1))
        begins = _groups(documents)
        for begin, end in zip(begins, [*begins[1:], len(documents)], strict=True):
            kind, xid = documents.kind[begin], documents.xid[begin]
            if kind == Kind.CHECKPOINT:
                yield from self._end()
                yield Checkpoint(int(documents.scn[begin]), _key(documents, begin, end))
                continue
            assert xid is not None
            if kind == Kind.BEGIN or (self._open is not None and self._open.xid != xid):
                yield from self._end()
            if self._open is None:
                self._open = _Open(xid, int(documents.commit_scn[begin]))
            if kind == Kind.CHANGES:
                self._collect(documents.rows.slice(bounds[begin], bounds[end] - bounds[begin]))
            self._open.key = max(self._open.key, _key(documents, begin, end))
            self._open.seconds = int(documents.seconds[end - 1])
            self._know(int(documents.commit_scn[end - 1]))
            if kind == Kind.COMMIT:
                yield from self._end()
            elif self._open.size >= self._most_bytes:
                yield from self.part()

    def _know(self, commit_scn: int) -> None:
        """Take over the commit's number, if a document says it."""
        found = self._open
        assert found is not None
        if not commit_scn:
            return
        if found.commit_scn not in (0, commit_scn):
            raise _unusable(f"the transaction {found.xid} has two numbers of its commit")
        found.commit_scn = commit_scn

    def _collect(self, rows: pa.Table) -> None:
        found = self._open
        assert found is not None
        if not len(rows):
            return
        numbers, operations = rows[_NUMBER].to_numpy().copy(), rows["OPERATION_CODE"].to_numpy()
        for place in np.flatnonzero(numbers == 0).tolist():
            # Statements have no number; there are few.
            if operations[place] != Operation.DDL:
                raise _unusable("a change has no 'num' (format.message needs the bit 2)")
            numbers[place] = (numbers[place - 1] if place else found.last) + 1
        if numbers[0] <= found.last or (np.diff(numbers) <= 0).any():
            raise _unusable(f"the changes of the transaction {found.xid} aren't in order")
        found.last = int(numbers[-1])
        place = rows.schema.get_field_index(_NUMBER)
        found.pieces.append(rows.set_column(place, rows.schema.field(place), pa.array(numbers)))
        found.size += rows.nbytes

    def part(self) -> Iterator[Changes]:
        """Yield what has come of a transaction that goes on, but for the last change; nothing if there is no more.

        Without the number of its commit, a transaction has no place in the log yet.
        """
        found = self._open
        if found is None or not found.commit_scn or not found.pieces:
            return
        rows = pa.concat_tables(found.pieces)
        found.pieces = [rows.slice(0, len(rows) - 1)]
        yield from self._taken(found, ends=False)
        found.pieces, found.size = [rows.slice(len(rows) - 1)], 0

    def _end(self) -> Iterator[Changes]:
        found, self._open = self._open, None
        if found is None:
            return
        if not found.commit_scn and found.pieces:
            raise _unusable(f"nothing says which number the commit of the transaction {found.xid} has")
        if found.commit_scn and not found.pieces:
            commit = Position(found.commit_scn, 0, found.xid.upper())
            yield Changes(commit, found.seconds, ROWS.empty_table(), False, True, found.key)
        yield from self._taken(found, ends=True)
        self._ended = found.xid, found.commit_scn, self._base_of(found) + found.last

    def _base_of(self, found: _Open) -> int:
        """Return the number of the last change of a transaction's earlier part; 0: there is none."""
        xid, commit_scn, last = self._ended
        return last if (xid, commit_scn) == (found.xid, found.commit_scn) else 0

    def _taken(self, found: _Open, ends: bool) -> Iterator[Changes]:
        """Yield what was collected of a transaction: runs of changes, and statements one by one."""
        pieces, found.pieces, found.size = found.pieces, [], 0
        if not any(map(len, pieces)):
            return
        base = self._base_of(found)
        rows = pa.concat_tables(pieces).combine_chunks()
        if base:
            place = rows.schema.get_field_index(_NUMBER)
            numbers = pa.array(rows[_NUMBER].to_numpy() + base)
            rows = rows.set_column(place, rows.schema.field(place), numbers)
        statements = rows["OPERATION_CODE"].to_numpy() == Operation.DDL
        cuts = np.flatnonzero(statements[1:] | statements[:-1]) + 1
        begins = [0, *cuts.tolist()]
        commit = Position(found.commit_scn, 0, found.xid.upper())
        for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
            is_last = end == len(rows)
            some = rows.slice(begin, end - begin)
            # Behind the others, documents follow that aren't delivered with them.
            key = (found.key if ends else _key_of(rows)) if is_last and not base else None
            yield Changes(commit, found.seconds, some, bool(statements[begin]), ends and is_last, key)


def _groups(documents: Documents) -> list[int]:
    """Return where documents begin that are taken together: changes of one transaction, or one other document."""
    coded = pa.array(documents.xid, pa.string()).dictionary_encode().indices.fill_null(-1).to_numpy()
    other = (documents.kind[1:] != Kind.CHANGES) | (documents.kind[:-1] != Kind.CHANGES) | (coded[1:] != coded[:-1])
    return [0, *(np.flatnonzero(other) + 1).tolist()]


def _key(documents: Documents, begin: int, end: int) -> Key:
    """Return the highest number and index of some documents."""
    return _highest(documents.scn[begin:end], documents.index[begin:end])


def _highest(scns: Numbers, indices: Numbers) -> Key:
    highest = int(scns.max())
    return highest, int(indices[scns == highest].max())


def _key_of(rows: pa.Table) -> Key:
    """Return the highest number and index of the documents of rows."""
    return _highest(rows["SCN"].to_numpy(), rows["SSN"].to_numpy())


def _unusable(problem: str) -> SourceStateError:
    return SourceStateError(f"OpenLogReplicator has sent what can't be used: {problem}.", NEEDED)
