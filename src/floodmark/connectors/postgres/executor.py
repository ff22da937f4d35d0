"""Creates what executors read PostgreSQL with; kept light, since every worker imports this module."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.executor_side import ChunkReader, LocalRowReader, LogDecoder
from floodmark.connectors.postgres.decode.decoder import PostgresDecoder
from floodmark.connectors.postgres.options import PostgresOptions


def row_schema(options: PostgresOptions) -> pa.Schema:
    """Return the columns of ``format=rows``, read from the source."""
    from floodmark.connectors.postgres.typed_schema import row_schema

    return row_schema(options)


def make_decoder(options: PostgresOptions, make_version: VersionMaker) -> LogDecoder:
    """Return a decoder of log segments."""
    return PostgresDecoder(options, make_version)


def make_chunk_reader(options: PostgresOptions, make_version: VersionMaker) -> ChunkReader:
    """Return a reader of chunks of tables."""
    from floodmark.connectors.postgres.snapshot.chunks import PostgresChunkReader

    return PostgresChunkReader(options, make_version)


def make_local_row_reader(options: PostgresOptions, make_version: VersionMaker) -> LocalRowReader:
    """Return a reader of windows' rows."""
    from floodmark.connectors.postgres.snapshot.window_reader import PostgresWindowReader

    return PostgresWindowReader(options, make_version)
