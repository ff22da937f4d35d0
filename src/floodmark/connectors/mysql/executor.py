"""The executors' side of the MySQL and MariaDB connectors; cheap to import, since every worker does."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.executor_side import LocalRowReader, LogDecoder
from floodmark.connectors.mysql.decode.decoder import BinlogDecoder
from floodmark.connectors.mysql.options import BinlogOptions


def row_schema(options: BinlogOptions) -> pa.Schema:
    """Return the columns of ``format=rows``, which are read from the source."""
    from floodmark.connectors.mysql.typed_schema import row_schema

    return row_schema(options)


def make_decoder(options: BinlogOptions, make_version: VersionMaker) -> LogDecoder:
    """Return the decoder of log segments."""
    return BinlogDecoder(options, make_version)


def make_local_row_reader(options: BinlogOptions, make_version: VersionMaker) -> LocalRowReader:
    """Return the reader of windows' rows."""
    from floodmark.connectors.mysql.snapshot.reader import BinlogRowReader

    return BinlogRowReader(options, make_version)
