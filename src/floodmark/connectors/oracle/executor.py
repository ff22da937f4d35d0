"""The executors' side of the Oracle connector; cheap to import, since every worker does."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.executor_side import ChunkReader, LocalRowReader, LogDecoder
from floodmark.connectors.oracle.decode.segment_decoder import OracleDecoder
from floodmark.connectors.oracle.options import OracleOptions


def row_schema(options: OracleOptions) -> pa.Schema:
    """Return the columns of ``format=rows``, which are read from the source."""
    from floodmark.connectors.oracle.typed_schema import row_schema

    return row_schema(options)


def make_decoder(options: OracleOptions, make_version: VersionMaker) -> LogDecoder:
    """Return the decoder of log segments."""
    return OracleDecoder(options, make_version)


def make_chunk_reader(options: OracleOptions, make_version: VersionMaker) -> ChunkReader:
    """Return a reader of chunks of tables."""
    from floodmark.connectors.oracle.snapshot.reader import OracleChunkReader

    return OracleChunkReader(options, make_version)


def make_local_row_reader(options: OracleOptions, make_version: VersionMaker) -> LocalRowReader:
    """Return a reader of windows' rows."""
    from floodmark.connectors.oracle.snapshot.window_reader import OracleWindowReader

    return OracleWindowReader(options, make_version)
