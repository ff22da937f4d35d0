"""Sorts rows of ``V$LOGMNR_CONTENTS`` into transactions, and returns these when they are committed.

The rows come as they were written: those of several transactions mixed, and before it is known which of these will be
committed. Where LogMiner has lost the last part of an identifier, the rest, which is the transaction's slot, still
names it: no two open transactions share a slot. Debezium's ``BufferedLogMinerStreamingChangeEventSource`` uses that
for inverse rows and rollbacks only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.mining.operations import CHANGES, Operation
from floodmark.connectors.oracle.mining.pieces import Pieces
from floodmark.connectors.oracle.mining.spooling.shared_rows import Numbers, places_of
from floodmark.connectors.oracle.mining.undone import UndoneChanges
from floodmark.logger import get_logger

log = get_logger(__name__)

UNKNOWN_SEQUENCE = "ffffffff"
"""The end of an identifier whose last part LogMiner has lost."""
NO_TRANSACTION = "0" * 16
"""The identifier of rows that belong to no transaction; it may be null, too."""
_PREFIX = 8
_ENDS = (Operation.COMMIT, Operation.ROLLBACK, Operation.REPLICATION_MARKER)
_NOTICED = (Operation.START, *_ENDS, Operation.DDL, Operation.MISSING_SCN, Operation.UNSUPPORTED)


class RowStore(Protocol):
    """Keeps the rows of open transactions."""

    def keep(self, rows: pa.Table, xids: Sequence[str], bounds: Numbers) -> None:
        """Add rows to transactions.

        Args:
            rows: those of each transaction follow each other, in their order; at least one of each.
            xids: the transactions, in the order of their rows.
            bounds: where each one's rows begin, and where the last one's end, shape (transactions + 1,).
        """

    def expect(self, xids: Sequence[str]) -> None:
        """Prepare for transactions that will be asked for, in this order."""

    def pieces(self, xid: str) -> Sequence[pa.Table]:
        """Return the rows of a transaction in their order, in pieces."""

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""


@dataclass
class MemoryStore:
    """Keeps rows in memory."""

    _rows: dict[str, list[pa.Table]] = field(default_factory=dict)

    def keep(self, rows: pa.Table, xids: Sequence[str], bounds: Numbers) -> None:
        """Add rows to transactions."""
        for xid, (begin, end) in zip(xids, pairwise(bounds.tolist()), strict=True):
            self._rows.setdefault(xid, []).append(rows.slice(begin, end - begin))

    def expect(self, xids: Sequence[str]) -> None:
        """Do nothing: all is in memory."""

    def pieces(self, xid: str) -> Sequence[pa.Table]:
        """Return the rows of a transaction as they were added."""
        return self._rows.get(xid, [])

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""
        self._rows.pop(xid, None)


@dataclass(frozen=True)
class Committed:
    """A transaction that was committed.

    Attributes:
        xid: identifies it, 16 hexadecimal digits.
        start_scn: the number at which it began, as far as that was seen.
        commit: the row of its commit, shape (1,).
        changes: its rows, without those that it has undone itself. They are read piece by piece, until the next
            transaction is asked for.
        at_once: whether all of its rows are among those that were added last.
    """

    xid: str
    start_scn: int
    commit: pa.Table
    changes: Sequence[pa.Table]
    at_once: bool = False


@dataclass(frozen=True)
class Statement:
    """A statement about tables.

    Attributes:
        row: shape (1,).
    """

    row: pa.Table


@dataclass(frozen=True)
class Unshown:
    """Changes that LogMiner doesn't show, or doesn't say the transaction of.

    Attributes:
        scn: where.
        what: what is missing; a sentence.
    """

    scn: int
    what: str


Found = Committed | Statement | Unshown


class OpenTransactions:
    """The transactions that aren't decided yet.

    Args:
        store: keeps their rows.
        abandoned: the identifiers of those whose changes are left out until they end.
    """

    def __init__(self, store: RowStore, abandoned: Sequence[str] = ()) -> None:
        self._store = store
        self._started: dict[str, int] = {}
        self._stored: set[str] = set()
        self._undoes: set[str] = set()
        self._abandoned = set(abandoned)

    @property
    def oldest_scn(self) -> int | None:
        """The number at which the oldest one began; None: there is none."""
        return min(self._started.values(), default=None)

    @property
    def with_changes(self) -> tuple[str, ...]:
        """The identifiers of those whose changes are kept."""
        return tuple(sorted(self._stored))

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The identifiers of those whose changes are left out until they end."""
        return tuple(sorted(self._abandoned))

    def abandon(self, scn: int) -> dict[str, int]:
        """Leave out those that began at a number or before.

        Returns:
            Where those that had changes began, by their identifiers. Of the others nothing is lost: what they change
            from now on is kept.
        """
        old = {xid: start for xid, start in self._started.items() if start <= scn}
        lost = {xid: start for xid, start in old.items() if xid in self._stored}
        for xid in old:
            self._forget(xid)
        self._abandoned.update(lost)
        return lost

    def add(self, rows: pa.Table) -> Iterator[Found]:
        """Yield what rows decide, in their order.

        Args:
            rows: whole statements, with the columns of the view, in its order.
        """
        batch = _Batch(rows)
        self._store.expect([xid for xid in batch.committed if xid in self._stored])
        for place in batch.noticed.tolist():
            operation, xid = Operation(int(batch.operations[place])), batch.names[batch.codes[place]]
            if operation in CHANGES:
                if not self._assign(batch, xid, place):
                    yield _unshown(rows.slice(place, 1), "whose transaction LogMiner doesn't name")
            elif operation == Operation.START and xid != NO_TRANSACTION and xid not in self._abandoned:
                # It is read again, so what was known of it comes again, too.
                self._forget(xid)
                batch.skip(xid, place)
                self._started[xid] = int(batch.scns[place])
            elif operation == Operation.DDL:
                yield Statement(rows.slice(place, 1))
            elif operation in _ENDS:
                found = self._ended(batch, xid, place, operation)
                if found is not None:
                    yield found
                if isinstance(found, Committed):
                    self._forget(found.xid)
            elif operation == Operation.MISSING_SCN:
                yield Unshown(int(batch.scns[place]), "The logs that LogMiner reads lack redo.")
            elif operation == Operation.UNSUPPORTED and rows["TABLE_NAME"][place].is_valid:
                yield _unshown(rows.slice(place, 1), "that LogMiner can't show")
        self._keep_rest(batch)

    def _ended(self, batch: _Batch, xid: str, place: int, operation: Operation) -> Committed | Unshown | None:
        if xid.endswith(UNKNOWN_SEQUENCE):
            alike = self._alike(batch, xid, place)
            if len(alike) > 1:
                what = f"The transaction that ends as {xid} is one of {', '.join(alike)}; LogMiner doesn't say which."
                return Unshown(int(batch.scns[place]), what)
            if not alike:
                return None  # nothing of it was captured
            xid = alike[0]
        if operation != Operation.COMMIT:
            batch.skip(xid, place)
            self._forget(xid)
            return None
        changes, at_once = self._changes(batch, xid, place), xid not in self._stored
        if not changes:
            self._forget(xid)
            return None
        start = self._started.get(xid)
        if start is None:
            start = changes[0]["SCN"][0].as_py()
        return Committed(xid, start, batch.rows.slice(place, 1), changes, at_once)

    def _assign(self, batch: _Batch, xid: str, place: int) -> bool:
        """Add a change to the transaction that it belongs to, of whose identifier only the beginning is known.

        Returns:
            Whether it is known which one that is.
        """
        row = batch.rows.slice(place, 1)
        owners = [] if xid == NO_TRANSACTION else self._alike(batch, xid, place)
        if len(owners) > 1 and batch.inverse[place]:
            owners = [one for one in owners if any(_changes_row_of(piece, row) for piece in self._store.pieces(one))]
        if len(owners) != 1:
            return False
        self._add(owners[0], row, bool(batch.inverse[place]))
        return True

    def _alike(self, batch: _Batch, xid: str, place: int) -> list[str]:
        """Return the open transactions that an identifier without its last part may mean."""
        for one in batch.names:
            if one[:_PREFIX] == xid[:_PREFIX]:
                self._keep(batch, one, place)
        return sorted(one for one in {*self._started, *self._abandoned} if one[:_PREFIX] == xid[:_PREFIX])

    def _keep(self, batch: _Batch, xid: str, before: int) -> None:
        """Move a transaction's changes before a row from the batch to the store."""
        undoes = batch.undoes(xid, before)
        rows = batch.take(xid, before)
        if len(rows):
            self._add(xid, rows, undoes)

    def _keep_rest(self, batch: _Batch) -> None:
        """Move all changes that are left in the batch to the store."""
        rest = batch.rest(self._abandoned)
        if not rest.xids:
            return
        begun = zip(rest.xids, rest.first_scns, strict=True)
        self._started.update((xid, scn) for xid, scn in begun if xid not in self._started)
        self._undoes.update(rest.undoing)
        self._stored.update(rest.xids)
        self._store.keep(rest.rows, rest.xids, rest.bounds)

    def _add(self, xid: str, rows: pa.Table, undoes: bool) -> None:
        if xid in self._abandoned:
            return
        self._started.setdefault(xid, rows["SCN"][0].as_py())
        if undoes:
            self._undoes.add(xid)
        self._stored.add(xid)
        self._store.keep(rows, [xid], np.array([0, len(rows)]))

    def _changes(self, batch: _Batch, xid: str, before: int) -> Sequence[pa.Table]:
        """Return a transaction's changes before a row, those in the store and those in the batch."""
        undoes = xid in self._undoes or batch.undoes(xid, before)
        rows = batch.take(xid, before)
        if xid in self._abandoned:
            return []
        stored = self._store.pieces(xid) if xid in self._stored else []
        count = len(stored)
        if not undoes and not count:
            return [rows] if len(rows) else []
        numbers = range(count + (len(rows) > 0))
        pieces = Pieces(numbers, lambda number: stored[number] if number < count else rows)
        return self._remaining(xid, pieces) if undoes else pieces

    def _remaining(self, xid: str, pieces: Sequence[pa.Table]) -> Sequence[pa.Table]:
        """Return changes of a transaction without those that it has undone."""
        undone = UndoneChanges()
        masks: dict[int, NDArray[np.bool_]] = {}
        for number in reversed(range(len(pieces))):
            masks[number] = undone.kept(pieces[number])
        for row_id in undone.unmatched:
            log.warning("undone_change_is_not_known", transaction=xid, row_id=row_id)
        numbers = sorted(number for number, kept in masks.items() if kept.any())
        return Pieces(numbers, lambda number: pieces[number].filter(pa.array(masks[number])))

    def _forget(self, xid: str) -> None:
        if xid in self._stored:
            self._stored.discard(xid)
            self._store.drop(xid)
        self._started.pop(xid, None)
        self._undoes.discard(xid)
        self._abandoned.discard(xid)


