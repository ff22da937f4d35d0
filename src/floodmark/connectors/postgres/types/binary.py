"""Codecs of ``bytea``, ``bit`` and ``bit varying``, and of types without a mapping."""

from __future__ import annotations

import base64
import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import lengths_of, mapped, offsets_of, valid
from floodmark.codecs.base64_text import binary_rows, encode_base64
from floodmark.codecs.binary import binary, decode_hex
from floodmark.codecs.codec import Codec, quoted, semantic, unchanged
from floodmark.codecs.text_codecs import boolean
from floodmark.connectors.postgres.types.geometry_text import java_geometry
from floodmark.connectors.postgres.types.settings import PostgresSettings

BITS = "io.debezium.data.Bits"
UNLIMITED = 2_147_483_647
"""The length that Debezium's schema gives a ``bit varying`` that has none."""

_HEX_PREFIX = r"\x"
_WIDEST_MATRIX = 1024
"""Columns with longer bit strings are encoded value by value, as a matrix of rows by bits would be too large."""


def bytea(settings: PostgresSettings) -> Codec:
    """Return the codec of ``bytea``, by ``binary.handling.mode``."""
    return binary(settings, from_server, pa.binary(), from_server)


def unknown(settings: PostgresSettings) -> Codec:
    """Return the codec of types without a mapping: the text's bytes, if ``include.unknown.datatypes`` is set."""
    codec = binary(settings, lambda text: text.cast(pa.binary()), pa.string(), unchanged)
    return dataclasses.replace(codec, known=settings.include_unknown_datatypes)


def unknown_geometry(settings: PostgresSettings) -> Codec:
    """Return the codec of the geometric types without a mapping, whose numbers Debezium's driver reformats."""
    codec = binary(settings, lambda text: java_geometry(text).cast(pa.binary()), pa.string(), unchanged)
    return dataclasses.replace(codec, known=settings.include_unknown_datatypes)


def from_server(text: pa.StringArray) -> pa.BinaryArray:
    r"""Return the bytes of the server's text ``\x00ff``; null stays null."""
    # Neither character of the prefix is a hexadecimal digit.
    return decode_hex(pc.ascii_ltrim(text, _HEX_PREFIX))


def bits(modifier: int, settings: PostgresSettings) -> Codec:
    """Return the codec of ``bit(n)`` and ``bit varying(n)``; of one bit it is a boolean."""
    if modifier == 1:
        return boolean(settings, true="1")
    length = modifier if modifier > 0 else UNLIMITED
    return Codec(
        semantic("bytes", BITS, parameters={"length": str(length)}),
        lambda text: quoted(_little_endian(text)),
        '""',
        "null",
        pa.string(),
        unchanged,
    )


def _little_endian(text: pa.StringArray) -> pa.StringArray:
    """Return base64 of the number's bytes, the lowest first, without trailing zeros (Java's ``BitSet``)."""
    lengths = lengths_of(text)
    width = int(lengths.max(initial=0))
    if width > _WIDEST_MATRIX:
        return mapped(text, text, valid(text), _one_little_endian)
    # A matrix of shape (rows, width), in which column 0 is the last, lowest bit.
    offsets = offsets_of(text)
    where = offsets[1:, None] - 1 - np.arange(width)
    inside = np.arange(width) < lengths[:, None]
    data = text.buffers()[2]
    whole = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    ones = (whole[np.where(inside, where, 0)] == ord("1")) & inside
    packed = np.packbits(ones, axis=1, bitorder="little")
    # Accumulated from the right: true up to each row's last byte that isn't zero.
    used = np.logical_or.accumulate((packed != 0)[:, ::-1], axis=1)[:, ::-1]
    return encode_base64(binary_rows(packed, used, text))


def _one_little_endian(text: str) -> str:
    number = int(text, 2) if text else 0
    return base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()
