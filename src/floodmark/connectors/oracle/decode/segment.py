"""Segments of Oracle's log: rows of LogMiner's view that were committed, in the order of their commits.

The payload is record batches in Arrow's format, without their schema, which is that of the view. The header says which
transactions the rows belong to, one after the other, and how the tables were made that they are of.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.connectors.oracle.decode.logged_statement import LoggedStatement
from floodmark.connectors.oracle.decode.row_changes import CommittedRows
from floodmark.connectors.oracle.decode.rows_of_transactions import of_the_view, seconds_of
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.structures.stored import table_json, table_of
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import DecodeError
from floodmark.json_data import JsonObject

Numbers = NDArray[np.int64]

_TRANSACTIONS, _TABLES, _STATEMENT, _NUMBERED = "transactions", "tables", "statement", "numbered"
_PLACED = "placed"


@dataclass(frozen=True)
class Part:
    """Consecutive changes of a committed transaction.

    Attributes:
        commit: the position of the commit, with the number 0.
        seconds: when it was committed, since the epoch.
        first_scn: of the transaction's first change.
        first_seconds: when that was made.
        done: how many of its changes come before these.
        count: how many these are.
        ends: whether they are its last.
        last: the number of the last of them, if their numbers are those of ``SEQUENCE#``, which others may be missing
            between; None: they follow each other.
    """

    commit: Position
    seconds: int
    first_scn: int
    first_seconds: int
    done: int
    count: int
    ends: bool
    last: int | None = None

    @property
    def after(self) -> Position:
        """The position before these changes."""
        return self.commit.at(self.done)

    @property
    def upto(self) -> Position:
        """The position of the last of them, or of the transaction's end."""
        if self.ends:
            return self.commit.end()
        return self.commit.at(self.done + self.count if self.last is None else self.last)

    def without(self, count: int) -> Part:
        """Return the same without the first ones."""
        return replace(self, done=self.done + count, count=self.count - count)


def segment_of(
    parts: Sequence[Part],
    rows: Sequence[pa.Table],
    tables: Mapping[str, Table],
    statement: LoggedStatement | None = None,
    numbered: bool = False,
) -> SegmentData:
    """Return a segment.

    Args:
        parts: which transactions the rows are of.
        rows: with the columns of the view.
        tables: the structures of the tables that they are of, by ``schema.table``.
        statement: about tables; then there are no rows.
        numbered: whether events have LogMiner's numbers of changes (``SEQUENCE#``) instead of their own.
    """
    whole = pa.concat_tables(rows).cast(ROWS).combine_chunks()
    batches = whole.to_batches() or [pa.RecordBatch.from_pylist([], ROWS)]
    pieces = [np.frombuffer(batch.serialize(), np.uint8) for batch in batches]
    ends = np.cumsum([len(piece) for piece in pieces])
    transactions = [
        [
            *(one.commit.scn, one.commit.thread, one.commit.transaction, one.seconds),
            *(one.first_scn, one.first_seconds, one.done, one.count),
        ]
        for one in parts
    ]
    header: dict[str, Any] = {
        _TRANSACTIONS: transactions,
        _TABLES: {name: table_json(table) for name, table in tables.items()},
        _STATEMENT: None if statement is None else statement.to_json(),
        _NUMBERED: numbered,
        **({_PLACED: True} if parts[0].last is not None else {}),
    }
    starts = np.concatenate([[0], ends[:-1]]).astype(np.uint32)
    return SegmentData(np.concatenate(pieces), starts, header)


