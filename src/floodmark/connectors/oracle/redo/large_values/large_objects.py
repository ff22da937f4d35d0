"""Statements of SQL_REDO about large objects, which LogMiner shows apart from their rows.

Oracle's documentation of LogMiner doesn't describe them; these are the forms that Debezium's parsers accept
(``LobWriteParser``, ``SelectLobParser``). It reads no LOB_TRIM and no LOB_ERASE; for these, the forms are those that
other programs expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, int64_values
from floodmark.errors import DecodeError

_WRITE = (
    r"(?s)^.* := (?P<hex>HEXTORAW\()?'(?P<data>.*)'\)?;\s*"
    r"dbms_lob\.write\([^,]+,\s*(?P<length>\d+)\s*,\s*(?P<offset>\d+)\s*,[^,]+\);"
)
_SELECT = (
    r'(?s)^DECLARE.*?BEGIN\s+select "(?P<column>[^"]+)" into (?P<target>\w+) from (?P<table>"[^"]+"\."[^"]+")\s+'
    r"where (?P<where>.*) for update;?\s*(?:END;)?\s*$"
)
_BINARY = r"^(?:loc|buf)_b$"
FIRST = 1
"""The number of the first character or byte in these statements."""
_TRIM = r"(?is)dbms_lob\.trim\([^,]+,\s*(?P<length>\d+)\s*\);"
_ERASE = r"(?is)^\s*\w+ :=\s*(?P<length>\d+)\s*;\s*dbms_lob\.erase\([^,]+,[^,]+,\s*(?P<offset>\d+)\s*\);"


@dataclass(frozen=True)
class Writes:
    """Pieces of large objects.

    Attributes:
        offsets: shape (pieces,): where each begins in its object, in characters or bytes.
        lengths: shape (pieces,): of each.
        data: their content; of binary ones in hexadecimal.
        binary: shape (pieces,): which are binary.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    data: pa.StringArray
    binary: NDArray[np.bool_]


@dataclass(frozen=True)
class Selections:
    """Which values are written next.

    Attributes:
        columns: the columns' names.
        binary: shape (statements,): whether they are binary.
        rows: statements that delete the rows that the values belong to, so that they name these.
    """

    columns: pa.StringArray
    binary: NDArray[np.bool_]
    rows: pa.StringArray


@dataclass(frozen=True)
class Erasures:
    """Parts of large objects that are erased.

    Attributes:
        offsets: shape (parts,): where each begins, in characters or bytes.
        lengths: shape (parts,): of each.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


def writes(statements: pa.StringArray) -> Writes:
    """Return what LOB_WRITE writes.

    Raises:
        DecodeError: a statement has another form.
    """
    parts = _parts(statements, _WRITE, "LOB_WRITE")
    binary = as_mask(pc.not_equal(pc.struct_field(parts, "hex"), ""))
    data = pc.struct_field(parts, "data")
    if not binary.all():
        data = pc.if_else(pa.array(binary), data, pc.replace_substring(data, "''", "'"))
    return Writes(_numbers(parts, "offset") - FIRST, _numbers(parts, "length"), data, binary)


def trims(statements: pa.StringArray) -> NDArray[np.int64]:
    """Return the lengths that LOB_TRIM leaves, shape (statements,).

    Raises:
        DecodeError: a statement has another form.
    """
    return _numbers(_parts(statements, _TRIM, "LOB_TRIM"), "length")


def erasures(statements: pa.StringArray) -> Erasures:
    """Return what LOB_ERASE erases.

    Raises:
        DecodeError: a statement has another form.
    """
    parts = _parts(statements, _ERASE, "LOB_ERASE")
    return Erasures(_numbers(parts, "offset") - FIRST, _numbers(parts, "length"))


def selections(statements: pa.StringArray) -> Selections:
    """Return what SELECT_LOB_LOCATOR selects.

    Raises:
        DecodeError: a statement has another form.
    """
    parts = _parts(statements, _SELECT, "SELECT_LOB_LOCATOR")
    binary = as_mask(pc.match_substring_regex(pc.struct_field(parts, "target"), _BINARY))
    return selected(parts, binary)


def selected(parts: pa.StructArray, binary: NDArray[np.bool_]) -> Selections:
    """Return which values statements name, by their fields ``column``, ``table`` and ``where``."""
    table, where = pc.struct_field(parts, "table"), pc.struct_field(parts, "where")
    rows = pc.binary_join_element_wise("delete from ", table, " where ", where, ";", "")
    return Selections(pc.struct_field(parts, "column"), binary, rows)


def _numbers(parts: pa.StructArray, field: str) -> NDArray[np.int64]:
    return int64_values(pc.struct_field(parts, field).cast(pa.int64()))


def _parts(statements: pa.StringArray, pattern: str, kind: str) -> pa.StructArray:
    parts = pc.extract_regex(statements, pattern)
    if parts.null_count:
        raise unknown_form(kind)
    return parts


def unknown_form(kind: str) -> DecodeError:
    """Return the error of a statement that can't be read."""
    return DecodeError(f"A statement of {kind} in SQL_REDO has a form that isn't known.")
