"""What decoders report about records that can't be decoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableFailure:
    """A table whose records can't be decoded.

    Attributes:
        table: ``schema.table``.
        oid: the number that identifies the table.
        error: why.
    """

    table: str
    oid: int
    error: str


@dataclass(frozen=True)
class DeadLetter:
    """A record of the log that can't be decoded.

    Attributes:
        position: the position of its change.
        table: ``schema.table``.
        operation: c, u or d.
        error: why.
        record: its bytes.
    """

    position: str
    table: str
    operation: str
    error: str
    record: bytes
