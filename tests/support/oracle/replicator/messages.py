"""The stand-in's own reading and writing of requests and responses."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field


@dataclass
class Request:
    """What a client has asked for, by the numbers of the fields."""

    numbers: dict[int, int] = field(default_factory=dict)
    source: str = ""


def send(client: socket.socket, message: bytes) -> None:
    client.sendall(struct.pack("<I", len(message)) + message)


def response(code: int, scn: int = 0, confirmed: tuple[int, int] = (0, 0)) -> bytes:
    numbers = {1: code, 2: scn, 10: confirmed[0], 11: confirmed[1]}
    return b"".join(number_field(number, value) for number, value in numbers.items())


def number_field(number: int, value: int, is_written: bool = False) -> bytes:
    """Return a field with a number, which isn't written if it is 0."""
    return bytes([number << 3]) + _varint(value % (1 << 64)) if value or is_written else b""


def text_field(number: int, content: str | bytes) -> bytes:
    """Return a field with a text, or a message."""
    data = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = b""
    while value >= 128:
        found += bytes([value % 128 + 128])
        value //= 128
    return found + bytes([value])


def request(message: bytes) -> Request:
    found, place = Request(), 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            found.source = message[place : place + value].decode()
            place += value
        else:
            found.numbers[tag >> 3] = value
    return found
