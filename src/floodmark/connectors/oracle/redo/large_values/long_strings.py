"""Statements of SQL_REDO about texts of more than 4000 bytes, which LogMiner shows apart from their rows.

These are the forms that Debezium accepts (``ExtendedStringParser``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.connectors.oracle.redo.large_values.large_objects import Selections, selected, unknown_form

_BLOCK = r"(?s)^\s*DECLARE.*?BEGIN.*? Stmt := '(?P<update>.*)';\s*$"
_UPDATE = r'(?s)^update (?P<table>"[^"]+"\."[^"]+") set "(?P<column>[^"]+)" = :\S+ where (?P<where>.*)$'
_BEGIN = 12
"""Where the text begins in 32K_WRITE, behind its first quote."""


def long_strings(statements: pa.StringArray) -> Selections:
    """Return which values 32K_BEGIN says are written next.

    Raises:
        DecodeError: a statement has another form.
    """
    blocks = pc.extract_regex(statements, _BLOCK)
    updates = pc.replace_substring(pc.struct_field(blocks, "update"), "''", "'")
    parts = pc.extract_regex(updates, _UPDATE)
    if blocks.null_count or parts.null_count:
        raise unknown_form("32K_BEGIN")
    return selected(parts, np.zeros(len(parts), np.bool_))


def piece(statement: str) -> str:
    """Return the text that 32K_WRITE writes: it ends before the second semicolon from the end.

    Raises:
        DecodeError: the statement has another form.
    """
    end = statement.rfind(";", 0, max(statement.rfind(";"), 0))
    if end <= _BEGIN or statement[_BEGIN - 1] != "'" or statement[end - 1] != "'":
        raise unknown_form("32K_WRITE")
    return statement[_BEGIN : end - 1].replace("''", "'")
