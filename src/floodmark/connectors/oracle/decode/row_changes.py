"""Committed changes of rows, and the source blocks of their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.changes import TRUNCATE
from floodmark.changes.layout_groups import TableNames
from floodmark.codecs.arrays import text_of
from floodmark.connectors.oracle import source_block
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.position import Position, positions
from floodmark.events.json_text import Joiner, Pieces, Text, closed, string

Numbers = NDArray[np.int64]

MILLIS, MICROS = 1000, 1_000_000


@dataclass(frozen=True)
class CommittedRows:
    """Rows of ``V$LOGMNR_CONTENTS`` that were committed, in the order of their commits, shape (rows,) each.

    Attributes:
        scn: of the change.
        commit_scn: of the commit.
        start_scn: of the transaction's first change.
        seconds: when the change was made, since the epoch; LogMiner knows no more.
        commit_seconds: when it was committed.
        start_seconds: when the transaction's first change was made.
        xid: the transaction.
        thread: the redo thread in its position.
        redo_thread: the redo thread.
        number: the change in its transaction: as events count them from 1, or as LogMiner does.
        record: ``RS_ID``, without blanks.
        part: ``SSN``.
        user: ``USERNAME``; null where it isn't known.
        row_id: ``ROW_ID``.
        statement: ``SQL_REDO``.
        ordinal: the change in its transaction, ascending.
        has_own_numbers: whether ``number`` counts events, the first of which is the transaction's beginning.
        names: the transaction as events name it; None: as ``xid``.
    """

    scn: Numbers
    commit_scn: Numbers
    start_scn: Numbers
    seconds: Numbers
    commit_seconds: Numbers
    start_seconds: Numbers
    xid: pa.StringArray
    thread: Numbers
    redo_thread: Numbers
    number: Numbers
    record: pa.StringArray
    part: Numbers
    user: pa.StringArray
    row_id: pa.StringArray
    statement: pa.StringArray
    ordinal: Numbers
    has_own_numbers: bool
    names: pa.StringArray | None = None

    @property
    def name(self) -> pa.StringArray:
        """The transaction as events name it."""
        return self.xid if self.names is None else self.names

    def __len__(self) -> int:
        return len(self.scn)

    def place(self, index: int) -> str:
        """Return the position of one change."""
        transaction = self.xid[index].as_py().upper()
        return str(
            Position(int(self.commit_scn[index]), int(self.thread[index]), transaction, int(self.ordinal[index]))
        )

    def select(self, index: Numbers | slice) -> CommittedRows:
        """Return some of the rows."""
        at = pa.array(np.arange(len(self))[index])

        def chosen(value: Any) -> Any:
            if value is None or isinstance(value, bool):
                return value
            return value[index] if isinstance(value, np.ndarray) else value.take(at)

        return CommittedRows(**{name: chosen(value) for name, value in vars(self).items()})

    @property
    def transactions(self) -> Numbers:
        """The number of each row's transaction, shape (rows,)."""
        coded = self.xid.dictionary_encode().indices.to_numpy()
        return np.cumsum(np.concatenate([[False], coded[1:] != coded[:-1]])[: len(coded)])

    def of_events(self, first: Numbers, last: Numbers) -> CommittedRows:
        """Return the rows of events that are made of several rows each.

        Args:
            first: shape (events,): the first row of each.
            last: the same: the last one, whose number it has if LogMiner numbers the rows.
        """
        found = self.select(first)
        begins = np.searchsorted(found.transactions, found.transactions)
        ordinal = np.arange(1, len(first) + 1) - begins
        if not self.has_own_numbers:
            return replace(found, number=self.number[last], ordinal=ordinal)
        return replace(
            found,
            number=ordinal,
            ordinal=ordinal,
            start_scn=found.scn[begins],
            start_seconds=found.seconds[begins],
        )


