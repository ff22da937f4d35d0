"""What decoders are asked to decode, and what they report about records that can't be decoded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from floodmark.capture.segment import SegmentData


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


@dataclass(frozen=True)
class DecodeRequest:
    """The records to decode: those of a segment in ``(after, upto]``.

    Attributes:
        data: the segment.
        after: begin after this position.
        upto: end with this position.
        excluded: numbers of the tables to exclude.
        only: the tables that are wanted; None: all.
        context: what ``LogSource.decode_context`` returned.
    """

    data: SegmentData
    after: str
    upto: str
    excluded: Collection[int] = ()
    only: Collection[int] | None = None
    context: int | None = None


@dataclass(frozen=True)
class DecodeProblems:
    """Collects what a decoder leaves out while its events are read.

    Attributes:
        tables: receives the tables that can't be decoded, which are excluded from there on; None: raise.
        records: receives the records that can't be decoded; only these are left out then. None: their table fails.
    """

    tables: list[TableFailure] | None = None
    records: list[DeadLetter] | None = None
