"""What large values are, by the pieces that LogMiner shows of them."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

Value = str | bytes

_UNIT = 2
"""Oracle counts the characters of CLOBs in halves of UTF-16."""
_BLANK = " ".encode("utf-16-le")


class Unknown(Enum):
    """Stands for a value that can't be told from its pieces."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


class Content(Protocol):
    """A value of which pieces come."""

    def value(self) -> Value | Unknown | None:
        """Return the value; None: it is NULL."""

    def fail(self) -> None:
        """Take note that the value can't be told."""


class LargeObject:
    """The content of a CLOB, NCLOB or BLOB, as ``DBMS_LOB`` changes it.

    Where nothing is known of what it was before, pieces that leave no gap from the beginning on are all of it:
    LogMiner shows values that a statement sets in the same way.

    Args:
        before: what it was before; None: that isn't known.
        is_binary: whether it is a BLOB.
    """

    def __init__(self, before: Value | None, is_binary: bool) -> None:
        self._unit, self._fill = (1, b"\0") if is_binary else (_UNIT, _BLANK)
        self._raw = bytearray(b"" if before is None else self._bytes(before))
        self._known = bytearray(b"\1" * (len(self._raw) // self._unit))
        self._has_known_end = before is not None
        self._fails = False

    def write(self, offset: int, data: Value) -> None:
        """Write a piece; what is between the end and the piece becomes blanks, or zero bytes.

        Args:
            offset: where it begins.
            data: its content.
        """
        if isinstance(data, bytes) != (self._unit == 1):
            self._fails = True
            return
        new = self._bytes(data)
        length = len(new) // self._unit
        if offset > len(self._known):
            self._extend(offset, self._has_known_end)
        self._put(offset, new, length, True)

    def trim(self, length: int) -> None:
        """Leave only the beginning."""
        if length > len(self._known):
            self._extend(length, False)
        del self._raw[length * self._unit :], self._known[length:]
        self._has_known_end = True

    def erase(self, offset: int, length: int) -> None:
        """Overwrite a part with blanks or zero bytes, up to the end at most."""
        end = offset + length
        if end > len(self._known):
            if not self._has_known_end:
                self._fails = True
            end = len(self._known)
        if offset < end:
            self._put(offset, self._fill * (end - offset), end - offset, True)

    def fail(self) -> None:
        """Take note that the value can't be told."""
        self._fails = True

    def value(self) -> Value | Unknown:
        """Return the value."""
        if self._fails or 0 in self._known or not (self._known or self._has_known_end):
            return UNKNOWN
        if self._unit == 1:
            return bytes(self._raw)
        try:
            return self._raw.decode("utf-16-le")
        except UnicodeDecodeError:
            return UNKNOWN

    def _extend(self, length: int, known: bool) -> None:
        missing = length - len(self._known)
        self._put(len(self._known), self._fill * missing, missing, known)

    def _put(self, offset: int, raw: bytes, length: int, known: bool) -> None:
        self._raw[offset * self._unit : (offset + length) * self._unit] = raw
        self._known[offset : offset + length] = bytes([known]) * length

    def _bytes(self, value: Value) -> bytes:
        return value if isinstance(value, bytes) else value.encode("utf-16-le", "surrogatepass")


class Document:
    """The content of XML, or of a text of more than 4000 bytes, whose pieces come one after the other."""

    def __init__(self) -> None:
        self._pieces: list[Value] = []
        self._is_null = False
        self._fails = False

    def add(self, piece: Value | None) -> None:
        """Add a piece; None: the value is NULL."""
        if piece is None:
            self._is_null = True
        else:
            self._pieces.append(piece)

    def fail(self) -> None:
        """Take note that the value can't be told."""
        self._fails = True

    def value(self) -> str | Unknown | None:
        """Return the value; None: it is NULL."""
        if self._fails:
            return UNKNOWN
        if not self._pieces:
            return None if self._is_null else UNKNOWN
        # A character's bytes may be in two pieces.
        raw = b"".join(one if isinstance(one, bytes) else one.encode("utf-8", "surrogatepass") for one in self._pieces)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return UNKNOWN
