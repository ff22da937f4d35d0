"""Fields of many protocol buffers at once; no I/O.

A message is a sequence of fields, each of which begins with its number and the form of its value, so where one begins
is only known once the one before it has been read. So the first fields of all messages are read together, then the
second ones, and so on.

Format: "Encoding" of protobuf.dev.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""Wire types."""
_SEVEN_BITS, _MORE = np.uint8(0x7F), np.uint8(0x80)
_LONGEST_VARINT = 10


@dataclass(frozen=True)
class Fields:
    """The fields of messages, in the order of the messages and of their fields.

    Attributes:
        data: the bytes that the messages are in, shape (bytes,).
        count: how many messages there are.
        message: the message of each field, shape (fields,), ascending.
        number: the fields' numbers, shape (fields,).
        begin: where their values begin in ``data``, shape (fields,).
        value: numbers, or the bits of binary ones; of texts and messages the length; shape (fields,).
        has_length: whether they are texts or messages, shape (fields,).
    """

    data: NDArray[np.uint8]
    count: int
    message: Numbers
    number: Numbers
    begin: Numbers
    value: NDArray[np.uint64]
    has_length: NDArray[np.bool_]

    def places(self, number: int) -> Numbers:
        """Return where the fields with a number are among all."""
        return np.flatnonzero(self.number == number)

    def numbers(self, number: int) -> pa.Int64Array:
        """Return a number of each message, null where it has none.

        Raises:
            DecodeError: one is a text.
        """
        places = self._of(number, False)
        found, known = np.zeros(self.count, np.int64), np.zeros(self.count, np.bool_)
        found[self.message[places]] = self.value[places].view(np.int64)
        known[self.message[places]] = True
        return pa.array(found, mask=~known)

    def texts(self, number: int) -> pa.StringArray:
        """Return a text of each message, null where it has none.

        Raises:
            DecodeError: one isn't UTF-8, or a number.
        """
        places = self._of(number, True)
        begins, lengths = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        known = np.zeros(self.count, np.bool_)
        begins[self.message[places]] = self.begin[places]
        lengths[self.message[places]] = self.value[places].view(np.int64)
        known[self.message[places]] = True
        # What is missing takes no bytes behind what is before it.
        found = slices(self.data, np.where(known, begins, np.maximum.accumulate(begins + lengths)), lengths, known)
        return as_text(found)

    def within(self, number: int) -> Fields:
        """Return the fields of the messages that fields with a number are.

        Raises:
            DecodeError: they aren't messages.
        """
        places = self._of(number, True)
        return read_fields(self.data, self.begin[places], self.begin[places] + self.value[places].view(np.int64))

    def _of(self, number: int, has_length: bool) -> Numbers:
        places = self.places(number)
        if (self.has_length[places] != has_length).any():
            raise _damaged()
        return places


def as_text(found: pa.StringArray) -> pa.StringArray:
    """Return bytes that were read as texts.

    Raises:
        DecodeError: one isn't UTF-8.
    """
    try:
        found.validate(full=True)
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A text in a protocol buffer isn't UTF-8: {exc}") from None
    return found


def read_fields(data: NDArray[np.uint8], begins: Numbers, ends: Numbers) -> Fields:
    """Read messages.

    Args:
        data: the bytes that they are in, shape (bytes,).
        begins: where they begin, shape (messages,), ascending; they don't overlap.
        ends: where they end, shape (messages,).

    Raises:
        DecodeError: they aren't protocol buffers.
    """
    steps: list[tuple[Numbers, Numbers, Numbers, NDArray[np.uint64], NDArray[np.bool_]]] = []
    place, active = begins.astype(np.int64), np.flatnonzero(begins < ends)
    while len(active):
        tag, at = _varints(data, place[active])
        kind = (tag & np.uint64(7)).astype(np.int64)
        begin, value = at.copy(), np.zeros(len(active), np.uint64)
        counted = np.flatnonzero((kind == _VARINT) | (kind == _BYTES))
        value[counted], begin[counted] = _varints(data, at[counted])
        size = np.zeros(len(active), np.int64)
        for wire_type, width in ((_EIGHT, 8), (_FOUR, 4)):
            fixed = np.flatnonzero(kind == wire_type)
            size[fixed] = width
            value[fixed] = _fixed(data, at[fixed], width)
        texts = np.flatnonzero(kind == _BYTES)
        size[texts] = np.minimum(value[texts], np.uint64(len(data) + 1)).astype(np.int64)
        known = (kind == _VARINT) | (kind == _BYTES) | (size > 0)
        until = begin + size
        if not known.all() or (until > ends[active]).any():
            raise _damaged()
        steps.append((active, (tag >> np.uint64(3)).astype(np.int64), begin, value, kind == _BYTES))
        place[active] = until
        active = active[until < ends[active]]
    if not steps:
        none = np.zeros(0, np.int64)
        return Fields(data, len(begins), none, none, none, none.view(np.uint64), none.astype(np.bool_))
    message, number, begin, value, has_length = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    order = np.argsort(message, kind="stable")
    return Fields(data, len(begins), message[order], number[order], begin[order], value[order], has_length[order])


def _varints(data: NDArray[np.uint8], places: Numbers) -> tuple[NDArray[np.uint64], Numbers]:
    """Return the numbers that begin at some places, and where they end."""
    value, at = np.zeros(len(places), np.uint64), places.copy()
    left = np.arange(len(places))
    for count in range(_LONGEST_VARINT):
        if not len(left):
            break
        if at[left].max() >= len(data):
            raise _damaged()
        byte = data[at[left]]
        value[left] |= (byte & _SEVEN_BITS).astype(np.uint64) << np.uint64(7 * count)
        at[left] += 1
        left = left[byte >= _MORE]
    if len(left):
        raise _damaged()
    return value, at


def _fixed(data: NDArray[np.uint8], places: Numbers, width: int) -> NDArray[np.uint64]:
    """Return numbers of a fixed width."""
    if not len(places):
        return np.zeros(0, np.uint64)
    if places.max() + width > len(data):
        raise _damaged()
    read = np.zeros((len(places), 8), np.uint8)
    read[:, :width] = data[places[:, None] + np.arange(width)]
    found: NDArray[np.uint64] = read.view("<u8").reshape(-1)
    return found


def _damaged() -> DecodeError:
    return DecodeError("What OpenLogReplicator has sent is no protocol buffer, or is damaged.")
