"""Rows as the text of ``INSERT`` statements with many rows.

``LOAD DATA LOCAL`` would be faster, but a client that allows it lets the server ask for any of its files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.errors import TargetUnfitError
from floodmark.sinks.relational.texts import blocks, content, escaped, hexadecimal, joined_lists, plain, wrapped

_ESCAPES = {"\\": "\\\\", "'": "\\'"}
_IN_JSON = {"\\": "\\\\", '"': '\\"', **{chr(code): f"\\u{code:04x}" for code in range(32)}}
_FIRST_DAY, _LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31 in days since 1970: what MySQL's dates can be."""
_DAY_US = 86_400_000_000

Mask = npt.NDArray[np.bool_]


def statements(begin: str, rows: pa.Table, most: int, lost: set[str]) -> Iterator[bytes]:
    """Yield statements that insert rows.

    Args:
        begin: the statement up to the word ``VALUES``.
        rows: in the order of the statement's columns.
        most: how many bytes a statement may have.
        lost: gets the names of columns with values that the server can't hold; they are null in the text.

    Raises:
        TargetUnfitError: a row is too large for a statement.
    """
    head = f"{begin} VALUES ".encode()
    for columns in blocks(rows):
        texts = [_literal(column, name, lost) for column, name in zip(columns, rows.column_names, strict=True)]
        joined = pc.binary_join_element_wise(*texts, ",", null_handling="replace", null_replacement="NULL")
        lines = wrapped("(", joined, "),")
        ends = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1].astype(int)
        ends, data = ends - ends[0], content(lines)
        first = 0
        while first < len(lines):
            last = int(np.searchsorted(ends, ends[first] + most - len(head), "right")) - 1
            if last <= first:
                size = int(ends[first + 1] - ends[first])
                raise TargetUnfitError(
                    f"A row takes {size} bytes in a statement, and the target's max_allowed_packet allows {most}.",
                    "Raise max_allowed_packet at the target.",
                )
            # Without the comma after the last row.
            yield head + data[ends[first] : ends[last] - 1]
            first = last


def representable(column: pa.Array) -> pa.Array:
    """Return values as the server holds them: null for those that it can't hold."""
    kind, lost = column.type, set[str]()
    if pa.types.is_floating(kind):
        return _without(column, pc.invert(pc.is_finite(column)), "", lost)
    if pa.types.is_date32(kind):
        return _without(column, _outside(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY), "", lost)
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return _without(column, _outside(micros, _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1), "", lost)
    return column


def _literal(column: pa.Array, name: str, lost: set[str]) -> pa.StringArray:
    kind = column.type
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "1", "0")
    if pa.types.is_integer(kind):
        return plain(column)
    if pa.types.is_floating(kind):
        return plain(_without(column, pc.invert(pc.is_finite(column)), name, lost))
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return wrapped("x'", hexadecimal(column), "'")
    return wrapped("'", escaped(_text(column, name, lost), _ESCAPES), "'")


def _text(column: pa.Array, name: str, lost: set[str]) -> pa.StringArray:
    kind = column.type
    if pa.types.is_list(kind):
        return wrapped("[", joined_lists(column, _elements(column.flatten(), name, lost), "null"), "]")
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32())
        return plain(_without(column, _outside(days, _FIRST_DAY, _LAST_DAY), name, lost))
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        early = _outside(micros, _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1)
        return plain(_without(column, early, name, lost).cast(pa.timestamp("us")))
    return plain(column)


def _outside(values: pa.Array, low: int, high: int) -> pa.BooleanArray:
    return pc.or_(pc.less(values, low), pc.greater(values, high))


def _without(column: pa.Array, bad: pa.BooleanArray, name: str, lost: set[str]) -> pa.Array:
    """Return a column with null for values that the server can't hold."""
    if not pc.any(bad).as_py():
        return column
    lost.add(name)
    return pc.if_else(pc.fill_null(bad, False), pa.scalar(None, column.type), column)


def _elements(values: pa.Array, name: str, lost: set[str]) -> pa.StringArray:
    """Return elements of lists as JSON."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return pc.if_else(values, "true", "false")
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return plain(values)
    if pa.types.is_floating(kind):
        return plain(_without(values, pc.invert(pc.is_finite(values)), name, lost))
    text = hexadecimal(values) if pa.types.is_binary(kind) else _text(values, name, lost)
    return wrapped('"', escaped(text, _IN_JSON), '"')
