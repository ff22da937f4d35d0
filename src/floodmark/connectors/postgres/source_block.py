"""The ``source`` block of PostgreSQL events, with Debezium 3.6's fields and order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark._version import __version__
from floodmark.codecs.arrays import text_of
from floodmark.connectors.postgres.position import positions
from floodmark.events.connect_schema import field_schema, source_struct
from floodmark.events.json_text import Joiner, Pieces, closed, dumps, of_rows, string

CONNECTOR = "postgresql"
VERSION = __version__
INCREMENTAL = "incremental"
NO_XID = -1

_STRING = {"type": "string"}
_INT64 = {"type": "int64"}

SCHEMA = source_struct(
    [
        field_schema(_STRING, False, "schema"),
        field_schema(_STRING, False, "table"),
        field_schema(_INT64, True, "txId"),
        field_schema(_INT64, True, "lsn"),
        field_schema(_INT64, True, "xmin"),
        field_schema(_STRING, True, "origin"),
        field_schema(_INT64, True, "origin_lsn"),
    ],
    "io.debezium.connector.postgresql.Source",
)


@dataclass(frozen=True)
class Transactions:
    """The transactions of a segment; a logical decoding message outside of any counts as one of its own.

    Attributes:
        lsn: of the commit records, shape (transactions,).
        commit_us: commit times, microseconds since the Unix epoch; for such a message, that of the transaction before.
        xid: transaction ids; ``NO_XID`` for such a message.
        last_commit: end of the transaction committed before; -1 if unknown. For such a message, its own.
        first_change: how many changes of the transaction lie before the segment.
        origin: names of the replication origins, null for those that began here; None if all did.
        origin_lsn: of the commits there.
    """

    lsn: NDArray[np.int64]
    commit_us: NDArray[np.int64]
    xid: NDArray[np.int64]
    last_commit: NDArray[np.int64]
    first_change: NDArray[np.int64]
    origin: pa.StringArray | None = None
    origin_lsn: NDArray[np.int64] | None = None

    def columns(self, transaction: NDArray[np.int64], ordinal: NDArray[np.int64], sub: int) -> dict[str, pa.Array]:
        """Return the columns of the events' positions and transactions.

        Args:
            transaction: index of each event's transaction, shape (events,).
            ordinal: each event's position in its transaction, shape (events,).
            sub: their order among the events of one change.
        """
        index = pa.array(transaction)
        return {
            "position": positions(self.lsn[transaction], ordinal, sub),
            "txid": self.xid_texts.take(index),
            "source_ts": pa.array(self.commit_us).take(index).cast(pa.timestamp("us", tz="UTC")),
        }

    @property
    def xid_texts(self) -> pa.StringArray:
        """The transaction ids as text, null where there is none, shape (transactions,)."""
        texts = text_of(self.xid)
        none = self.xid == NO_XID
        return pc.if_else(pa.array(none), pa.scalar(None, pa.string()), texts) if none.any() else texts


class StreamedSource:
    """Makes the source blocks of streamed events of one segment.

    The parts that are the same for a whole transaction are made once per transaction.
    """

    def __init__(
        self, prefix: str, database: str, transactions: Transactions, xmin: int | None = None, apart: bool = False
    ) -> None:
        """Prepare the parts that don't depend on the change.

        Args:
            prefix: the option ``topic.prefix``.
            database: the database's name.
            transactions: the segment's transactions.
            xmin: the slot's oldest transaction; None if it isn't read.
            apart: whether each field is a piece of its own, as transforms want them.
        """
        self._apart = apart
        self._prefix = prefix
        self._database = database
        self._transactions = transactions
        self._xmin = "null" if xmin is None else str(xmin)
        self._times: tuple[Pieces, Pieces] | None = None
        self._xids = transactions.xid_texts.fill_null("null")
        self._end = self._end_texts()

    def _end_texts(self) -> str | pa.StringArray:
        """Return the text after the LSN, for each transaction if they differ."""
        tx = self._transactions
        head = f',"xmin":{self._xmin},"origin":'
        if tx.origin is None or tx.origin_lsn is None:
            return f'{head}null,"origin_lsn":null}}'
        lsn = pc.if_else(pc.is_null(tx.origin), "null", text_of(tx.origin_lsn))
        joiner = Joiner().add(head).add(closed(string(tx.origin))).add(',"origin_lsn":').add(lsn).add("}")
        return joiner.join(len(tx.lsn))

    def _per_transaction(self) -> tuple[Pieces, Pieces]:
        if self._times is None:
            tx = self._transactions
            rows = len(tx.lsn)
            micros = text_of(tx.commit_us)
            last = pc.if_else(
                pa.array(tx.last_commit < 0),
                "null",
                pc.binary_join_element_wise('\\"', text_of(tx.last_commit), '\\"', ""),
            )
            head = (
                Joiner()
                .add(f'{{"version":"{VERSION}","connector":"{CONNECTOR}","name":{dumps(self._prefix)},"ts_ms":')
                .add(text_of(tx.commit_us // 1000))
                .add(f',"snapshot":"false","db":{dumps(self._database)},"sequence":"[')
                .add(last)
                .add(',\\"')
                .parts(rows, self._apart)
            )
            tail = (
                Joiner()
                .add('\\"]","ts_us":')
                .add(micros)
                .add(',"ts_ns":')
                .add(micros)
                .add('000,"schema":')
                .parts(rows, self._apart)
            )
            self._times = (head, tail)
        return self._times

    def pieces(self, table: str | pa.StringArray, transaction: NDArray[np.int64], lsn: NDArray[np.int64]) -> Pieces:
        """Return the pieces of the source blocks of some changes.

        Args:
            table: ``table_piece`` of their table, or of each one's table.
            transaction: each change's transaction, as an index, shape (rows,).
            lsn: each change's LSN, shape (rows,).
        """
        head, tail = self._per_transaction()
        index = pa.array(transaction)
        number = text_of(lsn)
        return [
            *of_rows(head, index),
            number,
            *of_rows(tail, index),
            table,
            self._xids.take(index),
            ',"lsn":',
            number,
            self._end if isinstance(self._end, str) else self._end.take(index),
        ]


def table_piece(schema: str, table: str) -> str:
    """Return the part of a source block that names the table."""
    return f'{dumps(schema)},"table":{dumps(table)},"txId":'


def snapshot_block(
    prefix: str, database: str, schema: str, table: str, lsn: int, xid: int, micros: int, marker: str
) -> str:
    """Return the source block of a snapshot's rows, the same for all rows of a chunk.

    As in Debezium, rows of an incremental snapshot have no transaction and no LSN of their own; ``sequence`` holds
    their position in the log.
    """
    own = marker == INCREMENTAL
    place = f'\\"{lsn}\\"'
    sequence = f"[{place if own else 'null'},{place}]"
    return (
        f'{{"version":"{VERSION}","connector":"{CONNECTOR}","name":{dumps(prefix)},"ts_ms":{micros // 1000},'
        f'"snapshot":"{marker}","db":{dumps(database)},"sequence":"{sequence}","ts_us":{micros},'
        f'"ts_ns":{micros}000,"schema":{table_piece(schema, table)}{"null" if own else xid},'
        f'"lsn":{"null" if own else lsn},'
        '"xmin":null,"origin":null,"origin_lsn":null}'
    )
