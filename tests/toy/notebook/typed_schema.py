"""The columns of typed rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from floodmark.changes.column_plan import shown_codec
from floodmark.changes.typed_rows import prove_shown
from floodmark.changes.typed_tables import typed_schema
from tests.toy.notebook.database.notebook import SCHEMA, Notebook
from tests.toy.notebook.decode.structure import TableStructure
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.source.read_points import NotebookView


def row_schema(options: NotebookOptions) -> pa.Schema:
    """Return the columns of ``format=rows`` or ``tables``, from the captured tables as they are now.

    Raises:
        ConfigError: the filters match no table, or more than one where one is wanted.
    """
    with NotebookView(Notebook(Path(options.path)), options.snapshot_chunk_bytes) as view:
        structures = {
            f"{SCHEMA}.{table.name}": TableStructure(table)
            for table in view.tables.values()
            if options.captures(SCHEMA, table.name)
        }
    prove_shown(options, list(structures))
    return typed_schema(options, {name: _row(name, structure, options) for name, structure in structures.items()})


def _row(name: str, structure: TableStructure, options: NotebookOptions) -> pa.StructType:
    return pa.struct(
        [
            (column.name, shown_codec(structure, index, options).arrow_type)
            for index, column in enumerate(structure.columns)
            if options.has_column(f"{name}.{column.name}")
        ]
    )
