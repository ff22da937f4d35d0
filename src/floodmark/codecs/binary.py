"""Encodes bytes as ``binary.handling.mode`` requires."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from floodmark.codecs.arrays import offsets_of, strings
from floodmark.codecs.base64_text import encode_base64
from floodmark.codecs.codec import Codec, Settings, quoted
from floodmark.events.json_text import Fragment, value_bytes


def binary(
    settings: Settings,
    decode: Callable[[pa.Array], pa.BinaryArray],
    arrow_type: pa.DataType,
    to_arrow: Callable[[pa.Array], pa.Array],
) -> Codec:
    """Return the codec of bytes, by ``binary.handling.mode``.

    Args:
        settings: the options.
        decode: turns raw values into bytes.
        arrow_type: their type in typed rows.
        to_arrow: turns raw values into that type.
    """
    mode = settings.binary_handling_mode
    url_safe = mode == "base64-url-safe"

    def encode(values: pa.Array) -> Fragment:
        raw = decode(values)
        return quoted(encode_hex(raw) if mode == "hex" else encode_base64(raw, url_safe))

    raw = settings.placeholder_bytes
    encoded = (base64.urlsafe_b64encode(raw) if url_safe else base64.b64encode(raw)).decode()
    return Codec(
        {"type": "bytes" if mode == "bytes" else "string"},
        encode,
        '""',
        settings.placeholder if mode == "hex" else f'"{encoded}"',
        arrow_type,
        to_arrow,
    )


def encode_hex(values: pa.BinaryArray) -> pa.StringArray:
    """Return bytes as lower-case hexadecimal text; null stays null."""
    filled = values.fill_null(b"") if values.null_count else values
    offsets = offsets_of(filled)
    return strings((offsets - offsets[0]) * 2, binascii.hexlify(value_bytes(filled).data), values)


def decode_hex(digits: pa.StringArray) -> pa.BinaryArray:
    """Return the bytes of hexadecimal text; null stays null.

    Raises:
        ValueError: a text isn't hexadecimal.
    """
    filled = digits.fill_null("") if digits.null_count else digits
    offsets = offsets_of(filled)
    if (np.diff(offsets) % 2).any():
        raise ValueError("Hexadecimal text has an odd number of digits.")
    data = binascii.unhexlify(value_bytes(filled).data)
    return strings((offsets - offsets[0]) // 2, data, digits).view(pa.binary())
