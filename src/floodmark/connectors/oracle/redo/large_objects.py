"""Statements of SQL_REDO about large objects, which LogMiner shows apart from their rows.

Oracle's documentation of LogMiner doesn't describe them; these are the forms that Debezium's parsers accept
(``LobWriteParser``, ``SelectLobParser``, ``ExtendedStringParser``).
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
    # Oracle counts from 1.
    offsets = int64_values(pc.struct_field(parts, "offset").cast(pa.int64())) - 1
    return Writes(offsets, int64_values(pc.struct_field(parts, "length").cast(pa.int64())), data, binary)


def selections(statements: pa.StringArray) -> Selections:
    """Return what SELECT_LOB_LOCATOR selects.

    Raises:
        DecodeError: a statement has another form.
    """
    parts = _parts(statements, _SELECT, "SELECT_LOB_LOCATOR")
    binary = as_mask(pc.match_substring_regex(pc.struct_field(parts, "target"), _BINARY))
    table, where = pc.struct_field(parts, "table"), pc.struct_field(parts, "where")
    rows = pc.binary_join_element_wise("delete from ", table, " where ", where, ";", "")
    return Selections(pc.struct_field(parts, "column"), binary, rows)


def _parts(statements: pa.StringArray, pattern: str, kind: str) -> pa.StructArray:
    parts = pc.extract_regex(statements, pattern)
    if parts.null_count:
        raise DecodeError(f"A statement of {kind} in SQL_REDO has a form that isn't known.")
    return parts
