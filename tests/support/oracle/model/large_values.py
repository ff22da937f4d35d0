"""Values that the redo has apart from their rows: CLOB, NCLOB, BLOB, XMLTYPE, and texts of more than 4000 bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.model.redo import Operation
from tests.support.oracle.model.tables import Row, Structure
from tests.support.oracle.model.types import LARGE, OracleType

Content = str | bytes
UNIT = 2
"""Bytes of a character in Oracle's CLOBs."""
LONGEST = 4000
"""Bytes of the longest text that is stored in its row."""
EMPTY_STRING = "LM_EMPTY_STRING"
"""What LogMiner shows in place of a text that comes apart."""


@dataclass(frozen=True)
class Apart:
    """A value that comes apart from its row's statement.

    Attributes:
        value: what it is; None: XML is set to NULL.
        size: how much of it a piece has, in characters or bytes.
        is_binary: whether XML is stored as binary XML.
    """

    value: Content | None
    size: int = 2000
    is_binary: bool = True


@dataclass(frozen=True)
class Later:
    """A value that a second statement sets in its row, as it happens with large objects that are small.

    Attributes:
        value: what it is.
    """

    value: Content


@dataclass(frozen=True)
class Part:
    """What a record says of a large value.

    Attributes:
        column: the column's name.
        data: what is written.
        offset: where, in characters or bytes from 1.
        length: how many of these; what remains, or is erased.
        is_binary: whether XML is stored as binary XML.
    """

    column: str
    data: Content | None = None
    offset: int = 1
    length: int = 0
    is_binary: bool = True


def plain(row: Mapping[str, Any]) -> Row:
    """Return a row's own values."""
    return {name: one.value if isinstance(one, Apart | Later) else one for name, one in row.items()}


def shown_first(structure: Structure, row: Mapping[str, Any]) -> Row:
    """Return the values that the row's statement has."""
    return {name: _placeholder(structure.column(name).type, one) for name, one in row.items()}


def _placeholder(type_: OracleType, value: Any) -> Any:
    if not isinstance(value, Apart | Later):
        return value
    if type_.base not in LARGE:
        return EMPTY_STRING
    return b"" if type_.base == "BLOB" else ""


def parts(structure: Structure, name: str, value: Apart, overwrites: bool) -> Iterator[tuple[Operation, Part]]:
    """Yield the records of a value that comes apart.

    Args:
        structure: of the table.
        name: the column's name.
        value: the value.
        overwrites: whether there may have been another one.
    """
    base = structure.column(name).type.base
    begin, write, end = (
        (Operation.XML_BEGIN, Operation.XML_WRITE, Operation.XML_END)
        if base == "XMLTYPE"
        else (Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, None)
        if base in LARGE
        else (Operation.BEGIN_32K, Operation.WRITE_32K, Operation.END_32K)
    )
    yield begin, Part(name, is_binary=value.is_binary)
    if value.value is None:
        yield write, Part(name, is_binary=value.is_binary)
    offset = 1
    for at in range(0, len(value.value or ""), value.size):
        assert value.value is not None
        data = value.value[at : at + value.size]
        yield write, Part(name, data, offset, units(data), value.is_binary)
        offset += units(data)
    if end is not None:
        yield end, Part(name, is_binary=value.is_binary)
    elif overwrites:
        yield Operation.LOB_TRIM, Part(name, length=offset - 1)


def is_stored_apart(text: str | None) -> bool:
    """Return whether a text is too long for its row."""
    return text is not None and len(text.encode()) > LONGEST


def units(content: Content) -> int:
    """Return a value's length as Oracle counts it: in bytes, or in halves of UTF-16."""
    raw, unit, _ = _raw(content)
    return len(raw) // unit


def written(content: Content | None, offset: int, data: Content) -> Content:
    """Return a large object after ``DBMS_LOB.WRITE``: gaps are filled with blanks, or zero bytes.

    Args:
        content: what it was.
        offset: where, from 1.
        data: what is written there.
    """
    raw, unit, fill = _raw(data[:0] if content is None else content)
    new, _, _ = _raw(data)
    begin = (offset - 1) * unit
    before = raw[:begin] + fill * (max(begin - len(raw), 0) // unit)
    return _content(before + new + raw[begin + len(new) :], data)


def trimmed(content: Content, length: int) -> Content:
    """Return a large object after ``DBMS_LOB.TRIM``."""
    raw, unit, _ = _raw(content)
    return _content(raw[: length * unit], content)


def erased(content: Content, amount: int, offset: int) -> Content:
    """Return a large object after ``DBMS_LOB.ERASE``: blanks or zero bytes, and as long as it was."""
    raw, unit, fill = _raw(content)
    begin = (offset - 1) * unit
    end = min(begin + amount * unit, len(raw))
    return _content(raw[:begin] + fill * ((end - begin) // unit) + raw[end:], content)


def _raw(content: Content) -> tuple[bytes, int, bytes]:
    if isinstance(content, bytes):
        return content, 1, b"\0"
    return content.encode("utf-16-le", "surrogatepass"), UNIT, " ".encode("utf-16-le")


def _content(raw: bytes, like: Content) -> Content:
    return raw if isinstance(like, bytes) else raw.decode("utf-16-le", "surrogatepass")
