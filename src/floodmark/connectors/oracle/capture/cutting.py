"""Collects committed changes until they are cut into segments; no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.oracle.decode.logged_statement import LoggedStatement
from floodmark.connectors.oracle.decode.segment import Part, segment_of
from floodmark.connectors.oracle.structures.table import Table

Tables = Mapping[str, Table]
Signals = Callable[[SegmentData], list[tuple[str, dict[str, str]]]]

_OTHER_BYTES = 300
"""What a row takes besides its statement."""


@dataclass(frozen=True)
class _Waiting:
    """Changes that wait to be cut.

    Attributes:
        part: which ones.
        rows: the same, with the columns of the view.
        size: their bytes.
        tables: the structures of the captured tables then.
        statement: a statement about tables instead of changes, which gets a segment of its own.
    """

    part: Part
    rows: pa.Table
    size: int
    tables: Tables
    statement: LoggedStatement | None = None


def size_of(rows: pa.Table) -> int:
    """Return about how many bytes rows have; to ask each column takes longer than all else for a small transaction."""
    statements: int = rows["SQL_REDO"].nbytes
    return statements + _OTHER_BYTES * len(rows)


def segments_of(rows: pa.Table, segment_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where pieces of rows begin and end that are no larger than a segment."""
    count = min(-(-size_of(rows) // segment_bytes), len(rows))
    yield from pairwise(len(rows) * part // count for part in range(count + 1))


class Cutter:
    """Cuts segments.

    Args:
        position: where the log is read from.
        segment_bytes: size at which a segment is full.
        signals: finds the signals in a segment.
        whole: whether no transaction may be divided, however large it is.
        numbered: whether events have LogMiner's numbers of changes.
    """

    def __init__(
        self, position: str, segment_bytes: int, signals: Signals, whole: bool = False, numbered: bool = False
    ) -> None:
        self._cut_to = position
        self._segment_bytes = segment_bytes
        self._signals = signals
        self._whole = whole
        self._numbered = numbered
        self._waiting: deque[_Waiting] = deque()
        self._size = 0
        self._idle = position

    def add(self, part: Part, rows: pa.Table, tables: Tables, statement: LoggedStatement | None = None) -> int:
        """Add changes, or a statement, which come after all others; return how many bytes they have."""
        size = size_of(rows)
        self._waiting.append(_Waiting(part, rows, size, tables, statement))
        self._size += size
        return size

    def reached(self, position: str) -> None:
        """Record that the log holds nothing else up to a position."""
        self._idle = max(self._idle, position)

    @property
    def full(self) -> bool:
        """Whether a segment's worth of changes waits."""
        if self._size < self._segment_bytes:
            return False
        return not self._whole or any(one.part.ends for one in self._waiting)

    @property
    def first_scn(self) -> int | None:
        """The number of the first change of all transactions that wait; None: none does."""
        return min((one.part.first_scn for one in self._waiting), default=None)

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""
        last = next((one for one in reversed(self._waiting) if one.part.ends), None)
        return max(self._cut_to, self._idle if not self._waiting else "", str(last.part.upto) if last else "")

    @property
    def idle_position(self) -> str | None:
        """The position up to which all has been cut; None if changes wait."""
        return None if self._waiting else max(self._cut_to, self._idle)

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment at the last transaction end, or with ``force`` after all that waits if there is none.

        It ends before changes of a table that was altered meanwhile.
        """
        count = self._ready(force)
        if not count:
            return None
        taken = [self._waiting.popleft() for _ in range(count)]
        self._size -= sum(one.size for one in taken)
        rows = [one.rows for one in taken]
        statement = taken[0].statement
        data = segment_of([one.part for one in taken], rows, _of_rows(taken[0].tables, rows), statement, self._numbered)
        after, self._cut_to = self._cut_to, str(taken[-1].part.upto)
        return Cut(
            data,
            after,
            self._cut_to,
            sum(one.part.count for one in taken) or 1,
            float(taken[-1].part.seconds),
            self._signals(data),
        )

    def _ready(self, force: bool) -> int:
        """Return how many of the first that wait make a segment."""
        count = ended = size = 0
        for one in self._waiting:
            is_enough = one.tables is not self._waiting[0].tables or size >= self._segment_bytes or one.statement
            if count and is_enough and (ended or not self._whole):
                # Whoever alters a table has waited for the transactions that changed it.
                return ended or count
            count += 1
            size += one.size
            ended = count if one.part.ends else ended
        return ended or (count if force and not self._whole else 0)


def _of_rows(tables: Tables, rows: list[pa.Table]) -> Tables:
    """Return the tables that rows are of."""
    owners, names = ([chunk for one in rows for chunk in one[column].chunks] for column in ("SEG_OWNER", "TABLE_NAME"))
    found = pc.binary_join_element_wise(
        pa.chunked_array(owners, pa.string()), pa.chunked_array(names, pa.string()), "."
    )
    return {name: tables[name] for name in sorted({*pc.unique(found).to_pylist()} & tables.keys())}
