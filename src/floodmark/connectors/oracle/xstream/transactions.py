"""Puts committed transactions together from records; no I/O.

The server sends a transaction once it is committed, and each of its records has the number of the commit. If it sends
records again, they have the positions that they had; those that were taken over are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.capture.cutting import size_of
from floodmark.connectors.oracle.capture.sent_changes import SentChanges
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.xstream.lcrs import Op
from floodmark.errors import SourceStateError, UnreadableLogError

Numbers = NDArray[np.int64]

_NUMBER = "SEQUENCE#"
_OPERATIONS = {
    Op.INSERT: Operation.INSERT,
    Op.UPDATE: Operation.UPDATE,
    Op.DELETE: Operation.DELETE,
    Op.DDL: Operation.DDL,
}
_XID_PARTS = 3
_OPS = tuple(Op)
_COMMIT, _OTHER, _IDLE = map(_OPS.index, (Op.COMMIT, Op.OTHER, Op.IDLE))


@dataclass(frozen=True)
class Changes(SentChanges):
    """Consecutive changes of captured tables in a committed transaction, or one statement about tables.

    Attributes:
        rows: ``RS_ID`` is the position of the record.
        lcr: the position of the last record up to which these are all.
    """

    lcr: str


@dataclass(frozen=True)
class Idle:
    """Nothing else comes up to a position.

    Attributes:
        scn: all that was committed below this number has come.
        lcr: the position.
    """

    scn: int
    lcr: str


@dataclass(frozen=True)
class Unknown:
    """A record that says nothing of whole rows.

    Attributes:
        scn: its change number.
        table: the table, as ``schema.table``.
        command: what was done.
    """

    scn: int
    table: str
    command: str


@dataclass
class _Open:
    """A transaction that records are of."""

    commit: Position
    last: int
    pieces: list[pa.Table] = field(default_factory=list)
    seconds: int = 0
    size: int = 0


class Transactions:
    """Transactions whose records follow each other.

    Args:
        captures: whether a table is captured, by its schema and name.
        most_bytes: how many bytes of a transaction are collected before those are returned.
        utc_offset_s: how many seconds the database's clock is ahead of UTC.
        after: the position of the last record that was taken over; None: none was.
        inside: the position that was delivered, if it lies inside a transaction; else None.
    """

    def __init__(
        self,
        captures: Callable[[str, str], bool],
        most_bytes: int,
        utc_offset_s: int,
        after: str | None,
        inside: Position | None,
    ) -> None:
        self._captures = captures
        self._most_bytes = most_bytes
        self._utc_offset_s = utc_offset_s
        self._last = after
        self._inside = inside
        self._open: _Open | None = None

    def add(self, lcrs: pa.Table) -> Iterator[Changes | Idle | Unknown]:
        """Take records over, and yield what they complete.

        Raises:
            UnreadableLogError: they aren't in order.
            SourceStateError: the identifier of a transaction has a form that isn't known.
        """
        lcrs = self._following(lcrs)
        if not len(lcrs):
            return
        known = _Known(lcrs, self._captures, self._utc_offset_s)
        for begin, end in known.groups():
            op = known.op[begin]
            if op == _IDLE:
                if self._open is None:
                    yield Idle(int(known.commit_scn[begin]), known.lcr(begin))
            elif op == _OTHER:
                yield from known.unknown(begin)
            else:
                yield from self._of_transaction(known, begin, end)

    def _following(self, lcrs: pa.Table) -> pa.Table:
        """Return the records behind the last one; what says that there are none has no place among them."""
        real = lcrs.filter(pc.not_equal(lcrs["op"], Op.IDLE)) if len(lcrs) else lcrs
        if not len(real):
            return lcrs
        places = real["position"].combine_chunks()
        if not pc.all(_comes_before(places[:-1], places[1:]), min_count=0).as_py():
            raise UnreadableLogError(
                "XStream has sent records whose positions don't ascend.",
                "Stop the query, and start it again; if that happens again, read the tables again (execute-snapshot).",
            )
        last, newest = self._last, places[-1].as_py()
        known = 0 if last is None else len(real) - pc.sum(_comes_before(pa.scalar(last), places)).as_py()
        self._last = newest if known < len(real) else last
        return lcrs if not known else lcrs.slice(pc.index(lcrs["position"], places[known - 1]).as_py() + 1)

    def _of_transaction(self, known: _Known, begin: int, end: int) -> Iterator[Changes]:
        commit = known.commit(begin)
        found = self._open
        if found is None or found.commit != commit:
            if found is not None:
                raise UnreadableLogError(
                    f"XStream has sent changes of the transaction {commit} before the end of {found.commit}.",
                    "The outbound server must send committed transactions only (committed_data_only).",
                )
            inside = self._inside
            is_inside = inside is not None and inside.commit == commit.commit
            found = self._open = _Open(commit, inside.number if is_inside and inside is not None else 0)
        rows = known.rows_of(begin, end)
        if len(rows):
            numbers = pa.array(np.arange(found.last + 1, found.last + 1 + len(rows)))
            place = rows.schema.get_field_index(_NUMBER)
            found.pieces.append(rows.set_column(place, rows.schema.field(place), numbers))
            found.last += len(rows)
            found.size += size_of(rows)
        found.seconds = int(known.seconds[end - 1])
        if known.op[end - 1] == _COMMIT:
            self._open = None
            yield from _taken(found, known.lcr(end - 1))
        elif found.size >= self._most_bytes:
            # The last one stays, so that there is one to say that the transaction ends.
            rows = pa.concat_tables(found.pieces)
            found.pieces = [rows.slice(0, len(rows) - 1)]
            yield from _taken(found, None)
            found.pieces, found.size = [rows.slice(len(rows) - 1)], 0


class _Known:
    """Some records, and what is asked of them."""

    def __init__(self, lcrs: pa.Table, captures: Callable[[str, str], bool], utc_offset_s: int) -> None:
        self._lcrs = lcrs
        self._captures = captures
        self.op = pc.index_in(lcrs["op"], pa.array(_OPS, pa.string())).combine_chunks().to_numpy()
        self.commit_scn = lcrs["commit_scn"].to_numpy()
        self.seconds = lcrs["tm"].fill_null(0).to_numpy() - utc_offset_s
        self._xid, codes = _transactions(lcrs["xid"].combine_chunks())
        self._codes = codes
        kinds = np.array([int(_OPERATIONS.get(op, 0)) for op in _OPS])[self.op]
        self._chosen = np.flatnonzero((kinds == Operation.DDL) | ((kinds > 0) & self._captured()))
        self._rows = self._of_view(kinds)

    def _captured(self) -> NDArray[np.bool_]:
        owner, table = self._lcrs["owner"], self._lcrs["table"]
        coded = pc.binary_join_element_wise(owner, table, "\0").combine_chunks().dictionary_encode()
        wanted = [self._captures(*name.split("\0", 1)) for name in coded.dictionary.to_pylist()]
        found: NDArray[np.bool_] = np.array([*wanted, False])[coded.indices.fill_null(len(wanted)).to_numpy()]
        return found

    def _of_view(self, kinds: Numbers) -> pa.Table:
        at = pa.array(self._chosen)
        some = self._lcrs.take(at).combine_chunks()
        known = {
            "SCN": some["scn"],
            "COMMIT_SCN": some["commit_scn"],
            "OPERATION_CODE": pa.array(kinds[self._chosen]),
            "TIMESTAMP": pa.array(self.seconds[self._chosen]).cast(pa.timestamp("s")),
            "XID": self._xid.take(at),
            "SEG_OWNER": some["owner"],
            "TABLE_NAME": some["table"],
            "ROW_ID": some["rid"].fill_null(""),
            "SQL_REDO": some["text"].fill_null(""),
            "RS_ID": some["position"],
            "THREAD#": pa.nulls(len(some), pa.int64()).fill_null(0),
            "SSN": pa.nulls(len(some), pa.int64()).fill_null(0),
        }
        columns = [known.get(field.name, pa.nulls(len(some), field.type)) for field in ROWS]
        return pa.table([one.cast(field.type) for one, field in zip(columns, ROWS, strict=True)], schema=ROWS)

    def groups(self) -> list[tuple[int, int]]:
        """Return where records begin and end that are taken together."""
        ops = self.op
        alone = (ops == _IDLE) | (ops == _OTHER)
        other = (self._codes[1:] != self._codes[:-1]) | (self.commit_scn[1:] != self.commit_scn[:-1])
        cuts = np.flatnonzero(other | alone[1:] | alone[:-1] | (ops[:-1] == _COMMIT)) + 1
        bounds = [0, *cuts.tolist(), len(ops)]
        return list(pairwise(bounds))

    def lcr(self, place: int) -> str:
        """Return the position of a record."""
        return str(self._lcrs["position"][place].as_py())

    def commit(self, place: int) -> Position:
        """Return the commit that a record belongs to."""
        xid = self._xid[place].as_py()
        if xid is None:
            raise SourceStateError("XStream has sent a record without a transaction.")
        return Position(int(self.commit_scn[place]), 0, xid.upper())

    def rows_of(self, begin: int, end: int) -> pa.Table:
        """Return the rows of some records."""
        first, last = np.searchsorted(self._chosen, [begin, end]).tolist()
        return self._rows.slice(first, last - first)

    def unknown(self, place: int) -> Iterator[Unknown]:
        """Yield a record that isn't known, if its table is captured."""
        row = self._lcrs.slice(place, 1).to_pylist()[0]
        if self._captures(row["owner"] or "", row["table"] or ""):
            yield Unknown(row["scn"], f"{row['owner']}.{row['table']}", row["text"] or "")


