"""Keeps the rows of open transactions in memory and files, so that their number and size cost no memory.

What is fetched together stays together: the rows of one fetch, or of several, are sorted by transaction and written to
one file as soon as they are too many for memory, without those of transactions that have ended meanwhile. Files are
mapped into memory, so that a transaction's few rows in a large file cost only the pages in which they are. A file of
which less than half is needed is written again, with others like it, and one of which nothing is needed is removed:
files take no more than twice what open transactions have, besides what has ended since memory was full the last time.
In memory, a transaction takes 32 bytes for each file that has rows of it.

Nothing here survives the process: after a restart the rows are read again from the log. Files have Arrow's format.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from floodmark.capture.mapped_files import MappedFile
from floodmark.capture.spool_files import CachedFile, SpoolFiles
from floodmark.connectors.oracle.mining.pieces import Pieces
from floodmark.connectors.oracle.mining.spooling.shared_rows import (
    Numbers,
    SharedRows,
    Slices,
    gathered,
    needed,
    of_transactions,
    places_of,
    sizes_at,
    taken,
)

MEMORY_BYTES = 16 << 20
_READ_BYTES = 4 << 20
"""How much is read at once, of one transaction or of several."""
_TOGETHER = 1024
"""How many transactions are read together at most."""
_TABLE_BYTES = 10_000
"""What a table takes besides its rows."""
_MOST_MAPPED = 128
_MOST_SMALL = 8
"""How many small files may follow each other before they become one."""
_SUFFIX = ".rows"


class SpooledRows:
    """A ``RowStore``.

    Args:
        files: where rows are written; other files there are removed.
        schema: of the rows.
        memory_bytes: how much stays in memory.
    """

    def __init__(self, files: SpoolFiles, schema: pa.Schema, memory_bytes: int = MEMORY_BYTES) -> None:
        self._files = files
        self._schema = schema
        self._memory_bytes = memory_bytes
        self._numbers: dict[str, int] = {}
        self._next_number = 0
        self._ended: list[int] = []
        # Both in the order in which rows were added; what is in memory was added last.
        self._written: list[SharedRows] = []
        self._in_memory: list[SharedRows] = []
        self._memory_used = 0
        self._mapped: OrderedDict[str, tuple[MappedFile, pa.Table]] = OrderedDict()
        self._expected: list[str] = []
        self._places: dict[str, int] = {}
        self._read: SharedRows | None = None
        files.keep_only(set())

    @property
    def held_bytes(self) -> int:
        """How many bytes the rows take in memory and files."""
        return self._memory_used + self._files.held_bytes

    def keep(self, rows: pa.Table, xids: Sequence[str], bounds: Numbers) -> None:
        """Add rows to transactions.

        Raises:
            StateDirError: the files cannot be written.
        """
        rows = (rows if rows.schema == self._schema else rows.cast(self._schema)).combine_chunks()
        if rows.get_total_buffer_size() > 2 * rows.nbytes + _TABLE_BYTES:
            # They are a small part of others, which would stay in memory with them.
            rows = rows.take(pa.array(np.arange(len(rows))))
        numbers = self._numbers_of(xids)
        order = np.argsort(numbers)
        sizes = np.diff(sizes_at(rows, bounds))
        added = SharedRows(numbers[order], bounds[:-1][order], bounds[1:][order], sizes[order], rows)
        self._in_memory.append(added)
        self._memory_used += added.size + _TABLE_BYTES
        self._read = None
        if self._memory_used > self._memory_bytes:
            self._write_out()

    def expect(self, xids: Sequence[str]) -> None:
        """Prepare for transactions that will be asked for in this order: several are read together."""
        self._expected = [xid for xid in xids if xid in self._numbers]
        self._places = {xid: place for place, xid in enumerate(self._expected)}
        self._read = None

    def pieces(self, xid: str) -> Sequence[pa.Table]:
        """Return the rows of a transaction in their order, in pieces; each is read when it is asked for.

        Raises:
            StateDirError: a file is gone or damaged; asking for a piece raises it, too.
        """
        number = self._numbers.get(xid)
        if number is None:
            return []
        if self._read is None or not len(self._read.find(np.array([number]))):
            places, own = self._all, self._known(self._following(xid))
            order = np.argsort(own)
            slices = of_transactions(places, own[order])
            sizes = np.empty(len(own))
            sizes[order] = np.bincount(np.searchsorted(own[order], slices.owners), slices.sizes, len(own))
            if sizes[0] > _READ_BYTES:
                parts = list(_parts(slices.of(slices.owners == number)))
                return Pieces(parts, partial(self._rows, places))
            chosen = own[np.cumsum(sizes) <= _READ_BYTES]
            self._read = self._gathered(places, slices.of(np.isin(slices.owners, chosen)))
        (at,) = self._read.find(np.array([number])).tolist()
        begin = self._read.begins[at]
        assert self._read.rows is not None
        return [self._read.rows.slice(begin, self._read.ends[at] - begin)]

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""
        number = self._numbers.pop(xid, None)
        if number is not None:
            self._ended.append(number)

    def tidy(self) -> None:
        """Remove files, and parts of them, that have nothing of an open transaction.

        Raises:
            StateDirError: the files cannot be written.
        """
        if not self._ended:
            return
        ended, self._ended = np.sort(np.array(self._ended)), []
        for one in self._all:
            one.drop(ended)
        self._in_memory = [one for one in self._in_memory if one.live]
        self._memory_used = sum(one.size + _TABLE_BYTES for one in self._in_memory)
        self._written = [one for one in self._written if one.live]
        self._remove_others()
        kept: list[SharedRows] = []
        for group in _groups(self._written, self._memory_bytes):
            is_sparse = sum(one.size for one in group) >= 2 * sum(one.live for one in group)
            kept += [self._write(group)] if is_sparse or len(group) > _MOST_SMALL else group
        self._written = kept
        self._remove_others()

    @property
    def _all(self) -> list[SharedRows]:
        return [*self._written, *self._in_memory]

    def _following(self, xid: str) -> list[str]:
        """Return a transaction, and those that will be asked for after it."""
        place = self._places.get(xid)
        if place is None:
            return [xid]
        return [one for one in self._expected[place : place + _TOGETHER] if one in self._numbers]

    def _known(self, xids: Sequence[str]) -> Numbers:
        return np.fromiter(map(self._numbers.__getitem__, xids), np.int64, len(xids))

    def _numbers_of(self, xids: Sequence[str]) -> Numbers:
        """Return the numbers of transactions, each of which gets one if it has none."""
        fresh = [xid for xid in xids if xid not in self._numbers]
        self._numbers.update(zip(fresh, range(self._next_number, self._next_number + len(fresh)), strict=True))
        self._next_number += len(fresh)
        return self._known(xids)

    def _write_out(self) -> None:
        """Move what is in memory to a file, unless it is little without what isn't needed any more."""
        self.tidy()
        places = self._in_memory
        if sum(one.live for one in places) > self._memory_bytes // 2:
            self._written.append(self._write(places))
            self._in_memory, self._memory_used = [], 0
        elif places:
            self._in_memory = [self._gathered(places, needed(places))]
            self._memory_used = self._in_memory[0].size + _TABLE_BYTES

    def _write(self, places: Sequence[SharedRows]) -> SharedRows:
        """Write what is needed of some places to a file, and return its place."""
        found = self._gathered(places, needed(places))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, self._schema) as writer:
            writer.write_table(found.rows)
        file = self._files.write_cached(sink.getvalue(), _SUFFIX)
        return SharedRows(found.owners, found.begins, found.ends, found.sizes, file=file)

    def _rows(self, places: Sequence[SharedRows], slices: Slices) -> pa.Table:
        return self._gathered(places, slices).rows

    def _gathered(self, places: Sequence[SharedRows], slices: Slices) -> SharedRows:
        return gathered(slices, lambda place, begins, ends: self._read_slices(places[place], begins, ends))

    def _read_slices(self, place: SharedRows, begins: Numbers, ends: Numbers) -> pa.Table:
        if place.file is None:
            return taken(place.rows, begins, ends)
        mapped, rows = self._map(place, place.file)
        # These are copies, so the file takes no memory any more.
        found = rows.take(pa.array(places_of(begins, ends)))
        mapped.release()
        return found

    def _map(self, place: SharedRows, file: CachedFile) -> tuple[MappedFile, pa.Table]:
        """Return a file, and the rows in it."""
        found = self._mapped.pop(file.name, None)
        if found is None:
            mapped = self._files.map(file, verify=not place.is_verified)
            place.is_verified = True
            found = mapped, pa.ipc.open_file(pa.BufferReader(mapped.content)).read_all()
            if len(self._mapped) >= _MOST_MAPPED:
                self._mapped.popitem(last=False)
        self._mapped[file.name] = found
        return found

    def _remove_others(self) -> None:
        """Remove the files in which nothing is."""
        names = {one.file.name for one in self._written if one.file is not None}
        self._files.keep_only(names)
        for name in [name for name in self._mapped if name not in names]:
            del self._mapped[name]


