"""Keeps the rows of open transactions in the transaction spool, so that their number and size cost no memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from floodmark.capture.spool import Piece, TransactionSpool
from floodmark.capture.spool_files import StoredPiece
from floodmark.connectors.oracle.mining.pieces import Pieces
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
        if found is None:
            return []
        return Pieces(range(len(found.pieces)), lambda number: self._rows(found.pieces[number]))

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""
        self._spool.drop(bytes.fromhex(xid))

    def _rows(self, stored: Piece | StoredPiece) -> pa.Table:
        piece = self._spool.load(stored)
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(piece.payload), self._schema)])
