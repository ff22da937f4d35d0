"""Keeps the rows of open transactions in the transaction spool, so that their number and size cost no memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import pyarrow as pa

from floodmark.capture.spool import Piece, Spooled, TransactionSpool
from floodmark.connectors.oracle.position import Position

_ONE_RECORD = np.zeros(1, np.uint32)


class SpooledRows:
    """A ``RowStore``: each piece is a record batch without its schema, which all have.

    Args:
        spool: what holds them.
        schema: of the rows.
    """

    def __init__(self, spool: TransactionSpool, schema: pa.Schema) -> None:
        self._spool = spool
        self._schema = schema

    def keep(self, xid: str, rows: pa.Table) -> None:
        """Add rows to a transaction."""
        begin = str(Position(rows["SCN"][0].as_py()))
        for batch in rows.cast(self._schema).combine_chunks().to_batches():
            payload = np.frombuffer(batch.serialize(), np.uint8)
            self._spool.append(bytes.fromhex(xid), begin, "", Piece(payload, _ONE_RECORD))

    def pieces(self, xid: str) -> Sequence[pa.Table]:
        """Return the rows of a transaction as they were added; each is read when it is asked for."""
        found = self._spool.get(bytes.fromhex(xid))
        return [] if found is None else _Pieces(self._spool, found, range(len(found.pieces)), self._schema)

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""
        self._spool.drop(bytes.fromhex(xid))


class _Pieces(Sequence[pa.Table]):
    def __init__(
        self, spool: TransactionSpool, transaction: Spooled, numbers: Sequence[int], schema: pa.Schema
    ) -> None:
        self._spool = spool
        self._transaction = transaction
        self._numbers = numbers
        self._schema = schema

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> pa.Table: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[pa.Table]: ...

    def __getitem__(self, index: int | slice) -> pa.Table | Sequence[pa.Table]:
        if isinstance(index, slice):
            return _Pieces(self._spool, self._transaction, self._numbers[index], self._schema)
        piece = self._spool.load(self._transaction.pieces[self._numbers[index]])
        batch = pa.ipc.read_record_batch(pa.py_buffer(piece.payload), self._schema)
        return pa.Table.from_batches([batch])
