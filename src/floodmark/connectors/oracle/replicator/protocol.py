"""Requests and responses of OpenLogReplicator's network protocol, and how messages are framed.

Each message is preceded by its length, in 4 bytes, little-endian; ``0xFFFFFFFF`` announces a length of 8 bytes.
Requests and responses are protocol buffers (``RedoRequest`` and ``RedoResponse`` of its ``OraProtoBuf.proto``); only
the few fields are written and read here that a client needs. What it streams are documents.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from floodmark.errors import DecodeError

LENGTH = struct.Struct("<I")
LONG_LENGTH = struct.Struct("<Q")
LONG = 0xFFFFFFFF
NO_NUMBER = (1 << 64) - 1
"""How the server writes a change number that it doesn't have."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""Wire types of protocol buffers."""
_SEVEN_BITS, _MORE = 0x7F, 0x80
_LONGEST_VARINT = 10


class RequestCode(IntEnum):
    """What a client asks for."""

    INFO = 0
    START = 1
    CONTINUE = 2
    CONFIRM = 3


class ResponseCode(IntEnum):
    """What the server answers."""

    READY = 0
    FAILED_START = 1
    STARTING = 2
    ALREADY_STARTED = 3
    REPLICATE = 4
    PAYLOAD = 5
    INVALID_DATABASE = 6
    INVALID_COMMAND = 7


@dataclass(frozen=True)
class Request:
    """A ``RedoRequest``.

    Attributes:
        code: what it asks for.
        source: the name of the server's source.
        scn: where it is to begin (``START``); None: not given.
        key: the number ``c_scn`` and the index ``c_idx`` of a message; None: not given.
    """

    code: RequestCode
    source: str
    scn: int | None = None
    key: tuple[int, int] | None = None

    def encode(self) -> bytes:
        """Return the message without its length."""
        name = self.source.encode()
        parts = [_field(1, self.code), _tag(2, _BYTES) + _varint(len(name)) + name]
        if self.scn is not None:
            parts.append(_field(3, self.scn))
        if self.key is not None:
            parts += [_field(8, self.key[0]), _field(9, self.key[1])]
        return b"".join(parts)


@dataclass(frozen=True)
class Response:
    """A ``RedoResponse``.

    Attributes:
        code: what the server answers.
        scn: it sends what was committed behind this number; ``NO_NUMBER``: it doesn't know yet.
        confirmed: the highest number and index that were confirmed since it was started; ``NO_NUMBER``: none were.
    """

    code: int
    scn: int = 0
    confirmed: tuple[int, int] = (NO_NUMBER, 0)

    @classmethod
    def decode(cls, message: bytes) -> Response:
        """Return the response that a message is.

        Raises:
            DecodeError: it is none.
        """
        found = {number: value for number, value in _fields(message) if isinstance(value, int)}
        # Fields with the value 0 aren't written.
        return cls(found.get(1, 0), found.get(2, 0), (found.get(10, 0), found.get(11, 0)))


def framed(message: bytes) -> bytes:
    """Return a message with its length before it."""
    return LENGTH.pack(len(message)) + message


def _tag(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _field(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > _SEVEN_BITS:
        found.append(value & _SEVEN_BITS | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _read_varint(message, place)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, place = _read_varint(message, place)
        elif kind in (_EIGHT, _FOUR):
            size = 8 if kind == _EIGHT else 4
        else:
            raise _no_response()
        if place + size > len(message):
            raise _no_response()
        yield tag >> 3, message[place : place + size]
        place += size


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        if place + count >= len(message):
            break
        byte = message[place + count]
        value |= (byte & _SEVEN_BITS) << 7 * count
        if not byte & _MORE:
            return value, place + count + 1
    raise _no_response()


def _no_response() -> DecodeError:
    return DecodeError("The server's answer is no message of OpenLogReplicator's protocol.")