def _taken(found: _Open, end: str | None) -> Iterator[Changes]:
    """Yield what was collected of a transaction: runs of changes, and statements one by one.

    Args:
        found: the transaction.
        end: the position of its last record; None: it goes on.
    """
    pieces, found.pieces = found.pieces, []
    if not any(map(len, pieces)):
        if end is not None:
            yield Changes(found.commit, found.seconds, ROWS.empty_table(), False, True, end)
        return
    rows = pa.concat_tables(pieces).combine_chunks()
    statements = rows["OPERATION_CODE"].to_numpy() == Operation.DDL
    bounds = [0, *(np.flatnonzero(statements[1:] | statements[:-1]) + 1).tolist(), len(rows)]
    for begin, stop in pairwise(bounds):
        some = rows.slice(begin, stop - begin)
        is_end = end is not None and stop == len(rows)
        lcr = end if is_end and end is not None else str(some["RS_ID"][-1].as_py())
        yield Changes(found.commit, found.seconds, some, bool(statements[begin]), is_end, lcr)


def _comes_before(first: pa.Array | pa.Scalar, second: pa.Array) -> pa.BooleanArray:
    """Return which positions, in hexadecimal digits, come before others: shorter ones do."""
    sizes = pc.binary_length(first), pc.binary_length(second)
    return pc.or_(pc.less(*sizes), pc.and_(pc.equal(*sizes), pc.less(first, second)))


def _transactions(names: pa.StringArray) -> tuple[pa.StringArray, Numbers]:
    """Return identifiers of transactions as LogMiner shows them, and numbers by which they can be told apart."""
    coded = names.dictionary_encode()
    known = pa.array([hexadecimal(name) for name in coded.dictionary.to_pylist()], pa.string())
    return known.take(coded.indices), coded.indices.fill_null(-1).to_numpy()


def hexadecimal(name: str) -> str:
    """Return the identifier of a transaction, ``<segment>.<slot>.<sequence>``, as LogMiner shows it.

    Raises:
        SourceStateError: it has another form.
    """
    parts = name.split(".")
    sizes = (2, 2, 4)
    try:
        numbers = [int(part) for part in parts[-_XID_PARTS:]]
        raw = b"".join(number.to_bytes(size, "little") for number, size in zip(numbers, sizes, strict=True))
    except (ValueError, OverflowError):
        raise SourceStateError(f"XStream names a transaction {name!r}, which has a form that isn't known.") from None
    return raw.hex()