class SegmentRows:
    """The rows of a segment.

    Args:
        data: the segment.
        adapter: ``database.connection.adapter``, on which the transactions' names depend.

    Raises:
        DecodeError: it isn't what ``segment_of`` returns.

    Attributes:
        tables: the structures of its tables, by ``schema.table``.
        shown: the rows, with the columns of the view, shape (rows,).
        rows: the same, as events need them.
        statement: a statement about tables, and its position; None: there is none.
    """

    def __init__(self, data: SegmentData, adapter: str = "logminer") -> None:
        header = JsonObject(data.header, "The header of a segment", _damaged)
        tables = header.member(_TABLES)
        self.tables = {name: table_of(tables.member(name)) for name in tables}
        self.shown = _rows(data)
        entries = data.header[_TRANSACTIONS]
        numbers = np.array([[*one[:2], *one[3:]] for one in entries], np.int64).reshape(-1, 7)
        scn, thread, seconds, first_scn, first_seconds, self._done, self._count = numbers.T
        if int(self._count.sum()) != len(self.shown):
            raise _damaged("it has another number of rows than its transactions")
        logged = header.optional_member(_STATEMENT)
        self.statement: tuple[str, LoggedStatement] | None = None
        if logged is not None:
            place = Position(int(scn[0]), int(thread[0]), str(entries[0][2])).at(int(self._done[0]))
            self.statement = str(place), LoggedStatement.from_json(logged)
        self._commits = [(int(one[0]), int(one[1]), str(one[2])) for one in entries]
        each = np.repeat(np.arange(len(entries)), self._count)
        self._first = np.cumsum(self._count) - self._count
        numbered = header.flag(_NUMBERED)
        number = np.arange(1, len(each) + 1) - self._first[each] + self._done[each]
        if _PLACED in data.header:
            number = self.shown["SEQUENCE#"].to_numpy()
        self.rows = CommittedRows(
            self.shown["SCN"].to_numpy(),
            scn[each],
            first_scn[each],
            seconds_of(self.shown),
            seconds[each],
            first_seconds[each],
            number=self.shown["SEQUENCE#"].to_numpy() if numbered else number,
            ordinal=number,
            has_own_numbers=not numbered,
            names=dotted(self.shown["XID"].combine_chunks()) if adapter == "xstream" else None,
            **{**of_the_view(self.shown), "thread": thread[each]},
        )

    def within(self, after: str, upto: str) -> slice:
        """Return which rows lie in ``(after, upto]``."""
        return slice(self._up_to(Position.parse(after)), self._up_to(Position.parse(upto)))

    def slices(self, chosen: slice, size: int, whole: bool) -> Iterator[slice]:
        """Yield rows in slices of about the same size.

        Args:
            chosen: which rows.
            size: how many rows a slice has, unless a transaction is larger.
            whole: whether no transaction may be divided.
        """
        begins = list(self._begins()) if whole else []
        begin = chosen.start
        while begin < chosen.stop:
            end = begin + size
            if whole:
                following = bisect_left(begins, end)
                end = begins[following] if following < len(begins) else chosen.stop
            end = min(end, chosen.stop)
            yield slice(begin, end)
            begin = end

    def _begins(self) -> Iterator[int]:
        """Yield the rows that transactions begin with."""
        for _, parts in groupby(zip(self._first.tolist(), self._commits, strict=True), key=itemgetter(1)):
            yield next(parts)[0]

    def _up_to(self, place: Position) -> int:
        """Return how many rows lie up to a position."""
        begin, end = bisect_left(self._commits, place.commit), bisect_right(self._commits, place.commit)
        if begin == len(self._commits):
            return len(self.shown)
        # Parts of one transaction that follow each other are those of its changes, too.
        first = int(self._first[begin])
        numbers = self.rows.ordinal[first : first + int(self._count[begin:end].sum())]
        return first + int(np.searchsorted(numbers, place.number, side="right"))


def dotted(xids: pa.StringArray) -> pa.StringArray:
    """Return identifiers of transactions as XStream shows them: ``<segment>.<slot>.<sequence>``."""
    coded = xids.dictionary_encode()
    shown = []
    for digits in coded.dictionary.to_pylist():
        raw = bytes.fromhex(digits)
        shown.append(".".join(str(int.from_bytes(part, "little")) for part in (raw[:2], raw[2:4], raw[4:])))
    return pa.array(shown, pa.string()).take(coded.indices)


def _rows(data: SegmentData) -> pa.Table:
    ends = np.append(data.starts[1:], len(data.payload)).tolist()
    try:
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(data.payload[begin:end]), ROWS)
            for begin, end in zip(data.starts.tolist(), ends, strict=True)
        ]
    except (pa.ArrowInvalid, OSError) as exc:
        raise _damaged(f"its rows can't be read ({exc})") from None
    return pa.Table.from_batches(batches, ROWS).combine_chunks()


def _damaged(problem: str) -> DecodeError:
    return DecodeError(f"A segment of the log is damaged: {problem}.")
