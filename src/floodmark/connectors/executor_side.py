"""The executors' side of a connector: the protocols of what tasks read with, made from the options alone."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.table_version import VersionMaker
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.chunk import Chunk
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.contract.read_points import ChunkOutcome


class LogDecoder(Protocol):
    """Turns segments into events, in an executor."""

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Return the events of the records, in the log's order.

        Args:
            request: the records.
            problems: receives what can't be decoded.
        """


class ChunkReader(Protocol):
    """Reads chunks of tables one after the other, in an executor."""

    def read(self, chunk: Chunk) -> Generator[pa.RecordBatch, None, ChunkOutcome]:
        """Yield a chunk's rows as read events, and return its outcome."""

    def close(self) -> None:
        """Close the connection that the last chunk left, if any."""


class LocalRowReader(Protocol):
    """Turns rows that the planner's process has read into events, in an executor."""

    def read(
        self, chunk: Chunk, rows: Iterable[SegmentData], log: Iterable[tuple[SegmentData, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows that have not changed up to the end of their window, as read events.

        Args:
            chunk: its ``low`` and ``position`` are the window's.
            rows: what ``LocalRows.rows`` or ``Window.rows`` returned for it.
            log: segments that hold the log in the window; of each, what lies in ``(after, upto]``.
        """


class ExecutorSide(Protocol):
    """Makes the readers of tasks; importing its module must be cheap. Each function gets the source's options."""

    def row_schema(self, options: CommonOptions) -> pa.Schema:
        """Return the columns of ``format=rows``, which are read from the source."""

    def make_decoder(self, options: CommonOptions, make_version: VersionMaker) -> LogDecoder:
        """Return a decoder of log segments.

        Args:
            options: the source's options.
            make_version: makes the table versions of the output.
        """

    def make_local_row_reader(self, options: CommonOptions, make_version: VersionMaker) -> LocalRowReader:
        """Return a reader of rows that the planner's process has read."""


class ReadingSide(ExecutorSide, Protocol):
    """The executors' side of a connector whose tasks read at read points (``SnapshotSource.local`` is false)."""

    def make_chunk_reader(self, options: CommonOptions, make_version: VersionMaker) -> ChunkReader:
        """Return a reader of chunks of tables."""