def _groups(written: Sequence[SharedRows], most: int) -> Iterator[list[SharedRows]]:
    """Yield consecutive files that may become one: of which little is needed, or which are small.

    Args:
        written: the files.
        most: how many bytes may be needed of those that become one.
    """
    group: list[SharedRows] = []
    size = 0
    for one in written:
        live = one.live
        is_light = 2 * live <= one.size or live <= most // 4
        if group and (not is_light or size + live > most):
            yield group
            group, size = [], 0
        if is_light:
            group.append(one)
            size += live
        else:
            yield [one]
    if group:
        yield group


def _parts(slices: Slices) -> Iterator[Slices]:
    """Yield slices of one transaction that are read together; one that is too large for that is divided."""
    rows = slices.ends - slices.begins
    counts = np.clip(-(-slices.sizes // _READ_BYTES), 1, rows)
    upto = np.cumsum(counts)
    each = np.repeat(np.arange(len(counts)), counts)
    part = np.arange(len(each)) - np.repeat(upto - counts, counts)
    begins, ends = (slices.begins[each] + rows[each] * one // counts[each] for one in (part, part + 1))
    sizes = slices.sizes[each] // counts[each]
    divided = Slices(slices.places[each], slices.owners[each], begins, ends, sizes)
    group = (np.cumsum(sizes) - sizes) // _READ_BYTES
    bounds = [*np.flatnonzero(np.diff(group, prepend=-1)).tolist(), len(group)]
    for begin, end in pairwise(bounds):
        yield divided.of(slice(begin, end))
