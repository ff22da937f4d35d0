"""Rows as the text that ``COPY … FROM STDIN`` reads.

Format: PostgreSQL's manual, "COPY", section "Text Format".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.relational.texts import (
    blocks,
    content,
    escaped,
    hexadecimal,
    holds_any,
    joined_lists,
    plain,
    wrapped,
)

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_IN_ARRAYS = {"\\": "\\\\", '"': '\\"'}
_FIRST_DAY = -719162
"""0001-01-01 in days since 1970; what is earlier has no year that PostgreSQL reads without an era."""
_JULIAN = 2440588
"""1970-01-01 as the number of a Julian day, which PostgreSQL reads as a date after the letter J."""
_DAY_US = 86_400_000_000


def copy_blocks(rows: pa.Table, lost: set[str]) -> Iterator[memoryview]:
    """Yield the text of rows, in pieces of several megabytes.

    Args:
        rows: in the order of the COPY's columns.
        lost: gets the names of columns with values that PostgreSQL can't hold; they are null in the text.
    """
    for columns in blocks(rows):
        texts = [_column(column, name, lost) for column, name in zip(columns, rows.column_names, strict=True)]
        lines = pc.binary_join_element_wise(*texts, "\t", null_handling="replace", null_replacement="\\N")
        yield content(pc.binary_join_element_wise(lines, "", "\n"))


def representable(column: pa.Array) -> pa.Array:
    """Return values as PostgreSQL holds them: null for those that it can't hold."""
    return _without_zeros(column, "", set()) if pa.types.is_string(column.type) else column


def _column(column: pa.Array, name: str, lost: set[str]) -> pa.StringArray:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return wrapped("\\\\x", hexadecimal(column), "")
    text = _text(column, name, lost)
    return escaped(text, _ESCAPES) if pa.types.is_string(kind) or pa.types.is_list(kind) else text


def _text(column: pa.Array, name: str, lost: set[str]) -> pa.StringArray:
    kind = column.type
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "t", "f")
    if pa.types.is_list(kind):
        return wrapped("{", joined_lists(column, _elements(column, name, lost), "NULL"), "}")
    if pa.types.is_string(kind):
        return _without_zeros(column, name, lost)
    if pa.types.is_date32(kind):
        return _dates(column)
    if pa.types.is_timestamp(kind):
        return _timestamps(column)
    return plain(column)


def _elements(column: pa.ListArray, name: str, lost: set[str]) -> pa.StringArray:
    values = column.flatten()
    if pa.types.is_binary(values.type):
        return wrapped('"\\\\x', hexadecimal(values), '"')
    text = _text(values, name, lost)
    if pa.types.is_list(values.type):
        return text
    # In quotes whatever they are, so that no text is taken for NULL or for an array.
    return wrapped('"', escaped(text, _IN_ARRAYS), '"')


def _without_zeros(column: pa.StringArray, name: str, lost: set[str]) -> pa.StringArray:
    """Return texts without those that have the character NUL, which no text of PostgreSQL has."""
    if not holds_any(column, "\0"):
        return column
    has = pc.match_substring(column, "\0")
    if pc.any(has).as_py():
        lost.add(name)
    return pc.if_else(has, pa.scalar(None, pa.string()), column)


def _dates(column: pa.Array) -> pa.StringArray:
    days = column.cast(pa.int32())
    early = pc.fill_null(pc.less(days, _FIRST_DAY), False)
    if not pc.any(early).as_py():
        return plain(column)
    return pc.if_else(early, wrapped("J", plain(pc.add(days, _JULIAN)), ""), plain(column))


def _timestamps(column: pa.Array) -> pa.StringArray:
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    early = pc.fill_null(pc.less(micros, _FIRST_DAY * _DAY_US), False)
    if not pc.any(early).as_py():
        return plain(column)
    numbers = np.asarray(pc.fill_null(micros, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    days = wrapped("J", plain(pa.array(np.floor_divide(numbers, _DAY_US) + _JULIAN)), "")
    times = plain(pa.array(np.mod(numbers, _DAY_US)).cast(pa.time64("us")))
    zone = "Z" if column.type.tz else ""
    return pc.if_else(early, wrapped("", pc.binary_join_element_wise(days, times, " "), zone), plain(column))


def column_list(names: Sequence[str]) -> str:
    """Return the columns of a staging table, whose names need no quotes."""
    return ", ".join(names)