@dataclass(frozen=True)
class _Rest:
    """Changes of transactions that aren't decided in a batch.

    Attributes:
        rows: those of each transaction follow each other.
        xids: the transactions.
        bounds: where each one's rows begin, and where the last one's end, shape (transactions + 1,).
        first_scns: the number of each one's first row.
        undoing: those that have undone something.
    """

    rows: pa.Table
    xids: list[str]
    bounds: Numbers
    first_scns: list[int]
    undoing: list[str]


class _Batch:
    """Rows that are sorted into transactions together.

    Attributes:
        rows: shape (rows,).
        operations: shape (rows,): their codes.
        scns: shape (rows,): their change numbers.
        inverse: shape (rows,): which of them undo others.
        codes: shape (rows,): the number of each one's transaction in ``names``.
        names: the identifiers of the transactions.
        noticed: the rows that must be looked at one by one, in the view's order but for commits of one number.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.operations = rows["OPERATION_CODE"].to_numpy()
        self.scns = rows["SCN"].to_numpy()
        self.inverse = rows["ROLLBACK"].to_numpy() != 0
        coded = rows["XID"].combine_chunks().fill_null(NO_TRANSACTION).dictionary_encode()
        self.codes = coded.indices.to_numpy()
        self.names: list[str] = coded.dictionary.to_pylist()
        changes = np.isin(self.operations, CHANGES)
        lost = pc.or_(pc.equal(coded.dictionary, NO_TRANSACTION), pc.ends_with(coded.dictionary, UNKNOWN_SEQUENCE))
        lost = lost.to_numpy(zero_copy_only=False)
        unknown = changes & lost[self.codes] if len(rows) else changes
        self.noticed = self._in_order(np.flatnonzero(np.isin(self.operations, _NOTICED) | unknown), rows)
        places = np.flatnonzero(changes & ~unknown)
        order = np.argsort(self.codes[places], kind="stable")
        self._places = places[order]
        # Each transaction's changes follow each other here, so that any of them are a slice.
        self._grouped = rows.take(pa.array(self._places))
        bounds = np.searchsorted(self.codes[self._places], np.arange(len(self.names) + 1))
        self._begins, self._ends = bounds[:-1].copy(), bounds[1:]
        self._code_of = dict(zip(self.names, range(len(self.names)), strict=True))
        self._inverse = self.inverse[self._places]

    @property
    def committed(self) -> list[str]:
        """The identifiers of the transactions that are committed, in the order of their commits."""
        commits = self.noticed[self.operations[self.noticed] == Operation.COMMIT]
        return [self.names[code] for code in self.codes[commits].tolist()]

    def _in_order(self, noticed: Numbers, rows: pa.Table) -> Numbers:
        """Return places with commits of one number in the order of their positions: by thread, then by transaction.

        No such transaction has seen the other's changes.
        """
        commits = np.flatnonzero(self.operations[noticed] == Operation.COMMIT)
        scns = self.scns[noticed[commits]]
        if not (scns[1:] == scns[:-1]).any():
            return noticed
        threads = rows["THREAD#"].to_numpy()
        for scn in np.unique(scns[1:][scns[1:] == scns[:-1]]).tolist():
            alike = commits[scns == scn]
            places = noticed[alike].tolist()
            places.sort(key=lambda place: (int(threads[place]), self.names[self.codes[place]]))
            noticed[alike] = places
        return noticed

    def take(self, xid: str, before: int) -> pa.Table:
        """Return a transaction's changes before a row that weren't taken yet."""
        begin, end = self._range(xid, before)
        if end > begin:
            self._begins[self._code_of[xid]] = end
        return self._grouped.slice(begin, end - begin)

    def rest(self, left_out: Collection[str]) -> _Rest:
        """Return all changes that weren't taken, but for those of some transactions."""
        begins, ends = self._begins, self._ends
        counts = ends - begins
        if left_out:
            counts[[self._code_of[xid] for xid in left_out if xid in self._code_of]] = 0
        codes = np.flatnonzero(counts)
        begins, ends, counts = begins[codes], ends[codes], counts[codes]
        rows = self._grouped
        if counts.sum() < len(rows):
            rows = rows.take(pa.array(places_of(begins, ends)))
        xids = [self.names[code] for code in codes.tolist()]
        inverses = np.append(0, np.cumsum(self._inverse))
        undoing = np.flatnonzero(inverses[ends] > inverses[begins]).tolist()
        first_scns = self.scns[self._places[begins]].tolist()
        bounds = np.append(0, np.cumsum(counts))
        return _Rest(rows, xids, bounds, first_scns, [xids[place] for place in undoing])

    def undoes(self, xid: str, before: int) -> bool:
        """Return whether what ``take`` would return has undone something."""
        begin, end = self._range(xid, before)
        return bool(self._inverse[begin:end].any())

    def _range(self, xid: str, before: int) -> tuple[int, int]:
        code = self._code_of.get(xid)
        if code is None:
            return 0, 0
        begin, end = int(self._begins[code]), int(self._ends[code])
        return begin, begin + int(np.searchsorted(self._places[begin:end], before))

    def skip(self, xid: str, before: int) -> None:
        """Leave out a transaction's changes before a row."""
        self.take(xid, before)


def _changes_row_of(rows: pa.Table, row: pa.Table) -> bool:
    """Return whether any of the rows changes the row of a table that another one does."""
    found: bool = pc.any(pc.equal(rows["ROW_ID"], row["ROW_ID"][0])).as_py()
    return found


def _unshown(row: pa.Table, what: str) -> Unshown:
    (found,) = row.select(["SCN", "SEG_OWNER", "TABLE_NAME", "INFO"]).to_pylist()
    info = f" ({found['INFO']})" if found["INFO"] else ""
    return Unshown(found["SCN"], f"The log has a change of {found['SEG_OWNER']}.{found['TABLE_NAME']} {what}{info}.")
