"""Keeps the rows of open transactions in the transaction spool, so that their number and size cost no memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from floodmark.capture.spool import Piece, TransactionSpool
from floodmark.capture.spool_files import StoredPiece
from floodmark.connectors.oracle.mining.pieces import Pieces
from floodmark.connectors.oracle.position import Position

_READ_BYTES = 1 << 20
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
        for batch in (rows if rows.schema == self._schema else rows.cast(self._schema)).to_batches():
            payload = np.frombuffer(batch.serialize(), np.uint8)
            self._spool.append(bytes.fromhex(xid), begin, "", Piece(payload, _ONE_RECORD))

    def pieces(self, xid: str) -> Sequence[pa.Table]:
        """Return the rows of a transaction in their order, in larger pieces; each is read when it is asked for."""
        found = self._spool.get(bytes.fromhex(xid))
        return [] if found is None else Pieces(list(_groups(found.pieces)), self._rows)

    def drop(self, xid: str) -> None:
        """Forget the rows of a transaction."""
        self._spool.drop(bytes.fromhex(xid))

    def _rows(self, stored: Sequence[Piece | StoredPiece]) -> pa.Table:
        pieces = [pa.py_buffer(self._spool.load(one).payload) for one in stored]
        return pa.Table.from_batches([pa.ipc.read_record_batch(one, self._schema) for one in pieces]).combine_chunks()


def _groups(pieces: Sequence[Piece | StoredPiece]) -> Iterator[list[Piece | StoredPiece]]:
    """Yield pieces that are read together: among many open transactions, each comes a few rows at a time."""
    group: list[Piece | StoredPiece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += len(piece.payload) if isinstance(piece, Piece) else piece.size
        if size >= _READ_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
