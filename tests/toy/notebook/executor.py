"""The executors' side of the notebook connector."""

from __future__ import annotations

import pyarrow as pa

from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.executor_side import LocalRowReader, LogDecoder
from tests.toy.notebook.decode.decoder import NotebookDecoder
from tests.toy.notebook.options import NotebookOptions


def row_schema(options: NotebookOptions) -> pa.Schema:
    """Return the columns of ``format=rows`` or ``tables``."""
    from tests.toy.notebook.typed_schema import row_schema

    return row_schema(options)


def make_decoder(options: NotebookOptions, make_version: VersionMaker) -> LogDecoder:
    """Return the decoder of log segments."""
    return NotebookDecoder(options, make_version)


def make_local_row_reader(options: NotebookOptions, make_version: VersionMaker) -> LocalRowReader:
    """Return the reader of rows that the planner's process has read."""
    from tests.toy.notebook.snapshot.rows import NotebookRowReader

    return NotebookRowReader(options, make_version)
