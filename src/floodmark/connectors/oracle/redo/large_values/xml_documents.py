"""Statements of SQL_REDO about XMLTYPE, which LogMiner shows apart from their rows.

There are two forms, for XML that is stored as binary XML and for XML that is stored as text; ``INFO`` says which one it
is. These are the forms that Debezium's ``XmlBeginParser`` and ``XmlWriteParser`` accept.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.connectors.oracle.redo.large_values.large_objects import Selections, selected, unknown_form

_TABLE = r'(?P<table>"[^"]+"\."[^"]+")'
_WHERE = r" where (?P<where>.*?)(?: for update)?;?\s*$"
_BINARY = rf'(?s)^XML DOC BEGIN:\s+select "(?P<column>[^"]+)" from {_TABLE}{_WHERE}'
_TEXT = rf'(?s)^update {_TABLE} a set a\."(?P<column>[^"]+)" = .*?{_WHERE}'
_NOT_EXECUTABLE = "not re-executable"
_PREFIX, _NULL = "XML_REDO := ", "XML_REDO := NULL"
_HEX = "HEXTORAW('"


def documents(statements: pa.StringArray) -> Selections:
    """Return which values XML_BEGIN says are written next.

    Raises:
        DecodeError: a statement has another form.
    """
    binary, text = pc.extract_regex(statements, _BINARY), pc.extract_regex(statements, _TEXT)
    parts = pc.if_else(pc.is_valid(binary), binary.cast(text.type), text) if text.null_count else text
    if parts.null_count:
        raise unknown_form("XML_BEGIN")
    return selected(parts, np.zeros(len(parts), np.bool_))


def piece(statement: str | None, info: str | None) -> str | bytes | None:
    """Return what XML_WRITE writes: text, or bytes of the database's character set; None: the value is NULL.

    Args:
        statement: its text.
        info: ``INFO``.

    Raises:
        DecodeError: the statement has another form.
    """
    if statement is None or not statement.strip() or statement == _NULL:
        return None
    is_binary = statement.startswith(_PREFIX) if info is None else info.endswith(_NOT_EXECUTABLE)
    return _binary_piece(statement) if is_binary else statement


def _binary_piece(statement: str) -> str | bytes:
    if not statement.startswith(_PREFIX):
        raise unknown_form("XML_WRITE")
    content = statement[len(_PREFIX) :]
    if content.startswith("'") and content.rfind("'") > 0:
        return content[1 : content.rfind("'")]
    end = content.rfind(")")
    if not content.startswith(_HEX) or end < 0:
        raise unknown_form("XML_WRITE")
    # Oracle leaves out the last quote.
    try:
        return bytes.fromhex(content[len(_HEX) : end].removesuffix("'"))
    except ValueError:
        raise unknown_form("XML_WRITE") from None
