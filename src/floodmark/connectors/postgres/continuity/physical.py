"""Reads the log's own bytes, to verify that they have not changed.

Source: PostgreSQL documentation, "Streaming Replication Protocol" (START_REPLICATION PHYSICAL, XLogData), and the
server's ``access/xlogrecord.h`` (a record's header), ``access/xact.h`` (``xl_xact_commit`` begins with the commit's
time) and ``access/xlog_internal.h`` (page headers).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn
from floodmark.connectors.postgres.server.connection import connect, run
from floodmark.connectors.postgres.wire.channel import CopyChannel, messages, open_channel
from floodmark.connectors.postgres.wire.frames import COPY_DATA
from floodmark.connectors.postgres.wire.messages import FRAME_KIND, PAYLOAD, PG_EPOCH_US, WAL_DATA
from floodmark.errors import ConnectError

PAGE = 8192
PAGE_HEADER = 24
LONG_PAGE_HEADER = 40
COMMIT_BYTES = 24 + 3 + 5 + 5 + 8
"""A commit record up to its time: header, origin, top-level transaction, length of the data, time."""
READ_TIMEOUT_S = 5.0
LEAST_FULL = 15 * PAGE
"""A message holds up to 16 pages, and ends with a page; one that is shorter ends where the log ends."""


def commit_is_at(options: PostgresOptions, timeline: int, lsn: int, commit_us: int) -> bool:
    """Return whether the log has a commit of a given time at an LSN.

    Args:
        options: the source's options.
        timeline: the timeline of the LSN.
        lsn: where the commit record begins.
        commit_us: microseconds since the Unix epoch.

    Raises:
        SourceStateError: the server doesn't hold that part of the log any more, or doesn't let the role read it.
        ConnectError: the server went away.
    """
    conn = connect(options, replication=True)
    data = _read(conn, timeline, lsn, COMMIT_BYTES + LONG_PAGE_HEADER)
    data = _without_page_header(data, lsn)[:COMMIT_BYTES]
    # The record has the byte order of the server.
    return any(struct.pack(order, commit_us - PG_EPOCH_US) in data for order in ("<q", ">q"))


def commits_before(options: PostgresOptions, timeline: int, lsn: int, size: int, commit_us: int) -> bool:
    """Return whether the log before an LSN holds a given time, as a commit record that ends there does.

    Args:
        options: the source's options.
        timeline: the timeline of that log.
        lsn: where the commit record ends.
        size: how many bytes of log are searched, at least.
        commit_us: microseconds since the Unix epoch.

    Raises:
        SourceStateError: the server doesn't hold that part of the log any more, or doesn't let the role read it.
        ConnectError: the server went away.
    """
    begin = max(lsn - size, 0) // PAGE * PAGE
    data = _read(connect(options, replication=True), timeline, begin, lsn - begin)
    text = b"".join(_without_header(data[at : at + PAGE]) for at in range(0, len(data), PAGE))
    return any(struct.pack(order, commit_us - PG_EPOCH_US) in text for order in ("<q", ">q"))


def bytes_before(options: PostgresOptions, timeline: int, lsn: int) -> tuple[int, int]:
    """Return how many bytes of the log before an LSN were read, and their checksum.

    The bytes are of the LSN's segment, since the one before may be gone: a page, which holds at least one record's
    header, whose checksum covers the transaction's number and the position of the record before. At the beginning of a
    segment, the one before is read after all, from its beginning up to the zeros that fill it when the server changes
    to the next one early.

    Args:
        options: the source's options.
        timeline: the timeline of the bytes.
        lsn: where the bytes end.

    Raises:
        SourceStateError: the server doesn't hold that part of the log any more, or doesn't let the role read it.
        ConnectError: the server went away.
    """
    conn = connect(options, replication=True)
    try:
        segment = int(run(conn, "SELECT setting FROM pg_settings WHERE name = 'wal_segment_size'", "a setting")[0][0])
    except BaseException:
        conn.close()
        raise
    size = min(PAGE, lsn % segment) or segment
    data = _read(conn, timeline, lsn - size, size).rstrip(b"\0")
    return len(data), zlib.crc32(data)


def read_page(options: PostgresOptions, timeline: int, lsn: int) -> None:
    """Read the page of the log that holds an LSN.

    Raises:
        LogGoneError: the server doesn't have it any more.
        SourceStateError: the server doesn't let the role read it.
        ConnectError: the server went away.
    """
    _read(connect(options, replication=True), timeline, lsn - lsn % PAGE, 1)


def _without_page_header(data: bytes, lsn: int) -> bytes:
    left = PAGE - lsn % PAGE
    if left >= len(data):
        return data
    return data[:left] + _without_header(data[left:])


def _without_header(page: bytes) -> bytes:
    # The page's flags say whether its header is the long one, of a segment's first page (XLP_LONG_HEADER).
    flags = int.from_bytes(page[2:4], "little") | int.from_bytes(page[2:4], "big")
    return page[LONG_PAGE_HEADER if flags & 2 else PAGE_HEADER :]


def _read(conn: psycopg.Connection[TupleRow], timeline: int, lsn: int, size: int) -> bytes:
    """Return the log from an LSN on, up to ``size`` bytes, its end or an empty page, and close the connection."""
    channel = open_channel(conn)
    try:
        channel.start(f"START_REPLICATION PHYSICAL {format_lsn(lsn)} TIMELINE {timeline}")
        data = bytearray()
        for piece in _pieces(channel):
            data += piece
            if len(data) >= size or len(piece) < LEAST_FULL or not any(data[-PAGE:]):
                break
        return bytes(data[:size])
    finally:
        channel.close()


def _pieces(channel: CopyChannel) -> Iterator[bytes]:
    """Yield the log of each XLogData message."""
    for message in messages(channel, READ_TIMEOUT_S):
        if message[0] == COPY_DATA and message[FRAME_KIND] == WAL_DATA:
            yield message[PAYLOAD:]
    raise ConnectError("PostgreSQL did not send the log that was asked for.")