@dataclass
class RowChanges:
    """Changes of rows, in the log's order.

    Attributes:
        rows: what LogMiner shows of them.
        order: ascending numbers of the changes, shape (changes,).
        kind: ``changes.changes.INSERT`` …, shape (changes,).
        relation: index into ``relations``, shape (changes,).
        relations: the versions of tables.
    """

    rows: CommittedRows
    order: Numbers
    kind: NDArray[np.uint8]
    relation: Numbers
    relations: Sequence[TableStructure]

    def __len__(self) -> int:
        return len(self.order)

    def select(self, index: Numbers | slice) -> RowChanges:
        """Return some of the changes."""
        return replace(
            self,
            rows=self.rows.select(index),
            order=self.order[index],
            kind=self.kind[index],
            relation=self.relation[index],
        )

    def place(self, index: int) -> str:
        """Return the position of one change."""
        return self.rows.place(index)

    def raw(self, index: int) -> bytes:
        """Return the statement of one change."""
        return str(self.rows.statement[index].as_py()).encode()

    def columns(self, sub: int, names: TableNames) -> dict[str, Text]:
        """Return the columns of the changes' events that hold their position in the log, and their table."""
        rows = self.rows
        return {
            "topic": names.topic,
            "schema": names.schema,
            "table": names.table,
            "position": positions(rows.commit_scn, rows.thread, rows.xid, rows.ordinal, sub),
            "txid": rows.name,
            "source_ts": pa.array(rows.seconds * MICROS).cast(pa.timestamp("us", tz="UTC")),
        }

    def source(self, prefix: str, names: TableNames, with_statements: bool) -> Pieces:
        """Return the pieces of the source blocks.

        Args:
            prefix: the option ``topic.prefix``.
            names: of the tables.
            with_statements: the option ``log.mining.include.redo.sql``.
        """
        rows, count = self.rows, len(self)
        seconds = text_of(rows.seconds)
        user = pc.coalesce(closed(string(rows.user)), pa.scalar("null"))
        statement = closed(string(rows.statement)) if with_statements else "null"
        # Of committed transactions only, Debezium has no row for what empties a table.
        is_of_rows = rows.has_own_numbers or int(self.kind[0]) != TRUNCATE
        row_id = Joiner().add('"').add(rows.row_id).add('"').join(count) if is_of_rows else "null"
        rest = (
            Joiner()
            .add(rows.xid)
            .add('","scn":"')
            .add(text_of(rows.scn))
            .add('","commit_scn":"')
            .add(text_of(rows.commit_scn))
            .add('","lcr_position":null,"rs_id":"')
            .add(rows.record)
            .add('","ssn":')
            .add(text_of(rows.part))
            .add(',"redo_thread":')
            .add(text_of(rows.redo_thread))
            .add(',"user_name":')
            .add(user)
            .add(',"redo_sql":')
            .add(statement)
            .add(',"row_id":')
            .add(row_id)
            .add(',"commit_ts_ms":')
            .add(text_of(rows.commit_seconds))
            .add('000,"start_scn":"')
            .add(text_of(rows.start_scn))
            .add('","start_ts_ms":')
            .add(text_of(rows.start_seconds))
            .add('000,"txSeq":')
            .add(text_of(rows.number))
            .add("}")
            .join(count)
        )
        return self._source(prefix, names, seconds, rest)

    def replicated_source(self, prefix: str, names: TableNames) -> Pieces:
        """Return the pieces of the source blocks of changes that come from OpenLogReplicator; see ``source``."""
        rows = self.rows
        unknown = pc.equal(rows.row_id, "")
        rest = (
            Joiner()
            .add(rows.xid)
            .add('","scn":"')
            .add(text_of(rows.scn))
            .add('","commit_scn":null,"lcr_position":null,"rs_id":null,"ssn":0,"redo_thread":null,"user_name":null,')
            .add('"redo_sql":null,"row_id":')
            .add(pc.if_else(unknown, "null", closed(string(rows.row_id))))
            .add(',"commit_ts_ms":null,"start_scn":null,"start_ts_ms":null,"txSeq":null}')
            .join(len(self))
        )
        return self._source(prefix, names, text_of(rows.seconds), rest)

    def lcr_source(self, prefix: str, names: TableNames) -> Pieces:
        """Return the pieces of the source blocks of changes that come from XStream; see ``source``."""
        rows = self.rows
        rest = (
            Joiner()
            .add(rows.name)
            .add('","scn":"')
            .add(text_of(rows.scn))
            .add('","commit_scn":"')
            .add(text_of(rows.commit_scn))
            .add('","lcr_position":"')
            .add(rows.record)
            .add('","rs_id":null,"ssn":0,"redo_thread":null,"user_name":null,"redo_sql":null,"row_id":')
            .add(closed(string(rows.row_id)))
            .add(',"commit_ts_ms":null,"start_scn":null,"start_ts_ms":null,"txSeq":null}')
            .join(len(self))
        )
        return self._source(prefix, names, text_of(rows.seconds), rest)

    def _source(self, prefix: str, names: TableNames, seconds: pa.StringArray, rest: pa.StringArray) -> Pieces:
        """Return source blocks, of which ``rest`` is what follows the identifier of the transaction."""
        count = len(self)
        database, table = names.source
        head = Joiner().add(source_block.head(prefix)).add(seconds).add('000,"snapshot":"false","db":').join(count)
        times = Joiner().add(seconds).add('000000,"ts_ns":').add(seconds).add("000").join(count)
        return [head, database, times, table, rest]
