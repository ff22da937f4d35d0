"""What executors need of MySQL and MariaDB; kept light, since every worker imports it."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.contract.base import ChunkReader, LogDecoder, WindowReader
from floodmark.connectors.mysql.decode.decoder import BinlogDecoder
from floodmark.connectors.mysql.options import BinlogOptions


def row_schema(options: BinlogOptions) -> pa.Schema:
    """Return the columns of ``format=rows``; the source is asked."""
    from floodmark.connectors.mysql.typed_schema import row_schema

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
