"""Transforms the values of columns: masks, hashes and cuts them, or adds the source type to the schema.

A transform wraps a codec. As in Debezium, masks and hashes are for text only; other types keep their values, but their
schema has the parameter ``masked``. Keys are not transformed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import SecretStr

from floodmark.codecs.arrays import as_mask, mapped
from floodmark.codecs.codec import Codec, json_string, quoted, unchanged
from floodmark.events.json_text import FOUR_BYTES, Fragment, string, value_bytes

_SERIAL_SHORT = struct.Struct(">4scH")
_SERIAL_LONG = struct.Struct(">4scQ")
_SERIAL_MAGIC = b"\xac\xed\x00\x05"
_SHORT = 1 << 16
_BEYOND = r"[\x{10000}-\x{10FFFF}]"


class Transform(Protocol):
    """Changes a column's values before events show them."""

    def shown(self, codec: Codec) -> Codec:
        """Return the codec of the values as they are shown."""

    def compared(self, text: pa.StringArray) -> pa.StringArray | None:
        """Return the values to compare to find out whether a shown value has changed; None if it never does."""


@dataclass(frozen=True)
class Mask:
    """Replaces a text, or NULL, by asterisks.

    Attributes:
        length: how many.
        text: whether the column holds text.
    """

    length: int
    text: bool

    def shown(self, codec: Codec) -> Codec:
        """Return the codec of the masks."""
        described = with_parameters(codec, {"masked": "true"})
        if not self.text or codec.schema["type"] != "string":
            return described
        mask = "*" * self.length

        def repeated(text: pa.StringArray) -> pa.StringArray:
            return pa.repeat(pa.scalar(mask), len(text))

        literal = f'"{mask}"'
        return replace(
            described,
            encode=lambda text: quoted(repeated(text)),
            zero=literal,
            unavailable=literal,
            arrow_type=pa.string(),
            to_arrow=repeated,
        )

    def compared(self, text: pa.StringArray) -> pa.StringArray | None:
        """Return None for text, whose masks are all equal; otherwise the values."""
        return None if self.text else text


@dataclass(frozen=True)
class Hash:
    """Replaces a text by a hash of salt and text, in hexadecimal; NULL stays NULL.

    Attributes:
        algorithm: Python's name.
        serialized: whether the text is hashed as Java serialises it, or as UTF-8.
        length: of the column; the hash is cut to it.
        text: whether the column holds text.
    """

    algorithm: str
    salt: SecretStr
    serialized: bool
    length: int
    text: bool

    def shown(self, codec: Codec) -> Codec:
        """Return the codec of the hashes."""
        described = with_parameters(codec, {"masked": "true"})
        if not self.text or codec.schema["type"] != "string":
            return described
        return replace(
            described,
            encode=lambda text: quoted(self._hashes(codec.to_arrow(text))),
            zero=_changed(codec.zero, self._hash),
            unavailable=_changed(codec.unavailable, self._hash),
            arrow_type=pa.string(),
            to_arrow=lambda text: self._hashes(codec.to_arrow(text)),
        )

    def compared(self, text: pa.StringArray) -> pa.StringArray | None:
        """Return the texts: different texts have different hashes."""
        return text

    def _hashes(self, text: pa.StringArray) -> pa.StringArray:
        return mapped(text, text, as_mask(pc.is_valid(text)), self._hash)

    def _hash(self, text: str) -> str:
        data = _serialized(text) if self.serialized else text.encode()
        digest = hashlib.new(self.algorithm, self.salt.get_secret_value().encode() + data).hexdigest()
        return digest[: self.length] if self.length > 0 else digest


