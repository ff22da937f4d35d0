"""Rows that ``COPY … TO STDOUT (FORMAT csv)`` returns, as Arrow columns.

Format: PostgreSQL's manual, "COPY", section "CSV Format". What is null is empty there, an empty text is in quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.csv

from floodmark.sinks.relational.texts import unhexlified

_BLOCK_BYTES = 1 << 22
_NO_DAY, _NO_TIME = (1 << 31) - 1, (1 << 63) - 1
"""What stands for dates and times without an end, which the source's columns have as null."""


def selected(column: str, kind: pa.DataType) -> str:
    """Return what is selected of a column.

    Args:
        column: its name, quoted.
        kind: the type of the values that ``rows_of`` makes of it.
    """
    if pa.types.is_binary(kind):
        return f"encode({column}, 'hex')"
    if pa.types.is_date(kind):
        return f"CASE WHEN NOT isfinite({column}) THEN {_NO_DAY} ELSE {column} - date '1970-01-01' END"
    if pa.types.is_timestamp(kind):
        # Before version 14 it is a floating point number, exact to the microsecond up to the year 2255.
        micros = f"(extract(epoch FROM {column}) * 1000000)::bigint"
        return f"CASE WHEN NOT isfinite({column}) THEN {_NO_TIME} ELSE {micros} END"
    return column


def rows_of(data: Iterable[bytes | memoryview | bytearray], columns: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows.

    Args:
        data: of ``COPY``, each with whole rows.
        columns: names and types of the columns, of which ``selected`` was selected.

    Raises:
        pyarrow.ArrowInvalid: a value isn't one of the type.
    """
    held: list[bytes | memoryview | bytearray] = []
    size = 0
    for piece in data:
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK_BYTES:
            yield _parsed(b"".join(held), columns)
            held, size = [], 0
    if held:
        yield _parsed(b"".join(held), columns)


def _parsed(text: bytes, columns: pa.Schema) -> pa.Table:
    names = [f"c{number}" for number in range(len(columns))]
    raw = pyarrow.csv.read_csv(
        pa.BufferReader(text),
        # One block, since a row may be longer than any block.
        pyarrow.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types={name: _stored(kind) for name, kind in zip(names, columns.types, strict=True)},
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    made = [_typed(column.combine_chunks(), kind) for column, kind in zip(raw.columns, columns.types, strict=True)]
    return pa.table(made, schema=columns)


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.string() if pa.types.is_binary(kind) else kind


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return unhexlified(column)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
    return column.cast(kind)
