"""Finds and handles changes of tables while a query delivers their typed rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.errors import SchemaChangeError
from floodmark.logger import get_logger

log = get_logger(__name__)

_DIGITS = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int16(): (pa.int32(), pa.int64(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


def differences(columns: Mapping[str, pa.DataType], row: pa.StructType) -> tuple[str, ...]:
    """Describe how a version of a table differs from the query's rows.

    Args:
        columns: types of the version's columns by name.
        row: the type of the query's rows.
    """
    held = {field.name: field.type for field in row}
    return (
        *(f"it has the new column '{name}' ({kind})" for name, kind in columns.items() if name not in held),
        *(f"its column '{name}' ({kind}) is gone" for name, kind in held.items() if name not in columns),
        *(
            f"its column '{name}' was {held[name]} and is {kind}"
            for name, kind in columns.items()
            if name in held and held[name] != kind
        ),
    )


def holds(wanted: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a type holds all values of another one without loss."""
    if wanted == kind or wanted in _WIDER.get(kind, ()):
        return True
    if pa.types.is_string(wanted):
        return kind in _DIGITS or pa.types.is_decimal(kind)
    if not pa.types.is_decimal(wanted):
        return False
    if pa.types.is_decimal(kind):
        return bool(wanted.scale >= kind.scale and wanted.precision - wanted.scale >= kind.precision - kind.scale)
    return kind in _DIGITS and bool(wanted.precision - wanted.scale >= _DIGITS[kind])


def heed(options: CommonOptions, table: str, changes: tuple[str, ...], when: str) -> None:
    """Raise or warn (once per process), as ``schema.changes`` requires.

    Args:
        options: the source's options.
        table: ``schema.table``.
        changes: what ``differences`` found.
        when: when the difference was found, in words.

    Raises:
        SchemaChangeError: the option is ``fail``.
    """
    if options.schema_changes == "fail":
        raise SchemaChangeError(
            f"The table {table} is no longer what the query's rows were made for ({when}): {', '.join(changes)}.",
            "Load the DataFrame again and start the query with the same checkpoint: it goes on where it was, with the "
            "columns that the table has now. Or set schema.changes=ignore_with_warning: new columns are left out, and "
            "the others are named in 'unavailable' where they have no value.",
        )
    _warn(table, changes, when)


@lru_cache(maxsize=256)
def leave_out(table: str) -> None:
    """Warn, once per process, that a table's changes are left out, as it was gone when the query was made.

    Args:
        table: ``schema.table``.
    """
    log.warning(
        "a_table_is_left_out",
        table=table,
        reason="it was dropped or renamed before the DataFrame was loaded, and the log still has changes of it",
    )


@lru_cache(maxsize=256)
def _warn(table: str, changes: tuple[str, ...], when: str) -> None:
    log.warning("schema_change_is_ignored", table=table, changes=list(changes), when=when)
