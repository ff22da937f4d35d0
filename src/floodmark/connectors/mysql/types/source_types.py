"""A column's declared type as Debezium reports it: its name, length and scale.

Debezium writes them into schemas (``column.propagate.source.type``), and cuts hashes to the length.
"""

from __future__ import annotations

from floodmark.changes.structure import SourceType
from floodmark.connectors.mysql.structures.described import declared_length, declared_scale, type_name
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import CHARACTERS

NONE = -1
"""A length or scale that was not declared."""


def source_type(column: Column) -> SourceType:
    """Return a column's declared type as Debezium reports it."""
    length, scale = declared_length(column), declared_scale(column)
    return SourceType(
        type_name(column),
        NONE if length is None else length,
        NONE if scale is None else scale,
        column.type in CHARACTERS,
    )
