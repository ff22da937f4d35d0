"""What executors need of MySQL and MariaDB; kept light, since every worker imports it."""

from __future__ import annotations

import pyarrow as pa

from floodmark.config.mysql import BinlogOptions
from floodmark.connectors.base import ChunkReader, LogDecoder, WindowReader
from floodmark.connectors.mysql.log.decode import BinlogDecoder
from floodmark.rows.table_version import VersionMaker


def row_schema(options: BinlogOptions) -> pa.Schema:
    """Return the columns of ``format=rows``; the source is asked."""
    from floodmark.connectors.mysql.rows.table_rows import row_schema

    return row_schema(options)


def make_decoder(options: BinlogOptions, make_version: VersionMaker) -> LogDecoder:
    """Return what decodes log segments."""
    return BinlogDecoder(options, make_version)


def make_chunk_reader(options: BinlogOptions, make_version: VersionMaker) -> ChunkReader:
    """Return nothing: views of the tables belong to connections, so that the planner's process reads the rows."""
    raise NotImplementedError("Tasks don't read tables of MySQL.")


def make_window_reader(options: BinlogOptions, make_version: VersionMaker) -> WindowReader:
    """Return what reads the rows of windows."""
    from floodmark.connectors.mysql.snapshot.reader import BinlogWindowReader

    return BinlogWindowReader(options, make_version)
