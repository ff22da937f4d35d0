"""Changes of a segment, and rows of a table, as columns.

A record is a line of JSON: of the log ``{"table", "op", "before", "after"}``, of a table ``{"after"}``. Rows are lists
of texts. The header of a log segment holds its ``transactions``, each as number, time of the commit in microseconds,
how many changes of it are in the segment and how many came before, and the structures of ``tables``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.changes.changes import DELETE, INSERT, UPDATE
from floodmark.changes.layout_groups import TableNames
from floodmark.codecs.arrays import text_of
from floodmark.codecs.raw_column import RawColumn
from floodmark.errors import DecodeError
from floodmark.events.json_text import Text
from tests.toy.notebook.database.notebook import Table
from tests.toy.notebook.decode.structure import TableStructure
from tests.toy.notebook.position import CHANGE_DIGITS, NUMBER_DIGITS, parse, position

Numbers = NDArray[np.int64]

ROW = pa.list_(pa.string())
RECORD = pa.schema([("table", pa.int64()), ("op", pa.string()), ("before", ROW), ("after", ROW)])
OPERATIONS = pa.array(["insert", "update", "delete"])
KINDS = np.array([INSERT, UPDATE, DELETE], np.uint8)
NEWLINE = ord("\n")


def starts_of(payload: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return where the lines of a text begin; it ends with a line's end."""
    ends = np.flatnonzero(payload == NEWLINE)
    return np.concatenate([[0], ends[:-1] + 1]).astype(np.uint32) if len(ends) else np.zeros(0, np.uint32)


def parse_records(payload: NDArray[np.uint8], records: int) -> pa.Table:
    """Return records as columns.

    Args:
        payload: whole lines, shape (bytes,).
        records: how many there are.

    Raises:
        DecodeError: a line is not a record.
    """
    if not records:
        return RECORD.empty_table()
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(payload) + 1)
    parsing = pa.json.ParseOptions(explicit_schema=RECORD, unexpected_field_behavior="error")
    try:
        found = pa.json.read_json(pa.BufferReader(pa.py_buffer(payload)), reading, parsing)
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A record of the log is not what a notebook writes: {exc}.") from None
    if found.num_rows != records:
        raise DecodeError(f"A segment has {found.num_rows} records instead of {records}.")
    return found.combine_chunks()


def row_columns(rows: pa.ListArray, width: int) -> list[RawColumn]:
    """Return the raw columns of rows.

    Raises:
        DecodeError: a row is missing, or has another number of values than the table has columns.
    """
    lengths = pc.list_value_length(rows)
    if rows.null_count or not pc.all(pc.equal(lengths, width)).as_py():
        raise DecodeError(f"A record of the log doesn't have a row of {width} values.")
    values = rows.flatten()
    return [RawColumn(values.take(pa.array(np.arange(at, len(values), width)))) for at in range(width)]


@dataclass
class NotebookChanges:
    """``Changes`` of a segment.

    Attributes:
        order: ascending numbers of the changes: their places in the segment, shape (changes,).
        transaction: the transaction's number, shape (changes,).
        number: the change in its transaction, from 1, shape (changes,).
        micros: when it was committed, shape (changes,).
        kind: ``changes.changes.INSERT`` …, shape (changes,).
        relation: index into ``relations``, shape (changes,).
        before: the old rows, null where there are none.
        after: the new rows, null where there are none.
        payload: the records of the segment.
        ends: where the segment's records begin, and the last one ends, shape (records + 1,).
    """

    order: Numbers
    transaction: Numbers
    number: Numbers
    micros: Numbers
    kind: NDArray[np.uint8]
    relation: Numbers
    relations: Sequence[TableStructure]
    before: pa.ListArray
    after: pa.ListArray
    payload: NDArray[np.uint8]
    ends: Numbers

    def __len__(self) -> int:
        return len(self.order)

    def select(self, index: Numbers | slice) -> NotebookChanges:
        """Return some of the changes."""
        index = np.arange(len(self))[index]
        chosen = pa.array(index)
        arrays = ("order", "transaction", "number", "micros", "kind", "relation")
        taken = {name: getattr(self, name)[index] for name in arrays}
        return replace(self, **taken, before=self.before.take(chosen), after=self.after.take(chosen))

    def place(self, index: int) -> str:
        """Return the position of one change."""
        return position(int(self.transaction[index]), int(self.number[index]))

    def raw(self, index: int) -> bytes:
        """Return one change's record."""
        at = int(self.order[index])
        return self.payload[int(self.ends[at]) : int(self.ends[at + 1])].tobytes()

    def columns(self, sub: int, names: TableNames) -> dict[str, Text]:
        """Return the columns of the changes' events that hold their position in the log, and their table."""
        parts = ((self.transaction, NUMBER_DIGITS), (self.number, CHANGE_DIGITS))
        padded = [pc.utf8_lpad(text_of(numbers), width=width, padding="0") for numbers, width in parts]
        return {
            **names.columns(),
            "position": pc.binary_join_element_wise(*padded, f"{sub:02X}", "-"),
            "txid": text_of(self.transaction),
            "source_ts": pa.array(self.micros).cast(pa.timestamp("us", tz="UTC")),
        }


class LogRecords:
    """The records of a log segment in a range of positions.

    Args:
        data: the segment.
        after: position before the first of them.
        upto: position of the last one.

    Attributes:
        relations: the tables of the segment.
        begin: the first of them, an index of a record.
        end: the first one behind them.
    """

    def __init__(self, data: SegmentData, after: str, upto: str) -> None:
        header = data.header
        self.relations = [TableStructure(Table.from_json(table)) for table in header["tables"].values()]
        self._tables = pa.array([one.number for one in self.relations], pa.int64())
        number, micros, count, done = np.array(header["transactions"], np.int64).reshape(-1, 4).T
        self._transaction = np.repeat(number, count)
        self._micros = np.repeat(micros, count)
        first = np.cumsum(count) - count
        self._number = np.arange(len(self._transaction)) - np.repeat(first - done, count) + 1
        self._payload = data.payload
        self._ends = np.append(data.starts.astype(np.int64), len(data.payload))
        self.begin, self.end = self._up_to(after), self._up_to(upto)

    def _up_to(self, place: str) -> int:
        """Return how many records lie up to a position."""
        transaction, number = parse(place)
        first, last = np.searchsorted(self._transaction, [transaction, transaction + 1])
        return int(first + np.searchsorted(self._number[first:last], number, "right"))

    def changes(self, begin: int, end: int) -> NotebookChanges:
        """Return the changes of some of the records.

        Raises:
            DecodeError: a record is not what a notebook writes.
        """
        found = parse_records(self._payload[self._ends[begin] : self._ends[end]], end - begin)
        relation = pc.index_in(found["table"], self._tables)
        kind = pc.index_in(found["op"], OPERATIONS)
        if relation.null_count or kind.null_count:
            raise DecodeError("A record of the log has an unknown table or operation.")
        before, after = (pa.chunked_array(found[name].chunks, ROW).combine_chunks() for name in ("before", "after"))
        return NotebookChanges(
            np.arange(begin, end),
            self._transaction[begin:end],
            self._number[begin:end],
            self._micros[begin:end],
            KINDS[kind.to_numpy()],
            relation.to_numpy().astype(np.int64),
            self.relations,
            before,
            after,
            self._payload,
            self._ends,
        )
