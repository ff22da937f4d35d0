"""Logical change records (LCRs), as an XStream outbound server sends them, many at once; no I/O.

Records have positions: bytes that ascend with the records, of which only Oracle knows what they mean. A transaction is
sent once it is committed, all of it, and its last record says that it is the end.
"""

from __future__ import annotations

import io
from enum import StrEnum
from typing import Protocol

import pyarrow as pa
import pyarrow.json

from floodmark.errors import SourceStateError

LCRS = pa.schema(
    [
        ("op", pa.string()),
        ("position", pa.string()),
        ("scn", pa.int64()),
        ("commit_scn", pa.int64()),
        ("tm", pa.int64()),
        *((name, pa.string()) for name in ("xid", "db", "owner", "table", "rid", "text")),
    ]
)
"""The columns of records: what they are (``Op``), their position in hexadecimal digits, the change number and that of
the commit, when the change was made (in seconds, by the database's clock), the transaction, the database, the table,
the ROWID, and the values of a row (``values.documents``), the text of a statement, or the name of what is not known."""


class Op(StrEnum):
    """What a record is."""

    INSERT = "c"
    UPDATE = "u"
    DELETE = "d"
    DDL = "ddl"
    COMMIT = "commit"
    OTHER = "other"
    """A change of a part of a large object, or another record that says nothing of whole rows."""
    IDLE = "idle"
    """No record: nothing else comes up to its position."""


class LcrSource(Protocol):
    """An outbound server, to which one client at a time is attached."""

    def attach(self, position: bytes | None, scn: int) -> None:
        """Let the server send what follows a position; where there is none, what was committed behind a number.

        Raises:
            NotReadyError: another client is attached, or the server isn't ready yet.
            SourceStateError: there is no such server, or it can't be reached with what the options name.
            ConnectError: the database can't be reached.
        """

    def receive(self, timeout: float) -> pa.Table:
        """Return the records that have come, with the columns of ``LCRS``, after waiting for the first one.

        Args:
            timeout: seconds to wait at most.

        Raises:
            ConnectError: the connection is lost.
            SourceStateError: the server can't go on.
        """

    def acknowledge(self, position: bytes) -> None:
        """Let the server forget what comes up to a position. Safe to call from another thread."""

    def detach(self) -> None:
        """End the connection."""


def read_lcrs(lines: bytes) -> pa.Table:
    """Return records of lines of JSON.

    Raises:
        SourceStateError: they can't be read.
    """
    if not lines:
        return LCRS.empty_table()
    try:
        found = pa.json.read_json(
            io.BytesIO(lines),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=LCRS, unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid as exc:
        raise SourceStateError(f"A record of XStream can't be read: {exc}.") from None
    return found.combine_chunks()


def place_of(digits: str) -> tuple[int, bytes]:
    """Return a position in the order of positions: shorter ones first, and then byte by byte."""
    raw = bytes.fromhex(digits)
    return len(raw), raw
