"""The transaction spool: keeps records of transactions whose outcome is not yet in the log.

Some logs hold the rows of a transaction before it is known whether it commits: a transaction can stay prepared for
days, and survives restarts of the server. Its records are kept here until it is decided, and don't count as delivered:
the log is needed from where the oldest undecided transaction begins. That is enough for a source that keeps its log
until it has been read. Others discard it by age, so undecided transactions are also kept in files that survive the
query's restarts. The resume state names one index of these files. If it is gone, the log is read again from the
beginning of the oldest transaction.

Transactions that are decided before the next segment is cut are not written to files, unless they exceed the memory
limit. The others share one file for each cut. In memory, each transaction takes about 1 KB.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from floodmark.capture.spool_files import IndexEntry, SpoolFiles, StoredPiece

MEMORY_BYTES = 8 << 20
INDEX_SHARE = 20
"""If writing an index took long, the next is written no earlier than this many times that duration later."""


@dataclass(frozen=True)
class Piece:
    """Consecutive records of a transaction.

    Attributes:
        payload: the raw records, shape (bytes,).
        starts: where each record starts in the payload, shape (records,).
        form: the form of the records, as a number that the connector defines.
        inflated: how many bytes larger the records are when they are decompressed.
    """

    payload: NDArray[np.uint8]
    starts: NDArray[np.uint32]
    form: int = 0
    inflated: int = 0


@dataclass(frozen=True)
class Undecided:
    """What the resume state holds about the transactions that were undecided at a position.

    Attributes:
        begin: position at which the oldest of them begins; all are known again once the log has been read from there.
        token: what the connector needs to find ``begin`` in the log, if the position alone is not enough.
        at: position at which ``index`` is complete; the log after it has the rest. Empty: there is no index.
        index: name of the file; empty: none was undecided at ``at``.
        oldest: label of the oldest one, for users.
    """

    begin: str
    token: str
    at: str = ""
    index: str = ""
    oldest: str = ""


@dataclass(slots=True)
class Spooled:
    """A transaction in the spool.

    Attributes:
        key: identifies it as long as it is undecided.
        begin: position at which it begins.
        token: what else is needed to find that position in the log.
        label: its name for users.
        pieces: its records, each still in memory or in a file.
        size: bytes of its records when they are decompressed.
        complete: whether all its records have been received.
    """

    key: bytes
    begin: str
    token: str
    label: str = ""
    pieces: list[Piece | StoredPiece] = field(default_factory=list)
    size: int = 0
    complete: bool = False


@dataclass(frozen=True)
class _State:
    """Which files are needed to start from a position.

    Attributes:
        position: the files are needed from here on, until the next state's.
        files: names.
    """

    position: str
    files: frozenset[str]


class TransactionSpool:
    """Keeps undecided transactions.

    Args:
        files: keep undecided transactions across restarts; None: they are only in memory.
        memory_bytes: above this, records are written to files even before a cut.

    Attributes:
        position: where the transactions that it holds are undecided.
    """

    def __init__(self, files: SpoolFiles | None = None, memory_bytes: int = MEMORY_BYTES) -> None:
        self._files = files
        self._memory_bytes = memory_bytes
        self._transactions: dict[bytes, Spooled] = {}
        self._in_memory = 0
        self._changed = False
        self._index = self._index_at = ""
        self._next_index = 0.0
        self._states: list[_State] = []
        self._forgotten = ""
        self._unneeded = False
        self.position = ""

    @property
    def held_bytes(self) -> int:
        """How many bytes of state the spool takes."""
        return self._in_memory + (0 if self._files is None else self._files.held_bytes)

    def get(self, key: bytes) -> Spooled | None:
        """Return an undecided transaction; None if it isn't known."""
        return self._transactions.get(key)

    def append(self, key: bytes, begin: str, token: str, piece: Piece) -> None:
        """Add records to a transaction that is being received."""
        found = self._transactions.get(key)
        if found is None:
            found = self._transactions[key] = Spooled(key, begin, token)
        found.pieces.append(piece)
        found.size += len(piece.payload) + piece.inflated
        self._in_memory += len(piece.payload)
        if self._in_memory > self._memory_bytes:
            self._write_out(list(self._transactions.values()))

    def complete(self, key: bytes, name: bytes, label: str) -> None:
        """Mark a transaction as completely received; from now on ``name`` is its key.

        An undecided transaction with that key is replaced: sources use a name again only when it is free.
        """
        found = self._transactions.pop(key)
        self.drop(name)
        found.key, found.label, found.complete = name, label, True
        self._transactions[name] = found
        self._changed = True

    def drop(self, key: bytes) -> bool:
        """Remove a decided transaction; return whether it was known."""
        found = self._transactions.pop(key, None)
        if found is None:
            return False
        self._changed = self._changed or found.complete
        self._in_memory -= sum(len(piece.payload) for piece in found.pieces if isinstance(piece, Piece))
        self._unneeded = self._unneeded or any(isinstance(piece, StoredPiece) for piece in found.pieces)
        return True

    def pieces(self, transaction: Spooled) -> Iterator[Piece]:
        """Return the records of a transaction, piece by piece.

        Raises:
            StateDirError: a file is gone or damaged.
        """
        return map(self.load, transaction.pieces)

    def load(self, piece: Piece | StoredPiece) -> Piece:
        """Return the records of a piece, which are read if they are in a file; errors are those of ``pieces``."""
        if isinstance(piece, Piece):
            return piece
        assert self._files is not None
        payload, starts = self._files.read(piece)
        return Piece(payload, starts, piece.form, piece.inflated)

    def abandon(self) -> None:
        """Remove transactions that were not completely received."""
        for key in [key for key, one in self._transactions.items() if not one.complete]:
            self.drop(key)

    def save(self, position: str) -> Undecided | None:
        """Save what is undecided at a position that lies after everything that was appended and dropped.

        Returns:
            What the resume state must hold; None if nothing is undecided.

        Raises:
            StateDirError: the files cannot be written.
        """
        self.position = position
        oldest = next((one for one in self._transactions.values() if one.complete), None)
        if oldest is None:
            if self._index or not self._states:
                self._note(position, "", ())
            self._changed, self._index_at = False, position
        elif self._files is not None and self._changed and time.monotonic() >= self._next_index:
            self._write_index(position)
        elif not self._changed:
            self._index_at = position
        self._remove_forgotten()
        if oldest is None:
            return None
        at = "" if self._files is None else self._index_at
        return Undecided(oldest.begin, oldest.token, at, self._index, oldest.label)

    def restore(self, index: str, position: str) -> bool:
        """Restore the transactions of an index, and remove other files; return whether the files were intact."""
        self._forget_all()
        entries = None
        if self._files is not None:
            entries = self._files.read_index(index) if index else []
        if entries is None:
            return False
        for one in entries:
            size = sum(piece.size + piece.inflated for piece in one.pieces)
            self._transactions[one.key] = Spooled(
                one.key, one.begin, one.token, one.label, list(one.pieces), size, complete=True
            )
        self._changed = False
        self._note(position, index, {piece.file for one in entries for piece in one.pieces})
        self._remove_unneeded()
        self.position = position
        return True

    def clear(self, position: str) -> None:
        """Remove all transactions and files, and continue at a position."""
        self._forget_all()
        self.position = position
        self._note(position, "", ())
        self._remove_unneeded()

    def forget(self, position: str) -> None:
        """Let ``save`` remove files that only earlier positions need. Safe to call from another thread."""
        self._forgotten = position

    def _remove_forgotten(self) -> None:
        # The last state at or before the position is still needed to start from there.
        kept = max((number for number, one in enumerate(self._states) if one.position <= self._forgotten), default=0)
        del self._states[:kept]
        if kept or self._unneeded:
            self._remove_unneeded()

    def _forget_all(self) -> None:
        self._transactions.clear()
        self._in_memory = 0
        self._changed = False
        self._index = self._index_at = ""
        self._states.clear()

    def _note(self, position: str, index: str, files: Collection[str]) -> None:
        self._index, self._index_at = index, position
        self._states.append(_State(position, frozenset({*files, *filter(None, [index])})))

    def _write_index(self, position: str) -> None:
        assert self._files is not None
        begun = time.monotonic()
        undecided = [one for one in self._transactions.values() if one.complete]
        # The records must be durable before an index refers to them.
        self._write_out(undecided)
        entries = []
        for one in undecided:
            pieces = tuple(piece for piece in one.pieces if isinstance(piece, StoredPiece))
            entries.append(IndexEntry(one.key, one.begin, one.token, one.label, pieces))
        index = self._files.write_index(entries)
        self._note(position, index, {piece.file for one in entries for piece in one.pieces})
        self._changed = False
        ended = time.monotonic()
        self._next_index = ended + INDEX_SHARE * (ended - begun) if ended - begun > 0.05 else 0.0

    def _write_out(self, transactions: list[Spooled]) -> None:
        """Move the records of transactions from memory to one file."""
        if self._files is None:
            return
        unwritten = [(one, n) for one in transactions for n, piece in enumerate(one.pieces) if isinstance(piece, Piece)]
        contents = [piece for one, n in unwritten if isinstance(piece := one.pieces[n], Piece)]
        if not contents:
            return
        stored = self._files.write([(piece.payload, piece.starts, piece.form, piece.inflated) for piece in contents])
        for (one, n), piece in zip(unwritten, stored, strict=True):
            one.pieces[n] = piece
            self._in_memory -= piece.size

    def _remove_unneeded(self) -> None:
        self._unneeded = False
        if self._files is None:
            return
        needed = {name for state in self._states for name in state.files}
        for one in self._transactions.values():
            needed.update(piece.file for piece in one.pieces if isinstance(piece, StoredPiece))
        self._files.keep_only(needed)
