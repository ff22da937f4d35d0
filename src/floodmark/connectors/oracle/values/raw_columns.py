"""Columns of rows, from the values of statements of SQL_REDO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, mapped
from floodmark.codecs.binary import decode_hex
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.oracle.redo.calls import Contents, contents
from floodmark.connectors.oracle.redo.kinds import Kind
from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.values import Statements
from floodmark.connectors.oracle.structures.table import CHARACTERS, Column
from floodmark.connectors.oracle.values import stored_forms, texts
from floodmark.errors import DecodeError

_FLOATS = {"BINARY_FLOAT": pa.float32(), "BINARY_DOUBLE": pa.float64()}
_BINARY = {"RAW", "BLOB"}
_EMPTY_STRING = "LM_EMPTY_STRING"
"""What LogMiner shows of a text that it shows apart from the row."""


def raw_columns(
    statements: Statements, side: Side, columns: Sequence[Column], inserted: NDArray[np.bool_] | None = None
) -> list[RawColumn]:
    """Return the rows before or after the changes.

    A new row has the old one's value of a column that its statement doesn't set. Of columns whose values come apart,
    only those values are known that a statement has; where it has NULL for the row before, LogMiner may not know it.

    Args:
        statements: of one table.
        side: which rows.
        columns: the table's.
        inserted: shape (statements,): which of the rows are new, so that NULL is what a statement lacks; None: none.

    Raises:
        DecodeError: a value isn't what the column's type has.
    """
    return [_raw_column(statements, side, number, column, inserted) for number, column in enumerate(columns)]


def _raw_column(
    statements: Statements, side: Side, number: int, column: Column, inserted: NDArray[np.bool_] | None
) -> RawColumn:
    forms = statements.forms[side, number]
    values = _values(contents(statements, side, number), column)
    absent = (forms == Form.ABSENT) | (forms == Form.UNSUPPORTED)
    if side is Side.OLD:
        return RawColumn(values, _unknown(forms)) if column.comes_apart else RawColumn(values)
    if inserted is not None:
        absent &= ~inserted
    if not absent.any():
        return RawColumn(values)
    if column.is_large:
        return RawColumn(values, absent)
    old = _values(contents(statements, Side.OLD, number), column)
    filled = pc.if_else(pa.array(absent), old, values)
    if not column.is_long_text:
        return RawColumn(filled)
    unknown = _unknown(statements.forms[Side.OLD, number])
    return RawColumn(filled, None if unknown is None else absent & unknown)


def _unknown(forms: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """Return which values of rows before isn't known; None: they all are."""
    unknown = forms < Form.LITERAL
    return unknown if unknown.any() else None


def _values(found: Contents, column: Column) -> pa.Array:
    """Return a column's values in the form that its codec takes."""
    kind, text = column.type, found.texts
    stored = found.kinds == Kind.HEX
    if stored.any() and not (kind in _BINARY or kind in CHARACTERS):
        # LogMiner has written it without knowing the column.
        text = mapped(text, text, stored, stored_forms.decoder_of(kind))
    if kind in ("NUMBER", "FLOAT"):
        return texts.numbers(text, column.scale if kind == "NUMBER" else None)
    if kind in _FLOATS:
        return texts.floats(text, _FLOATS[kind])
    if kind in _BINARY:
        return _bytes(found, column)
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return texts.moments(text)
    if kind == "INTERVAL YEAR TO MONTH":
        return texts.month_intervals(text)
    if kind == "INTERVAL DAY TO SECOND":
        return texts.day_intervals(text)
    return _characters(found, column)


def _bytes(found: Contents, column: Column) -> pa.BinaryArray:
    known = _one_of(found.kinds, Kind.NONE, Kind.HEX, Kind.EMPTY_BLOB)
    if not known.all():
        raise DecodeError("A value of bytes in SQL_REDO isn't hexadecimal.")
    digits = _emptied(found.texts, found.kinds == Kind.EMPTY_BLOB, column)
    try:
        return decode_hex(digits)
    except ValueError as exc:
        raise DecodeError(f"A value of bytes in SQL_REDO isn't hexadecimal: {exc}") from None


def _characters(found: Contents, column: Column) -> pa.StringArray:
    empty = found.kinds == Kind.EMPTY_CLOB
    if column.is_long_text:
        empty |= as_mask(pc.equal(found.texts, _EMPTY_STRING))
    text = _emptied(found.texts, empty, column)
    # LogMiner writes texts that it can't represent as their bytes.
    encoding = "utf-16-be" if column.is_national else "utf-8"

    def decoded(digits: str) -> str:
        try:
            return bytes.fromhex(digits).decode(encoding)
        except ValueError:
            raise DecodeError("A text in SQL_REDO has bytes that aren't of its character set.") from None

    return mapped(text, text, found.kinds == Kind.HEX, decoded)


def _emptied(texts: pa.StringArray, empty: NDArray[np.bool_], column: Column) -> pa.StringArray:
    """Return texts of which some are empty, which is NULL where the column may be, as in Debezium."""
    if not empty.any():
        return texts
    return pc.if_else(pa.array(empty), pa.scalar(None if column.optional else "", pa.string()), texts)


def _one_of(kinds: NDArray[np.uint8], *wanted: Kind) -> NDArray[np.bool_]:
    return np.isin(kinds, np.array(wanted, np.uint8))
