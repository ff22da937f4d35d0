"""The columns of Iceberg tables: which a target can have, and which types change into which.

Format: the Iceberg table specification, sections "Schemas and Data Types", "Schema Evolution" and "Reserved Field IDs".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from floodmark.changes.schema_changes import holds
from floodmark.errors import TargetUnfitError
from floodmark.sinks.iceberg.layout import name_of, stored
from floodmark.sinks.soft_deletes import DELETED

_RESERVED = frozenset(
    {
        "_change_ordinal",
        "_change_type",
        "_commit_snapshot_id",
        "_deleted",
        "_file",
        "_last_updated_sequence_number",
        "_partition",
        "_pos",
        "_row_id",
        "_spec_id",
    }
)
"""Names of columns that readers find in every table."""
RENAMED = {DELETED: "_is_deleted"}
"""Columns of the mirror's own that Iceberg tables have under other names."""


def renamed_columns(soft: bool) -> dict[str, str]:
    """Return those of ``RENAMED`` that a mirror's tables have.

    Args:
        soft: whether deleted rows are only marked.
    """
    return RENAMED if soft else {}


def prove_names(columns: pa.Schema, table: str, renamed: Mapping[str, str]) -> None:
    """Check that an Iceberg table can have columns with their names.

    Args:
        table: the table's name, for errors.
        renamed: columns of the mirror's own, and their names in the table.

    Raises:
        TargetUnfitError: it can't.
    """
    own = {name.casefold() for name in renamed.values()}
    for name in columns.names:
        if name not in renamed and name.casefold() in _RESERVED | own:
            raise TargetUnfitError(
                f"The column '{name}' of the table '{table}' can't be in an Iceberg table, where every table, or the "
                "mirror itself, has a column of that name.",
                "Leave it out with column.exclude.list, or rename it.",
            )


def as_staged(columns: pa.Schema, renamed: Mapping[str, str]) -> pa.Schema:
    """Return a table's columns with the names that staged ones have.

    Args:
        renamed: columns of the mirror's own, and their names in the table.
    """
    staged = {name: own for own, name in renamed.items()}
    return pa.schema([one.with_name(staged.get(one.name, one.name)) for one in columns])


def fitted(known: pa.Schema, rows: pa.Schema, table: str) -> tuple[pa.Schema, dict[str, pa.DataType]]:
    """Return the types in which the source's columns are written, and those of the table's that must be widened.

    Args:
        known: the table's columns.
        rows: the source's columns.
        table: the table's name, for errors.

    Raises:
        TargetUnfitError: Iceberg can't change the one type into the other.
    """
    kinds, wider = [], {}
    for field in rows:
        found = known.field(field.name) if field.name in known.names else field
        if name_of(field.type) == name_of(found.type):
            kinds.append(field)
        elif _widens(stored(field.type), found.type):
            wider[field.name] = stored(field.type)
            kinds.append(field)
        elif not pa.types.is_string(found.type) and holds(found.type, field.type):
            kinds.append(field.with_type(found.type))
        else:
            raise TargetUnfitError(
                f"The column '{field.name}' of the Iceberg table '{table}' is {name_of(found.type)}, but the source's "
                f"is {name_of(field.type)}, which Iceberg doesn't change it into.",
                "Drop the table, and start the query with the mirror's option missing.tables=read.",
            )
    return pa.schema(kinds), wider


def _widens(wide: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether Iceberg changes a type into another one without writing files again."""
    if pa.types.is_decimal(wide) and pa.types.is_decimal(kind):
        return bool(wide.scale == kind.scale and wide.precision > kind.precision)
    return (kind, wide) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def new_columns(known: pa.Schema, rows: pa.Schema, table: str) -> pa.Schema:
    """Return the source's columns that a table lacks.

    Columns that only the table has stay; new rows are null there.

    Args:
        known: the table's columns.
        rows: the source's columns.
        table: the table's name, for errors.

    Raises:
        TargetUnfitError: a column that the source lacks can't be null, or differs from another in case only.
    """
    given = set(rows.names)
    for field in known:
        if field.name not in given and not field.nullable:
            raise TargetUnfitError(
                f"The column '{field.name}' of the Iceberg table '{table}' can't be null, and the source has no such "
                "column.",
                f"Alter the table: ALTER COLUMN {field.name} DROP NOT NULL.",
            )
    others: Mapping[str, str] = {name.casefold(): name for name in known.names}
    added = [field for field in rows if field.name not in known.names]
    for field in added:
        other = others.get(field.name.casefold())
        if other is not None:
            raise TargetUnfitError(
                f"The column '{field.name}' can't be added to the Iceberg table '{table}', which has '{other}': names "
                "that differ only in case are the same for Spark.",
                "Drop the table, and start the query with the mirror's option missing.tables=read.",
            )
    return pa.schema(added)