@dataclass(frozen=True)
class Truncation:
    """Cuts a text to its first characters, counted as UTF-16 units, or a binary value to its first bytes.

    Attributes:
        length: how many.
        possible: whether the column's type allows longer values.
    """

    length: int
    possible: bool

    def shown(self, codec: Codec) -> Codec:
        """Return the codec of the values that have been cut."""
        if not self.possible:
            return codec
        described = with_parameters(codec, {"truncateLength": str(self.length)})
        kind, name = codec.schema["type"], codec.schema.get("name")
        if kind == "bytes" and name is None:
            cut = json.loads(codec.unavailable)
            return replace(
                described,
                encode=lambda values: codec.encode(self._cut_bytes(values)),
                unavailable=f'"{base64.b64encode(base64.b64decode(cut)[: self.length]).decode()}"',
                to_arrow=lambda values: codec.to_arrow(self._cut_bytes(values)),
            )
        if kind != "string":
            return described
        described = replace(
            described, zero=_changed(described.zero, self._cut), unavailable=_changed(described.unavailable, self._cut)
        )
        if codec.encode is string or (codec.arrow_type == pa.string() and codec.to_arrow is not unchanged):
            return replace(
                described,
                encode=lambda text: self._encode_cut(codec.to_arrow(text)),
                to_arrow=lambda text: self._texts(codec.to_arrow(text)),
            )
        return replace(described, encode=lambda text: self._cut_fragment(codec.encode(text)))

    def _cut_bytes(self, values: pa.Array) -> pa.Array:
        r"""Cut bytes, or their text: ``\x`` and two digits each."""
        if pa.types.is_binary(values.type):
            return pc.binary_slice(values, 0, self.length)
        return pc.utf8_slice_codeunits(values, 0, 2 + 2 * self.length)

    def compared(self, text: pa.StringArray) -> pa.StringArray | None:
        """Return the texts as they are shown."""
        return self._texts(text) if self.possible else text

    def _texts(self, text: pa.StringArray) -> pa.StringArray:
        """Return the cut texts; half a surrogate pair at the end is dropped."""
        cut = pc.utf8_slice_codeunits(text, 0, self.length)
        beyond = _beyond(text)
        return cut if beyond is None else mapped(cut, text, beyond, self._cut)

    def _encode_cut(self, text: pa.StringArray) -> Fragment:
        fragment = string(self._texts(text))
        beyond = _beyond(text)
        if beyond is not None:
            fragment = Fragment(mapped(fragment.text, text, beyond, self._escaped), quoted=True)
        return fragment

    def _cut_fragment(self, fragment: Fragment) -> Fragment:
        """Cut strings that contain nothing to escape."""
        return quoted(pc.utf8_slice_codeunits(fragment.text, 0, self.length)) if fragment.quoted else fragment

    def _cut(self, text: str) -> str:
        return _units(text)[: 2 * self.length].decode("utf-16-be", "ignore")

    def _escaped(self, text: str) -> str:
        """Return a cut text as JSON without its quotes; half a surrogate pair at its end becomes an escape."""
        units = _units(text)[: 2 * self.length]
        whole = self._cut(text)
        half = units[len(_units(whole)) :]
        return json_string(whole)[1:-1] + (f"\\u{int.from_bytes(half, 'big'):04X}" if half else "")


@dataclass(frozen=True)
class SchemaParameters:
    """Keeps values as they are, and adds parameters to their schema."""

    parameters: tuple[tuple[str, str], ...]

    def shown(self, codec: Codec) -> Codec:
        """Return the codec with the parameters."""
        return with_parameters(codec, dict(self.parameters))

    def compared(self, text: pa.StringArray) -> pa.StringArray | None:
        """Return the texts."""
        return text


def with_parameters(codec: Codec, parameters: dict[str, str]) -> Codec:
    """Return a codec with parameters added to its schema."""
    own = codec.schema.get("parameters")
    known = own if isinstance(own, Mapping) else {}
    return replace(codec, schema={**codec.schema, "parameters": {**known, **parameters}})


def _changed(literal: str, function: Callable[[str], str]) -> str:
    """Apply a function to a JSON value if it is a string."""
    value = json.loads(literal)
    return json_string(function(value)) if isinstance(value, str) else literal


def _beyond(text: pa.StringArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Return which texts have characters beyond U+FFFF; None if none has."""
    # In UTF-8, only characters beyond U+FFFF have a byte from 0xF0 on.
    data = value_bytes(text)
    if not len(data) or int(data.max()) < FOUR_BYTES:
        return None
    return as_mask(pc.match_substring_regex(text, _BEYOND))


def _units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _serialized(text: str) -> bytes:
    """Return a string as Java's ``ObjectOutputStream`` writes it."""
    data = text.encode() if text.isascii() and "\0" not in text else _modified_utf8(text)
    if len(data) < _SHORT:
        return _SERIAL_SHORT.pack(_SERIAL_MAGIC, b"t", len(data)) + data
    return _SERIAL_LONG.pack(_SERIAL_MAGIC, b"|", len(data)) + data


def _modified_utf8(text: str) -> bytes:
    """Return Java's modified UTF-8 (``java.io.DataInput``): UTF-16 units encoded one by one, U+0000 in two bytes."""
    units = _units(text)
    halves = (units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(units), 2))
    return "".join(halves).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
