"""Numbers, texts and bytes as messages of the protocol have them."""

from __future__ import annotations

CHUNK = 32767
SHORT = 252
LONG = 254


class Reader:
    """Reads a message.

    Args:
        data: the message.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def rest(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def byte(self) -> int:
        """Return one byte as a number."""
        self._at += 1
        return self._data[self._at - 1]

    def number(self) -> int:
        """Return a number: how many bytes it has, then these."""
        return int.from_bytes(self.raw(self.byte() & 0x7F), "big")

    def raw(self, count: int) -> bytes:
        """Return so many bytes."""
        self._at += count
        return self._data[self._at - count : self._at]

    def value(self) -> bytes | None:
        """Return bytes with their length; long ones come in chunks."""
        length = self.byte()
        if length in (0, 255):
            return None
        if length != LONG:
            return self.raw(length)
        found = b""
        while size := self.number():
            found += self.raw(size)
        return found

    def pairs(self, count: int) -> dict[str, bytes]:
        """Return so many names with their values."""
        found = {}
        for _ in range(count):
            name = self.value() if self.number() else b""
            value = self.value() if self.number() else b""
            self.number()
            found[(name or b"").decode()] = value or b""
        return found

    def skip_to(self, mark: bytes) -> None:
        """Go on where the last occurrence of a mark begins."""
        self._at = max(self._data.rfind(mark), self._at)


def number(value: int) -> bytes:
    """Return a number as ``Reader.number`` reads it."""
    if value == 0:
        return b"\0"
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(raw)]) + raw


def with_length(raw: bytes | None) -> bytes:
    """Return bytes as ``Reader.value`` reads them; None is null."""
    if raw is None:
        return b"\0"
    if len(raw) <= SHORT:
        return bytes([len(raw)]) + raw
    parts = [raw[at : at + CHUNK] for at in range(0, len(raw), CHUNK)]
    return bytes([LONG]) + b"".join(number(len(part)) + part for part in parts) + b"\0"


def text(value: bytes) -> bytes:
    """Return a text that has its length twice."""
    return number(len(value)) + with_length(value) if value else number(0)


def pair(name: str, value: str, flags: int = 0) -> bytes:
    """Return a name with its value."""
    return text(name.encode()) + text(value.encode()) + number(flags)
